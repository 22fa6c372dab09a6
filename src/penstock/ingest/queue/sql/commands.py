"""The writes of the ingest queue in SQL, one class each."""

from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace as replace_value

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, NotFound, PenstockError
from penstock.ingest.models import (
    Batch,
    BatchChange,
    IngestHold,
    IngestHoldKind,
    IngestJob,
    JobChange,
    NewJob,
    NumberRange,
    NumberSequence,
    QueuePosition,
    Reservation,
    Submission,
    to_json,
)
from penstock.ingest.queue.port import QUEUE, Outcome, Submitted, key_hash, lost_lock
from penstock.ingest.queue.sql.rows import (
    BatchRow,
    CounterRow,
    IngestHoldRow,
    IngestJobRow,
    RangeRow,
    SessionRow,
    TallyRow,
)
from penstock.ingest.queue.sql.tables import ALL_BATCHES, IngestTables
from penstock.ingest.transitions import BatchSide, is_reported_since, move_batch, new_job, side_of
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState

RESERVED_COUNTS = {
    NumberSequence.BATCHES: 100,
    NumberSequence.JOBS: 10_000,
}  # numbers that are reserved in advance


class RenewSession(Write, frozen=True):
    """Renew a session, and release the locks of expired sessions.

    False: this session itself had expired, and has lost its locks.
    """

    session: str
    owner: str
    lasts: Micros

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        tables = uow.tables(IngestTables)
        for silent in tables.silent_sessions(now):
            if silent.id == self.session and silent.alive_until > now:
                continue  # the clock was set back; the session has not expired
            tables.unlock(silent.id)
            tables.sessions.put(silent.id, None)
        row = tables.sessions.get(self.session)
        was_alive = row is not None
        row = row or SessionRow(self.session, self.owner, 0, self.lasts)
        tables.sessions.put(self.session, replace(row, alive_until=now + self.lasts))
        return was_alive


class EndSession(Write, frozen=True):
    """End a session and release its locks."""

    session: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        tables = uow.tables(IngestTables)
        tables.unlock(self.session)
        if tables.sessions.get(self.session) is not None:
            tables.sessions.put(self.session, None)


class PlaceHold(Write, frozen=True):
    """Hold a collection or the whole queue; a second hold replaces the first."""

    hold: IngestHold

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        hold = self.hold
        row = IngestHoldRow(hold.kind, hold.name, hold.who, hold.why, hold.since)
        uow.tables(IngestTables).holds.put((row.kind, row.name), row)


class RemoveHold(Write, frozen=True):
    """Release a hold; False if there was none."""

    kind: IngestHoldKind
    name: str

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        tables = uow.tables(IngestTables)
        key = (self.kind, self.name)
        if tables.holds.get(key) is None:
            return False
        tables.holds.put(key, None)
        return True


def batch_name(number: int) -> str:
    """Return the id of the n-th batch."""
    return f"bid{number:010}"


def job_name(number: int) -> str:
    """Return the id of the n-th ingest job."""
    return f"jid{number:010}"


class SubmitBatch(Write, frozen=True):
    """Create a batch, or find the batch that was submitted under the same key."""

    submission: Submission

    def execute(self, uow: UnitOfWork, now: Micros) -> Submitted:
        tables = uow.tables(IngestTables)
        hashed = key_hash(self.submission)
        batch_id = tables.keys.get(hashed) if hashed is not None else None
        if batch_id is not None:
            return Submitted(tables.batch(batch_id).value, is_new=False)
        submission = replace_value(self.submission, submitted_at=now)
        row = BatchRow(
            id=batch_name(tables.next_number(NumberSequence.BATCHES)),
            collection=submission.profile_name,
            submission=to_json(submission),
            key_hash=hashed,
            status=BatchState.PENDING,
            last_modified=now,
            message="",
            jobs=0,
            report=None,
            version=0,
            locked_by="",
        )
        tables.batches.put(row.id, row)
        if hashed is not None:
            tables.keys.put(hashed, row.id)
        return Submitted(row.value, is_new=True)


class AddIngestJobs(Write, frozen=True):
    """Add the next jobs to a batch, if it is unchanged."""

    session: str
    batch: Batch
    jobs: tuple[NewJob, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> Batch:
        tables = uow.tables(IngestTables)
        row = _unchanged_batch(tables, self.batch, self.session, by_hand=False)
        first = tables.next_number(NumberSequence.JOBS, len(self.jobs))
        for number, new in enumerate(self.jobs, first):
            tables.put_job(None, IngestJobRow.of(new_job(job_name(number), new, now)))
        row = replace(row, jobs=row.jobs + len(self.jobs), version=row.version + 1)
        tables.batches.put(row.id, row)
        return row.value


class ClaimBatches(Write, frozen=True):
    """Lock unlocked batches in a state."""

    session: str
    status: BatchState
    most: int
    after: str

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Batch]:
        tables = uow.tables(IngestTables)
        _require_session(tables, self.session, now)
        if tables.is_held(IngestHoldKind.QUEUE, QUEUE):
            return []
        claimed = []
        for free in tables.free_batches(self.status, self.most, self.after):
            row = replace(free, locked_by=self.session)
            tables.batches.put(row.id, row)
            claimed.append(row.value)
        return claimed


class ClaimIngestJobs(Write, frozen=True):
    """Lock unlocked jobs in a stage, in queue order."""

    session: str
    stage: IngestState
    most: int
    after: QueuePosition | None

    def execute(self, uow: UnitOfWork, now: Micros) -> list[IngestJob]:
        tables = uow.tables(IngestTables)
        _require_session(tables, self.session, now)
        if tables.is_held(IngestHoldKind.QUEUE, QUEUE):
            return []
        claimed = []
        for free in tables.free_jobs(self.stage, self.most, self.after):
            row = replace(free, locked_by=self.session)
            tables.put_job(free, row)
            claimed.append(row.value)
        return claimed


class LockRef(Struct, frozen=True):
    """A lock in one state: the session may lock the same job again in a later state."""

    id: str
    status: str
    locked_by: str

    def is_on(self, row: IngestJobRow | BatchRow) -> bool:
        """Whether the row still has this lock."""
        return (row.status, row.locked_by) == (self.status, self.locked_by)


class ReleaseLocks(Write, frozen=True):
    """Release locks that still exist, without a change."""

    jobs: tuple[LockRef, ...] = ()
    batches: tuple[LockRef, ...] = ()

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        tables = uow.tables(IngestTables)
        tables.jobs.prefetch(lock.id for lock in self.jobs)
        for lock in self.jobs:
            job = tables.jobs.get(lock.id)
            if job is not None and lock.is_on(job):
                tables.put_job(job, replace(job, locked_by=""))
        for lock in self.batches:
            batch = tables.batches.get(lock.id)
            if batch is not None and lock.is_on(batch):
                tables.batches.put(lock.id, replace(batch, locked_by=""))


class ChangeIngestJobs(Write, frozen=True):
    """Change jobs that are unchanged since they were read, each independently."""

    session: str
    changes: tuple[JobChange, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Outcome]:
        """Return each changed job or refusal; batches whose last job ended move to reporting."""
        tables = uow.tables(IngestTables)
        tables.jobs.prefetch(change.before.id for change in self.changes)
        results: list[IngestJob | PenstockError | None] = []
        ended: dict[str, None] = {}
        for change in self.changes:
            try:
                results.append(self._change(tables, change))
            except PenstockError as refusal:
                results.append(refusal)
                continue
            if change.after is None or side_of(change.after.status) is not BatchSide.PROCESSING:
                ended[change.before.batch_id] = None
        for batch_id in ended:
            report_if_done(tables, batch_id, now)
        return results

    def _change(self, tables: IngestTables, change: JobChange) -> IngestJob | None:
        before = change.before
        row = tables.jobs.get(before.id)
        if row is None:
            raise NotFound(f"ingest job {before.id} is not there any more")
        if row.version == before.version + 1 and _is_done(row, change):
            return row.value
        if row.version != before.version:
            raise Conflict(
                f"ingest job {before.id} was {before.status} when it was read and is {row.status} "
                "now; look at it again"
            )
        if not change.by_hand:
            _require_lock("ingest job", row, before, self.session)
        if change.after is None:
            tables.put_job(row, None)
            return None
        lock = row.locked_by if change.keep_lock else ""
        after = IngestJobRow.of(
            replace_value(change.after, version=row.version + 1, locked_by=lock)
        )
        tables.put_job(row, after)
        return after.value


class ChangeBatch(Write, frozen=True):
    """Change a batch that is unchanged since it was read."""

    session: str
    change: BatchChange

    def execute(self, uow: UnitOfWork, now: Micros) -> Batch | None:
        tables = uow.tables(IngestTables)
        before, after = self.change.before, self.change.after
        if after is not None and _is_batch_done(tables.batch(before.id), before, after):
            return tables.batch(before.id).value
        row = _unchanged_batch(tables, before, self.session, by_hand=self.change.by_hand)
        if after is None:
            _require_empty(tables, row)
            tables.batches.put(row.id, None)
            if row.key_hash is not None:
                tables.keys.put(row.key_hash, None)
            return None
        row = replace(
            row,
            status=after.status,
            last_modified=after.last_modified,
            message=after.message,
            report=after.report or row.report,
            version=row.version + 1,
            locked_by="",
        )
        tables.batches.put(row.id, row)
        if after.status is BatchState.PROCESSING:
            report_if_done(tables, row.id, now)
        return tables.batch(row.id).value


def report_if_done(tables: IngestTables, batch_id: str, now: Micros) -> None:
    """Move a processing batch without open jobs to reporting."""
    row = tables.batches.get(batch_id)
    if row is None or row.status != BatchState.PROCESSING or tables.has_open_jobs(batch_id):
        return
    moved = move_batch(row.value, BatchState.REPORTING, now)
    tables.batches.put(
        batch_id,
        replace(row, status=moved.status, last_modified=now, message="", version=row.version + 1),
    )


def _unchanged_batch(
    tables: IngestTables, before: Batch, session: str, *, by_hand: bool
) -> BatchRow:
    row = tables.batch(before.id)
    if row.version != before.version:
        raise Conflict(
            f"batch {before.id} was {before.status} when it was read and is {row.status} now; "
            "look at it again"
        )
    if not by_hand:
        _require_lock("batch", row, before, session)
    return row


def _require_lock(
    kind: str, row: IngestJobRow | BatchRow, before: IngestJob | Batch, session: str
) -> None:
    """Raise Conflict unless the lock is unchanged, and is the session's own if there is one."""
    if row.locked_by != before.locked_by or row.locked_by not in ("", session):
        raise lost_lock(kind, row.id, row.locked_by)


def _is_done(row: IngestJobRow, change: JobChange) -> bool:
    """Whether the change is already applied: the first answer to it was lost."""
    after = change.after
    return after is not None and (
        replace(row, version=0, locked_by="")
        == IngestJobRow.of(replace_value(after, version=0, locked_by=""))
    )


def _is_batch_done(row: BatchRow, before: Batch, after: Batch) -> bool:
    """Whether the change is already applied: the first answer to it was lost."""
    if is_reported_since(before, after, row.value):
        return True
    current = (row.version, row.status, row.last_modified, row.message, row.report)
    report = after.report or row.report
    target = (before.version + 1, after.status, after.last_modified, after.message, report)
    return current == target


def _require_empty(tables: IngestTables, row: BatchRow) -> None:
    tables.tallies.prefetch((row.id, state) for state in IngestState)
    jobs = sum(t.jobs for state in IngestState if (t := tables.tallies.get((row.id, state))))
    if jobs:
        raise Conflict(f"batch {row.id} still has {jobs} jobs; delete them first")


def _require_session(tables: IngestTables, session: str, now: Micros) -> None:
    row = tables.sessions.get(session)
    if row is None or row.alive_until <= now:
        raise Conflict(
            "the session expired without a heartbeat; its locks were released and a new session "
            "begins"
        )


class ReserveNumbers(Write, frozen=True):
    """Reserve numbers for a queue outside the database; `wanted` are the next that it would issue.

    The result contains `wanted`, unless those numbers are issued or reserved. If `wanted` is not
    beyond the last issued number, the queue may have been restored from a backup. Then nothing is
    reserved until the caller has checked that and passes `is_put_back`.
    """

    queue: str
    name: NumberSequence
    wanted: NumberRange
    is_put_back: bool | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> Reservation:
        """Return the numbers that the queue may issue from now on."""
        tables = uow.tables(IngestTables)
        row = tables.ranges.get((self.queue, self.name))
        issued = 0 if row is None else row.given
        numbers = None if row is None else NumberRange(row.first_number, row.last_number)
        if numbers is not None and self.wanted.first < numbers.first:
            return Reservation(numbers, issued)  # the queue has to skip numbers up to there
        if self.is_put_back is None and self.wanted.first <= issued:
            return Reservation(numbers or self.wanted, issued)
        counter = tables.counters.get(self.name) or CounterRow(self.name, 0)
        after = self._after(numbers, counter.value)
        last_issued = max(issued, self.wanted.last) if after.covers(self.wanted) else issued
        tables.ranges.put(
            (self.queue, self.name),
            RangeRow(self.queue, self.name, after.first, after.last, last_issued),
        )
        tables.counters.put(self.name, replace(counter, value=max(counter.value, after.last)))
        return Reservation(after, issued)

    def _after(self, own: NumberRange | None, taken: int) -> NumberRange:
        """Compute the numbers of the queue; all up to `taken` are in use."""
        wanted, spare = self.wanted, RESERVED_COUNTS[self.name]
        if self.is_put_back:
            return NumberRange(taken + 1, taken + wanted.count + spare)
        if own is not None and own.covers(wanted):
            return own
        if own is not None and own.last == taken:
            return NumberRange(own.first, max(taken, wanted.last) + spare)
        if wanted.first > taken:
            return NumberRange(wanted.first, wanted.last + spare)
        return NumberRange(taken + 1, taken + wanted.count + spare)


class CheckQueue(Write, frozen=True):
    """Find jobs without a batch, locks without a session, wrong counts and stuck batches."""

    exclusive: ClassVar[bool] = True

    repair: bool

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Finding]:
        """Return each finding; repair it if asked."""
        tables = uow.tables(IngestTables)
        tx = uow.tx
        findings = [
            # Counts first, because the removal of a job changes them.
            *(self._tally(tables, TallyRow(*row)) for row in tx.fetch("ingest_wrong_tallies")),
            *(self._tally(tables, TallyRow(*row)) for row in tx.fetch("ingest_wrong_totals")),
            *(self._orphan(tables, job) for (job,) in tx.fetch("ingest_jobs_without_batch")),
            *(self._lock(tables, name) for (name,) in tx.fetch("ingest_locks_without_session")),
        ]
        for (batch,) in tx.fetch("ingest_stuck_batches"):
            if self.repair:
                report_if_done(tables, batch, now)
            findings.append(self._finding("is processing, but no job of it is", f"batch {batch}"))
        return findings

    def _orphan(self, tables: IngestTables, job_id: str) -> Finding:
        job = tables.jobs.get(job_id)
        if self.repair and job is not None:
            tables.put_job(job, None)
        return self._finding("belongs to a batch that does not exist", f"ingest job {job_id}")

    def _lock(self, tables: IngestTables, name: str) -> Finding:
        job, batch = tables.jobs.get(name), tables.batches.get(name)
        if self.repair and job is not None:
            tables.jobs.put(name, replace(job, locked_by=""))
        if self.repair and batch is not None:
            tables.batches.put(name, replace(batch, locked_by=""))
        return self._finding("is locked by a session that is over", name)

    def _tally(self, tables: IngestTables, right: TallyRow) -> Finding:
        if self.repair:
            tables.tallies.put((right.batch_id, IngestState(right.status)), right)
        owner = "all batches" if right.batch_id == ALL_BATCHES else f"batch {right.batch_id}"
        return self._finding("was counted wrongly", f"{owner}, {right.status}")

    def _finding(self, what: str, target: str) -> Finding:
        return Finding(what, target, repairable=True, repaired=self.repair)
