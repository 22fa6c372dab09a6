"""TODO subscribers."""
