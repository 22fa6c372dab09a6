"""Provenance of lots, verification of their bytes, and checks of all invariants."""
