"""Ingest: batches of deposits and their jobs, which pass the stages through a durable queue."""
