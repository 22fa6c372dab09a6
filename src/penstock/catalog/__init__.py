"""Who made what from what: namespaces, datasets, jobs, runs, versions and lineage."""
