"""TODO queries."""
