"""The record of actions that need an administrator.

An entry is written in the transaction of the action itself: neither is ever there alone.
"""

from msgspec import Struct

from penstock.clock import Micros
from penstock.db import Transaction

LOCAL = "local"  # who acts without a key, on a server that needs none


class AuditEntry(Struct, frozen=True, gc=False):
    """One action: who did what to what, and when."""

    at: Micros
    who: str
    action: str
    target: str
    detail: str


def append(
    tx: Transaction, at: Micros, who: str, action: str, target: str, detail: str = ""
) -> None:
    """Record an action beside its effect, in the same transaction."""
    tx.execute("add_audit_entry", at=at, who=who, action=action, target=target, detail=detail)


def entries(
    tx: Transaction,
    limit: int,
    offset: int = 0,
    *,
    who: str | None = None,
    action: str | None = None,
    since: Micros | None = None,
) -> list[AuditEntry]:
    """What was recorded, newest first: of somebody, with a word in the action, since a time."""
    page = {"limit": limit, "offset": offset, "since": since or 0}
    if not action:
        if who:
            return tx.rows(AuditEntry, "audit_entries_of", who=who, **page)
        return tx.rows(AuditEntry, "audit_entries", **page)
    kinds = [kind for (kind,) in tx.fetch("audit_actions") if action in kind]
    if who:
        return tx.rows(AuditEntry, "audit_entries_of_by_action", who=who, actions=kinds, **page)
    return tx.rows(AuditEntry, "audit_entries_by_action", actions=kinds, **page)
