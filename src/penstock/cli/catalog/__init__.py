"""TODO catalog."""
