"""Arrivals: objects that become lots."""
