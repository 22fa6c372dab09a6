from penstock.client import ApiError as ApiError
from penstock.client import AsyncClaim as AsyncClaim
from penstock.client import AsyncClient as AsyncClient
from penstock.client import Claim as Claim
from penstock.client import ClaimLost as ClaimLost
from penstock.client import Client as Client
from penstock.client import Unreachable as Unreachable
from penstock.client import arc as arc
from penstock.client import job as job

__version__: str
