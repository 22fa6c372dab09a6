"""TODO lots."""
