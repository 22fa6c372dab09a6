"""Logs, traces and their export."""
