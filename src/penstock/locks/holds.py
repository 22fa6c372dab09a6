"""Holds that follow the data: lots that were made of a held lot are held with it.

The reasons of a hold are stored beside the lot: the lot itself, or lots of other datasets that it
was made from. A lot is released when no reason is left, and after the lots it was made from.
"""

from collections.abc import Iterator

from msgspec import Struct

from penstock.catalog.rows import DatasetRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.locks import work_state
from penstock.locks.hold_reasons import add_reason, announce_if_readable, drop_reason
from penstock.locks.rows import LINEAGE, LogRow, LotHoldRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status


class DerivedLot(Struct, frozen=True):
    """A lot that a job made of other lots."""

    dataset_id: str
    row: StatusRow


def propagate_hold(
    uow: UnitOfWork, root: DatasetRow, lot: str, who: str, why: str, now: Micros
) -> list[str]:
    """Hold the lots that were made of a held lot; return their datasets, nearest first."""
    tables = uow.tables(LockTables)
    held = []
    name = f"{root.namespace}/{root.name}"
    because = f"lot {lot} of {name}, which it was made from, is held: {why}"
    for derived_lot in _list_derived(uow, root.id, lot):
        row = derived_lot.row
        if row.status == Status.RUNNING:  # held as soon as it is published
            if not row.held_from:
                _log(tables, derived_lot, "hold", row.status, Status.HOLD, who, because, now)
            tables.put_status(replace(row, held_from=Status.READY))
        elif row.status == Status.READY:
            tables.put_status(replace(row, status=Status.HOLD, held_from=row.status, since=now))
            _log(tables, derived_lot, "hold", row.status, Status.HOLD, who, because, now)
            work_state.refresh_jobs_of(tables, [derived_lot.dataset_id], [lot], now)
        elif not (row.status == Status.HOLD and row.held_from):
            continue  # no job can read it anyway
        add_reason(tables, derived_lot.dataset_id, lot, root.id)
        held.append(derived_lot.dataset_id)
    return held


def release_hold(
    uow: UnitOfWork, root: DatasetRow, lot: str, who: str, why: str, now: Micros
) -> None:
    """Release the lots that were held for a lot and have no other reason; sources first."""
    tables = uow.tables(LockTables)
    held = {row.dataset_id for row in tables.list_reasons(lot) if root.id in row.reasons}
    released = []
    for dataset_id in _sources_first(tables, held, lot):
        drop_reason(tables, dataset_id, lot, root.id)
        row = tables.outputs.get((dataset_id, lot))
        if row is None or not row.held_from or tables.reasons.get((dataset_id, lot)) is not None:
            continue
        free = replace(row, held_from="")
        if row.status == Status.HOLD:
            free = replace(free, status=Status(row.held_from), since=now)
            _log(
                tables,
                DerivedLot(dataset_id, row),
                "release hold",
                row.status,
                free.status,
                who,
                why,
                now,
            )
            announce_if_readable(tables, free, now)
        tables.put_status(free)
        released.append(dataset_id)
    for dataset_id in released:  # only now, so that the log names `who` for each of them
        work_state.refresh_jobs_of(tables, [dataset_id], [lot], now)


def _sources_first(tables: LockTables, datasets: set[str], lot: str) -> Iterator[str]:
    """Order the datasets so that each follows those that its lot was made from."""
    left = sorted(datasets)
    while left:
        free = [d for d in left if not _sources(tables, d, lot) & {*left} - {d}]
        yield from free or left  # a cycle has no order
        left = [d for d in left if free and d not in free]


def _sources(tables: LockTables, dataset_id: str, lot: str) -> set[str]:
    row = tables.outputs.get((dataset_id, lot))
    job = tables.jobs.get(row.job_id) if row is not None else None
    return {*job.input_ids} if job is not None else set()


def _list_derived(uow: UnitOfWork, root_id: str, lot: str) -> Iterator[DerivedLot]:
    """Yield the lots that jobs made, or are making, of a lot, directly or through others."""
    level, seen = [root_id], {root_id}
    while level:
        derived = [each for dataset in level for each in _list_direct(uow, dataset, lot)]
        level = []
        for derived_lot in derived:
            if derived_lot.dataset_id not in seen:
                seen.add(derived_lot.dataset_id)
                level.append(derived_lot.dataset_id)
                yield derived_lot


def _list_direct(uow: UnitOfWork, dataset_id: str, lot: str) -> Iterator[DerivedLot]:
    """Yield the outputs of the runs that consumed a lot, whatever their jobs read today.

    Failed and resubmitted outputs are among them: other jobs may have read their old versions.
    """
    tables = uow.tables(LockTables)
    for read in tables.list_readers(dataset_id, lot):
        job = tables.jobs.get(read.job_id)
        if read.run_id is None or job is None:
            continue
        written = (
            dataset for role, dataset in uow.io_of(read.run_id) if role == DatasetRole.OUTPUT
        )
        for output in dict.fromkeys((*job.output_ids, *written)):
            row = tables.outputs.get((output, lot))
            if row is not None and row.run_id == read.run_id:
                yield DerivedLot(output, row)


def update_lineage_holds(uow: UnitOfWork, now: Micros) -> None:
    """Hold the jobs downstream of held datasets, and end such holds that have lost their cause."""
    tables = uow.tables(LockTables)
    holds = {row.id: row for row in tables.list_holds()}
    wanted: dict[str, LotHoldRow] = {}
    for root in [row for row in holds.values() if row.kind == "DATASET"]:
        dataset = uow.datasets.get(root.id)
        name = f"{dataset.namespace}/{dataset.name}" if dataset is not None else root.id
        why = f"dataset {name}, which its inputs are made from, is held: {root.why}"
        for job_id in _jobs_beyond(tables, root.id):
            wanted.setdefault(
                job_id, LotHoldRow(job_id, LINEAGE, root.who, why, root.since, root.id)
            )
    for key, row in holds.items():
        if row.kind == LINEAGE and key not in wanted:
            tables.holds.put(key, None)
    for key, row in wanted.items():
        if holds.get(key) is None or holds[key].kind == LINEAGE:
            tables.holds.put(key, row)


def _jobs_beyond(tables: LockTables, dataset_id: str) -> Iterator[str]:
    """Yield the jobs downstream of a dataset that do not read or write it themselves."""
    direct = {job for _, job in tables.wires.get(dataset_id) or ()}
    level, seen = [dataset_id], {dataset_id}
    while level:
        readers = _readers(tables, level)
        yield from (job for job in readers if job not in direct)
        jobs = [row for job in readers if (row := tables.jobs.get(job)) is not None]
        level = [d for d in dict.fromkeys(d for j in jobs for d in j.output_ids) if d not in seen]
        seen.update(level)


def _readers(tables: LockTables, datasets: list[str]) -> list[str]:
    wires = (wire for dataset in datasets for wire in tables.wires.get(dataset) or ())
    return list(dict.fromkeys(job for role, job in wires if role == DatasetRole.INPUT))


def _log(
    tables: LockTables,
    derived_lot: DerivedLot,
    action: str,
    was: str,
    became: str,
    who: str,
    why: str,
    now: Micros,
) -> None:
    dataset_id, lot = derived_lot.dataset_id, derived_lot.row.lot
    tables.append(LogRow(now, action, lot, None, dataset_id, None, was, became, who, why))
