"""The calls of the Python client, by resource."""
