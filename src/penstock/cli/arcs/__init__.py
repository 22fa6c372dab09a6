"""TODO arcs."""
