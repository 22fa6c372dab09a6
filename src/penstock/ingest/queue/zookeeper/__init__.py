"""The ingest queue in ZooKeeper."""
