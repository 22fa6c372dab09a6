"""TODO lineage."""
