"""The store that keeps batches and jobs in ZooKeeper.

Every change is one transaction, guarded by the version of a status node. A lock is an ephemeral
node: it goes with the session, and ZooKeeper itself says when that is.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from penstock.clock import Clock
from penstock.errors import Conflict, Invalid, PenstockError
from penstock.ingest.models import (
    Batch,
    BatchChange,
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
from penstock.ingest.queue.port import BatchFilter, Outcome, Submitted
from penstock.ingest.queue.zookeeper.caches import Bell
from penstock.ingest.queue.zookeeper.changes import (
    Done,
    Writing,
    batch_change,
    job_change,
    report_ops,
)
from penstock.ingest.queue.zookeeper.check import Checking
from penstock.ingest.queue.zookeeper.claims import Claims
from penstock.ingest.queue.zookeeper.entering import Entering, QueueNumbers, Reserve
from penstock.ingest.queue.zookeeper.layout import (
    STATES,
    SUBMISSIONS,
    batch_path,
    first_ops,
    hold_data,
    hold_path,
    side_path,
)
from penstock.ingest.queue.zookeeper.locks import Locks
from penstock.ingest.queue.zookeeper.reading import Reading, Tallies
from penstock.ingest.transitions import BatchSide, is_reported_since, move_batch, side_of
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Create, ErrorKind, Refused, Session, Set, Unknown

ZOOKEEPER_OWN = "zookeeper"  # the node of ZooKeeper itself, where no other is named
NAMES_CHARS_MAX = 300


class ZkIngestStore:
    """One session with ZooKeeper, which becomes the store's own."""

    def __init__(self, session: Session, owner: str, *, clock: Clock, reserve: Reserve) -> None:
        self._session = session
        self._clock = clock
        self._bell = Bell()
        self._locks = Locks(session, owner)
        self._writing = Writing(session, self._locks)
        self._reading = Reading(session)
        self._tallies = Tallies(session)
        self._claims = Claims(session, self._locks, self._reading, self._bell, self._report)
        numbers = QueueNumbers(session, reserve)
        self._entering = Entering(session, self._writing, self._reading, numbers, clock)
        self._prepare()

    def submit(self, submission: Submission) -> Submitted:
        """Make a batch, pending; or find the one that has this collection and key."""
        submitted = self._entering.submit(submission)
        self._claims.batches.note(submitted.batch.id, submitted.batch.status)
        self.wake()
        return submitted

    def add_jobs(self, batch: Batch, jobs: Sequence[NewJob]) -> Batch:
        """Give a batch its next jobs.

        They are made in one transaction, as long as ZooKeeper takes it: over a megabyte they come
        in parts, each all or none and counted by the batch.
        """
        for part in self._entering.parts(jobs):
            batch, made = self._entering.add(batch, part)
            for job in made:
                self._claims.queue(job.status).add(job.place)
        self.wake()
        return batch

    def claim_batches(self, status: BatchState, most: int, after: str | None = None) -> list[Batch]:
        """Lock batches in a state, oldest first."""
        return self._claims.claim_batches(status, most, after or "")

    def claim_jobs(
        self, stage: IngestState, most: int, after: Place | None = None
    ) -> list[IngestJob]:
        """Lock jobs in a stage, in the order of their places."""
        return self._claims.claim_jobs(stage, most, after)

    def let_go(self, items: Sequence[IngestJob | Batch]) -> None:
        """Give up locks without a change."""
        self._claims.let_go(items)
        self.wake()

    def change_jobs(self, changes: Sequence[JobChange]) -> list[Outcome]:
        """Carry out each change that still holds, many on their way at once."""
        made = self._writing.carry_out([job_change(change) for change in changes])
        outcomes = [self._changed(*pair) for pair in zip(changes, made, strict=True)]
        ended = {
            change.before.batch_id
            for change, outcome in zip(changes, outcomes, strict=True)
            if not isinstance(outcome, PenstockError) and _has_left(change)
        }
        for batch_id in sorted(ended):
            with contextlib.suppress(PenstockError):  # what was changed is, and a sweep follows
                self._report_if_done(batch_id)
        self.wake()
        return outcomes

    def change_batch(self, change: BatchChange) -> Batch | None:
        """Carry out a change that still holds, and give up the lock."""
        before, after = change.before, change.after
        if after is not None:
            after = replace(after, jobs=before.jobs)
            change = replace(change, after=after)
        has_sides = self._session.exists(batch_path(before.id, STATES))
        [made] = self._writing.carry_out([batch_change(change, has_sides=has_sides)])
        if isinstance(made, Refused) and made.kind is ErrorKind.NOT_EMPTY:
            left = self._tallies.jobs_of(before.id)
            raise Conflict(f"batch {before.id} still has {left} jobs; delete them first")
        if isinstance(made, PenstockError):
            found = self._done_before(change) if isinstance(made, Conflict) else None
            if found is None:
                raise made
            return found
        self._claims.batches.note(before.id, None if after is None else after.status)
        self.wake()
        if after is None:
            return None
        if not made.is_certain and after.report not in (None, self.batch(before.id).report):
            raise Conflict(f"batch {before.id} was reported by somebody else; look at it again")
        if after.status is BatchState.PROCESSING and self._report_if_done(before.id):
            return self._reading.batch(before.id)
        return replace(after, version=made.version, locked_by="")

    def batch(self, batch_id: str) -> Batch:
        """A batch, or NotFound."""
        return self._reading.batch(batch_id)

    def job(self, job_id: str) -> IngestJob:
        """An ingest job, or NotFound."""
        return self._reading.job(job_id)

    def batches(self, which: BatchFilter, limit: int, before: str | None = None) -> list[Batch]:
        """Batches, newest first."""
        return self._reading.list_batches(which, limit, before)

    def open_batch(self, collection: str) -> Batch | None:
        """A batch of a collection that is not completed, if there is one."""
        return self._reading.open_batch(collection)

    def jobs(
        self,
        batch_id: str,
        limit: int,
        after: str | None = None,
        *,
        status: IngestState | None = None,
    ) -> list[IngestJob]:
        """Jobs of a batch by id."""
        return self._reading.list_jobs(batch_id, limit, after, status)

    def waiting(
        self, status: IngestState, limit: int, after: Place | None = None
    ) -> list[IngestJob]:
        """Jobs of all batches in a state, in the order of their places."""
        return self._reading.waiting(status, limit, after)

    def failed(self, limit: int) -> list[IngestJob]:
        """Failed jobs of all batches, the last that failed first among the last submitted."""
        return self._reading.failed(limit)

    def tally(self, batch_id: str | None = None) -> list[Tally]:
        """How many jobs of a batch, or of all, are in each state that has any.

        Of all batches, only the bytes of jobs that are downloading are given.
        """
        return self._tallies.of_all() if batch_id is None else self._tallies.of_batch(batch_id)

    def tallies(self, batch_ids: Sequence[str]) -> Mapping[str, list[Tally]]:
        """How the jobs of several batches stand; very large batches are left out."""
        return self._tallies.of_batches(batch_ids)

    def hold(self, hold: Hold) -> None:
        """Stop a collection or the whole queue; the last who held it is named."""
        path, data = hold_path(hold.kind, hold.name), hold_data(hold)
        while True:
            op = Set(path, data, -1) if self._session.exists(path) else Create(path, data)
            try:
                self._session.multi([op])
                break
            except (Refused, Unknown):  # somebody held or released it just now: look again
                continue
        self._hold_changed()

    def unhold(self, kind: HoldKind, name: str) -> bool:
        """Let it go on; False if it was not held."""
        path = hold_path(kind, name)
        was_held = self._session.exists(path)
        while self._session.exists(path):
            with contextlib.suppress(Unknown):
                self._session.delete(path)
        self._hold_changed()
        return was_held

    def holds(self) -> list[Hold]:
        """Everything that is held."""
        return self._reading.holds()

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Look for what no crash should have left, and put right what can be."""
        return [step for step in self.checking(repair=repair) if isinstance(step, Finding)]

    def checking(self, *, repair: bool = False) -> Iterator[Finding | Looked]:
        """The same, each finding when it is made, and now and then how far the check is."""
        return Checking(self._session, self._report, repair=repair).steps()

    def keep_alive(self) -> None:
        """The session keeps itself alive; locks that it has without knowing are given up."""
        if not self._session.is_suspended:
            self._locks.free_doubtful()

    @property
    def is_away(self) -> bool:
        """Whether there is no connection to ZooKeeper just now."""
        return self._session.is_suspended

    def wait(self, seconds: float) -> None:
        """Return when a watch has fired or this process has changed something, or after so long."""
        self._bell.wait(seconds)

    def wake(self) -> None:
        """Let whoever waits go on."""
        self._bell.ring()

    def close(self) -> None:
        """End the session, and with it every lock."""
        self._session.close()
        self.wake()

    def _prepare(self) -> None:
        """Make the empty queue, unless it is there; refuse the tree of another program."""
        while not self._session.exists(SUBMISSIONS):
            others = sorted(set(self._session.children("/")) - {ZOOKEEPER_OWN})
            if others and not self._session.exists(SUBMISSIONS):
                raise Invalid(
                    f"{self._session.address} is another program's: it has nodes "
                    f"({', '.join(others)[:NAMES_CHARS_MAX]}) and no {SUBMISSIONS} of Penstock; "
                    "nothing in it was changed. Name another node in `queue`, or a new one"
                )
            with contextlib.suppress(Refused, Unknown):
                self._session.multi(first_ops())

    def _changed(self, change: JobChange, made: Done | PenstockError) -> Outcome:
        before, after = change.before, change.after
        if isinstance(made, Refused):
            return Conflict(
                f"ingest job {before.id} does not stand where its status says, so nothing was "
                f"changed ({made}); run `penstock ingest check --repair`"
            )
        if isinstance(made, PenstockError):
            return made
        queues = self._claims
        queues.queue(before.status).remove(before.place)
        if after is None:
            return None
        after = replace(after, version=made.version, locked_by="")
        if not made.is_certain and not _is_same(self._reading.job(before.id), after):
            return Conflict(
                f"ingest job {before.id} was {before.status} when it was read and was changed "
                "since; look at it again"
            )
        self._reading.remember(after)
        if change.keep_lock:
            return replace(after, locked_by=before.locked_by)
        queues.queue(after.status).add(after.place)
        return after

    def _done_before(self, change: BatchChange) -> Batch | None:
        """The batch, if this change was made before and the batch went on to its report."""
        [found] = self._reading.batches([change.before.id])
        if change.after is None or not isinstance(found, Batch):
            return None
        return found if is_reported_since(change.before, change.after, found) else None

    def _hold_changed(self) -> None:
        self._claims.hold_changed()
        self.wake()

    def _report_if_done(self, batch_id: str) -> bool:
        is_done = self._session.children_count(side_path(batch_id, BatchSide.PROCESSING)) == 0
        return is_done and self._report(batch_id)

    def _report(self, batch_id: str) -> bool:
        """Move a batch of which no job is left on to its report; False if that is not so."""
        [batch] = self._reading.batches([batch_id])
        if not isinstance(batch, Batch) or batch.status is not BatchState.PROCESSING:
            return False
        moved = move_batch(batch, BatchState.REPORTING, self._clock())
        try:
            self._session.multi(report_ops(batch, moved))
        except (Refused, Unknown):  # somebody was faster, or a sweep will see it
            return False
        self._claims.batches.note(batch_id, moved.status)
        return True


def _has_left(change: JobChange) -> bool:
    """Whether a job is not under way any more in the eyes of its batch."""
    after = change.after
    return after is None or side_of(after.status) is not BatchSide.PROCESSING


def _is_same(found: IngestJob, wanted: IngestJob) -> bool:
    return replace(found, locked_by="") == wanted
