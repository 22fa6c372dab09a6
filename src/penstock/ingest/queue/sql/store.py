"""The ingest queue in the catalog's database, SQLite or PostgreSQL.

Writes go through the write queue and share its transactions. A lock is the name of a session in the
locked row; a session lives as long as it renews itself.
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
from penstock.ingest.queue.sql.commands import (
    AddIngestJobs,
    ChangeBatch,
    ChangeIngestJobs,
    CheckQueue,
    ClaimBatches,
    ClaimIngestJobs,
    EndSession,
    PlaceHold,
    RemoveHold,
    RenewSession,
    SubmitBatch,
)
from penstock.ingest.queue.sql.locks import SqlLocks
from penstock.ingest.queue.sql.rows import BatchRow, IngestJobRow
from penstock.ingest.queue.sql.tables import ALL_BATCHES
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState
from penstock.store.write_queue import Command, WriteQueue

T = TypeVar("T")

log = logging.getLogger(__name__)

SESSION_SECONDS = 30
_LAST = "~"  # after every id
_FIRST = QueuePosition(-1, "")


class SqlIngestStore:
    """The ingest queue in the catalog's database, for one session."""

    def __init__(
        self, catalog: WriteQueue, owner: str, *, session_seconds: float = SESSION_SECONDS
    ) -> None:
        self._catalog = catalog
        self._owner = owner
        self._session_micros = int(session_seconds * SECOND)
        self._locks = SqlLocks(catalog)
        self._session = ""
        self._opening = threading.Lock()
        self._changed = threading.Condition()

    def submit(self, submission: Submission) -> Submitted:
        return self._write(SubmitBatch(submission))

    def add_jobs(self, batch: Batch, jobs: Sequence[NewJob]) -> Batch:
        return self._write(AddIngestJobs(self._session, batch, tuple(jobs)))

    def claim_batches(self, status: BatchState, most: int, after: str | None = None) -> list[Batch]:
        return self._locks.claim(ClaimBatches(self.session, status, most, after or ""))

    def claim_jobs(
        self, stage: IngestState, most: int, after: QueuePosition | None = None
    ) -> list[IngestJob]:
        return self._locks.claim(ClaimIngestJobs(self.session, stage, most, after))

    def release(self, items: Sequence[IngestJob | Batch]) -> None:
        self._locks.release(items, self._session)

    def change_jobs(self, changes: Sequence[JobChange]) -> list[Outcome]:
        outcomes = self._write(ChangeIngestJobs(self._session, tuple(changes)))
        self._locks.forget(
            change.before
            for change, outcome in zip(changes, outcomes, strict=True)
            if not change.keep_lock and not isinstance(outcome, PenstockError)
        )
        return outcomes

    def change_batch(self, change: BatchChange) -> Batch | None:
        changed = self._write(ChangeBatch(self._session, change))
        self._locks.forget([change.before])
        return changed

    def batch(self, batch_id: str) -> Batch:
        with self._catalog.read() as tx:
            rows = tx.rows(BatchRow, "ingest_batch", id=batch_id)
        if not rows:
            raise NotFound(f"there is no batch {batch_id!r}; `penstock ingest list` lists them")
        return rows[0].value

    def job(self, job_id: str) -> IngestJob:
        with self._catalog.read() as tx:
            rows = tx.rows(IngestJobRow, "ingest_job", id=job_id)
        if not rows:
            raise NotFound(
                f"there is no ingest job {job_id!r}; `penstock ingest jobs BATCH` lists them"
            )
        return rows[0].value

    def batches(self, which: BatchFilter, limit: int, before: str | None = None) -> list[Batch]:
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
        params: dict[str, object] = {"batch_id": batch_id, "after": after or "", "most": limit}
        name = "list_ingest_jobs"
        if status is not None:
            name += "_by_status"
            params |= {"status": status}
        with self._catalog.read() as tx:
            return [row.value for row in tx.rows(IngestJobRow, name, **params)]

    def waiting(
        self, status: IngestState, limit: int, after: QueuePosition | None = None
    ) -> list[IngestJob]:
        position = after or _FIRST
        with self._catalog.read() as tx:
            rows = tx.rows(
                IngestJobRow,
                "waiting_ingest_jobs",
                status=status,
                priority=position.priority,
                id=position.id,
                most=limit,
            )
        return [row.value for row in rows]

    def failed(self, limit: int) -> list[IngestJob]:
        with self._catalog.read() as tx:
            return [
                row.value for row in tx.rows(IngestJobRow, "newest_failed_ingest_jobs", most=limit)
            ]

    def tally(self, batch_id: str | None = None) -> list[Tally]:
        counted_batch = ALL_BATCHES if batch_id is None else batch_id
        with self._catalog.read() as tx:
            rows = tx.fetch("ingest_tally", batch_id=counted_batch)
        counted = {status: (jobs, size) for status, jobs, size in rows}
        return [Tally(state, *counted[state]) for state in IngestState if state in counted]

    def tallies(self, batch_ids: Sequence[str]) -> Mapping[str, list[Tally]]:
        with self._catalog.read() as tx:
            rows = tx.fetch("ingest_tallies_by_batches", ids=list(batch_ids))
        tallies: dict[str, list[Tally]] = {batch_id: [] for batch_id in batch_ids}
        counted = {(batch_id, status): (jobs, size) for batch_id, status, jobs, size in rows}
        for batch_id in batch_ids:
            for state in IngestState:
                jobs, size = counted.get((batch_id, state), (0, 0))
                if jobs:
                    tallies[batch_id].append(Tally(state, jobs, size))
        return tallies

    def hold(self, hold: IngestHold) -> None:
        self._write(PlaceHold(hold))

    def release_hold(self, kind: IngestHoldKind, name: str) -> bool:
        return self._write(RemoveHold(kind, name))

    def holds(self) -> list[IngestHold]:
        with self._catalog.read() as tx:
            rows = tx.fetch("all_ingest_holds")
        return [IngestHold(IngestHoldKind(kind), *rest) for kind, *rest in rows]

    def check(self, *, repair: bool = False) -> list[Finding]:
        return self._catalog.submit(CheckQueue(repair)).result()

    def iter_check(self, *, repair: bool = False) -> Iterator[Finding | CheckProgress]:
        """Check in one write, so that all findings come at its end."""
        yield from self.check(repair=repair)

    def keep_alive(self) -> None:
        keep = RenewSession(self.session, self._owner, self._session_micros)
        if not self._catalog.submit(keep).result():
            # Other sessions may have its locks now: the claims under the old name are lost.
            self._begin()
        self._locks.release_unknown(self.session)

    @property
    def is_away(self) -> bool:
        """Always False: the queue is reachable whenever the database is."""
        return False

    def wait(self, seconds: float) -> None:
        """Wait until this process changes something, at most for these seconds."""
        with self._changed:
            self._changed.wait(seconds)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        if self._session:
            try:
                self._catalog.submit(EndSession(self._session)).result()
            except (Busy, Unavailable) as error:
                log.warning(
                    "could not release the locks of this worker; they expire soon: %s", error
                )
            self._session = ""
        self.wake()

    @property
    def session(self) -> str:
        """The name of the session; begins the session on first use."""
        if not self._session:
            self._begin()
        return self._session

    def _begin(self) -> None:
        with self._opening:
            session = f"{self._owner}/{ids.new_id()[-8:]}"  # only the end of a new id is random
            self._catalog.submit(RenewSession(session, self._owner, self._session_micros)).result()
            self._session = session

    def _write(self, command: Command[T]) -> T:
        result = self._catalog.submit(command).result()
        self.wake()
        return result
