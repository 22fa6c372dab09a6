"""The queue of batches and ingest jobs: one port, two backends."""
