"""TODO resources."""
