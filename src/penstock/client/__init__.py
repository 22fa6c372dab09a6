"""The Python client: everything that a Penstock server shows, over HTTP."""

from penstock.client.claims import Claim, ClaimLost, Claims
from penstock.client.client import ApiError, Client, Unreachable
from penstock.client.worker import JobFunction, job

__all__ = [
    "ApiError",
    "Claim",
    "ClaimLost",
    "Claims",
    "Client",
    "JobFunction",
    "Unreachable",
    "job",
]
