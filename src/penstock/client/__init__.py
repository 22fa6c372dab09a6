"""The Python client: everything that a Penstock server shows, over HTTP."""

from penstock.client.arc_decorator import arc
from penstock.client.claim import Claim, ClaimLost
from penstock.client.claims import Claims
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
    "arc",
    "job",
]
