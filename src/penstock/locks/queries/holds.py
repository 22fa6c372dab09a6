"""Reads of the lots that are held, in whatever dataset, and of what holds them."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.catalog.rows import replace
from penstock.catalog.shapes import EntityId, Page, Shape
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.locks.explain import advice
from penstock.locks.explain.facts import Maker, Stop
from penstock.locks.queries.claims import TOTAL_MAX, find_dataset
from penstock.locks.queries.hold_reasons import QUALITY
from penstock.locks.rows import ReasonsRow
from penstock.lots.ids import check_lot


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


class HoldKind(StrEnum):
    """What holds a lot."""

    PERSON = "PERSON"
    CHECKS = "CHECKS"  # checks of it failed; a person may accept it
    UPSTREAM = "UPSTREAM"  # a lot that it was made from is held
    ATTEMPTS = "ATTEMPTS"  # the job that makes it is out of tries with it


class LotHold(Shape, frozen=True):
    """What holds a lot; no kind if nothing does.

    `source` is the dataset whose lot is held for UPSTREAM, `job` the job that is out of tries for
    ATTEMPTS. `command` is what a person can type to end the hold.
    """

    kind: HoldKind | None
    who: str | None
    why: str | None
    since: str | None
    source: EntityId | None
    job: EntityId | None
    command: str | None


NOT_HELD = LotHold(None, None, None, None, None, None, None)


def get_lot_hold(tx: Transaction, namespace: str, dataset: str, lot: str) -> LotHold:
    """What holds a lot of a dataset, and the command that ends it."""
    dataset_id = find_dataset(tx, namespace, dataset)
    which = {"ids": [dataset_id], "lot": check_lot(lot)}
    makers = tx.fetch("read_makers_of_lot", **which)
    maker = Maker(*makers[0][1:]) if makers else None
    if maker is None or not maker.is_held:
        return NOT_HELD
    held_by = {"lot": lot, "jobs": [maker.job_id], "datasets": [dataset_id]}
    rows, stops = tx.fetch_many([("read_reasons_of_lot", which), ("read_holds_of_lot", held_by)])
    own = [
        Stop(*stop) for job, dataset_of, *stop in stops if (dataset_of is None) == maker.is_spent
    ]
    hold = LotHold(
        kind=HoldKind.PERSON,
        who=own[-1].who if own else None,
        why=own[-1].why if own else None,
        since=format_time(maker.since),
        source=None,
        job=None,
        command=advice.unhold_lot(f"{namespace}/{dataset}", lot),
    )
    reasons = [reason for row in rows for reason in ReasonsRow(*row).reasons]
    if maker.is_spent:
        return _out_of_attempts(hold, maker, lot)
    if QUALITY in reasons:
        command = advice.accept_lot(f"{namespace}/{dataset}", lot)
        return replace(hold, kind=HoldKind.CHECKS, command=command)
    if reasons and dataset_id not in reasons:
        [(_, *name)] = tx.fetch("read_dataset_names", ids=reasons[:1])
        command = advice.unhold_lot("/".join(name), lot)
        return replace(hold, kind=HoldKind.UPSTREAM, source=EntityId(*name), command=command)
    return hold


def _out_of_attempts(hold: LotHold, maker: Maker, lot: str) -> LotHold:
    """The job may be deleted by now; then only the lot itself can be released."""
    if maker.namespace is None or maker.name is None:
        return hold
    job = EntityId(maker.namespace, maker.name)
    command = advice.retry(f"{job.namespace}/{job.name}", lot)
    return replace(hold, kind=HoldKind.ATTEMPTS, job=job, command=command)


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
