"""Measurements: what one server does per second, and how long its answers take."""
