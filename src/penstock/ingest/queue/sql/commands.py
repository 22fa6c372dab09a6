"""The writes of ingest where state is kept in SQL: one class each."""

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
    Finding,
    Hold,
    HoldKind,
    IngestJob,
    JobChange,
    NewJob,
    Numbered,
    Numbers,
    Place,
    Reserved,
    Submission,
    to_json,
)
from penstock.ingest.queue.port import QUEUE, Outcome, Submitted, key_hash, lost_lock
from penstock.ingest.queue.sql.rows import (
    BatchRow,
    CounterRow,
    HoldRow,
    JobRow,
    RangeRow,
    SessionRow,
    TallyRow,
)
from penstock.ingest.queue.sql.tables import ALL_BATCHES, IngestTables
from penstock.ingest.transitions import BatchSide, is_reported_since, move_batch, new_job, side_of
from penstock.states import BatchState, IngestState


class KeepSession(Write, frozen=True):
    """Say that a session is alive, and free what silent ones have locked.

    False: the session itself was silent for too long, and begins anew without its locks.
    """

    session: str
    owner: str
    lasts: Micros

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """Its row, and everybody else's."""
        room = uow.tables(IngestTables)
        for silent in room.silent_sessions(now):
            if silent.id == self.session and silent.alive_until > now:
                continue  # the clock was put back, and it has been alive all the time
            room.unlock(silent.id)
            room.sessions.put(silent.id, None)
        row = room.sessions.get(self.session)
        was_alive = row is not None
        row = row or SessionRow(self.session, self.owner, 0, self.lasts)
        room.sessions.put(self.session, replace(row, alive_until=now + self.lasts))
        return was_alive


class EndSession(Write, frozen=True):
    """Give up every lock of a session."""

    session: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Its locks, then its row."""
        room = uow.tables(IngestTables)
        room.unlock(self.session)
        if room.sessions.get(self.session) is not None:
            room.sessions.put(self.session, None)


class PutHold(Write, frozen=True):
    """Stop a collection, or the whole queue."""

    hold: Hold

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """One row; the last who held it is named."""
        hold = self.hold
        row = HoldRow(hold.kind, hold.name, hold.who, hold.why, hold.since)
        uow.tables(IngestTables).holds.put((row.kind, row.name), row)


class LiftHold(Write, frozen=True):
    """Let a collection, or the whole queue, go on; False if it was not held."""

    kind: HoldKind
    name: str

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """The row goes."""
        room = uow.tables(IngestTables)
        key = (self.kind, self.name)
        if room.holds.get(key) is None:
            return False
        room.holds.put(key, None)
        return True


def batch_name(number: int) -> str:
    """The id of the n-th batch."""
    return f"bid{number:010}"


def job_name(number: int) -> str:
    """The id of the n-th ingest job."""
    return f"jid{number:010}"


class SubmitBatch(Write, frozen=True):
    """Make a batch, or find the one that was submitted under the same key."""

    submission: Submission

    def execute(self, uow: UnitOfWork, now: Micros) -> Submitted:
        """One row, and the number that names it."""
        room = uow.tables(IngestTables)
        hashed = key_hash(self.submission)
        known = room.keys.get(hashed) if hashed is not None else None
        if known is not None:
            return Submitted(room.batch(known).value, is_new=False)
        submission = replace_value(self.submission, submitted_at=now)
        row = BatchRow(
            id=batch_name(room.next_number(Numbered.BATCHES)),
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
        room.batches.put(row.id, row)
        if hashed is not None:
            room.keys.put(hashed, row.id)
        return Submitted(row.value, is_new=True)


class AddIngestJobs(Write, frozen=True):
    """Give a batch its next jobs."""

    session: str
    batch: Batch
    jobs: tuple[NewJob, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> Batch:
        """All of them, if the batch is still as it was read."""
        room = uow.tables(IngestTables)
        row = _unchanged_batch(room, self.batch, self.session, by_hand=False)
        first = room.next_number(Numbered.JOBS, len(self.jobs))
        for number, new in enumerate(self.jobs, first):
            room.put_job(None, JobRow.of(new_job(job_name(number), new, now)))
        row = replace(row, jobs=row.jobs + len(self.jobs), version=row.version + 1)
        room.batches.put(row.id, row)
        return row.value


class ClaimBatches(Write, frozen=True):
    """Lock batches in a state."""

    session: str
    status: BatchState
    most: int
    after: str

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Batch]:
        """Those that nobody has locked."""
        room = uow.tables(IngestTables)
        _require_session(room, self.session, now)
        if room.is_held(HoldKind.QUEUE, QUEUE):
            return []
        claimed = []
        for free in room.free_batches(self.status, self.most, self.after):
            row = replace(free, locked_by=self.session)
            room.batches.put(row.id, row)
            claimed.append(row.value)
        return claimed


class ClaimIngestJobs(Write, frozen=True):
    """Lock jobs in a stage."""

    session: str
    stage: IngestState
    most: int
    after: Place | None

    def execute(self, uow: UnitOfWork, now: Micros) -> list[IngestJob]:
        """Those that nobody has locked, in the order of their places."""
        room = uow.tables(IngestTables)
        _require_session(room, self.session, now)
        if room.is_held(HoldKind.QUEUE, QUEUE):
            return []
        claimed = []
        for free in room.free_jobs(self.stage, self.most, self.after):
            row = replace(free, locked_by=self.session)
            room.put_job(free, row)
            claimed.append(row.value)
        return claimed


class Held(Struct, frozen=True):
    """A lock as it was taken: a session may have another one on the same job in a later state."""

    id: str
    status: str
    locked_by: str

    def is_of(self, row: JobRow | BatchRow) -> bool:
        """Whether it is still there."""
        return (row.status, row.locked_by) == (self.status, self.locked_by)


class LetGo(Write, frozen=True):
    """Give up locks without a change."""

    jobs: tuple[Held, ...] = ()
    batches: tuple[Held, ...] = ()

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Those that are still as they were taken."""
        room = uow.tables(IngestTables)
        room.jobs.prefetch(held.id for held in self.jobs)
        for held in self.jobs:
            job = room.jobs.get(held.id)
            if job is not None and held.is_of(job):
                room.put_job(job, replace(job, locked_by=""))
        for held in self.batches:
            batch = room.batches.get(held.id)
            if batch is not None and held.is_of(batch):
                room.batches.put(held.id, replace(batch, locked_by=""))


class ChangeIngestJobs(Write, frozen=True):
    """Change jobs that are still as they were read, each alone."""

    session: str
    changes: tuple[JobChange, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Outcome]:
        """Each change, or why it was refused; batches whose last job ended go on to report."""
        room = uow.tables(IngestTables)
        room.jobs.prefetch(change.before.id for change in self.changes)
        results: list[IngestJob | PenstockError | None] = []
        ended: dict[str, None] = {}
        for change in self.changes:
            try:
                results.append(self._change(room, change))
            except PenstockError as refusal:
                results.append(refusal)
                continue
            if change.after is None or side_of(change.after.status) is not BatchSide.PROCESSING:
                ended[change.before.batch_id] = None
        for batch_id in ended:
            report_if_done(room, batch_id, now)
        return results

    def _change(self, room: IngestTables, change: JobChange) -> IngestJob | None:
        before = change.before
        row = room.jobs.get(before.id)
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
            room.put_job(row, None)
            return None
        lock = row.locked_by if change.keep_lock else ""
        after = JobRow.of(replace_value(change.after, version=row.version + 1, locked_by=lock))
        room.put_job(row, after)
        return after.value


class ChangeBatch(Write, frozen=True):
    """Change a batch that is still as it was read."""

    session: str
    change: BatchChange

    def execute(self, uow: UnitOfWork, now: Micros) -> Batch | None:
        """The change, or a Conflict."""
        room = uow.tables(IngestTables)
        before, after = self.change.before, self.change.after
        if after is not None and _is_batch_done(room.batch(before.id), before, after):
            return room.batch(before.id).value
        row = _unchanged_batch(room, before, self.session, by_hand=self.change.by_hand)
        if after is None:
            _require_empty(room, row)
            room.batches.put(row.id, None)
            if row.key_hash is not None:
                room.keys.put(row.key_hash, None)
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
        room.batches.put(row.id, row)
        if after.status is BatchState.PROCESSING:
            report_if_done(room, row.id, now)
        return room.batch(row.id).value


def report_if_done(room: IngestTables, batch_id: str, now: Micros) -> None:
    """A batch of which no job is left goes on to its report."""
    row = room.batches.get(batch_id)
    if row is None or row.status != BatchState.PROCESSING or room.has_open_jobs(batch_id):
        return
    moved = move_batch(row.value, BatchState.REPORTING, now)
    room.batches.put(
        batch_id,
        replace(row, status=moved.status, last_modified=now, message="", version=row.version + 1),
    )


def _unchanged_batch(room: IngestTables, before: Batch, session: str, *, by_hand: bool) -> BatchRow:
    row = room.batch(before.id)
    if row.version != before.version:
        raise Conflict(
            f"batch {before.id} was {before.status} when it was read and is {row.status} now; "
            "look at it again"
        )
    if not by_hand:
        _require_lock("batch", row, before, session)
    return row


def _require_lock(
    kind: str, row: JobRow | BatchRow, before: IngestJob | Batch, session: str
) -> None:
    """The lock must be the one that it was read with, and the session's own if there is one."""
    if row.locked_by != before.locked_by or row.locked_by not in ("", session):
        raise lost_lock(kind, row.id, row.locked_by)


def _is_done(row: JobRow, change: JobChange) -> bool:
    """Whether a job is as this very change would make it: its first answer was lost."""
    after = change.after
    return after is not None and (
        replace(row, version=0, locked_by="")
        == JobRow.of(replace_value(after, version=0, locked_by=""))
    )


def _is_batch_done(row: BatchRow, before: Batch, after: Batch) -> bool:
    """Whether a batch is as this very change would make it: its first answer was lost."""
    if is_reported_since(before, after, row.value):
        return True
    now = (row.version, row.status, row.last_modified, row.message, row.report)
    report = after.report or row.report
    made = (before.version + 1, after.status, after.last_modified, after.message, report)
    return now == made


def _require_empty(room: IngestTables, row: BatchRow) -> None:
    room.tallies.prefetch((row.id, state) for state in IngestState)
    left = sum(t.jobs for state in IngestState if (t := room.tallies.get((row.id, state))))
    if left:
        raise Conflict(f"batch {row.id} still has {left} jobs; delete them first")


def _require_session(room: IngestTables, session: str, now: Micros) -> None:
    row = room.sessions.get(session)
    if row is None or row.alive_until <= now:
        raise Conflict(
            "this worker was silent for too long and has lost its locks; it goes on as a new one"
        )


AT_ONCE = {Numbered.BATCHES: 100, Numbered.JOBS: 10_000}  # so many are reserved beforehand


class ReserveNumbers(Write, frozen=True):
    """Let a queue give numbers of its own, and note it; `wanted` are those that it would give next.

    They are among those that it gets, unless they were given or reserved before. A number that is
    not greater than the last one noted may have been given: then nothing is done until the asker
    has looked whether the queue `is_put_back`, and counts again what it has counted before.
    """

    queue: str
    name: Numbered
    wanted: Numbers
    is_put_back: bool | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> Reserved:
        """What the queue may give from now on; all up to there are taken."""
        room = uow.tables(IngestTables)
        row = room.ranges.get((self.queue, self.name))
        given = 0 if row is None else row.given
        own = None if row is None else Numbers(row.first_number, row.last_number)
        if own is not None and self.wanted.first < own.first:
            return Reserved(own, given)  # the queue has still to count up to there
        if self.is_put_back is None and self.wanted.first <= given:
            return Reserved(own or self.wanted, given)
        counter = room.counters.get(self.name) or CounterRow(self.name, 0)
        after = self._after(own, counter.value)
        noted = max(given, self.wanted.last) if after.covers(self.wanted) else given
        room.ranges.put(
            (self.queue, self.name),
            RangeRow(self.queue, self.name, after.first, after.last, noted),
        )
        room.counters.put(self.name, replace(counter, value=max(counter.value, after.last)))
        return Reserved(after, given)

    def _after(self, own: Numbers | None, taken: int) -> Numbers:
        """The numbers of the queue from now on; all up to `taken` are somebody's."""
        wanted, spare = self.wanted, AT_ONCE[self.name]
        if self.is_put_back:
            return Numbers(taken + 1, taken + wanted.count + spare)
        if own is not None and own.covers(wanted):
            return own
        if own is not None and own.last == taken:
            return Numbers(own.first, max(taken, wanted.last) + spare)
        if wanted.first > taken:
            return Numbers(wanted.first, wanted.last + spare)
        return Numbers(taken + 1, taken + wanted.count + spare)


class Repair(Write, frozen=True):
    """Find jobs without a batch, locks without a session, wrong counts, batches that are stuck."""

    exclusive: ClassVar[bool] = True

    repair: bool

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Finding]:
        """Each thing found, and put right if asked."""
        room = uow.tables(IngestTables)
        tx = uow.tx
        found = [
            # First, because a job that is removed is taken off what was counted.
            *(self._tally(room, TallyRow(*row)) for row in tx.fetch("ingest_wrong_tallies")),
            *(self._tally(room, TallyRow(*row)) for row in tx.fetch("ingest_wrong_totals")),
            *(self._orphan(room, job) for (job,) in tx.fetch("ingest_jobs_without_batch")),
            *(self._lock(room, name) for (name,) in tx.fetch("ingest_locks_without_session")),
        ]
        for (batch,) in tx.fetch("ingest_stuck_batches"):
            if self.repair:
                report_if_done(room, batch, now)
            found.append(self._finding("is processing, but no job of it is", f"batch {batch}"))
        return found

    def _orphan(self, room: IngestTables, job_id: str) -> Finding:
        job = room.jobs.get(job_id)
        if self.repair and job is not None:
            room.put_job(job, None)
        return self._finding("belongs to a batch that is not there", f"ingest job {job_id}")

    def _lock(self, room: IngestTables, name: str) -> Finding:
        job, batch = room.jobs.get(name), room.batches.get(name)
        if self.repair and job is not None:
            room.jobs.put(name, replace(job, locked_by=""))
        if self.repair and batch is not None:
            room.batches.put(name, replace(batch, locked_by=""))
        return self._finding("is locked by a session that is over", name)

    def _tally(self, room: IngestTables, right: TallyRow) -> Finding:
        if self.repair:
            room.tallies.put((right.batch_id, IngestState(right.status)), right)
        whose = "all batches" if right.batch_id == ALL_BATCHES else f"batch {right.batch_id}"
        return self._finding("was counted wrongly", f"{whose}, {right.status}")

    def _finding(self, what: str, target: str) -> Finding:
        return Finding(what, target, repairable=True, repaired=self.repair)
