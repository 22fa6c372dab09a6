"""The peers of Penstock, behind the same HTTP server."""
