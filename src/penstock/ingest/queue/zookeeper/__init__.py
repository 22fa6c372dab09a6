"""Batches and ingest jobs in ZooKeeper."""
