"""Replays: everything made from bad lots is made again, in order."""
