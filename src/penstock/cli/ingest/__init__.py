"""Commands for ingest."""
