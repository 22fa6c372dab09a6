"""Replay: what was made from a bad lot is made again, in order, and nothing else."""
