"""TODO routes."""
