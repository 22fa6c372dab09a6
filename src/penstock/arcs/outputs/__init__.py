"""TODO outputs."""
