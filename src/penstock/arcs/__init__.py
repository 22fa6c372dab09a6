"""Arcs: lots in, lots out. Subscriptions, workloads, parts, the engine, backfills."""
