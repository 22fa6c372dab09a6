"""TODO events."""
