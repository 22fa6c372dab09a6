"""Penstock: the control plane of a data platform."""

__version__ = "0.1.0"
