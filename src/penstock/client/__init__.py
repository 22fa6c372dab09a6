"""The Python client: everything that a Penstock server shows, over HTTP."""

from penstock.client.client import ApiError, Client, Unreachable

__all__ = ["ApiError", "Client", "Unreachable"]
