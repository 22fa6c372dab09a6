from penstock.client import Claim, ClaimLost, Client, job

__all__ = ["Claim", "ClaimLost", "Client", "__version__", "job"]

__version__: str
