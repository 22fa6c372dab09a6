"""The ingest tables in a unit of work."""

from typing import Any, TypeVar

from msgspec import Struct

from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros, lasts
from penstock.errors import NotFound
from penstock.ingest.models import IngestHoldKind, QueuePosition
from penstock.ingest.queue.sql.rows import (
    BatchRow,
    CounterRow,
    IngestHoldRow,
    IngestJobAdvance,
    IngestJobRow,
    RangeRow,
    SessionRow,
    TallyRow,
)
from penstock.ingest.transitions import BatchSide, side_of
from penstock.states import BatchState, IngestState
from penstock.store.table_cache import TableCache
from penstock.store.unit_of_work import Changes

TallyKey = tuple[str, IngestState]
HoldKey = tuple[str, str]
RangeKey = tuple[str, str]

ALL_BATCHES = ""  # the batch id of the total counts
_FIRST = QueuePosition(-1, "")
_OPEN = tuple(state for state in IngestState if side_of(state) is BatchSide.PROCESSING)


R = TypeVar("R", IngestJobRow, BatchRow, SessionRow)


class _Gone(Struct, frozen=True):
    id: str


class _GoneHold(Struct, frozen=True):
    kind: str
    name: str


class IngestTables:
    """The cached rows of the ingest tables."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        undo = uow.undo
        self.counters: TableCache[CounterRow] = TableCache(self._fetch_counters, undo)
        self.ranges: TableCache[RangeRow] = TableCache(self._fetch_ranges, undo)
        self.sessions: TableCache[SessionRow] = TableCache(self._fetch_sessions, undo)
        self.batches: TableCache[BatchRow] = TableCache(self._fetch_batches, undo)
        self.keys: TableCache[str] = TableCache(self._fetch_keys, undo)
        self.jobs: TableCache[IngestJobRow] = TableCache(self._fetch_jobs, undo)
        self.tallies: TableCache[TallyRow] = TableCache(self._fetch_tallies, undo)
        self.holds: TableCache[IngestHoldRow] = TableCache(self._fetch_holds, undo)
        self.cached = (
            self.counters,
            self.ranges,
            self.sessions,
            self.batches,
            self.keys,
            self.jobs,
            self.tallies,
            self.holds,
        )
        self.append_only: tuple[TableCache[Any], ...] = ()

    def changes(self) -> Changes:
        jobs, advances = self.jobs.parted(IngestJobAdvance)
        return [
            ("put_ingest_counters", self.counters.changed()),
            ("put_ingest_ranges", self.ranges.changed()),
            ("forget_ingest_sessions", [_Gone(key) for key in self.sessions.gone()]),
            ("put_ingest_sessions", self.sessions.changed()),
            ("forget_ingest_batches", [_Gone(key) for key in self.batches.gone()]),
            ("put_ingest_batches", self.batches.changed()),
            ("forget_ingest_jobs", [_Gone(key) for key in self.jobs.gone()]),
            ("put_ingest_jobs", jobs),
            ("advance_ingest_jobs", advances),
            ("put_ingest_tallies", self.tallies.changed()),
            ("forget_ingest_tallies", [_Gone(key) for key in self.batches.gone()]),
            ("forget_ingest_holds", [_GoneHold(*key) for key in self.holds.gone()]),
            ("put_ingest_holds", self.holds.changed()),
        ]

    def next_number(self, name: str, count: int = 1) -> int:
        """Take `count` new numbers of a sequence; return the first."""
        row = self.counters.get(name) or CounterRow(name, 0)
        self.counters.put(name, replace(row, value=row.value + count))
        return row.value + 1

    def is_held(self, kind: IngestHoldKind, name: str) -> bool:
        return self.holds.get((kind, name)) is not None

    def batch(self, batch_id: str) -> BatchRow:
        """Return the batch, or raise NotFound."""
        row = self.batches.get(batch_id)
        if row is None:
            raise NotFound(f"there is no batch {batch_id!r}; `penstock ingest list` lists them")
        return row

    def put_job(self, before: IngestJobRow | None, after: IngestJobRow | None) -> None:
        """Write a job, and the counts of its batch and of all batches."""
        row = after or before
        assert row is not None, "a change has a row before or after"
        self.jobs.put(row.id, after)
        same = before and after and before.status == after.status
        if same and before and after and before.space_needed == after.space_needed:
            return
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, +1)

    def _count(self, job: IngestJobRow, sign: int) -> None:
        for batch_id in (job.batch_id, ALL_BATCHES):
            key = (batch_id, IngestState(job.status))
            row = self.tallies.get(key) or TallyRow(*key, 0, 0)
            size = row.bytes + sign * job.space_needed
            self.tallies.put(key, replace(row, jobs=row.jobs + sign, bytes=size))

    def has_open_jobs(self, batch_id: str) -> bool:
        """Whether any job of a batch is under way or held."""
        self.tallies.prefetch((batch_id, state) for state in _OPEN)
        rows = (self.tallies.get((batch_id, state)) for state in _OPEN)
        return any(row is not None and row.jobs for row in rows)

    def free_jobs(
        self, status: IngestState, most: int, after: QueuePosition | None
    ) -> list[IngestJobRow]:
        """Return unlocked jobs in a state, in queue order."""
        position = after or _FIRST
        unstored = self.jobs.unstored()
        stored = self._uow.tx.rows(
            IngestJobRow,
            "free_ingest_jobs",
            status=status,
            priority=position.priority,
            id=position.id,
            most=most + len(unstored),
        )
        rows = _current(self.jobs, stored, unstored)
        free = [r for r in rows if r.status == status and not r.locked_by and r.position > position]
        free.sort(key=lambda row: row.position)
        return free[:most]

    def free_batches(self, status: BatchState, most: int, after: str) -> list[BatchRow]:
        """Return unlocked batches in a state with later ids than `after`, oldest first."""
        unstored = self.batches.unstored()
        stored = self._uow.tx.rows(
            BatchRow,
            "free_ingest_batches",
            status=status,
            after=after,
            most=most + len(unstored),
        )
        rows = _current(self.batches, stored, unstored)
        free = [r for r in rows if r.status == status and r.id > after and not r.locked_by]
        free.sort(key=lambda row: row.id)
        return free[:most]

    def silent_sessions(self, now: Micros) -> list[SessionRow]:
        """Return expired sessions."""
        stored = self._uow.tx.rows(SessionRow, "silent_ingest_sessions", now=now)
        rows = _current(self.sessions, stored, self.sessions.unstored())
        return [row for row in rows if not lasts(row.alive_until, row.lasts, now)]

    def unlock(self, session: str) -> None:
        """Release every lock of a session."""
        tx = self._uow.tx
        jobs = tx.rows(IngestJobRow, "ingest_jobs_locked", session=session)
        for job in _current(self.jobs, jobs, self.jobs.unstored()):
            if job.locked_by == session:
                self.jobs.put(job.id, replace(job, locked_by=""))
        batches = tx.rows(BatchRow, "ingest_batches_locked", session=session)
        for batch in _current(self.batches, batches, self.batches.unstored()):
            if batch.locked_by == session:
                self.batches.put(batch.id, replace(batch, locked_by=""))

    def _fetch_counters(self, names: list[str]) -> dict[str, CounterRow]:
        rows = self._uow.tx.rows(CounterRow, "ingest_counters_by_names", ids=names)
        return {row.name: row for row in rows}

    def _fetch_ranges(self, keys: list[RangeKey]) -> dict[RangeKey, RangeRow]:
        queues = list(dict.fromkeys(queue for queue, _ in keys))
        rows = self._uow.tx.rows(RangeRow, "ingest_ranges_of_queues", ids=queues)
        return {(row.queue, row.name): row for row in rows}

    def _fetch_sessions(self, ids: list[str]) -> dict[str, SessionRow]:
        rows = self._uow.tx.rows(SessionRow, "ingest_sessions_by_ids", ids=ids)
        return {row.id: row for row in rows}

    def _fetch_batches(self, ids: list[str]) -> dict[str, BatchRow]:
        rows = self._uow.tx.rows(BatchRow, "ingest_batches_by_ids", ids=ids)
        return {row.id: row for row in rows}

    def _fetch_keys(self, hashes: list[str]) -> dict[str, str]:
        return dict(self._uow.tx.fetch("ingest_batches_by_keys", ids=hashes))

    def _fetch_jobs(self, ids: list[str]) -> dict[str, IngestJobRow]:
        return {r.id: r for r in self._uow.tx.rows(IngestJobRow, "ingest_jobs_by_ids", ids=ids)}

    def _fetch_tallies(self, keys: list[TallyKey]) -> dict[TallyKey, TallyRow]:
        batches = list(dict.fromkeys(batch for batch, _ in keys))
        rows = self._uow.tx.rows(TallyRow, "ingest_tallies_by_batches", ids=batches)
        return {(row.batch_id, IngestState(row.status)): row for row in rows}

    def _fetch_holds(self, keys: list[HoldKey]) -> dict[HoldKey, IngestHoldRow]:
        rows = self._uow.tx.rows(IngestHoldRow, "all_ingest_holds")
        return {(row.kind, row.name): row for row in rows}


def _current(cache: TableCache[R], stored: list[R], unstored: list[R]) -> list[R]:
    """Return the current values of rows that a query found, and of unstored rows it missed."""
    for row in stored:
        cache.learn(row.id, row)
    rows = (cache.get(key) for key in {row.id: None for row in (*stored, *unstored)})
    return [row for row in rows if row is not None]
