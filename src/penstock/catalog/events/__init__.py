"""Received OpenLineage events: parsed, checked and applied."""
