"""TODO admin."""
