"""What a store of batches and ingest jobs promises, whichever backend keeps the promise.

A store object is one *session*: the locks it takes are its own, and go when it is closed, when its
process dies, or when it stays silent for longer than the session lasts.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from penstock.errors import Conflict, PenstockError
from penstock.ingest.models import (
    Batch,
    BatchChange,
    Finding,
    Hold,
    HoldKind,
    IngestJob,
    JobChange,
    Looked,
    NewJob,
    Place,
    Submission,
    Tally,
)
from penstock.states import BatchState, IngestState

QUEUE: Final = "ingest"  # the name of the only queue in a hold

Outcome = IngestJob | PenstockError | None  # the job after a change, or why it was refused


class Submitted(NamedTuple):
    """A batch, and whether this submission made it."""

    batch: Batch
    is_new: bool


class BatchFilter(NamedTuple):
    """Which batches to list."""

    status: BatchState | None = None
    collection: str | None = None


class IngestStore(Protocol):
    """Batches, their jobs and the queue of each stage.

    Guaranteed: a call that returns has its effect on disk. Every change is compare-and-swap on the
    version that was read; the loser gets a Conflict and nothing of its change is seen. A job is in
    the queue of exactly one state and on exactly one side of its batch, whatever crashes. A job or
    batch is locked by at most one live session. A batch whose last job has ended, or was deleted,
    moves from processing to reporting without anybody's help.

    Not guaranteed: that two sessions claim in strict order of priority, nor that a lock whose
    session has died is free before the session's time is over. A change whose answer was lost on
    the way may have taken effect: the same change again is then answered as if it had been first.
    Every method may be called from any thread.
    """

    def submit(self, submission: Submission) -> Submitted:
        """Make a batch, pending; or find the one that has this collection and key."""

    def add_jobs(self, batch: Batch, jobs: Sequence[NewJob]) -> Batch:
        """Give a batch its next jobs, all or none; gives the batch as it is then.

        The batch keeps its lock. `batch.jobs` grows by as many; the caller goes on from there.
        """

    def claim_batches(self, status: BatchState, most: int, after: str | None = None) -> list[Batch]:
        """Lock batches in a state, oldest first; with `after`, only those younger than that one."""

    def claim_jobs(
        self, stage: IngestState, most: int, after: Place | None = None
    ) -> list[IngestJob]:
        """Lock jobs in a stage, in the order of their places; with `after`, only behind that one.

        Nothing is claimed while the queue is held. What another session wrote just now may not be
        known here yet; whoever waits for it is woken.
        """

    def let_go(self, items: Sequence[IngestJob | Batch]) -> None:
        """Give up locks without a change, now or as soon as the store can be reached again."""

    def change_jobs(self, changes: Sequence[JobChange]) -> list[Outcome]:
        """Carry out each change that still holds: the job after it, or why it was refused.

        A change of a job whose lock is not the one that it was read with is refused, unless it
        is made by hand.
        """

    def change_batch(self, change: BatchChange) -> Batch | None:
        """Carry out a change that still holds, and give up the lock."""

    def batch(self, batch_id: str) -> Batch:
        """A batch, or NotFound."""

    def job(self, job_id: str) -> IngestJob:
        """An ingest job, or NotFound."""

    def batches(self, which: BatchFilter, limit: int, before: str | None = None) -> list[Batch]:
        """Batches, newest first; with `before`, only those older than that one."""

    def open_batch(self, collection: str) -> Batch | None:
        """A batch of a collection that is not completed, if there is one."""

    def jobs(
        self,
        batch_id: str,
        limit: int,
        after: str | None = None,
        *,
        status: IngestState | None = None,
    ) -> list[IngestJob]:
        """Jobs of a batch by id; with `after`, only those behind that one."""

    def waiting(
        self, status: IngestState, limit: int, after: Place | None = None
    ) -> list[IngestJob]:
        """Jobs of all batches in a state, in the order of their places."""

    def failed(self, limit: int) -> list[IngestJob]:
        """Failed jobs of all batches, the last that failed first.

        Where that would mean to read all that ever failed, it is the order among those that were
        submitted last.
        """

    def tally(self, batch_id: str | None = None) -> list[Tally]:
        """How many jobs of a batch, or of all, are in each state that has any."""

    def tallies(self, batch_ids: Sequence[str]) -> Mapping[str, list[Tally]]:
        """How the jobs of several batches stand; what would take long is left out."""

    def hold(self, hold: Hold) -> None:
        """Stop a collection or the whole queue."""

    def unhold(self, kind: HoldKind, name: str) -> bool:
        """Let it go on; False if it was not held."""

    def holds(self) -> list[Hold]:
        """Everything that is held."""

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Look for what no crash should have left, and put right what can be."""

    def checking(self, *, repair: bool = False) -> Iterator[Finding | Looked]:
        """The same, each finding when it is made, and now and then how far the check is."""

    def keep_alive(self) -> None:
        """Say that this session lives, and free the locks of sessions that do not."""

    @property
    def is_away(self) -> bool:
        """Whether the queue is known not to answer just now; nobody waits for it to be told."""

    def wait(self, seconds: float) -> None:
        """Return when something may have changed, at the latest after so long."""

    def wake(self) -> None:
        """Let whoever waits go on."""

    def close(self) -> None:
        """Give up every lock of this session."""


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
