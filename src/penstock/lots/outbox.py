"""Reading the outbox: what happened to lots, in the order in which it was committed."""

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
    """The first events after one, of all datasets."""
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
    """The id of the last event there was, whether it is still kept or not."""
    row = tx.fetch_one(_LAST[outbox])
    return int(row[0]) if row is not None else pruned_upto(tx, outbox)


def pruned_upto(tx: Transaction, outbox: Outbox = "lots") -> int:
    """The id up to which events were pruned; 0 if none was."""
    row = tx.fetch_one("pruned_upto", outbox=outbox)
    return int(row[0]) if row is not None else 0


def check_not_pruned(tx: Transaction, after: int, outbox: Outbox = "lots") -> None:
    """Refuse to go on after an event when some that followed it are gone, or that never was.

    To begin at 0 is to ask for all that is kept.
    """
    upto = pruned_upto(tx, outbox)
    if after > (last := last_id(tx, outbox)):
        raise Conflict(
            f"there is no event {after}: the last one is {last}. If there was, an older database "
            f"was put in place since; look at the {outbox} themselves, then go on after {last}"
        )
    if 0 < after < upto:
        raise Conflict(
            f"the events after {after} were pruned up to {upto}; look at the {outbox} themselves, "
            f"then go on after {upto}"
        )
