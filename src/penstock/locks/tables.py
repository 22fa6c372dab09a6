"""The tables of locks in a unit of work."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from msgspec import Struct

from penstock.catalog.entities.runs import lot_facet, lot_of
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db.database import Ask
from penstock.locks.gate_table import ReplayGateTables, WorkKey
from penstock.locks.rows import (
    EXTERNAL_JOB,
    HOLD_SENTINEL,
    CheckRow,
    ClockRow,
    LogRow,
    LotHoldRow,
    LotJobDatasetRow,
    LotJobRow,
    ReasonsRow,
    StatusRow,
    WorkRow,
)
from penstock.lots.tables import LotTables
from penstock.schema.catalog import DatasetRole
from penstock.states import WORK, WorkState
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes

OutputKey = tuple[str, str]  # dataset id, lot
InputKey = tuple[str, str, str]  # dataset id, job id, lot
Wires = tuple[tuple[DatasetRole, str], ...]  # the jobs that read or write a dataset

_RANK_MIN = -(1 << 62)
_QUEUE_LENGTH = 256
_QUEUE_LENGTH_MAX = 2048  # twice the number of lots that one call can claim


class ReadyQueue(NamedTuple):
    """The first lots that a job can claim, in order; a whole queue has all of them."""

    entries: tuple[tuple[int, str, str], ...]  # rank, key, lot
    is_whole: bool

    def update(self, before: WorkRow | None, row: WorkRow) -> "ReadyQueue":
        """Return the queue after the work on a lot has changed."""
        entries = self.entries
        if before is not None and before.state == WorkState.READY:
            entry = (before.rank, before.lot_key, before.lot)
            index = bisect_left(entries, entry)
            if entries[index : index + 1] == (entry,):
                entries = entries[:index] + entries[index + 1 :]
        if row.state == WorkState.READY:
            entry = (row.rank, row.lot_key, row.lot)
            index = bisect_left(entries, entry)
            # Behind the last entry, the database may have others that are not here.
            if self.is_whole or index < len(entries):
                entries = (*entries[:index], entry, *entries[index:])
        if len(entries) > 2 * _QUEUE_LENGTH_MAX:
            return ReadyQueue(entries[:_QUEUE_LENGTH_MAX], is_whole=False)
        return ReadyQueue(entries, self.is_whole)


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
    """The rows of each table by key."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        undo = uow.undo
        self.jobs: TableCache[LotJobRow] = TableCache(self._fetch_jobs, undo)
        self.wires: TableCache[Wires] = TableCache(self._fetch_wires, undo)
        self.holds: TableCache[LotHoldRow] = TableCache(self._fetch_holds, undo)
        self.outputs: TableCache[StatusRow] = TableCache(self._fetch_outputs, undo)
        self.inputs: TableCache[StatusRow] = TableCache(self._fetch_inputs, undo)
        self.work: TableCache[WorkRow] = TableCache(self._fetch_work, undo)
        self.queues: TableCache[ReadyQueue] = TableCache(write_only, undo)
        self.reasons: TableCache[ReasonsRow] = TableCache(self._fetch_reasons, undo)
        self.checks: TableCache[CheckRow] = TableCache(write_only, undo)
        self.clocks: TableCache[ClockRow] = TableCache(self._fetch_clocks, undo)
        self.log: TableCache[LogRow] = TableCache(write_only, undo)
        self.wired: TableCache[LotJobDatasetRow] = TableCache(write_only, undo)
        self.unwired: TableCache[LotJobDatasetRow] = TableCache(write_only, undo)
        self.cached = (
            self.jobs, self.wires, self.holds, self.outputs, self.inputs, self.work, self.queues,
            self.reasons, self.clocks,
        )  # fmt: skip
        self.append_only = (self.checks, self.log, self.wired, self.unwired)

    def changes(self) -> Changes:
        """Return every change; deletes precede the inserts that would conflict with them."""
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
        """Yield deleted rows, and OUTPUT rows that belong to another job now."""
        for cache in (self.outputs, self.inputs):
            for key, before in cache.before.items():
                row = cache.get(key)
                if before is not None and (row is None or row.job_id != before.job_id):
                    yield _GoneStatus(before.dataset_id, before.lot, before.role, before.job_id)

    @property
    def outbox(self) -> LotTables:
        """The tables of lots, with the outbox."""
        return self._uow.tables(LotTables)

    @property
    def gate(self) -> ReplayGateTables:
        """The tables of the replay gate."""
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

    def is_work_held(self, job_id: str, lot: str) -> bool:
        """Whether a person holds a job's work on a lot."""
        return self.inputs.get((HOLD_SENTINEL, job_id, lot)) is not None

    def release_work(self, job_id: str, lot: str) -> None:
        """End a person's hold of a job's work on a lot."""
        if self.is_work_held(job_id, lot):  # the cache deletes only rows that it has read
            self.inputs.put((HOLD_SENTINEL, job_id, lot), None)

    def put_reasons(self, row: ReasonsRow) -> None:
        """Change the reasons of a lot's hold; delete the row when none is left."""
        self.reasons.put((row.dataset_id, row.lot), row if row.reasons else None)

    def list_reasons(self, lot: str) -> list[ReasonsRow]:
        """Return the reasons of the holds of a lot, in every dataset."""
        stored = self._uow.tx.rows(ReasonsRow, "lot_reasons_of_lot", lot=lot)
        keys = {(row.dataset_id, row.lot) for row in (*stored, *self.reasons.unstored())}
        rows = [self.reasons.get(key) for key in sorted(keys) if key[1] == lot]
        return [row for row in rows if row is not None]

    def list_readers(self, dataset_id: str, lot: str) -> list[StatusRow]:
        """Return the INPUT rows of a lot of a dataset."""
        stored = self._uow.tx.rows(StatusRow, "lot_readers", dataset_id=dataset_id, lot=lot)
        keys = {
            (dataset_id, row.job_id, lot)
            for row in (*stored, *self.inputs.unstored())
            if (row.dataset_id, row.lot) == (dataset_id, lot)
        }
        rows = [self.inputs.get(key) for key in sorted(keys)]
        return [row for row in rows if row is not None]

    def list_inputs(self, run_id: str) -> list[str]:
        """Return the ids of the datasets that a run reads."""
        return [dataset for role, dataset in self._uow.io_of(run_id) if role == DatasetRole.INPUT]

    def list_holds(self) -> list[LotHoldRow]:
        """Return the holds of whole datasets and jobs."""
        stored = self._uow.tx.rows(LotHoldRow, "all_lot_holds")
        keys = {row.id for row in (*stored, *self.holds.unstored())}
        rows = [self.holds.get(key) for key in sorted(keys)]
        return [row for row in rows if row is not None]

    def find_arrival(self, source: StatusRow) -> Micros:
        """Return when the current version of a lot was published; a later hold changes nothing.

        The maker's work has the time. Its version may not: events can report outputs late.
        """
        maker = (
            self.work.get((source.job_id, source.lot)) if source.job_id != EXTERNAL_JOB else None
        )
        if maker is not None:
            return min(source.since, maker.since)
        version = self._uow.versions.get(source.version_id)
        return version.published_at or source.since if version is not None else source.since

    def put_work(self, row: WorkRow) -> None:
        """Write a job's work on a lot; refuse a change of state that the table WORK lacks."""
        key = (row.job_id, row.lot)
        before = self.work.get(key)
        state = before.state if before is not None else WORK.initial
        WORK.check(state, row.state, f"on lot {row.lot} of job {row.job_id}")
        if row.state == WorkState.READY or (before is not None and before.state == WorkState.READY):
            queue = self.queues.get(row.job_id)
            if queue is not None:
                self.queues.put(row.job_id, queue.update(before, row))
        self.work.put(key, row)

    def delete_work(self, row: WorkRow) -> None:
        """Delete a job's work on a lot, as if the lot were new to it."""
        if row.state == WorkState.READY:
            self.put_work(replace(row, state=WorkState.WAITING))  # leaves the queue
        self.work.put((row.job_id, row.lot), None)

    def find_live_claim(self, run_id: str) -> WorkRow | None:
        """Return the work that a run has claimed, if the claim is live."""
        run = self._uow.runs.get(run_id)
        lot = lot_of(run) if run is not None else None
        if run is None or lot is None or run.ended_at is not None:
            return None
        row = self.work.get((run.job_id, lot))
        live = row is not None and row.state == WorkState.RUNNING and row.run_id == run_id
        return row if live else None

    def list_live_claims(self, run_id: str) -> list[WorkRow]:
        """Return the live claims of a run: one, unless its events reported several lots."""
        run = self._uow.runs.get(run_id)
        facet = lot_facet(run.facets) if run is not None else None
        if run is None or facet is None:
            return []
        self.work.prefetch((run.job_id, lot) for lot in facet.all_lots)
        rows = [self.work.get((run.job_id, lot)) for lot in facet.all_lots]
        return [r for r in rows if r and r.state == WorkState.RUNNING and r.run_id == run_id]

    def prefetch_claims(self, run_ids: Iterable[str]) -> None:
        """Fetch the rows that `find_live_claim` reads."""
        ids = list(run_ids)
        self._uow.runs.prefetch(ids)
        runs = [run for run_id in ids if (run := self._uow.runs.get(run_id)) is not None]
        self.work.prefetch((run.job_id, lot) for run in runs if (lot := lot_of(run)) is not None)

    def list_ready_work(self, job_id: str, most: int, *, newest: bool) -> list[WorkRow]:
        """Return work that a job can claim: by rank, then oldest or newest lots first."""
        if newest:
            return self._newest_ready(job_id, most)
        queue = self.queues.get(job_id)
        if queue is None or (len(queue.entries) < most and not queue.is_whole):
            queue = self._load_queue(job_id, max(2 * most, _QUEUE_LENGTH))
            self.queues.put(job_id, queue)
        rows = [self.work.get((job_id, lot)) for _, _, lot in queue.entries[:most]]
        return [row for row in rows if row is not None]

    def _load_queue(self, job_id: str, most: int) -> ReadyQueue:
        changed = {row.lot: row for row in self.work.unstored() if row.job_id == job_id}
        limit = most + len(changed)
        stored = self._uow.tx.rows(WorkRow, "ready_work", job_id=job_id, most=limit)
        rows = self._overlaid(stored, changed)
        rows.sort(key=lambda row: (row.rank, row.lot_key))
        is_whole = len(stored) < limit
        if not is_whole:
            rows = rows[:most]
        self._prefetch_lots(job_id, [row.lot for row in rows])
        return ReadyQueue(tuple((row.rank, row.lot_key, row.lot) for row in rows), is_whole)

    def _prefetch_lots(self, job_id: str, lots: list[str]) -> None:
        """Fetch the OUTPUT rows that claims of these lots read."""
        job = self.jobs.get(job_id)
        datasets = (*job.input_ids, *job.output_ids) if job is not None else ()
        self.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)

    def _newest_ready(self, job_id: str, most: int) -> list[WorkRow]:
        changed = {row.lot: row for row in self.work.unstored() if row.job_id == job_id}
        tx, ready, rank = self._uow.tx, list[WorkRow](), _RANK_MIN
        while len(ready) < most + len(changed):
            following = tx.fetch_one("next_ready_rank", job_id=job_id, rank=rank)
            if following is None:
                break
            rank, left = following[0], most + len(changed) - len(ready)
            ready += tx.rows(WorkRow, "newest_ready_work", job_id=job_id, rank=rank, most=left)
        rows = self._overlaid(ready, changed)
        rows.sort(key=lambda row: row.lot_key, reverse=True)
        rows.sort(key=lambda row: row.rank)
        return rows[:most]

    def _overlaid(self, stored: list[WorkRow], changed: dict[str, WorkRow]) -> list[WorkRow]:
        """Return READY rows: the stored ones, with the changes of this unit of work."""
        seen = {row.lot: row for row in stored} | changed
        for row in seen.values():
            self.work.learn((row.job_id, row.lot), row)
        return [row for row in seen.values() if row.state == WorkState.READY]

    def list_expired_claims(self, now: Micros, most: int) -> list[WorkRow]:
        """Return live claims whose lease has expired."""
        stored = self._stored_work("expired_work", now, most)
        live = [r for r in stored if r.state == WorkState.RUNNING and r.lease_until <= now]
        return live[:most]

    def list_due_retries(self, now: Micros, most: int) -> list[WorkRow]:
        """Return failed work whose backoff has ended."""
        stored = self._stored_work("due_work", now, most)
        return [r for r in stored if r.state == WorkState.RETRYABLE and r.not_before <= now][:most]

    def list_leases_ahead(self, latest: Micros, most: int) -> list[WorkRow]:
        """Return live claims that were acquired or renewed later than this."""
        stored = self._stored_work("early_work", latest, most)
        live = [r for r in stored if r.state == WorkState.RUNNING and r.renewed_at > latest]
        return live[:most]

    def list_retries_ahead(self, latest: Micros, most: int) -> list[WorkRow]:
        """Return failed work whose backoff ends later than this."""
        stored = self._stored_work("endless_work", latest, most)
        return [r for r in stored if r.state == WorkState.RETRYABLE and r.not_before > latest][
            :most
        ]

    def _stored_work(self, statement: str, now: Micros, most: int) -> list[WorkRow]:
        changed = {(row.job_id, row.lot): row for row in self.work.unstored()}
        stored = self._uow.tx.rows(WorkRow, statement, now=now, most=most + len(changed))
        seen = {(row.job_id, row.lot): row for row in stored} | changed
        for key, row in seen.items():
            self.work.learn(key, row)
        return list(seen.values())

    def list_open_work(self, job_id: str) -> list[WorkRow]:
        """Return the work of a job that is not DONE."""
        changed = {row.lot: row for row in self.work.unstored() if row.job_id == job_id}
        stored = self._uow.tx.rows(WorkRow, "open_work_of_job", job_id=job_id)
        seen = {row.lot: row for row in stored} | changed
        return [row for row in seen.values() if row.state != WorkState.DONE]

    def list_due_clocks(self, now: Micros) -> list[ClockRow]:
        """Return clocks of which an interval has ended."""
        return [row for row in self._stored_clocks("due_clocks", now) if row.due_at <= now]

    def list_clocks_ahead(self, latest: Micros) -> list[ClockRow]:
        """Return clocks whose next interval ends later than this."""
        return [row for row in self._stored_clocks("clocks_ahead", latest) if row.due_at > latest]

    def _stored_clocks(self, statement: str, now: Micros) -> list[ClockRow]:
        changed = {row.dataset_id: row for row in self.clocks.unstored()}
        stored = self._uow.tx.rows(ClockRow, statement, now=now)
        return list(({row.dataset_id: row for row in stored} | changed).values())

    def _fetch_jobs(self, ids: list[str]) -> dict[str, LotJobRow]:
        rows = self._uow.tx.rows(LotJobRow, "lot_jobs_by_ids", ids=ids)
        return {row.job_id: row for row in rows}

    def _fetch_wires(self, ids: list[str]) -> dict[str, Wires]:
        wires: dict[str, Wires] = dict.fromkeys(ids, ())
        for dataset, role, job in self._uow.tx.fetch("lot_jobs_by_datasets", ids=ids):
            wires[dataset] += ((DatasetRole(role), job),)
        return wires

    def _fetch_holds(self, ids: list[str]) -> dict[str, LotHoldRow]:
        return {row.id: row for row in self._uow.tx.rows(LotHoldRow, "lot_holds_by_ids", ids=ids)}

    def _fetch_outputs(self, keys: list[OutputKey]) -> dict[OutputKey, StatusRow]:
        asks: list[Ask] = [
            ("lot_outputs", {"dataset_id": dataset, "lots": lots})
            for dataset, lots in _by_first(keys)
        ]
        rows = (StatusRow(*row) for page in self._uow.tx.fetch_many(asks) for row in page)
        return {(row.dataset_id, row.lot): row for row in rows}

    def _fetch_inputs(self, keys: list[InputKey]) -> dict[InputKey, StatusRow]:
        asks: list[Ask] = [
            ("lot_inputs", {"dataset_id": dataset, "job_id": job, "lots": lots})
            for (dataset, job), lots in _by_first([((d, j), lot) for d, j, lot in keys])
        ]
        rows = (StatusRow(*row) for page in self._uow.tx.fetch_many(asks) for row in page)
        return {(row.dataset_id, row.job_id, row.lot): row for row in rows}

    def _fetch_work(self, keys: list[WorkKey]) -> dict[WorkKey, WorkRow]:
        asks: list[Ask] = [
            ("lot_work_by_lots", {"job_id": job, "lots": lots}) for job, lots in _by_first(keys)
        ]
        rows = (WorkRow(*row) for page in self._uow.tx.fetch_many(asks) for row in page)
        return {(row.job_id, row.lot): row for row in rows}

    def _fetch_reasons(self, keys: list[OutputKey]) -> dict[OutputKey, ReasonsRow]:
        asks: list[Ask] = [
            ("lot_reasons", {"dataset_id": dataset, "lots": lots})
            for dataset, lots in _by_first(keys)
        ]
        rows = (ReasonsRow(*row) for page in self._uow.tx.fetch_many(asks) for row in page)
        return {(row.dataset_id, row.lot): row for row in rows}

    def _fetch_clocks(self, ids: list[str]) -> dict[str, ClockRow]:
        rows = self._uow.tx.rows(ClockRow, "lot_clocks_by_ids", ids=ids)
        return {row.dataset_id: row for row in rows}


def _by_first(keys: Iterable[tuple[Any, str]]) -> Iterable[tuple[Any, list[str]]]:
    for first, pairs in groupby(sorted(keys), key=lambda key: key[0]):
        yield first, [second for _, second in pairs]
