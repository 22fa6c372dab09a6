"""Reads of the outbox: the events of lots, in the order of their commits."""

from collections.abc import Sequence
from typing import Final, Literal

from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import Conflict
from penstock.schema.catalog import EntityId
from penstock.schema.subscribers import LotEvent

Outbox = Literal["lots", "runs"]

CHANNEL: Final = "penstock_lots"  # PostgreSQL notifies it at each commit that adds to an outbox
_LAST: dict[Outbox, str] = {"lots": "last_lot_event", "runs": "last_run_end"}


def events_after(tx: Transaction, after: int, most: int) -> Sequence[LotEvent]:
    """Read the events that follow an event, of all datasets."""
    return [
        LotEvent(
            id=id,
            at=format_time(at),
            kind=kind,
            dataset=EntityId(namespace, name),
            lot=lot,
            state=state,
            version=version,
            job=None if job is None else EntityId(job_namespace, job),
            run=run,
        )
        for id, at, kind, namespace, name, lot, state, version, job_namespace, job, run in tx.fetch(
            "lot_events_after", after=after, most=most
        )
    ]


def last_id(tx: Transaction, outbox: Outbox = "lots") -> int:
    """Return the id of the last event, even if it was pruned."""
    row = tx.fetch_one(_LAST[outbox])
    return int(row[0]) if row is not None else pruned_upto(tx, outbox)


def pruned_upto(tx: Transaction, outbox: Outbox = "lots") -> int:
    """Return the id up to which events were pruned, or 0."""
    row = tx.fetch_one("pruned_upto", outbox=outbox)
    return int(row[0]) if row is not None else 0


def check_not_pruned(tx: Transaction, after: int, outbox: Outbox = "lots") -> None:
    """Refuse to continue after an event that never was, or whose successors were pruned.

    0 asks for all events that exist.
    """
    upto = pruned_upto(tx, outbox)
    if after > (last := last_id(tx, outbox)):
        raise Conflict(
            f"there is no event {after}: the last one is {last}. If it existed, the database was "
            f"restored from a backup; read the {outbox} themselves, then continue after {last}"
        )
    if 0 < after < upto:
        raise Conflict(
            f"the events after {after} were pruned up to {upto}; read the {outbox} themselves, "
            f"then continue after {upto}"
        )
