"""Commands for arcs."""
