"""The port of the ingest queue: the guarantees of every backend.

A store object is one *session*. Its locks are released when it is closed, when its process dies, or
when it sends no heartbeat for the length of the session.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from penstock.errors import Conflict, PenstockError
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
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState

QUEUE: Final = "ingest"  # the name of the only queue in a hold

Outcome = IngestJob | PenstockError | None  # the job after a change, or the refusal


class Submitted(NamedTuple):
    """A batch, and whether this submission created it."""

    batch: Batch
    is_new: bool


class BatchFilter(NamedTuple):
    """A filter for lists of batches."""

    status: BatchState | None = None
    collection: str | None = None


class IngestStore(Protocol):
    """Batches, their jobs and the queue of each stage.

    Guaranteed: the effect of a call is on disk when it returns. Every change is a compare-and-swap
    on the version that was read; the loser gets a Conflict and has no effect. A job is in the queue
    of exactly one state and on exactly one side of its batch, also after a crash. At most one live
    session locks a job or batch. The store itself moves a batch from processing to reporting when
    its last job ends or is deleted.

    Not guaranteed: a strict order of priority between two sessions; the release of a dead session's
    lock before the session's time is over. A change whose answer was lost may have had its effect;
    the same change again then succeeds. Every method may be called from any thread.
    """

    def submit(self, submission: Submission) -> Submitted:
        """Create a pending batch, or find the batch with this collection and key."""

    def add_jobs(self, batch: Batch, jobs: Sequence[NewJob]) -> Batch:
        """Add the next jobs to a batch, all or none; return the changed batch.

        The batch keeps its lock. `batch.jobs` grows by their number.
        """

    def claim_batches(self, status: BatchState, most: int, after: str | None = None) -> list[Batch]:
        """Lock batches in a state, oldest first; with `after`, only younger batches."""

    def claim_jobs(
        self, stage: IngestState, most: int, after: QueuePosition | None = None
    ) -> list[IngestJob]:
        """Lock jobs in a stage, in queue order; with `after`, only jobs behind that position.

        Nothing is claimed while the queue is on hold. A very recent write of another session may
        not be visible yet; `wait` returns when it is.
        """

    def release(self, items: Sequence[IngestJob | Batch]) -> None:
        """Release locks without a change, now or as soon as the store can be reached again."""

    def change_jobs(self, changes: Sequence[JobChange]) -> list[Outcome]:
        """Apply each change that is still valid; return the changed job or the refusal.

        A change is refused if the job has another lock than when it was read, unless it is
        `by_hand`.
        """

    def change_batch(self, change: BatchChange) -> Batch | None:
        """Apply a change that is still valid, and release the lock."""

    def batch(self, batch_id: str) -> Batch:
        """Return a batch, or raise NotFound."""

    def job(self, job_id: str) -> IngestJob:
        """Return an ingest job, or raise NotFound."""

    def batches(self, which: BatchFilter, limit: int, before: str | None = None) -> list[Batch]:
        """List batches, newest first; with `before`, only older batches."""

    def open_batch(self, collection: str) -> Batch | None:
        """Return a batch of a collection that is not completed, if there is one."""

    def jobs(
        self,
        batch_id: str,
        limit: int,
        after: str | None = None,
        *,
        status: IngestState | None = None,
    ) -> list[IngestJob]:
        """List jobs of a batch by id; with `after`, only later ids."""

    def waiting(
        self, status: IngestState, limit: int, after: QueuePosition | None = None
    ) -> list[IngestJob]:
        """List jobs of all batches in a state, in queue order."""

    def failed(self, limit: int) -> list[IngestJob]:
        """List failed jobs of all batches, the latest failure first.

        A backend that would have to read every failed job may consider only those submitted last.
        """

    def tally(self, batch_id: str | None = None) -> list[Tally]:
        """Count the jobs of one batch or of all batches, by state."""

    def tallies(self, batch_ids: Sequence[str]) -> Mapping[str, list[Tally]]:
        """Count the jobs of several batches by state; very large batches may be left out."""

    def hold(self, hold: IngestHold) -> None:
        """Hold a collection or the whole queue."""

    def release_hold(self, kind: IngestHoldKind, name: str) -> bool:
        """Release a hold; False if there was none."""

    def holds(self) -> list[IngestHold]:
        """List all holds."""

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Find inconsistencies, and repair what can be repaired."""

    def iter_check(self, *, repair: bool = False) -> Iterator[Finding | CheckProgress]:
        """Yield each finding of a check as it is found, and the progress from time to time."""

    def keep_alive(self) -> None:
        """Renew this session, and release the locks of expired sessions."""

    @property
    def is_away(self) -> bool:
        """Whether the queue is known to be unreachable now; this never blocks."""

    def wait(self, seconds: float) -> None:
        """Wait until something may have changed, at most for these seconds."""

    def wake(self) -> None:
        """Wake all waiting threads."""

    def close(self) -> None:
        """Release every lock of this session."""


def key_hash(submission: Submission) -> str | None:
    """Hash the depositor's key of a submission; stores find a repeated submission by it."""
    if submission.key is None:
        return None
    text = f"{submission.profile_name}\x00{submission.key}"
    return hashlib.sha256(text.encode()).hexdigest()


def lost_lock(kind: str, item_id: str, holder: str) -> Conflict:
    """Build the error for a session whose lock is gone or belongs to another session."""
    now = f"is locked by {holder} now" if holder else "is not locked now"
    return Conflict(f"the lock on {kind} {item_id} was lost, and it {now}; nothing was changed")
