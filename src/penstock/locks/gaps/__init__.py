"""TODO gaps."""
