"""Reads of held lots and of their holds."""

from penstock.catalog.rows import replace
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.locks.explain import advice
from penstock.locks.explain.facts import HoldEntry, LotMaker
from penstock.locks.hold_reasons import QUALITY
from penstock.locks.queries.claims import TOTAL_MAX, find_dataset
from penstock.locks.rows import ReasonsRow
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import check_lot
from penstock.schema.lots import HeldLot, LotHold, LotHoldKind
from penstock.schema.shape import Page

NOT_HELD = LotHold(None, None, None, None, None, None, None)


def get_lot_hold(tx: Transaction, namespace: str, dataset: str, lot: str) -> LotHold:
    """Read the hold of a lot, with the command that ends it."""
    dataset_id = find_dataset(tx, namespace, dataset)
    which = {"ids": [dataset_id], "lot": check_lot(lot)}
    makers = tx.fetch("read_makers_of_lot", **which)
    maker = LotMaker(*makers[0][1:]) if makers else None
    if maker is None or not maker.is_held:
        return NOT_HELD
    held_by = {"lot": lot, "jobs": [maker.job_id], "datasets": [dataset_id]}
    rows, stops = tx.fetch_many([("read_reasons_of_lot", which), ("read_holds_of_lot", held_by)])
    entries = [
        HoldEntry(*stop)
        for job, dataset_of, *stop in stops
        if (dataset_of is None) == maker.is_spent
    ]
    hold = LotHold(
        kind=LotHoldKind.PERSON,
        who=entries[-1].who if entries else None,
        why=entries[-1].why if entries else None,
        since=format_time(maker.since),
        source=None,
        job=None,
        command=advice.release_lot(f"{namespace}/{dataset}", lot),
    )
    reasons = [reason for row in rows for reason in ReasonsRow(*row).reasons]
    if maker.is_spent:
        return _out_of_attempts(hold, maker, lot)
    if QUALITY in reasons:
        command = advice.accept_lot(f"{namespace}/{dataset}", lot)
        return replace(hold, kind=LotHoldKind.CHECKS, command=command)
    if reasons and dataset_id not in reasons:
        [(_, *name)] = tx.fetch("read_dataset_names", ids=reasons[:1])
        command = advice.release_lot("/".join(name), lot)
        return replace(hold, kind=LotHoldKind.UPSTREAM, source=EntityId(*name), command=command)
    return hold


def _out_of_attempts(hold: LotHold, maker: LotMaker, lot: str) -> LotHold:
    """Describe the hold of a spent job; if the job was deleted, only the lot can be released."""
    if maker.namespace is None or maker.name is None:
        return hold
    job = EntityId(maker.namespace, maker.name)
    command = advice.retry(f"{job.namespace}/{job.name}", lot)
    return replace(hold, kind=LotHoldKind.ATTEMPTS, job=job, command=command)


def list_held_lots(
    tx: Transaction, namespace: str | None, *, for_checks: bool, limit: int, offset: int
) -> Page[HeldLot]:
    """List held lots, the last held first; with `for_checks`, only those with failed checks."""
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
