"""TODO backfills."""
