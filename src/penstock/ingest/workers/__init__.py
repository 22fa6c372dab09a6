"""TODO workers."""
