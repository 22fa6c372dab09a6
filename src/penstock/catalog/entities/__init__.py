"""TODO entities."""
