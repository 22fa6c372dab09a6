"""Penstock: the control plane of a data platform."""

from importlib import import_module

__version__ = "0.1.0"
__all__ = [
    "ApiError",
    "AsyncClaim",
    "AsyncClient",
    "Claim",
    "ClaimLost",
    "Client",
    "Unreachable",
    "__version__",
    "arc",
    "job",
]


def __getattr__(name: str) -> object:
    """Import the Python client on demand, so that commands start fast without it."""
    if name not in __all__:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    found: object = getattr(import_module("penstock.client"), name)
    return found
