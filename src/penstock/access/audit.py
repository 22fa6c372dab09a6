"""The audit log of administrative actions.

An entry is written in the transaction of its action: neither exists without the other. Each entry
holds a hash over itself and the entry before it, so a later change or deletion breaks the chain.
The writer lock puts the entries of all servers into one order.
"""

import hashlib
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from penstock.access.caller import caller_address
from penstock.clock import Micros
from penstock.db import Transaction

LOCAL = "local"  # the caller without a key, on a server that needs none
GENESIS = ""  # the hash before the first entry
_PAGE = 500


class AuditEntry(Struct, frozen=True, gc=False):
    """One action: actor, action, target, time and address."""

    at: Micros
    who: str
    action: str
    target: str
    detail: str
    address: str = ""
    id: int = 0
    hash: str = ""


class ChainedEntry(Struct, frozen=True, gc=False):
    """An entry of the chain, with its hash."""

    id: int
    at: Micros
    who: str
    action: str
    target: str
    detail: str
    address: str
    hash: str

    def hash_after(self, previous: str) -> str:
        """Return the hash of an entry that follows one with this hash."""
        return _hash(
            previous, self.at, self.who, self.action, self.target, self.detail, self.address
        )


def append(
    tx: Transaction, at: Micros, who: str, action: str, target: str, detail: str = ""
) -> None:
    """Record an action in its transaction, which holds the writer lock."""
    address = caller_address()
    hash = _hash(_head(tx), at, who, action, target, detail, address)
    tx.execute(
        "add_audit_entry",
        at=at, who=who, action=action, target=target, detail=detail, address=address, hash=hash,
    )  # fmt: skip
    tx.execute("set_audit_head", hash=hash)


def broken_links(tx: Transaction) -> Iterator[str]:
    """Describe each break of the chain."""
    head = tx.fetch_one("audit_head")
    previous, after = GENESIS, 0
    while page := tx.rows(ChainedEntry, "audit_chain_after", after=after, most=_PAGE):
        for entry in page:
            if entry.hash != entry.hash_after(previous):
                yield (
                    f"entry {entry.id} ({entry.action} {entry.target} by {entry.who}) was changed, "
                    "or an entry before it was deleted or inserted"
                )
            previous, after = entry.hash, entry.id
    if head is None:
        yield "the head of the chain is missing"
    elif head[0] != previous:
        yield "the newest entries were deleted: the last one is not the head of the chain"


def entries(
    tx: Transaction,
    limit: int,
    offset: int = 0,
    *,
    who: str | None = None,
    action: str | None = None,
    since: Micros | None = None,
) -> list[AuditEntry]:
    """List entries, newest first: of one key, with a word in the action, since a time."""
    page = {"limit": limit, "offset": offset, "since": since or 0}
    if not action:
        if who:
            return tx.rows(AuditEntry, "audit_entries_of", who=who, **page)
        return tx.rows(AuditEntry, "audit_entries", **page)
    kinds = [kind for (kind,) in tx.fetch("audit_actions") if action in kind]
    if who:
        return tx.rows(AuditEntry, "audit_entries_of_by_action", who=who, actions=kinds, **page)
    return tx.rows(AuditEntry, "audit_entries_by_action", actions=kinds, **page)


def export(tx: Transaction, at: Micros, id: int, limit: int) -> list[ChainedEntry]:
    """List entries by time, oldest first, after the one with this time and id."""
    return tx.rows(ChainedEntry, "audit_export", at=at, id=id, limit=limit)


def _head(tx: Transaction) -> str:
    row = tx.fetch_one("audit_head")
    return str(row[0]) if row else GENESIS


def _hash(previous: str, *parts: str | int) -> str:
    """Return SHA-256 of the JSON array of the former hash and the parts of an entry."""
    return hashlib.sha256(msgspec.json.encode([previous, *parts])).hexdigest()
