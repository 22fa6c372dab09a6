"""The rows of locks as a batch of writes sees them, beside the catalog's own."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from msgspec import Struct

from penstock.catalog.entities.runs import lot_facet, lot_of
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import Changes, UnitOfWork
from penstock.clock import Micros
from penstock.db.database import Ask
from penstock.locks.gate_table import ReplayGateTables, WorkKey
from penstock.locks.rows import (
    NOWHERE,
    OUTSIDE,
    CheckRow,
    ClockRow,
    HoldRow,
    LogRow,
    LotJobDatasetRow,
    LotJobRow,
    ReasonsRow,
    StatusRow,
    WorkRow,
)
from penstock.lots.tables import LotTables
from penstock.schema.catalog import DatasetRole
from penstock.states import WorkState
from penstock.store.table_cache import TableCache, write_only

OutputKey = tuple[str, str]  # dataset id, lot
InputKey = tuple[str, str, str]  # dataset id, job id, lot
Wires = tuple[tuple[DatasetRole, str], ...]  # which jobs read or write a dataset

_RANK_MIN = -(1 << 62)
_QUEUE_LENGTH = 256
_QUEUE_LENGTH_MAX = 2048  # twice what can be claimed at once


class Queue(NamedTuple):
    """The first lots that a job can work on, in order; all of them, if it is whole."""

    entries: tuple[tuple[int, str, str], ...]  # rank, key, lot
    is_whole: bool

    def moved(self, before: WorkRow | None, row: WorkRow) -> "Queue":
        """The queue after a lot's work has changed."""
        entries = self.entries
        if before is not None and before.state == WorkState.READY:
            gone = (before.rank, before.lot_key, before.lot)
            place = bisect_left(entries, gone)
            if entries[place : place + 1] == (gone,):
                entries = entries[:place] + entries[place + 1 :]
        if row.state == WorkState.READY:
            entry = (row.rank, row.lot_key, row.lot)
            place = bisect_left(entries, entry)
            # Past the last entry there may be others that are not here.
            if self.is_whole or place < len(entries):
                entries = (*entries[:place], entry, *entries[place:])
        if len(entries) > 2 * _QUEUE_LENGTH_MAX:
            return Queue(entries[:_QUEUE_LENGTH_MAX], is_whole=False)
        return Queue(entries, self.is_whole)


class _GoneHold(Struct, frozen=True):
    id: str


class _GoneReasons(Struct, frozen=True):
    dataset_id: str
    lot: str


class _GoneWork(Struct, frozen=True):
    job_id: str
    lot: str


class _GoneStatus(Struct, frozen=True):
    dataset_id: str
    lot: str
    role: str
    job_id: str


class LockTables:
    """Rows by table; keys of lots are pairs with what they are lots of."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        undo = uow.undo
        self.jobs: TableCache[LotJobRow] = TableCache(self._fetch_jobs, undo)
        self.wires: TableCache[Wires] = TableCache(self._fetch_wires, undo)
        self.holds: TableCache[HoldRow] = TableCache(self._fetch_holds, undo)
        self.outputs: TableCache[StatusRow] = TableCache(self._fetch_outputs, undo)
        self.inputs: TableCache[StatusRow] = TableCache(self._fetch_inputs, undo)
        self.work: TableCache[WorkRow] = TableCache(self._fetch_work, undo)
        self.queues: TableCache[Queue] = TableCache(write_only, undo)
        self.reasons: TableCache[ReasonsRow] = TableCache(self._fetch_reasons, undo)
        self.checks: TableCache[CheckRow] = TableCache(write_only, undo)
        self.clocks: TableCache[ClockRow] = TableCache(self._fetch_clocks, undo)
        self.log: TableCache[LogRow] = TableCache(write_only, undo)
        self.wired: TableCache[LotJobDatasetRow] = TableCache(write_only, undo)
        self.unwired: TableCache[LotJobDatasetRow] = TableCache(write_only, undo)
        self.lasting = (
            self.jobs, self.wires, self.holds, self.outputs, self.inputs, self.work, self.queues,
            self.reasons, self.clocks,
        )  # fmt: skip
        self.passing = (self.checks, self.log, self.wired, self.unwired)

    def changes(self) -> Changes:
        """Every change of the batch; what makes room for a row goes before it."""
        return [
            ("forget_lot_job_datasets", self.unwired.changed()),
            ("put_lot_job_datasets", self.wired.changed()),
            ("put_lot_jobs", self.jobs.changed()),
            ("forget_lot_holds", [_GoneHold(key) for key in self.holds.gone()]),
            ("put_lot_holds", self.holds.changed()),
            ("forget_lot_status", list(self._replaced())),
            ("put_lot_status", self.outputs.changed() + self.inputs.changed()),
            ("forget_lot_reasons", [_GoneReasons(*key) for key in self.reasons.gone()]),
            ("put_lot_reasons", self.reasons.changed()),
            ("put_lot_checks", self.checks.changed()),
            ("forget_lot_work", [_GoneWork(*key) for key in self.work.gone()]),
            ("put_lot_work", self.work.changed()),
            ("put_lot_clocks", self.clocks.changed()),
            ("add_lot_log", self.log.changed()),
        ]

    def _replaced(self) -> Iterable[_GoneStatus]:
        """Rows that are gone, and OUTPUT rows that are another job's now."""
        for shelf in (self.outputs, self.inputs):
            for key, before in shelf.before.items():
                row = shelf.get(key)
                if before is not None and (row is None or row.job_id != before.job_id):
                    yield _GoneStatus(before.dataset_id, before.lot, before.role, before.job_id)

    @property
    def outbox(self) -> LotTables:
        """Where others are told of lots."""
        return self._uow.tables(LotTables)

    @property
    def turns(self) -> ReplayGateTables:
        """Who waits for a turn."""
        return self._uow.tables(ReplayGateTables)

    def append(self, row: LogRow) -> None:
        """Append a transition to the log."""
        self.log.put(object(), row)

    def put_status(self, row: StatusRow) -> None:
        """Change a status row."""
        if row.role == DatasetRole.OUTPUT:
            self.outputs.put((row.dataset_id, row.lot), row)
        else:
            self.inputs.put((row.dataset_id, row.job_id, row.lot), row)

    def is_kept(self, job_id: str, lot: str) -> bool:
        """Whether a person keeps a job from a lot."""
        return self.inputs.get((NOWHERE, job_id, lot)) is not None

    def keep_no_more(self, job_id: str, lot: str) -> None:
        """Nobody keeps a job from a lot any more."""
        if self.is_kept(job_id, lot):  # only what was seen is taken away
            self.inputs.put((NOWHERE, job_id, lot), None)

    def put_reasons(self, row: ReasonsRow) -> None:
        """Change why a lot is held; nothing is kept of one that is not."""
        self.reasons.put((row.dataset_id, row.lot), row if row.reasons else None)

    def reasons_of_lot(self, lot: str) -> list[ReasonsRow]:
        """Why lots with this id are held, in whatever dataset."""
        stored = self._uow.tx.rows(ReasonsRow, "lot_reasons_of_lot", lot=lot)
        keys = {(row.dataset_id, row.lot) for row in (*stored, *self.reasons.unstored())}
        rows = [self.reasons.get(key) for key in sorted(keys) if key[1] == lot]
        return [row for row in rows if row is not None]

    def readers_of(self, dataset_id: str, lot: str) -> list[StatusRow]:
        """What each job does, or did, with a lot of a dataset as one that reads it."""
        stored = self._uow.tx.rows(StatusRow, "lot_readers", dataset_id=dataset_id, lot=lot)
        keys = {
            (dataset_id, row.job_id, lot)
            for row in (*stored, *self.inputs.unstored())
            if (row.dataset_id, row.lot) == (dataset_id, lot)
        }
        rows = [self.inputs.get(key) for key in sorted(keys)]
        return [row for row in rows if row is not None]

    def read_by(self, run_id: str) -> list[str]:
        """The datasets that a run reads."""
        return [dataset for role, dataset in self._uow.io_of(run_id) if role == DatasetRole.INPUT]

    def all_holds(self) -> list[HoldRow]:
        """Every dataset and job that is held whole."""
        stored = self._uow.tx.rows(HoldRow, "all_lot_holds")
        keys = {row.id for row in (*stored, *self.holds.unstored())}
        rows = [self.holds.get(key) for key in sorted(keys)]
        return [row for row in rows if row is not None]

    def arrived_at(self, source: StatusRow) -> Micros:
        """When the version that a lot has came to be there; to hold it since changes nothing.

        Events may tell late what a job made, so that its own work is asked, and not its version.
        """
        maker = self.work.get((source.job_id, source.lot)) if source.job_id != OUTSIDE else None
        if maker is not None:
            return min(source.since, maker.since)
        version = self._uow.versions.get(source.version_id)
        return version.published_at or source.since if version is not None else source.since

    def put_work(self, row: WorkRow) -> None:
        """Change what a job has to do with a lot."""
        key = (row.job_id, row.lot)
        before = self.work.get(key)
        if row.state == WorkState.READY or (before is not None and before.state == WorkState.READY):
            queue = self.queues.get(row.job_id)
            if queue is not None:
                self.queues.put(row.job_id, queue.moved(before, row))
        self.work.put(key, row)

    def forget_work(self, row: WorkRow) -> None:
        """A job has nothing to do with a lot any more, as if it had never met it."""
        if row.state == WorkState.READY:
            self.put_work(replace(row, state=WorkState.WAITING))  # out of the queue
        self.work.put((row.job_id, row.lot), None)

    def claimed(self, run_id: str) -> WorkRow | None:
        """The live claim that a run is."""
        run = self._uow.runs.get(run_id)
        lot = lot_of(run) if run is not None else None
        if run is None or lot is None or run.ended_at is not None:
            return None
        row = self.work.get((run.job_id, lot))
        live = row is not None and row.state == WorkState.RUNNING and row.run_id == run_id
        return row if live else None

    def claims_of(self, run_id: str) -> list[WorkRow]:
        """The lots that a run holds: one, unless events told that it works on several."""
        run = self._uow.runs.get(run_id)
        facet = lot_facet(run.facets) if run is not None else None
        if run is None or facet is None:
            return []
        self.work.prefetch((run.job_id, lot) for lot in facet.all_lots)
        rows = [self.work.get((run.job_id, lot)) for lot in facet.all_lots]
        return [r for r in rows if r and r.state == WorkState.RUNNING and r.run_id == run_id]

    def prefetch_claims(self, run_ids: Iterable[str]) -> None:
        """Fetch what `claimed` will ask for."""
        runs = list(run_ids)
        self._uow.runs.prefetch(runs)
        found = [run for run_id in runs if (run := self._uow.runs.get(run_id)) is not None]
        self.work.prefetch((run.job_id, lot) for run in found if (lot := lot_of(run)) is not None)

    def ready(self, job_id: str, most: int, *, newest: bool) -> list[WorkRow]:
        """What a job can work on: by rank, then oldest or newest lots first."""
        if newest:
            return self._newest_ready(job_id, most)
        queue = self.queues.get(job_id)
        if queue is None or (len(queue.entries) < most and not queue.is_whole):
            queue = self._load_queue(job_id, max(2 * most, _QUEUE_LENGTH))
            self.queues.put(job_id, queue)
        rows = [self.work.get((job_id, lot)) for _, _, lot in queue.entries[:most]]
        return [row for row in rows if row is not None]

    def _load_queue(self, job_id: str, most: int) -> Queue:
        changed = {row.lot: row for row in self.work.unstored() if row.job_id == job_id}
        limit = most + len(changed)
        stored = self._uow.tx.rows(WorkRow, "ready_work", job_id=job_id, most=limit)
        rows = self._overlaid(stored, changed)
        rows.sort(key=lambda row: (row.rank, row.lot_key))
        is_whole = len(stored) < limit
        if not is_whole:
            rows = rows[:most]
        self._prefetch_lots(job_id, [row.lot for row in rows])
        return Queue(tuple((row.rank, row.lot_key, row.lot) for row in rows), is_whole)

    def _prefetch_lots(self, job_id: str, lots: list[str]) -> None:
        """Claims will ask who makes these lots of the job's datasets."""
        job = self.jobs.get(job_id)
        datasets = (*job.input_ids, *job.output_ids) if job is not None else ()
        self.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)

    def _newest_ready(self, job_id: str, most: int) -> list[WorkRow]:
        changed = {row.lot: row for row in self.work.unstored() if row.job_id == job_id}
        tx, found, rank = self._uow.tx, list[WorkRow](), _RANK_MIN
        while len(found) < most + len(changed):
            following = tx.fetch_one("next_ready_rank", job_id=job_id, rank=rank)
            if following is None:
                break
            rank, left = following[0], most + len(changed) - len(found)
            found += tx.rows(WorkRow, "newest_ready_work", job_id=job_id, rank=rank, most=left)
        rows = self._overlaid(found, changed)
        rows.sort(key=lambda row: row.lot_key, reverse=True)
        rows.sort(key=lambda row: row.rank)
        return rows[:most]

    def _overlaid(self, stored: list[WorkRow], changed: dict[str, WorkRow]) -> list[WorkRow]:
        """Rows that are READY, as this batch has them."""
        seen = {row.lot: row for row in stored} | changed
        for row in seen.values():
            self.work.learn((row.job_id, row.lot), row)
        return [row for row in seen.values() if row.state == WorkState.READY]

    def expired(self, now: Micros, most: int) -> list[WorkRow]:
        """Live claims whose lease has run out."""
        stored = self._stored_work("expired_work", now, most)
        live = [r for r in stored if r.state == WorkState.RUNNING and r.lease_until <= now]
        return live[:most]

    def due(self, now: Micros, most: int) -> list[WorkRow]:
        """What failed and has waited long enough."""
        stored = self._stored_work("due_work", now, most)
        return [r for r in stored if r.state == WorkState.LATER and r.not_before <= now][:most]

    def early(self, latest: Micros, most: int) -> list[WorkRow]:
        """Live claims that were given or renewed later than this."""
        stored = self._stored_work("early_work", latest, most)
        live = [r for r in stored if r.state == WorkState.RUNNING and r.renewed_at > latest]
        return live[:most]

    def endless(self, latest: Micros, most: int) -> list[WorkRow]:
        """What failed and is to be tried again later than this."""
        stored = self._stored_work("endless_work", latest, most)
        return [r for r in stored if r.state == WorkState.LATER and r.not_before > latest][:most]

    def _stored_work(self, statement: str, now: Micros, most: int) -> list[WorkRow]:
        changed = {(row.job_id, row.lot): row for row in self.work.unstored()}
        stored = self._uow.tx.rows(WorkRow, statement, now=now, most=most + len(changed))
        seen = {(row.job_id, row.lot): row for row in stored} | changed
        for key, row in seen.items():
            self.work.learn(key, row)
        return list(seen.values())

    def open_lots(self, job_id: str) -> list[WorkRow]:
        """All that a job has met and not done."""
        changed = {row.lot: row for row in self.work.unstored() if row.job_id == job_id}
        stored = self._uow.tx.rows(WorkRow, "open_work_of_job", job_id=job_id)
        seen = {row.lot: row for row in stored} | changed
        return [row for row in seen.values() if row.state != WorkState.DONE]

    def due_clocks(self, now: Micros) -> list[ClockRow]:
        """Clocks of which an interval may have ended."""
        return [row for row in self._stored_clocks("due_clocks", now) if row.due_at <= now]

    def clocks_ahead(self, latest: Micros) -> list[ClockRow]:
        """Clocks of which the next interval ends later than this."""
        return [row for row in self._stored_clocks("clocks_ahead", latest) if row.due_at > latest]

    def _stored_clocks(self, statement: str, now: Micros) -> list[ClockRow]:
        changed = {row.dataset_id: row for row in self.clocks.unstored()}
        stored = self._uow.tx.rows(ClockRow, statement, now=now)
        return list(({row.dataset_id: row for row in stored} | changed).values())

    def _fetch_jobs(self, ids: list[str]) -> dict[str, LotJobRow]:
        rows = self._uow.tx.rows(LotJobRow, "lot_jobs_by_ids", ids=ids)
        return {row.job_id: row for row in rows}

    def _fetch_wires(self, ids: list[str]) -> dict[str, Wires]:
        found: dict[str, Wires] = dict.fromkeys(ids, ())
        for dataset, role, job in self._uow.tx.fetch("lot_jobs_by_datasets", ids=ids):
            found[dataset] += ((DatasetRole(role), job),)
        return found

    def _fetch_holds(self, ids: list[str]) -> dict[str, HoldRow]:
        return {row.id: row for row in self._uow.tx.rows(HoldRow, "lot_holds_by_ids", ids=ids)}

    def _fetch_outputs(self, keys: list[OutputKey]) -> dict[OutputKey, StatusRow]:
        asks: list[Ask] = [
            ("lot_outputs", {"dataset_id": dataset, "lots": lots})
            for dataset, lots in _by_first(keys)
        ]
        rows = (StatusRow(*row) for found in self._uow.tx.fetch_many(asks) for row in found)
        return {(row.dataset_id, row.lot): row for row in rows}

    def _fetch_inputs(self, keys: list[InputKey]) -> dict[InputKey, StatusRow]:
        asks: list[Ask] = [
            ("lot_inputs", {"dataset_id": dataset, "job_id": job, "lots": lots})
            for (dataset, job), lots in _by_first([((d, j), lot) for d, j, lot in keys])
        ]
        rows = (StatusRow(*row) for found in self._uow.tx.fetch_many(asks) for row in found)
        return {(row.dataset_id, row.job_id, row.lot): row for row in rows}

    def _fetch_work(self, keys: list[WorkKey]) -> dict[WorkKey, WorkRow]:
        asks: list[Ask] = [
            ("lot_work_by_lots", {"job_id": job, "lots": lots}) for job, lots in _by_first(keys)
        ]
        rows = (WorkRow(*row) for found in self._uow.tx.fetch_many(asks) for row in found)
        return {(row.job_id, row.lot): row for row in rows}

    def _fetch_reasons(self, keys: list[OutputKey]) -> dict[OutputKey, ReasonsRow]:
        asks: list[Ask] = [
            ("lot_reasons", {"dataset_id": dataset, "lots": lots})
            for dataset, lots in _by_first(keys)
        ]
        rows = (ReasonsRow(*row) for found in self._uow.tx.fetch_many(asks) for row in found)
        return {(row.dataset_id, row.lot): row for row in rows}

    def _fetch_clocks(self, ids: list[str]) -> dict[str, ClockRow]:
        rows = self._uow.tx.rows(ClockRow, "lot_clocks_by_ids", ids=ids)
        return {row.dataset_id: row for row in rows}


def _by_first(keys: Iterable[tuple[Any, str]]) -> Iterable[tuple[Any, list[str]]]:
    for first, pairs in groupby(sorted(keys), key=lambda key: key[0]):
        yield first, [second for _, second in pairs]
