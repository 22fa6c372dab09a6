"""TODO queue."""
