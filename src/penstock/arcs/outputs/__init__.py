"""Outputs of arcs: state keys, cleaning, removal."""
