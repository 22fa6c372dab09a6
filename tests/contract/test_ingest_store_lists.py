"""How batches and jobs are listed, on every backend."""

from penstock.ingest.models import BatchChange, IngestHold, IngestHoldKind, IngestJob
from penstock.ingest.queue.port import BatchFilter, IngestStore
from penstock.states import BatchState, IngestState
from tests.ingest_stores import (
    Backend,
    advance,
    claim_job,
    finish,
    processing_batch,
    submission,
    transition_batch,
)

QUEUE_HOLD = IngestHold(IngestHoldKind.QUEUE, "ingest", "ann", "repairs", 1_700_000_000_000_001)


def test_the_jobs_of_a_batch_are_listed_in_pages(store: IngestStore) -> None:
    batch = processing_batch(store, 7)
    other = processing_batch(store, 2, "another")
    pages: list[list[IngestJob]] = []
    after = None
    while page := store.jobs(batch.id, 3, after):
        pages.append(page)
        after = page[-1].id
    assert [len(page) for page in pages] == [3, 3, 1]
    ids = [job.id for page in pages for job in page]
    assert ids == sorted(ids)
    assert len(store.jobs(other.id, 10)) == 2
    advance(store, store.claim_jobs(IngestState.PENDING, 2))
    assert [j.id for j in store.jobs(batch.id, 9, status=IngestState.ESTIMATING)] == ids[:2]
    assert [j.id for j in store.jobs(batch.id, 2, status=IngestState.PENDING)] == ids[2:4]
    assert [j.id for j in store.jobs(batch.id, 2, ids[3], status=IngestState.PENDING)] == ids[4:6]
    assert store.jobs("bid0000009999", 5) == []


def test_batches_are_listed_newest_first(store: IngestStore) -> None:
    kinds = ("maps", "photos", "maps", "maps", "photos")
    ids = [
        store.submit(submission(f"u{n}", collection=kind)).batch.id for n, kind in enumerate(kinds)
    ]
    transition_batch(store, store.batch(ids[2]), BatchState.HELD)

    def listed(which: BatchFilter, limit: int = 9, before: str | None = None) -> list[str]:
        return [batch.id for batch in store.batches(which, limit, before)]

    assert listed(BatchFilter()) == ids[::-1]
    assert listed(BatchFilter(), 2) == [ids[4], ids[3]]
    assert listed(BatchFilter(), 2, ids[3]) == [ids[2], ids[1]]
    assert listed(BatchFilter(collection="maps")) == [ids[3], ids[2], ids[0]]
    assert listed(BatchFilter(BatchState.HELD)) == [ids[2]]
    assert listed(BatchFilter(BatchState.PENDING, "maps")) == [ids[3], ids[0]]
    assert listed(BatchFilter(BatchState.PENDING), 2, ids[4]) == [ids[3], ids[1]]


def test_a_batch_that_is_not_completed_keeps_its_collection_open(
    backend: Backend, store: IngestStore
) -> None:
    other = backend.open("other")
    assert store.open_batch("maps") is None
    batch = processing_batch(store, 1)
    photos = store.submit(submission("u2", collection="photos")).batch
    finish(store, claim_job(store, IngestState.PENDING), IngestState.FAILED)
    [claimed] = store.claim_batches(BatchState.REPORTING, 1)
    assert other.open_batch("maps") == claimed
    transition_batch(store, claimed, BatchState.COMPLETED)
    assert (other.open_batch("maps"), other.open_batch("photos")) == (None, photos)
    store.change_batch(BatchChange(photos, None))
    assert other.open_batch("photos") is None
    assert other.batch(batch.id).status is BatchState.COMPLETED


def test_jobs_in_a_state_are_listed_in_queue_order(store: IngestStore) -> None:
    first = processing_batch(store, 3, "a", priority=20)
    second = processing_batch(store, 2, "b", priority=10)
    waiting = store.waiting(IngestState.PENDING, 10)
    assert [job.batch_id for job in waiting] == [second.id] * 2 + [first.id] * 3
    behind = store.waiting(IngestState.PENDING, 2, waiting[1].position)
    assert [job.id for job in behind] == [job.id for job in waiting[2:4]]
    claim_job(store, IngestState.PENDING)
    assert len(store.waiting(IngestState.PENDING, 10)) == 5
    assert store.waiting(IngestState.FAILED, 10) == []


def test_the_jobs_that_failed_last_are_listed_first(store: IngestStore) -> None:
    processing_batch(store, 2, "a", priority=20)
    processing_batch(store, 2, "b", priority=10)
    # By turn and by id they would come in other orders.
    claimed = {job.id: job for job in store.claim_jobs(IngestState.PENDING, 4)}
    ids = sorted(claimed)
    order = [ids[2], ids[0], ids[3]]
    for job_id in order:
        finish(store, claimed[job_id], IngestState.FAILED)
    assert [job.id for job in store.failed(10)] == order[::-1]
    assert [job.id for job in store.failed(2)] == [order[2], order[1]]
