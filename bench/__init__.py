"""Benchmarks: throughput and latency of one server."""
