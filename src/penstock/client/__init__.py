"""The Python client of the HTTP API."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.aio import AsyncClient
    from penstock.client.claims import AsyncClaim, AsyncClaims, Claim, ClaimLost, Claims
    from penstock.client.errors import ApiError, Unreachable
    from penstock.client.sync import Client
    from penstock.client.worker import JobFunction, arc, job

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
_MODULES = {
    "ApiError": "errors",
    "AsyncClaim": "claims",
    "AsyncClaims": "claims",
    "AsyncClient": "aio",
    "Claim": "claims",
    "ClaimLost": "claims",
    "Claims": "claims",
    "Client": "sync",
    "JobFunction": "worker",
    "Unreachable": "errors",
    "arc": "worker",
    "job": "worker",
}


def __getattr__(name: str) -> object:
    """Import a module when one of its names is used, so that commands start fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'penstock.client' has no attribute {name!r}")
    value: object = getattr(import_module(f"penstock.client.{_MODULES[name]}"), name)
    return value
