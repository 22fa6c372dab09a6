"""The ingest queue in ZooKeeper.

Every change is one transaction, guarded by the version of a status node. A lock is an ephemeral
node: ZooKeeper deletes it when the session ends.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from penstock.clock import Clock
from penstock.errors import Conflict, Invalid, PenstockError
from penstock.ingest.models import (
    Batch,
    BatchChange,
    CheckProgress,
    IngestHold,
    IngestHoldKind,
    IngestJob,
    JobChange,
    NewJob,
    QueuePosition,
    Submission,
    Tally,
)
from penstock.ingest.queue.port import BatchFilter, Outcome, Submitted
from penstock.ingest.queue.zookeeper.caches import Bell
from penstock.ingest.queue.zookeeper.changes import (
    AppliedChange,
    ChangeWriter,
    batch_change,
    job_change,
    report_ops,
)
from penstock.ingest.queue.zookeeper.check import QueueChecker
from penstock.ingest.queue.zookeeper.claims import NodeLocks, WorkClaims
from penstock.ingest.queue.zookeeper.creation import ItemCreator, QueueNumbers, Reserve
from penstock.ingest.queue.zookeeper.layout import (
    STATES,
    SUBMISSIONS,
    batch_path,
    first_ops,
    hold_data,
    hold_path,
    side_path,
)
from penstock.ingest.queue.zookeeper.reader import QueueReader, TallyReader
from penstock.ingest.transitions import BatchSide, is_reported_since, move_batch, side_of
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState
from penstock.zookeeper import (
    Create,
    ErrorKind,
    OutcomeUnknown,
    Set,
    TransactionRefused,
    ZooKeeperSession,
)

ZOOKEEPER_OWN = "zookeeper"  # the node that every ZooKeeper has
NAMES_CHARS_MAX = 300


class ZkIngestStore:
    """The ingest queue in ZooKeeper; it owns its ZooKeeper session."""

    def __init__(
        self, session: ZooKeeperSession, owner: str, *, clock: Clock, reserve: Reserve
    ) -> None:
        self._session = session
        self._clock = clock
        self._bell = Bell()
        self._locks = NodeLocks(session, owner)
        self._writer = ChangeWriter(session, self._locks)
        self._reader = QueueReader(session)
        self._tallies = TallyReader(session)
        self._claims = WorkClaims(session, self._locks, self._reader, self._bell, self._report)
        numbers = QueueNumbers(session, reserve)
        self._creator = ItemCreator(session, self._writer, self._reader, numbers, clock)
        self._prepare()

    def submit(self, submission: Submission) -> Submitted:
        submitted = self._creator.submit(submission)
        self._claims.batches.note(submitted.batch.id, submitted.batch.status)
        self.wake()
        return submitted

    def add_jobs(self, batch: Batch, jobs: Sequence[NewJob]) -> Batch:
        """Add the next jobs to a batch.

        They are added in one transaction if it has at most a megabyte. More jobs are added in
        parts; each part is atomic and counted by the batch.
        """
        for part in self._creator.parts(jobs):
            batch, new_jobs = self._creator.add(batch, part)
            for job in new_jobs:
                self._claims.queue(job.status).add(job.position)
        self.wake()
        return batch

    def claim_batches(self, status: BatchState, most: int, after: str | None = None) -> list[Batch]:
        return self._claims.claim_batches(status, most, after or "")

    def claim_jobs(
        self, stage: IngestState, most: int, after: QueuePosition | None = None
    ) -> list[IngestJob]:
        return self._claims.claim_jobs(stage, most, after)

    def release(self, items: Sequence[IngestJob | Batch]) -> None:
        self._claims.release(items)
        self.wake()

    def change_jobs(self, changes: Sequence[JobChange]) -> list[Outcome]:
        """Apply each change that is still valid, several in flight."""
        outcomes_of_changes = self._writer.carry_out([job_change(change) for change in changes])
        outcomes = [self._changed(*pair) for pair in zip(changes, outcomes_of_changes, strict=True)]
        ended_batches = {
            change.before.batch_id
            for change, outcome in zip(changes, outcomes, strict=True)
            if not isinstance(outcome, PenstockError) and _has_left(change)
        }
        for batch_id in sorted(ended_batches):
            with contextlib.suppress(PenstockError):  # the changes are applied, and a sweep follows
                self._report_if_done(batch_id)
        self.wake()
        return outcomes

    def change_batch(self, change: BatchChange) -> Batch | None:
        before, after = change.before, change.after
        if after is not None:
            after = replace(after, jobs=before.jobs)
            change = replace(change, after=after)
        has_sides = self._session.exists(batch_path(before.id, STATES))
        [applied] = self._writer.carry_out([batch_change(change, has_sides=has_sides)])
        if isinstance(applied, TransactionRefused) and applied.kind is ErrorKind.NOT_EMPTY:
            jobs = self._tallies.jobs_of(before.id)
            raise Conflict(f"batch {before.id} still has {jobs} jobs; delete them first")
        if isinstance(applied, PenstockError):
            earlier = self._done_before(change) if isinstance(applied, Conflict) else None
            if earlier is None:
                raise applied
            return earlier
        self._claims.batches.note(before.id, None if after is None else after.status)
        self.wake()
        if after is None:
            return None
        if not applied.is_certain and after.report not in (None, self.batch(before.id).report):
            raise Conflict(f"batch {before.id} was reported by another worker; read it again")
        if after.status is BatchState.PROCESSING and self._report_if_done(before.id):
            return self._reader.batch(before.id)
        return replace(after, version=applied.version, locked_by="")

    def batch(self, batch_id: str) -> Batch:
        return self._reader.batch(batch_id)

    def job(self, job_id: str) -> IngestJob:
        return self._reader.job(job_id)

    def batches(self, which: BatchFilter, limit: int, before: str | None = None) -> list[Batch]:
        return self._reader.list_batches(which, limit, before)

    def open_batch(self, collection: str) -> Batch | None:
        return self._reader.open_batch(collection)

    def jobs(
        self,
        batch_id: str,
        limit: int,
        after: str | None = None,
        *,
        status: IngestState | None = None,
    ) -> list[IngestJob]:
        return self._reader.list_jobs(batch_id, limit, after, status)

    def waiting(
        self, status: IngestState, limit: int, after: QueuePosition | None = None
    ) -> list[IngestJob]:
        return self._reader.waiting(status, limit, after)

    def failed(self, limit: int) -> list[IngestJob]:
        return self._reader.failed(limit)

    def tally(self, batch_id: str | None = None) -> list[Tally]:
        """Count the jobs of one batch or of all batches, by state.

        The counts of all batches have bytes only for the jobs that are downloading.
        """
        return self._tallies.of_all() if batch_id is None else self._tallies.of_batch(batch_id)

    def tallies(self, batch_ids: Sequence[str]) -> Mapping[str, list[Tally]]:
        """Count the jobs of several batches by state, except for very large batches."""
        return self._tallies.of_batches(batch_ids)

    def hold(self, hold: IngestHold) -> None:
        """Hold a collection or the whole queue; a second hold replaces the first."""
        path, data = hold_path(hold.kind, hold.name), hold_data(hold)
        while True:
            op = Set(path, data, -1) if self._session.exists(path) else Create(path, data)
            try:
                self._session.multi([op])
                break
            except (TransactionRefused, OutcomeUnknown):
                continue  # another process placed or released the hold: check again
        self._hold_changed()

    def release_hold(self, kind: IngestHoldKind, name: str) -> bool:
        path = hold_path(kind, name)
        was_held = self._session.exists(path)
        while self._session.exists(path):
            with contextlib.suppress(OutcomeUnknown):
                self._session.delete(path)
        self._hold_changed()
        return was_held

    def holds(self) -> list[IngestHold]:
        return self._reader.holds()

    def check(self, *, repair: bool = False) -> list[Finding]:
        return [step for step in self.iter_check(repair=repair) if isinstance(step, Finding)]

    def iter_check(self, *, repair: bool = False) -> Iterator[Finding | CheckProgress]:
        return QueueChecker(self._session, self._report, repair=repair).steps()

    def keep_alive(self) -> None:
        """Release doubtful locks; kazoo renews the session itself."""
        if not self._session.is_suspended:
            self._locks.free_doubtful()

    @property
    def is_away(self) -> bool:
        """Whether there is no connection to ZooKeeper now."""
        return self._session.is_suspended

    def wait(self, seconds: float) -> None:
        """Wait for a watch or a change by this process, at most for these seconds."""
        self._bell.wait(seconds)

    def wake(self) -> None:
        self._bell.ring()

    def close(self) -> None:
        """End the session and so release every lock."""
        self._session.close()
        self.wake()

    def _prepare(self) -> None:
        """Create the empty queue unless it exists; refuse the tree of another program."""
        while not self._session.exists(SUBMISSIONS):
            others = sorted(set(self._session.children("/")) - {ZOOKEEPER_OWN})
            if others and not self._session.exists(SUBMISSIONS):
                raise Invalid(
                    f"{self._session.address} is another program's: it has nodes "
                    f"({', '.join(others)[:NAMES_CHARS_MAX]}) and no {SUBMISSIONS} of Penstock; "
                    "nothing in it was changed. Name another node in `queue`, or a new one"
                )
            with contextlib.suppress(TransactionRefused, OutcomeUnknown):
                self._session.multi(first_ops())

    def _changed(self, change: JobChange, applied: AppliedChange | PenstockError) -> Outcome:
        before, after = change.before, change.after
        if isinstance(applied, TransactionRefused):
            return Conflict(
                f"ingest job {before.id} is not in the queue that its status names, so nothing was "
                f"changed ({applied}); run `penstock ingest check --repair`"
            )
        if isinstance(applied, PenstockError):
            return applied
        queues = self._claims
        queues.queue(before.status).remove(before.position)
        if after is None:
            return None
        after = replace(after, version=applied.version, locked_by="")
        if not applied.is_certain and not _is_same(self._reader.job(before.id), after):
            return Conflict(
                f"ingest job {before.id} was {before.status} when it was read and was changed "
                "since; look at it again"
            )
        self._reader.remember(after)
        if change.keep_lock:
            return replace(after, locked_by=before.locked_by)
        queues.queue(after.status).add(after.position)
        return after

    def _done_before(self, change: BatchChange) -> Batch | None:
        """Return the batch if this change was applied before and the batch moved to reporting."""
        [batch] = self._reader.batches([change.before.id])
        if change.after is None or not isinstance(batch, Batch):
            return None
        return batch if is_reported_since(change.before, change.after, batch) else None

    def _hold_changed(self) -> None:
        self._claims.hold_changed()
        self.wake()

    def _report_if_done(self, batch_id: str) -> bool:
        is_done = self._session.children_count(side_path(batch_id, BatchSide.PROCESSING)) == 0
        return is_done and self._report(batch_id)

    def _report(self, batch_id: str) -> bool:
        """Move a processing batch without open jobs to reporting; False if it is not one."""
        [batch] = self._reader.batches([batch_id])
        if not isinstance(batch, Batch) or batch.status is not BatchState.PROCESSING:
            return False
        moved = move_batch(batch, BatchState.REPORTING, self._clock())
        try:
            self._session.multi(report_ops(batch, moved))
        except (
            TransactionRefused,
            OutcomeUnknown,
        ):  # another worker was faster, or a sweep follows
            return False
        self._claims.batches.note(batch_id, moved.status)
        return True


def _has_left(change: JobChange) -> bool:
    """Whether the change ends the job for its batch."""
    after = change.after
    return after is None or side_of(after.status) is not BatchSide.PROCESSING


def _is_same(stored: IngestJob, wanted: IngestJob) -> bool:
    return replace(stored, locked_by="") == wanted
