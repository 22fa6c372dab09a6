"""The invariants of Penstock as checks of a running system."""

from penstock.provenance.checks import (
    access,
    arcs,
    catalog,
    ingest,
    locks,
    lots,
    objects,
    operations,
)
from penstock.provenance.checks.invariant import Grounds, Invariant

__all__ = ["ALL", "Grounds", "Invariant"]

ALL: tuple[Invariant, ...] = (
    *access.INVARIANTS,
    *catalog.INVARIANTS,
    *locks.INVARIANTS,
    *lots.INVARIANTS,
    *arcs.INVARIANTS,
    *objects.INVARIANTS,
    *operations.INVARIANTS,
    *ingest.INVARIANTS,
)
