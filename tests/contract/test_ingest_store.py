"""What every store of batches and ingest jobs does, on every backend."""

from collections import Counter

import pytest
from msgspec.structs import replace

from penstock.clock import system_clock
from penstock.errors import Conflict, NotFound
from penstock.ingest.models import (
    BatchChange,
    Identifiers,
    IngestHold,
    IngestHoldKind,
    IngestJob,
    JobChange,
    QueuePosition,
)
from penstock.ingest.queue.port import BatchFilter, IngestStore
from penstock.ingest.transitions import move_batch, move_job
from penstock.states import BatchState, IngestState
from tests.ingest_stores import (
    Backend,
    advance,
    advance_to_stage,
    claim_job,
    finish,
    new_jobs,
    pending_batch,
    processing_batch,
    submission,
    transition_batch,
)

QUEUE_HOLD = IngestHold(IngestHoldKind.QUEUE, "ingest", "ann", "repairs", 1_700_000_000_000_001)


def test_two_submissions_with_one_key_are_one_batch(backend: Backend, store: IngestStore) -> None:
    first = store.submit(submission("u1", key="k"))
    again = backend.open("other").submit(submission("u2", key="k"))
    assert (again.batch, again.is_new) == (first.batch, False)
    elsewhere = store.submit(submission("u3", key="k", collection="photos"))
    assert elsewhere.is_new
    assert len(store.batches(BatchFilter(), 10)) == 2


def test_a_key_is_free_again_once_its_batch_is_deleted(store: IngestStore) -> None:
    first = store.submit(submission("u1", key="k")).batch
    assert store.change_batch(BatchChange(first, None)) is None
    with pytest.raises(NotFound, match=first.id):
        store.batch(first.id)
    second = store.submit(submission("u2", key="k"))
    assert second.is_new
    assert second.batch.id > first.id


def test_an_interrupted_expansion_continues(backend: Backend) -> None:
    mortal = backend.open("mortal")
    batch = pending_batch(mortal)
    batch = mortal.add_jobs(batch, new_jobs(batch, 3))
    assert (batch.jobs, batch.status) == (3, BatchState.PENDING)
    mortal.close()
    heir = backend.open("heir")
    [found] = heir.claim_batches(BatchState.PENDING, 5)
    assert found.jobs == 3
    found = heir.add_jobs(found, new_jobs(found, 2))
    done = transition_batch(heir, found, BatchState.PROCESSING)
    assert (done.jobs, done.status, done.locked_by) == (5, BatchState.PROCESSING, "")
    jobs = heir.jobs(batch.id, 10)
    assert [job.configuration.row for job in jobs] == [0, 1, 2, 3, 4]
    assert [job.id for job in jobs] == [f"jid{n:010}" for n in range(1, 6)]
    with pytest.raises(Conflict):
        heir.add_jobs(batch, new_jobs(batch, 1))
    assert len(heir.jobs(batch.id, 10)) == 5
    assert heir.check() == []


def test_batches_are_claimed_behind_one_of_them(store: IngestStore) -> None:
    first, second, third = (store.submit(submission(f"u{n}")).batch.id for n in range(3))
    younger = store.claim_batches(BatchState.PENDING, 5, first)
    assert [batch.id for batch in younger] == [second, third]
    store.release(younger)
    assert [batch.id for batch in store.claim_batches(BatchState.PENDING, 1, second)] == [third]
    assert [batch.id for batch in store.claim_batches(BatchState.PENDING, 5)] == [first, second]


def test_a_new_job_is_pending_and_has_a_folder_of_its_own(store: IngestStore) -> None:
    batch = processing_batch(store, 1)
    [job] = store.jobs(batch.id, 10)
    assert job.status is IngestState.PENDING
    assert job.configuration.working_dir == f"/work/{batch.id}/{job.id}"
    assert (job.version, job.retry_count, job.space_needed) == (0, 0, 0)
    assert job.identifiers == Identifiers(None, ("loc0",))
    assert job.last_successful_status is None
    assert [step.status for step in job.history] == [IngestState.PENDING]


def test_a_batch_without_jobs_reports_as_soon_as_it_processes(store: IngestStore) -> None:
    batch = pending_batch(store)
    assert transition_batch(store, batch, BatchState.PROCESSING).status is BatchState.REPORTING
    [claimed] = store.claim_batches(BatchState.REPORTING, 5)
    assert claimed.id == batch.id


def test_jobs_are_claimed_by_priority_and_then_by_age(store: IngestStore) -> None:
    batch = pending_batch(store)
    for priority in (50, 7, 50, 99, 0):
        batch = store.add_jobs(batch, new_jobs(batch, 2, priority))
    first = store.claim_jobs(IngestState.PENDING, 3)
    rest = store.claim_jobs(IngestState.PENDING, 100)
    assert [job.configuration.row for job in (*first, *rest)] == [8, 9, 2, 3, 0, 1, 4, 5, 6, 7]
    places = [job.position for job in (*first, *rest)]
    assert places == sorted(places)
    assert store.claim_jobs(IngestState.PENDING, 1) == []


def test_a_session_sees_its_own_front_entry_at_once(store: IngestStore) -> None:
    batch = pending_batch(store)
    batch = store.add_jobs(batch, new_jobs(batch, 5, 50))
    assert claim_job(store, IngestState.PENDING).priority == 50
    batch = store.add_jobs(batch, new_jobs(batch, 1, 3))
    assert claim_job(store, IngestState.PENDING).priority == 3
    last = store.jobs(batch.id, 10)[4]
    store.change_jobs([JobChange(last, replace(last, priority=1), by_hand=True)])
    assert claim_job(store, IngestState.PENDING).id == last.id


def test_a_claim_behind_a_place_goes_round_every_job(store: IngestStore) -> None:
    processing_batch(store, 7)
    for _ in range(2):
        seen: list[str] = []
        after: QueuePosition | None = None
        while jobs := store.claim_jobs(IngestState.PENDING, 3, after):
            seen += [job.id for job in jobs]
            after = jobs[-1].position
            store.release(jobs)
        assert len(seen) == 7
        assert seen == sorted(seen)


def test_a_released_job_can_be_claimed_at_once(backend: Backend, store: IngestStore) -> None:
    processing_batch(store, 3)
    other = backend.open("other")
    jobs = store.claim_jobs(IngestState.PENDING, 10)
    assert other.claim_jobs(IngestState.PENDING, 10) == []
    store.release(jobs[:2])
    again = store.claim_jobs(IngestState.PENDING, 1)
    assert [job.id for job in again] == [jobs[0].id]
    store.release(jobs)
    store.release(jobs)  # it does no harm
    assert store.job(jobs[2].id).locked_by == ""
    assert store.job(jobs[2].id).version == 0


def test_the_same_change_again_is_answered_as_if_it_had_been_first(
    backend: Backend, store: IngestStore
) -> None:
    processing_batch(store, 2)
    jobs = store.claim_jobs(IngestState.PENDING, 2)
    now = system_clock()
    changes = [JobChange(job, move_job(job, IngestState.ESTIMATING, now)) for job in jobs]
    first = store.change_jobs(changes)
    assert store.change_jobs(changes) == first
    assert backend.open("other").job(jobs[0].id).version == 1
    after = move_job(jobs[0], IngestState.ESTIMATING, now)
    for other in (replace(after, message="x"), replace(after, identifiers=Identifiers("ark:/1/x"))):
        [refused] = store.change_jobs([JobChange(jobs[0], other)])
        assert isinstance(refused, Conflict)
    assert store.job(jobs[0].id) == first[0]


def test_the_same_change_of_a_batch_again_is_answered_as_if_it_had_been_first(
    backend: Backend, store: IngestStore
) -> None:
    batch = pending_batch(store)
    batch = store.add_jobs(batch, new_jobs(batch, 1))
    change = BatchChange(batch, move_batch(batch, BatchState.PROCESSING, system_clock()))
    first = store.change_batch(change)
    assert store.change_batch(change) == first
    finish(store, claim_job(store, IngestState.PENDING), IngestState.FAILED)
    [claimed] = store.claim_batches(BatchState.REPORTING, 1)
    after = move_batch(claimed, BatchState.FAILED, system_clock(), report='{"made": 1}')
    first = store.change_batch(BatchChange(claimed, after))
    assert store.change_batch(BatchChange(claimed, after)) == first
    for other in (replace(after, message="x"), replace(after, report='{"made": 2}')):
        with pytest.raises(Conflict):
            store.change_batch(BatchChange(claimed, other))
    assert backend.open("other").batch(batch.id) == first


def test_the_same_change_again_is_answered_although_the_batch_went_on_to_its_report(
    store: IngestStore,
) -> None:
    batch = pending_batch(store)
    change = BatchChange(batch, move_batch(batch, BatchState.PROCESSING, system_clock()))
    first = store.change_batch(change)
    assert first is not None
    assert first.status is BatchState.REPORTING
    assert store.change_batch(change) == first


def test_nothing_is_claimed_while_the_queue_is_held(backend: Backend, store: IngestStore) -> None:
    processing_batch(store, 2)
    other = backend.open("other")
    other.submit(submission("waits"))
    held = [job.id for job in other.claim_jobs(IngestState.PENDING, 1)]
    store.hold(QUEUE_HOLD)
    for session in (store, other):
        assert session.claim_jobs(IngestState.PENDING, 5) == []
        assert session.claim_batches(BatchState.PENDING, 5) == []
    assert store.release_hold(IngestHoldKind.QUEUE, "ingest")
    assert not other.release_hold(IngestHoldKind.QUEUE, "ingest")
    assert claim_job(store, IngestState.PENDING).id not in held
    assert len(store.claim_batches(BatchState.PENDING, 5)) == 1


def test_holds_are_listed_whatever_a_collection_is_called(
    backend: Backend, store: IngestStore
) -> None:
    names = ["maps", "old maps/1900", "..", "Kärten", "50%"]
    holds = [IngestHold(IngestHoldKind.COLLECTION, name, "ann", f"why {name}", 7) for name in names]
    for hold in (*holds, QUEUE_HOLD):
        store.hold(hold)
    other = backend.open("other")
    assert other.holds() == [*sorted(holds, key=lambda hold: hold.name), QUEUE_HOLD]
    again = replace(holds[0], who="bob", since=8)
    other.hold(again)
    assert again in store.holds()
    for hold in holds:
        assert store.release_hold(hold.kind, hold.name)
    assert other.holds() == [QUEUE_HOLD]
    assert not store.release_hold(IngestHoldKind.COLLECTION, "maps")


def test_tallies_equal_a_recount(store: IngestStore) -> None:
    batch = processing_batch(store, 9)
    other = processing_batch(store, 4, "another")
    advance_to_stage(store, IngestState.DOWNLOADING)
    for number, job in enumerate(store.claim_jobs(IngestState.DOWNLOADING, 5)):
        after = replace(job, space_needed=100 + number)
        [sized] = store.change_jobs([JobChange(job, after, keep_lock=True)])
        assert isinstance(sized, IngestJob)
        if number == 0:
            finish(store, sized, IngestState.FAILED)
        elif number < 3:
            advance(store, [sized])
        else:
            store.release([sized])
    for each in (batch, other):
        jobs = store.jobs(each.id, 100)
        counted = Counter(job.status for job in jobs)
        sizes: Counter[IngestState] = Counter()
        for job in jobs:
            sizes[job.status] += job.space_needed
        tally = store.tally(each.id)
        assert {line.status: line.jobs for line in tally} == dict(counted)
        assert {line.status: line.bytes for line in tally} == {
            status: sizes[status] for status in counted
        }
    assert store.tallies([other.id, batch.id]) == {
        each.id: store.tally(each.id) for each in (batch, other)
    }
    everywhere = {line.status: line for line in store.tally()}
    assert everywhere[IngestState.DOWNLOADING].jobs == 10
    assert everywhere[IngestState.DOWNLOADING].bytes == 103 + 104
    assert sum(line.jobs for line in everywhere.values()) == 13
    assert store.check() == []


def test_a_deleted_job_is_gone_and_lets_its_batch_report(store: IngestStore) -> None:
    batch = processing_batch(store, 2)
    failed = finish(store, claim_job(store, IngestState.PENDING), IngestState.FAILED)
    job = claim_job(store, IngestState.PENDING)
    held = finish(store, job, IngestState.HELD)
    assert store.batch(batch.id).status is BatchState.PROCESSING
    with pytest.raises(Conflict, match="still has 2 jobs"):
        store.change_batch(BatchChange(store.batch(batch.id), None, by_hand=True))
    assert store.change_jobs([JobChange(held, None, by_hand=True)]) == [None]
    assert store.batch(batch.id).status is BatchState.REPORTING
    assert store.change_jobs([JobChange(failed, None, by_hand=True)]) == [None]
    for gone in (failed, held):
        with pytest.raises(NotFound, match=gone.id):
            store.job(gone.id)
        [refused] = store.change_jobs([JobChange(gone, None, by_hand=True)])
        assert isinstance(refused, NotFound)
    assert store.tally(batch.id) == []
    assert store.change_batch(BatchChange(store.batch(batch.id), None, by_hand=True)) is None
    assert store.batches(BatchFilter(), 5) == []
    assert store.check() == []


@pytest.mark.parametrize("name", ["", "nobody", "../jobs", "jid0000000001/status", "states", "/"])
def test_a_name_that_is_no_id_is_not_found(store: IngestStore, name: str) -> None:
    processing_batch(store, 1)
    with pytest.raises(NotFound):
        store.job(name)
    with pytest.raises(NotFound):
        store.batch(name)
    assert store.jobs(name, 5) == []
    assert store.tally(name or "none") == []
