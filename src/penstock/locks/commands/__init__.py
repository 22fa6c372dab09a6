"""The writes of locks, each a frozen command."""

from penstock.locks.claiming import ClaimRef
from penstock.locks.commands.admin import EndClaim, PrioritizeWork, ResubmitLots
from penstock.locks.commands.claims import (
    ClaimDataset,
    ClaimedLot,
    ClaimLots,
    ClaimResult,
    CompleteAndClaim,
    CompleteClaims,
    FailClaims,
    MarkUnclaimedRun,
    ReleaseClaim,
    RenewClaim,
)
from penstock.locks.commands.holds import HoldDataset, HoldJob, HoldLot, HoldWork
from penstock.locks.commands.lots import RegisterLots
from penstock.locks.commands.wiring import WireJob
from penstock.locks.events.reported_runs import LockingEvent
from penstock.locks.lease_expiry import Sweep, SweepResult

__all__ = [
    "ClaimDataset",
    "ClaimLots",
    "ClaimRef",
    "ClaimResult",
    "ClaimedLot",
    "CompleteAndClaim",
    "CompleteClaims",
    "EndClaim",
    "FailClaims",
    "HoldDataset",
    "HoldJob",
    "HoldLot",
    "HoldWork",
    "LockingEvent",
    "MarkUnclaimedRun",
    "PrioritizeWork",
    "RegisterLots",
    "ReleaseClaim",
    "RenewClaim",
    "ResubmitLots",
    "Sweep",
    "SweepResult",
    "WireJob",
]
