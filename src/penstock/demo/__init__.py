"""TODO demo."""
