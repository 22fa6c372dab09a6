"""Stored objects, their identifiers and their descriptions."""
