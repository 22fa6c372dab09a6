"""Commands for lots, claims and holds."""
