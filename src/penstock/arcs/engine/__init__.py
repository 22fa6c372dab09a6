"""The engine: scheduling, lot runs and leases."""
