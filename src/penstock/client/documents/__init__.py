"""The documents that the server returns."""
