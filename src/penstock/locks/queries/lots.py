"""Reads of lots, of the work of jobs on them, and of their log."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from penstock import ids
from penstock.catalog.entities.job_versions import name_in_version
from penstock.catalog.entities.runs import lot_facet
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.queries.jobs import get_job
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.db.database import Ask, Row
from penstock.errors import NotFound
from penstock.locks.explain.text import ask_why
from penstock.locks.queries.claims import (
    TOTAL_MAX,
    find_claimed_run,
    find_dataset,
    get_lot_job,
    lock_names,
)
from penstock.locks.rows import HOLD_SENTINEL, CheckRow, LotJobRow, WorkRow
from penstock.schema.catalog import DatasetRole, EntityId
from penstock.schema.locks import Work, WorkPage
from penstock.schema.lot_ids import check_lot
from penstock.schema.lots import (
    CheckOfLot,
    CheckResult,
    Consumer,
    DatasetChecks,
    Lot,
    LotChecks,
    Status,
    Transition,
)
from penstock.schema.shape import Page, time_or_none
from penstock.states import WorkState

NAMED_READ_MAX = 1000  # lots of a dataset that are read at either end to find free names

# The statements that list work by state; all other states share one.
_LISTED_BY = {
    None: "work",
    WorkState.DONE: "done_work",
    WorkState.READY: "ready_work",
    WorkState.RUNNING: "running_work",
}


def get_work(tx: Transaction, namespace: str, job: str, lot: str) -> Work:
    """Read a job's work on one lot."""
    found = load_work(tx, namespace, job, [lot])
    if not found:
        raise NotFound(
            f"job {namespace}/{job} has never met lot {lot}; {ask_why(namespace, job, lot)}"
        )
    return found[0]


def load_work(tx: Transaction, namespace: str, job: str, lots: Sequence[str]) -> list[Work]:
    """Read a job's work on these lots, in their order; lots that are new to it are left out."""
    row = get_lot_job(tx, namespace, job)
    wanted = [check_lot(lot) for lot in dict.fromkeys(lots)]
    found = tx.rows(WorkRow, "lot_work_by_lots", job_id=row.job_id, lots=wanted)
    rows = {work.lot: work for work in found}
    return [_work(rows[lot], row, namespace, job) for lot in wanted if lot in rows]


def list_work(
    tx: Transaction, namespace: str, job: str, state: WorkState | None, limit: int, offset: int
) -> Page[Work]:
    """List a job's work: in one state by priority, or all by lot."""
    row = get_lot_job(tx, namespace, job)
    which = {"job_id": row.job_id}
    kind = _LISTED_BY.get(state)
    if kind is None:
        kind, which = "stuck_work", {**which, "state": str(state)}
    asks: list[Ask] = [
        (f"read_{kind}", {**which, "limit": limit, "offset": offset}),
        (f"count_{kind}", {**which, "most": TOTAL_MAX}),
    ]
    rows, [(count,)] = tx.fetch_many(asks)
    shown = [_work(WorkRow(*found), row, namespace, job) for found in rows]
    return Page(shown, max(count, offset + len(rows)))


def _work(row: WorkRow, job: LotJobRow, namespace: str, name: str) -> Work:
    live = row.state == WorkState.RUNNING
    return Work(
        namespace=namespace,
        job=name,
        lot=row.lot,
        state=WorkState(row.state),
        priority=-row.rank,
        attempts=row.tries,
        attempts_max=job.tries_max,
        token=row.token,
        claim=row.run_id,
        owner=row.owner or None,
        lease_until=format_time(row.lease_until) if live else None,
        not_before=time_or_none(row.not_before or None),
        since=format_time(row.since),
        error=row.error or None,
        stale_since=time_or_none(row.stale_since or None),
    )


def list_stale(
    tx: Transaction, namespace: str | None, job: str | None, limit: int, offset: int
) -> WorkPage:
    """List lots that are done with inputs that have newer versions."""
    which = {"namespace": namespace or "", "job": job or "", "limit": limit, "offset": offset}
    rows = tx.fetch("read_stale_work", **which)
    return WorkPage(
        [_work(WorkRow(*row[2:18]), LotJobRow(*row[18:]), row[0], row[1]) for row in rows]
    )


def list_lot_checks(tx: Transaction, namespace: str, dataset: str, lot: str) -> LotChecks:
    """List the check results of a lot."""
    dataset_id = find_dataset(tx, namespace, dataset)
    rows = tx.rows(CheckRow, "read_lot_checks", dataset_id=dataset_id, lot=check_lot(lot))
    return LotChecks([CheckResult(*_result(row)) for row in rows])


def list_dataset_checks(
    tx: Transaction, namespace: str, dataset: str, limit: int, offset: int, *, failed: bool
) -> DatasetChecks:
    """List the check results of the lots of a dataset, or only failures."""
    dataset_id = find_dataset(tx, namespace, dataset)
    statement = "read_dataset_checks_failed" if failed else "read_dataset_checks"
    rows = tx.rows(CheckRow, statement, dataset_id=dataset_id, limit=limit, offset=offset)
    return DatasetChecks([CheckOfLot(*_result(row), row.lot) for row in rows])


def _result(row: CheckRow) -> tuple[str, str, str | None, bool, str | None, str | None, str]:
    """Return the fields of a check result, in order."""
    field, detail, at = row.field or None, row.detail or None, format_time(row.at)
    return row.version_id, row.name, field, bool(row.success), detail, row.run_id, at


def list_lots(tx: Transaction, namespace: str, dataset: str, limit: int, offset: int) -> Page[Lot]:
    """List the lots of a dataset, by lot."""
    dataset_id = find_dataset(tx, namespace, dataset)
    which = {"dataset_id": dataset_id}
    rows, [(count,)] = tx.fetch_many(
        [
            ("read_lots", {**which, "limit": limit, "offset": offset}),
            ("count_lots", {**which, "most": TOTAL_MAX}),
        ]
    )
    consumers = _consumers(tx, dataset_id, [row[0] for row in rows])
    shown = [_lot(row, namespace, dataset, consumers[row[0]]) for row in rows]
    return Page(shown, max(count, offset + len(rows)))


def list_named_lots(
    tx: Transaction, namespace: str, dataset: str, limit: int, offset: int
) -> Page[Lot]:
    """List the lots of a dataset with free ids, by lot."""
    dataset_id = find_dataset(tx, namespace, dataset)
    page = {"limit": limit, "offset": offset}
    rows = tx.fetch("read_named_lots", dataset_id=dataset_id, most=NAMED_READ_MAX, **page)
    consumers = _consumers(tx, dataset_id, [row[0] for row in rows])
    shown = [_lot(row[:-1], namespace, dataset, consumers[row[0]]) for row in rows]
    return Page(shown, rows[0][-1] if rows else offset)


def get_lot(tx: Transaction, namespace: str, dataset: str, lot: str) -> Lot:
    """Read one lot of a dataset, or raise NotFound."""
    found = show_lot(tx, namespace, dataset, lot)
    if found.status is None:
        raise NotFound(
            f"dataset {namespace}/{dataset} has no lot {lot}; list its lots, or register it"
        )
    return found


def show_lot(tx: Transaction, namespace: str, dataset: str, lot: str) -> Lot:
    """Read one lot of a dataset, even if it has no row."""
    dataset_id = find_dataset(tx, namespace, dataset)
    row = tx.fetch_one("read_lot", dataset_id=dataset_id, lot=check_lot(lot))
    consumers = _consumers(tx, dataset_id, [lot])[lot]
    if row is not None:
        return _lot(row, namespace, dataset, consumers)
    return Lot(namespace, dataset, lot, None, None, None, None, None, [], consumers)


def _consumers(tx: Transaction, dataset_id: str, lots: Sequence[str]) -> dict[str, list[Consumer]]:
    found: dict[str, list[Consumer]] = defaultdict(list)
    which = {"dataset_id": dataset_id, "nowhere": HOLD_SENTINEL, "lots": list(lots)}
    rows = tx.fetch("read_consumers", **which) if lots else ()
    for lot, namespace, job, status, version, since in rows:
        found[lot].append(Consumer(namespace, job, Status(status), version, format_time(since)))
    return found


def _lot(row: Row, namespace: str, dataset: str, consumers: Sequence[Consumer]) -> Lot:
    lot, _, status, run_id, version_id, since, job_namespace, job_name = row
    return Lot(
        namespace=namespace,
        dataset=dataset,
        lot=lot,
        status=Status(status),
        version=version_id,
        job=EntityId(job_namespace, job_name) if job_name is not None else None,
        run=run_id,
        since=format_time(since),
        locks=lock_names(DatasetRole.OUTPUT, Status(status)),
        consumers=consumers,
    )


def list_log_of_job(
    tx: Transaction, namespace: str, job: str, lot: str | None, limit: int, offset: int
) -> list[Transition]:
    """List the transitions of a job's lots, or of one of them, newest first."""
    get_job(tx, namespace, job)  # an unwired job whose events were refused has a log
    which = {"job_id": ids.job_id(namespace, job)}
    if lot is None:
        return _log(tx, "read_log_of_job", which, limit, offset)
    return _log(tx, "read_log_of_work", {**which, "lot": check_lot(lot)}, limit, offset)


def list_log_of_lot(
    tx: Transaction, namespace: str, dataset: str, lot: str, limit: int, offset: int
) -> list[Transition]:
    """List the transitions of one lot of a dataset, newest first.

    They include the work of jobs that read or write the dataset, or did so with this lot before,
    but not their work on lots of other datasets.
    """
    found = find_dataset(tx, namespace, dataset)
    which = {"dataset_id": found, "lot": check_lot(lot)}
    rows, names = tx.fetch_many(
        [("read_jobs_of_lot", which), ("read_dataset_names", {"ids": [found]})]
    )
    [(_, *name)] = names  # a second name may have led here
    of_jobs = {"jobs": [job for (job,) in rows], "named": name_in_version(DatasetName(*name))}
    return _log(tx, "read_log_of_lot", {**which, **of_jobs}, limit, offset)


def list_log_of_run(tx: Transaction, run_id: str, limit: int, offset: int) -> list[Transition]:
    """A page of the transitions of a claim, newest first."""
    run = find_claimed_run(tx, run_id)
    facet = lot_facet(run.facets) if run is not None else None
    if run is None or facet is None:
        return []
    which = {"job_id": run.job_id, "run_id": run.id, "lots": list(facet.all_lots)}
    return _log(tx, "read_log_of_run", which, limit, offset)


def _log(
    tx: Transaction, statement: str, which: Mapping[str, object], limit: int, offset: int
) -> list[Transition]:
    rows = tx.fetch(statement, **which, limit=limit, offset=offset)
    return [Transition(format_time(at), *rest) for at, *rest in rows]


READ_MAX = 1000
_LAST_CHARACTER = "\U0010ffff"


class LotMatch(Struct, frozen=True):
    """A lot whose id begins with the search text."""

    dataset: EntityId
    lot: str
    status: Status


def find_lots(tx: Transaction, text: str, namespace: str | None, limit: int) -> list[LotMatch]:
    """Find the lots whose ids begin with a text, in one namespace or in all."""
    if not text:
        return []
    rows = tx.fetch(
        "find_lots",
        first=text,
        last=text + _LAST_CHARACTER,
        namespace=namespace,
        most=limit if namespace is None else READ_MAX,
        limit=limit,
    )
    return [
        LotMatch(EntityId(namespace=owner, name=name), lot, Status(status))
        for owner, name, lot, status in rows
    ]
