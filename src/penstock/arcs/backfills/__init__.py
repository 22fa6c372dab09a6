"""Backfills of arcs."""
