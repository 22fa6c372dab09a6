"""Batches and ingest jobs in SQL."""
