from penstock.client import Claim, ClaimLost, Client, arc, job

__all__ = ["Claim", "ClaimLost", "Client", "__version__", "arc", "job"]

__version__: str
