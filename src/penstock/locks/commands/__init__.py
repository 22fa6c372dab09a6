"""The writes of locks, each a frozen value that knows how to apply itself."""

from penstock.locks.claiming import Ref
from penstock.locks.commands.admin import (
    HoldDataset,
    HoldJob,
    HoldLot,
    HoldWork,
    PrioritizeWork,
    ReleaseLock,
    ResubmitLots,
)
from penstock.locks.commands.claims import (
    Claimed,
    ClaimLots,
    CompleteAndClaim,
    CompleteClaims,
    Ended,
    FailClaims,
    HeartbeatClaim,
    MarkFreeRun,
    Pinned,
    ReleaseClaim,
)
from penstock.locks.commands.lots import RegisterLots
from penstock.locks.commands.wiring import WireJob
from penstock.locks.events.receive import LockingEvent
from penstock.locks.lease_expiry import Sweep, Swept

__all__ = [
    "ClaimLots",
    "Claimed",
    "CompleteAndClaim",
    "CompleteClaims",
    "Ended",
    "FailClaims",
    "HeartbeatClaim",
    "HoldDataset",
    "HoldJob",
    "HoldLot",
    "HoldWork",
    "LockingEvent",
    "MarkFreeRun",
    "Pinned",
    "PrioritizeWork",
    "Ref",
    "RegisterLots",
    "ReleaseClaim",
    "ReleaseLock",
    "ResubmitLots",
    "Sweep",
    "Swept",
    "WireJob",
]
