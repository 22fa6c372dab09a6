"""Reads of the lots that are held, whatever dataset they are of, and for what."""

from collections.abc import Sequence

from penstock.catalog.shapes import EntityId, Page, Shape
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.locks.held import QUALITY
from penstock.locks.reading import TOTAL_MAX


class HeldLot(Shape, frozen=True):
    """A lot that nobody may read or write; `who` held it last.

    `for_checks` says that checks of it failed and that it can be accepted, `by_hand` that it can be
    let go; if neither, what it was made from is held.
    """

    namespace: str
    dataset: str
    lot: str
    for_checks: bool
    by_hand: bool
    version: str | None
    run: str | None
    job: EntityId | None
    who: str
    why: str
    since: str


class HeldLots(Shape, frozen=True):
    """A part of the lots that are held, and how many there are, counted up to ten thousand."""

    lots: Sequence[HeldLot]
    total_count: int


def list_held_lots(
    tx: Transaction, namespace: str | None, *, for_checks: bool, limit: int, offset: int
) -> Page[HeldLot]:
    """A page of the lots that are held, the last held first; or of those that checks hold."""
    which = {"namespace": namespace or "", "reason": f"%{QUALITY}%" if for_checks else "%"}
    rows, [(count,)] = tx.fetch_many(
        [
            ("read_held_lots", {**which, "limit": limit, "offset": offset}),
            ("count_held_lots", {**which, "most": TOTAL_MAX}),
        ]
    )
    return Page([_held(row) for row in rows], max(count, offset + len(rows)))


def _held(row: Row) -> HeldLot:
    namespace, dataset, lot, own_id, reasons, *made, since, who, why = row
    version, run, job_namespace, job = made
    return HeldLot(
        namespace=namespace,
        dataset=dataset,
        lot=lot,
        for_checks=QUALITY in reasons,
        by_hand=own_id in reasons,
        version=version,
        run=run,
        job=EntityId(job_namespace, job) if job is not None else None,
        who=who or "",
        why=why or "",
        since=format_time(since),
    )
