"""Invariants of the audit log: no entry was changed or deleted."""

from collections.abc import Iterator
from typing import Final

from penstock.access import audit
from penstock.provenance.checks.invariant import Grounds, Invariant


def audit_chain_holds(grounds: Grounds) -> Iterator[str]:
    """Yield entries of the audit log that do not fit the entry before them."""
    with grounds.database.read() as tx:
        yield from audit.broken_links(tx)


INVARIANTS: Final = (
    Invariant(
        "audit-chain",
        "no entry of the audit log was changed, inserted or deleted",
        audit_chain_holds,
    ),
)
