"""Holds that follow the data: what was made of a lot that is held is held with it.

Why a lot is held stands beside it: for itself, or for lots of other datasets that it was made
from. It is let go when none of these is held any more, and after everything that it was made from.
"""

from collections.abc import Iterator

from msgspec import Struct

from penstock.catalog.rows import DatasetRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.locks import work
from penstock.locks.queries.hold_reasons import add_reason, drop_reason, tell_readable
from penstock.locks.rows import LINEAGE, HoldRow, LogRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status


class Made(Struct, frozen=True):
    """A lot of a dataset that a job made of others."""

    dataset_id: str
    row: StatusRow


def spread(
    uow: UnitOfWork, root: DatasetRow, lot: str, who: str, why: str, now: Micros
) -> list[str]:
    """Hold what was made of a lot that is held; returned are the datasets, nearest first."""
    room = uow.tables(LockTables)
    held = []
    said = f"lot {lot} of {root.namespace}/{root.name}, which it was made from, is held"
    for made in _made_of(uow, root.id, lot):
        row = made.row
        because = f"{said}: {why}"
        if row.status == Status.RUNNING:  # it is held as soon as it is there
            if not row.held_from:
                _log(room, made, "hold", row.status, Status.HOLD, who, because, now)
            room.put_status(replace(row, held_from=Status.READY))
        elif row.status == Status.READY:
            room.put_status(replace(row, status=Status.HOLD, held_from=row.status, since=now))
            _log(room, made, "hold", row.status, Status.HOLD, who, because, now)
            work.refresh_around(room, [made.dataset_id], [lot], now)
        elif not (row.status == Status.HOLD and row.held_from):
            continue  # there is nothing of it that anybody could read
        add_reason(room, made.dataset_id, lot, root.id)
        held.append(made.dataset_id)
    return held


def let_go(uow: UnitOfWork, root: DatasetRow, lot: str, who: str, why: str, now: Micros) -> None:
    """Let go what was held for a lot, unless it is held for another reason too: sources first."""
    room = uow.tables(LockTables)
    held = {row.dataset_id for row in room.reasons_of_lot(lot) if root.id in row.reasons}
    freed = []
    for dataset_id in _sources_first(room, held, lot):
        drop_reason(room, dataset_id, lot, root.id)
        row = room.outputs.get((dataset_id, lot))
        if row is None or not row.held_from or room.reasons.get((dataset_id, lot)) is not None:
            continue
        free = replace(row, held_from="")
        if row.status == Status.HOLD:
            free = replace(free, status=Status(row.held_from), since=now)
            _log(room, Made(dataset_id, row), "unhold", row.status, free.status, who, why, now)
            tell_readable(room, free, now)
        room.put_status(free)
        freed.append(dataset_id)
    for dataset_id in freed:  # only now, so that each of them is let go in the name of `who`
        work.refresh_around(room, [dataset_id], [lot], now)


def _sources_first(room: LockTables, datasets: set[str], lot: str) -> Iterator[str]:
    """These datasets, each after those that its lot was made from."""
    left = sorted(datasets)
    while left:
        free = [d for d in left if not _sources(room, d, lot) & {*left} - {d}]
        yield from free or left  # what was made of each other has no order
        left = [d for d in left if free and d not in free]


def _sources(room: LockTables, dataset_id: str, lot: str) -> set[str]:
    row = room.outputs.get((dataset_id, lot))
    job = room.jobs.get(row.job_id) if row is not None else None
    return {*job.input_ids} if job is not None else set()


def _made_of(uow: UnitOfWork, root_id: str, lot: str) -> Iterator[Made]:
    """What jobs made, or are making, of a lot, and of what was made of it: each once."""
    level, seen = [root_id], {root_id}
    while level:
        found = [made for dataset in level for made in _made_directly(uow, dataset, lot)]
        level = []
        for made in found:
            if made.dataset_id not in seen:
                seen.add(made.dataset_id)
                level.append(made.dataset_id)
                yield made


def _made_directly(uow: UnitOfWork, dataset_id: str, lot: str) -> Iterator[Made]:
    """What the runs made, or are making, that consumed a lot, whatever their jobs do by now.

    What failed, or is to be made again, is among it: others may read what it was before.
    """
    room = uow.tables(LockTables)
    for own in room.readers_of(dataset_id, lot):
        job = room.jobs.get(own.job_id)
        if own.run_id is None or job is None:
            continue
        written = (dataset for role, dataset in uow.io_of(own.run_id) if role == DatasetRole.OUTPUT)
        for output in dict.fromkeys((*job.output_ids, *written)):
            row = room.outputs.get((output, lot))
            if row is not None and row.run_id == own.run_id:
                yield Made(output, row)


def follow_datasets(uow: UnitOfWork, now: Micros) -> None:
    """Let every job that works on what is made of a held dataset be held with it, and no other."""
    room = uow.tables(LockTables)
    holds = {row.id: row for row in room.all_holds()}
    wanted: dict[str, HoldRow] = {}
    for root in [row for row in holds.values() if row.kind == "DATASET"]:
        dataset = uow.datasets.get(root.id)
        name = f"{dataset.namespace}/{dataset.name}" if dataset is not None else root.id
        why = f"dataset {name}, which its inputs are made from, is held: {root.why}"
        for job_id in _jobs_beyond(room, root.id):
            wanted.setdefault(job_id, HoldRow(job_id, LINEAGE, root.who, why, root.since, root.id))
    for key, row in holds.items():
        if row.kind == LINEAGE and key not in wanted:
            room.holds.put(key, None)
    for key, row in wanted.items():
        if holds.get(key) is None or holds[key].kind == LINEAGE:
            room.holds.put(key, row)


def _jobs_beyond(room: LockTables, dataset_id: str) -> Iterator[str]:
    """Jobs downstream of a dataset that do not read or write it themselves."""
    own = {job for _, job in room.wires.get(dataset_id) or ()}
    level, seen = [dataset_id], {dataset_id}
    while level:
        readers = _readers(room, level)
        yield from (job for job in readers if job not in own)
        jobs = [found for job in readers if (found := room.jobs.get(job)) is not None]
        level = [d for d in dict.fromkeys(d for j in jobs for d in j.output_ids) if d not in seen]
        seen.update(level)


def _readers(room: LockTables, datasets: list[str]) -> list[str]:
    wires = (wire for dataset in datasets for wire in room.wires.get(dataset) or ())
    return list(dict.fromkeys(job for role, job in wires if role == DatasetRole.INPUT))


def _log(
    room: LockTables,
    made: Made,
    action: str,
    was: str,
    became: str,
    who: str,
    why: str,
    now: Micros,
) -> None:
    dataset_id, lot = made.dataset_id, made.row.lot
    room.append(LogRow(now, action, lot, None, dataset_id, None, was, became, who, why))
