"""Commands for administration."""
