"""Runs that OpenLineage events report, and the lots they lock."""
