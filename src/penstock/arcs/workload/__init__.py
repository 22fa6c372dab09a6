"""TODO workload."""
