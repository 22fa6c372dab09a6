"""The Python client: everything that a Penstock server shows, over HTTP."""

from penstock.client.arc_decorator import arc
from penstock.client.async_client import AsyncClient
from penstock.client.claim import AsyncClaim, Claim
from penstock.client.claims import AsyncClaims, Claims
from penstock.client.client import Client
from penstock.client.hold import ClaimLost
from penstock.client.refusals import ApiError, Unreachable
from penstock.client.worker import JobFunction, job

__all__ = [
    "ApiError",
    "AsyncClaim",
    "AsyncClaims",
    "AsyncClient",
    "Claim",
    "ClaimLost",
    "Claims",
    "Client",
    "JobFunction",
    "Unreachable",
    "arc",
    "job",
]
