"""The store that keeps batches and jobs beside the catalog, in SQLite or PostgreSQL.

Writes go through the catalog's writer and share its transactions. A lock is the name of a session
in the row that it locks; a session is alive for as long as it says so.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from penstock import ids
from penstock.clock import SECOND
from penstock.errors import Busy, NotFound, PenstockError, Unavailable
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
from penstock.ingest.queue.sql.commands import (
    AddIngestJobs,
    ChangeBatch,
    ChangeIngestJobs,
    ClaimBatches,
    ClaimIngestJobs,
    EndSession,
    KeepSession,
    LiftHold,
    PutHold,
    Repair,
    SubmitBatch,
)
from penstock.ingest.queue.sql.locks import SqlLocks
from penstock.ingest.queue.sql.rows import BatchRow, JobRow
from penstock.ingest.queue.sql.tables import ALL_BATCHES
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState
from penstock.store.write_queue import Command, WriteQueue

T = TypeVar("T")

log = logging.getLogger(__name__)

SESSION_SECONDS = 30
_LAST = "~"  # after every id
_FIRST = Place(-1, "")


class SqlIngestStore:
    """One session on the catalog's database."""

    def __init__(
        self, catalog: WriteQueue, owner: str, *, session_seconds: float = SESSION_SECONDS
    ) -> None:
        self._catalog = catalog
        self._owner = owner
        self._lasts = int(session_seconds * SECOND)
        self._locks = SqlLocks(catalog)
        self._session = ""
        self._opening = threading.Lock()
        self._changed = threading.Condition()

    def submit(self, submission: Submission) -> Submitted:
        """Make a batch, pending; or find the one that has this collection and key."""
        return self._write(SubmitBatch(submission))

    def add_jobs(self, batch: Batch, jobs: Sequence[NewJob]) -> Batch:
        """Give a batch its next jobs, all or none."""
        return self._write(AddIngestJobs(self._session, batch, tuple(jobs)))

    def claim_batches(self, status: BatchState, most: int, after: str | None = None) -> list[Batch]:
        """Lock batches in a state, oldest first."""
        return self._locks.take(ClaimBatches(self.session, status, most, after or ""))

    def claim_jobs(
        self, stage: IngestState, most: int, after: Place | None = None
    ) -> list[IngestJob]:
        """Lock jobs in a stage, in the order of their places."""
        return self._locks.take(ClaimIngestJobs(self.session, stage, most, after))

    def let_go(self, items: Sequence[IngestJob | Batch]) -> None:
        """Give up locks without a change."""
        self._locks.give_up(items, self._session)

    def change_jobs(self, changes: Sequence[JobChange]) -> list[Outcome]:
        """Carry out each change that still holds."""
        outcomes = self._write(ChangeIngestJobs(self._session, tuple(changes)))
        self._locks.forget(
            change.before
            for change, outcome in zip(changes, outcomes, strict=True)
            if not change.keep_lock and not isinstance(outcome, PenstockError)
        )
        return outcomes

    def change_batch(self, change: BatchChange) -> Batch | None:
        """Carry out a change that still holds, and give up the lock."""
        changed = self._write(ChangeBatch(self._session, change))
        self._locks.forget([change.before])
        return changed

    def batch(self, batch_id: str) -> Batch:
        """A batch, or NotFound."""
        with self._catalog.read() as tx:
            rows = tx.rows(BatchRow, "ingest_batch", id=batch_id)
        if not rows:
            raise NotFound(f"there is no batch {batch_id!r}; `penstock ingest list` lists them")
        return rows[0].value

    def job(self, job_id: str) -> IngestJob:
        """An ingest job, or NotFound."""
        with self._catalog.read() as tx:
            rows = tx.rows(JobRow, "ingest_job", id=job_id)
        if not rows:
            raise NotFound(
                f"there is no ingest job {job_id!r}; `penstock ingest jobs BATCH` lists them"
            )
        return rows[0].value

    def batches(self, which: BatchFilter, limit: int, before: str | None = None) -> list[Batch]:
        """Batches, newest first."""
        params: dict[str, object] = {"before": before or _LAST, "most": limit}
        name = "list_ingest_batches"
        if which.collection is not None:
            name += "_of_collection"
            params |= {"collection": which.collection, "status": which.status}
        elif which.status is not None:
            name += "_by_status"
            params |= {"status": which.status}
        with self._catalog.read() as tx:
            return [row.value for row in tx.rows(BatchRow, name, **params)]

    def open_batch(self, collection: str) -> Batch | None:
        """A batch of a collection that is not completed, if there is one."""
        with self._catalog.read() as tx:
            rows = tx.rows(BatchRow, "open_batch_of_collection", collection=collection)
        return rows[0].value if rows else None

    def jobs(
        self,
        batch_id: str,
        limit: int,
        after: str | None = None,
        *,
        status: IngestState | None = None,
    ) -> list[IngestJob]:
        """Jobs of a batch by id."""
        params: dict[str, object] = {"batch_id": batch_id, "after": after or "", "most": limit}
        name = "list_ingest_jobs"
        if status is not None:
            name += "_by_status"
            params |= {"status": status}
        with self._catalog.read() as tx:
            return [row.value for row in tx.rows(JobRow, name, **params)]

    def waiting(
        self, status: IngestState, limit: int, after: Place | None = None
    ) -> list[IngestJob]:
        """Jobs of all batches in a state, in the order of their places."""
        place = after or _FIRST
        with self._catalog.read() as tx:
            rows = tx.rows(
                JobRow,
                "waiting_ingest_jobs",
                status=status,
                priority=place.priority,
                id=place.id,
                most=limit,
            )
        return [row.value for row in rows]

    def failed(self, limit: int) -> list[IngestJob]:
        """Failed jobs of all batches, the last that failed first."""
        with self._catalog.read() as tx:
            return [row.value for row in tx.rows(JobRow, "newest_failed_ingest_jobs", most=limit)]

    def tally(self, batch_id: str | None = None) -> list[Tally]:
        """How many jobs of a batch, or of all, are in each state that has any."""
        whose = ALL_BATCHES if batch_id is None else batch_id
        with self._catalog.read() as tx:
            rows = tx.fetch("ingest_tally", batch_id=whose)
        counted = {status: (jobs, size) for status, jobs, size in rows}
        return [Tally(state, *counted[state]) for state in IngestState if state in counted]

    def tallies(self, batch_ids: Sequence[str]) -> Mapping[str, list[Tally]]:
        """How the jobs of several batches stand, in one statement."""
        with self._catalog.read() as tx:
            rows = tx.fetch("ingest_tallies_by_batches", ids=list(batch_ids))
        found: dict[str, list[Tally]] = {batch_id: [] for batch_id in batch_ids}
        counted = {(batch_id, status): (jobs, size) for batch_id, status, jobs, size in rows}
        for batch_id in batch_ids:
            for state in IngestState:
                jobs, size = counted.get((batch_id, state), (0, 0))
                if jobs:
                    found[batch_id].append(Tally(state, jobs, size))
        return found

    def hold(self, hold: Hold) -> None:
        """Stop a collection or the whole queue."""
        self._write(PutHold(hold))

    def unhold(self, kind: HoldKind, name: str) -> bool:
        """Let it go on; False if it was not held."""
        return self._write(LiftHold(kind, name))

    def holds(self) -> list[Hold]:
        """Everything that is held."""
        with self._catalog.read() as tx:
            rows = tx.fetch("all_ingest_holds")
        return [Hold(HoldKind(kind), *rest) for kind, *rest in rows]

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Look for what no crash should have left, and put right what can be."""
        return self._catalog.submit(Repair(repair)).result()

    def checking(self, *, repair: bool = False) -> Iterator[Finding | Looked]:
        """The same; it is one write, and says nothing before its end."""
        yield from self.check(repair=repair)

    def keep_alive(self) -> None:
        """Say that this session lives, and free the locks of sessions that do not."""
        keep = KeepSession(self.session, self._owner, self._lasts)
        if not self._catalog.submit(keep).result():
            # Its locks may be another's by now: what was claimed under the old name is lost.
            self._begin()
        self._locks.free_lost(self.session)

    @property
    def is_away(self) -> bool:
        """It is in the database, which everybody else asks, too."""
        return False

    def wait(self, seconds: float) -> None:
        """Return when this process has changed something, at the latest after so long."""
        with self._changed:
            self._changed.wait(seconds)

    def wake(self) -> None:
        """Let whoever waits go on."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Give up every lock of this session."""
        if self._session:
            try:
                self._catalog.submit(EndSession(self._session)).result()
            except (Busy, Unavailable) as error:
                log.warning("the locks of this worker end by themselves, soon: %s", error)
            self._session = ""
        self.wake()

    @property
    def session(self) -> str:
        """The name of the session, begun when it is first needed."""
        if not self._session:
            self._begin()
        return self._session

    def _begin(self) -> None:
        with self._opening:
            session = f"{self._owner}/{ids.new_id()[-8:]}"  # its end is chance, not time
            self._catalog.submit(KeepSession(session, self._owner, self._lasts)).result()
            self._session = session

    def _write(self, command: Command[T]) -> T:
        result = self._catalog.submit(command).result()
        self.wake()
        return result
