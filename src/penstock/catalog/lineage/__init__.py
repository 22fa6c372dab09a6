"""Lineage graphs of datasets, jobs, columns and runs."""
