"""Rules for datasets, jobs, runs, versions and names."""
