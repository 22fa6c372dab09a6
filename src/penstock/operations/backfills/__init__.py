"""Backfills of arcs: lots of a range or a list, repaired a few at a time."""
