"""Queues of batches and ingest jobs on each backend, and helpers that fill them."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from penstock.clock import Clock, system_clock
from penstock.config import Settings
from penstock.ingest.models import (
    Batch,
    BatchChange,
    Configuration,
    Identifiers,
    IngestJob,
    JobChange,
    NewJob,
    NumberRange,
    NumberSequence,
    Reservation,
    Submission,
)
from penstock.ingest.queue.port import IngestStore, Outcome
from penstock.ingest.queue.sql.store import SqlIngestStore
from penstock.ingest.queue.zookeeper.store import ZkIngestStore
from penstock.ingest.transitions import move_batch, move_job
from penstock.plane import Plane
from penstock.schema.ingest import PayloadType
from penstock.states import INGEST_STAGES, BatchState, IngestState
from penstock.zookeeper import ZooKeeperSession
from tests.databases import Pool, sqlite_database
from tests.doors.waiting import until

BACKENDS = ("sqlite", "postgresql", "zookeeper")
NEXT = dict(zip(INGEST_STAGES, (*INGEST_STAGES[1:], IngestState.COMPLETED), strict=True))


def all_numbers(
    queue: str, name: NumberSequence, wanted: NumberRange, is_put_back: bool | None
) -> Reservation:
    """What a queue may give that is alone in its world."""
    return Reservation(NumberRange(1, 2**31), 0)


class Backend:
    """A queue of one kind. Each store opened on it has its own session."""

    def __init__(self, url: str, *, clock: Clock = system_clock) -> None:
        self.url = url
        self.clock = clock
        self._opened = ExitStack()

    @property
    def is_zookeeper(self) -> bool:
        """Return whether the backend is ZooKeeper."""
        return self.url.startswith("zookeeper:")

    def open(self, owner: str = "worker", *, session_seconds: float = 30) -> IngestStore:
        """Open another session, as another process would."""
        if self.is_zookeeper:
            session = ZooKeeperSession.open(self.url, session_seconds=session_seconds)
            self._opened.callback(session.close)
            return ZkIngestStore(session, owner, clock=self.clock, reserve=all_numbers)
        plane = self._opened.enter_context(Plane.open(Settings(database=self.url), self.clock))
        return SqlIngestStore(plane.catalog, owner, session_seconds=session_seconds)

    def close(self) -> None:
        """Close every session."""
        self._opened.close()


@contextmanager
def open_backend(
    kind: str, request: pytest.FixtureRequest, folder: Path, *, clock: Clock = system_clock
) -> Iterator[Backend]:
    """Yield an empty queue of a kind for one test."""
    with ExitStack() as stack:
        if kind == "sqlite":
            url = sqlite_database(folder / "queue.db")
        elif kind == "postgresql":
            pool: Pool = request.getfixturevalue("postgres_pool")
            url = pool.take()
            stack.callback(pool.give_back, url)
        else:
            url = request.getfixturevalue("zookeeper_url")
        backend = Backend(url, clock=clock)
        stack.callback(backend.close)
        yield backend


def submission(
    uid: str = "deposit", *, key: str | None = None, collection: str = "maps"
) -> Submission:
    """Return a submission of a depositor."""
    return Submission(
        profile_name=collection,
        submitter="jo@example.org",
        payload_url="https://example.org/payload.checkm",
        type=PayloadType.MANIFEST_OF_FILES,
        uid=uid,
        key=key,
    )


def new_jobs(batch: Batch, count: int, priority: int = 5) -> list[NewJob]:
    """Return the next jobs of a batch."""
    return [
        NewJob(
            Configuration(
                batch_id=batch.id,
                profile_name=batch.collection,
                submitter=batch.submission.submitter,
                payload_url=f"https://example.org/{row}.tif",
                payload_type=PayloadType.FILE,
                working_dir=f"/work/{batch.id}",
                row=row,
                key=f"{batch.submission.uid}/{row}",
                payload_name=f"{row}.tif",
            ),
            Identifiers(None, (f"loc{row}",)),
            priority,
        )
        for row in range(batch.jobs, batch.jobs + count)
    ]


def pending_batch(store: IngestStore, uid: str = "deposit") -> Batch:
    """Create a submitted batch that is claimed for its expansion."""
    batch_id = store.submit(submission(uid)).batch.id
    claimed = {batch.id: batch for batch in store.claim_batches(BatchState.PENDING, 100)}
    store.release([batch for batch in claimed.values() if batch.id != batch_id])
    return claimed[batch_id]


def processing_batch(
    store: IngestStore, jobs: int, uid: str = "deposit", *, priority: int = 5
) -> Batch:
    """Create a batch whose jobs are pending."""
    batch = pending_batch(store, uid)
    batch = store.add_jobs(batch, new_jobs(batch, jobs, priority))
    return transition_batch(store, batch, BatchState.PROCESSING)


def transition_batch(
    store: IngestStore, batch: Batch, to: BatchState, *, by_hand: bool = False
) -> Batch:
    """Move the batch. The store must accept the move."""
    after = move_batch(batch, to, system_clock(), by_hand=by_hand)
    changed = store.change_batch(BatchChange(batch, after, by_hand=by_hand))
    assert changed is not None
    return changed


def claim_job(store: IngestStore, stage: IngestState) -> IngestJob:
    """Claim the next job of a stage. A session may see the write of another one a little later."""
    jobs: list[IngestJob] = []

    def has_claimed() -> bool:
        jobs.extend(store.claim_jobs(stage, 1))
        return bool(jobs)

    until(has_claimed)
    return jobs[0]


def advance(store: IngestStore, jobs: list[IngestJob]) -> list[Outcome]:
    """Move claimed jobs to the stage after theirs."""
    now = system_clock()
    return store.change_jobs([JobChange(job, move_job(job, NEXT[job.status], now)) for job in jobs])


def advance_to_stage(store: IngestStore, stage: IngestState) -> None:
    """Every pending job, as far as this stage."""
    for before in INGEST_STAGES[: INGEST_STAGES.index(stage)]:
        while jobs := store.claim_jobs(before, 100):
            advance(store, jobs)


def finish(store: IngestStore, job: IngestJob, how: IngestState) -> IngestJob:
    """Force a claimed job to its end."""
    after = move_job(job, how, system_clock(), by_hand=True)
    [outcome] = store.change_jobs([JobChange(job, after)])
    assert isinstance(outcome, IngestJob), outcome
    return outcome


def main(url: str) -> None:
    """Claim a job in a separate process, print it and wait to be killed."""
    backend = Backend(url)
    store = backend.open("mortal", session_seconds=2)
    batches = store.claim_batches(BatchState.PENDING, 10)
    jobs = store.claim_jobs(IngestState.PENDING, 10)
    sys.stdout.write(" ".join([*(b.id for b in batches), *(j.id for j in jobs)]) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
