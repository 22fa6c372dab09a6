"""Permissions, keys and the audit log."""
