"""What becomes of it: objects, their identifiers and descriptions."""
