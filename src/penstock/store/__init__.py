"""The write engine: unit of work, table caches, write queue and flush."""
