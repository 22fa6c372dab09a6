"""Ingest daemons and their backoff."""
