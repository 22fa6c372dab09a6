"""Stores of batches and ingest jobs when several sessions are at it, or one is lost."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from penstock.clock import system_clock
from penstock.errors import Conflict
from penstock.ingest.models import BatchChange, Identifiers, IngestJob, JobChange
from penstock.ingest.queue.port import BatchFilter, IngestStore
from penstock.ingest.transitions import move_batch, move_job
from penstock.states import INGEST_STAGES, BatchState, IngestState
from tests.doors.waiting import until
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

TOP = Path(__file__).resolve().parents[2]


def test_no_job_is_claimed_twice_by_sessions_and_threads(
    backend: Backend, store: IngestStore
) -> None:
    processing_batch(store, 200)
    sessions = [store, backend.open("other")]

    def claim(number: int) -> list[str]:
        session, claimed = sessions[number % 2], []
        while jobs := session.claim_jobs(IngestState.PENDING, 1 + number):
            claimed += [job.id for job in jobs]
        return claimed

    with ThreadPoolExecutor(8) as pool:
        claimed = [job_id for part in pool.map(claim, range(8)) for job_id in part]
    assert len(claimed) == 200
    assert len(set(claimed)) == 200


def test_no_batch_is_claimed_twice(backend: Backend, store: IngestStore) -> None:
    ids = [store.submit(submission(f"u{n}")).batch.id for n in range(12)]
    sessions = [store, backend.open("other")]
    with ThreadPoolExecutor(4) as pool:
        claims = pool.map(
            lambda number: sessions[number % 2].claim_batches(BatchState.PENDING, 5), range(8)
        )
        claimed = [batch.id for part in claims for batch in part]
    assert len(claimed) == len(set(claimed))
    rest = [batch.id for batch in store.claim_batches(BatchState.PENDING, 20)]
    assert sorted((*claimed, *rest)) == ids


def test_a_key_submitted_at_once_by_many_is_one_batch(backend: Backend, store: IngestStore) -> None:
    sessions = [store, backend.open("other")]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda n: sessions[n % 2].submit(submission(f"u{n}", key="k")), range(16))
        )
    assert len({answer.batch.id for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1
    assert len(store.batches(BatchFilter(), 50)) == 1


def test_two_changes_of_one_job_and_only_the_first_holds(
    backend: Backend, store: IngestStore
) -> None:
    batch = processing_batch(store, 1)
    [job] = store.jobs(batch.id, 1)
    now = system_clock()
    first = move_job(job, IngestState.HELD, now, message="first")
    second = move_job(job, IngestState.FAILED, now, message="second")
    [held] = store.change_jobs([JobChange(job, first)])
    other = backend.open("other")
    [refused] = other.change_jobs([JobChange(job, second)])
    assert isinstance(refused, Conflict)
    assert f"ingest job {job.id} was pending when it was read and is held now" in str(refused)
    assert other.job(job.id) == held
    assert store.batch(batch.id).status is BatchState.PROCESSING
    assert store.check() == []


def test_of_changes_at_once_exactly_one_holds(backend: Backend, store: IngestStore) -> None:
    processing_batch(store, 10)
    sessions = [store, backend.open("other")]
    for job in store.waiting(IngestState.PENDING, 10):
        now = system_clock()
        changes = [
            JobChange(job, move_job(job, IngestState.HELD, now, message=str(n)), by_hand=True)
            for n in range(4)
        ]
        with ThreadPoolExecutor(4) as pool:
            answers = [
                pool.submit(sessions[n % 2].change_jobs, [change])
                for n, change in enumerate(changes)
            ]
        outcomes = [answer.result()[0] for answer in answers]
        held = [outcome for outcome in outcomes if isinstance(outcome, IngestJob)]
        assert len(held) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3
        assert store.job(job.id) == held[0]
    assert store.check() == []


def test_of_two_changes_in_place_only_the_first_holds(backend: Backend, store: IngestStore) -> None:
    batch = processing_batch(store, 1)
    [job] = store.jobs(batch.id, 1)
    other = backend.open("other")
    first = replace(job, identifiers=Identifiers("ark:/1/first"))
    second = replace(job, identifiers=Identifiers("ark:/1/second"), message="late")
    [held] = store.change_jobs([JobChange(job, first)])
    assert isinstance(held, IngestJob)
    for by_hand in (False, True):
        [refused] = other.change_jobs([JobChange(job, second, by_hand=by_hand)])
        assert isinstance(refused, Conflict)
    assert other.job(job.id) == held
    assert held.identifiers.primary == "ark:/1/first"


def test_two_changes_of_one_batch_and_only_the_first_holds(
    backend: Backend, store: IngestStore
) -> None:
    batch = store.submit(submission()).batch
    transition_batch(store, batch, BatchState.HELD)
    other = backend.open("other")
    after = move_batch(batch, BatchState.FAILED, system_clock())
    with pytest.raises(Conflict, match="was pending when it was read and is held now"):
        other.change_batch(BatchChange(batch, after))
    with pytest.raises(Conflict):
        other.change_batch(BatchChange(batch, None))
    assert other.batch(batch.id).status is BatchState.HELD


def test_a_job_locked_by_another_session_is_not_changed(
    backend: Backend, store: IngestStore
) -> None:
    batch = processing_batch(store, 1)
    [seen] = store.jobs(batch.id, 1)
    job = claim_job(backend.open("other"), IngestState.PENDING)
    [refused] = store.change_jobs([JobChange(seen, move_job(seen, IngestState.HELD, 1))])
    assert isinstance(refused, Conflict)
    assert f"is locked by {job.locked_by} now" in str(refused)
    [refused] = store.change_jobs([JobChange(seen, None)])
    assert isinstance(refused, Conflict)
    assert store.job(job.id) == job


def test_a_lock_that_was_read_is_not_the_readers_own(backend: Backend, store: IngestStore) -> None:
    batch = processing_batch(store, 1)
    other = backend.open("other")
    other.submit(submission("waits"))
    job = claim_job(other, IngestState.PENDING)
    [waits] = other.claim_batches(BatchState.PENDING, 1)
    store.keep_alive()
    seen, seen_batch = store.job(job.id), store.batch(waits.id)
    assert (seen.locked_by, seen_batch.locked_by) == (job.locked_by, waits.locked_by)
    for after in (move_job(seen, IngestState.HELD, 1), None):
        [refused] = store.change_jobs([JobChange(seen, after)])
        assert isinstance(refused, Conflict)
        assert f"is locked by {job.locked_by} now" in str(refused)
    for moved in (move_batch(seen_batch, BatchState.HELD, 1), None):
        with pytest.raises(Conflict, match=f"is locked by {waits.locked_by} now"):
            store.change_batch(BatchChange(seen_batch, moved))
    with pytest.raises(Conflict, match=f"is locked by {waits.locked_by} now"):
        store.add_jobs(seen_batch, new_jobs(seen_batch, 1))
    store.release([seen, seen_batch])
    assert (other.job(job.id), other.batch(waits.id)) == (job, waits)
    assert other.change_jobs([JobChange(job, move_job(job, IngestState.HELD, 1))]) != [refused]
    assert store.job(job.id).status is IngestState.HELD
    assert store.jobs(batch.id, 5)[0].locked_by == ""


def test_the_locks_of_a_closed_session_are_free(backend: Backend, store: IngestStore) -> None:
    processing_batch(store, 3)
    store.submit(submission("waits"))
    other = backend.open("other")
    jobs = other.claim_jobs(IngestState.PENDING, 10)
    assert len(other.claim_batches(BatchState.PENDING, 5)) == 1
    other.close()
    assert [store.job(job.id).locked_by for job in jobs] == ["", "", ""]
    until(lambda: len(store.claim_jobs(IngestState.PENDING, 1)) == 1)
    assert len(store.claim_batches(BatchState.PENDING, 5)) == 1


def test_the_locks_of_a_killed_process_become_free(backend: Backend, store: IngestStore) -> None:
    processing_batch(store, 3)
    store.submit(submission("waits"))
    command = [sys.executable, "-m", "tests.ingest_stores", backend.url]
    with subprocess.Popen(
        command, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as mortal:
        assert mortal.stdout is not None
        locked = mortal.stdout.readline().split()
        assert len(locked) == 4
        assert store.claim_jobs(IngestState.PENDING, 10) == []
        mortal.kill()
    claimed: list[str] = []

    def claim() -> bool:
        store.keep_alive()
        claimed.extend(batch.id for batch in store.claim_batches(BatchState.PENDING, 10))
        claimed.extend(job.id for job in store.claim_jobs(IngestState.PENDING, 10))
        return len(claimed) == 4

    until(claim)
    assert sorted(claimed) == sorted(locked)
    assert store.check() == []


def test_an_administrator_takes_no_notice_of_locks(backend: Backend, store: IngestStore) -> None:
    processing_batch(store, 1)
    job = claim_job(store, IngestState.PENDING)
    admin = backend.open("admin")
    seen = admin.job(job.id)
    after = move_job(seen, IngestState.FAILED, system_clock(), message="stopped", by_hand=True)
    [failed] = admin.change_jobs([JobChange(seen, after, by_hand=True)])
    assert isinstance(failed, IngestJob)
    assert (failed.status, failed.locked_by) == (IngestState.FAILED, "")
    [refused] = advance(store, [job])
    assert isinstance(refused, Conflict)
    store.release([job])
    assert store.job(job.id) == failed
    assert store.check() == []


def test_a_lock_that_was_taken_away_can_be_taken_again(
    backend: Backend, store: IngestStore
) -> None:
    processing_batch(store, 1)
    job = claim_job(store, IngestState.PENDING)
    admin = backend.open("admin")
    change = JobChange(admin.job(job.id), replace(job, priority=1), by_hand=True)
    [changed] = admin.change_jobs([change])
    assert isinstance(changed, IngestJob)
    theirs = claim_job(admin, IngestState.PENDING)
    [refused] = advance(store, [job])
    assert isinstance(refused, Conflict)
    store.release([job])
    assert admin.job(job.id).locked_by == theirs.locked_by
    admin.release([theirs])
    until(lambda: [j.priority for j in store.claim_jobs(IngestState.PENDING, 1)] == [1])


def test_a_claim_that_is_over_does_not_free_the_next_one(
    backend: Backend, store: IngestStore
) -> None:
    processing_batch(store, 1)
    before = claim_job(store, IngestState.PENDING)
    advance(store, [before])
    claim_job(store, IngestState.ESTIMATING)
    store.release([before])
    other = backend.open("other")
    assert other.claim_jobs(IngestState.ESTIMATING, 1) == []
    assert other.job(before.id).locked_by != ""


def test_an_administrator_deletes_a_locked_job(backend: Backend, store: IngestStore) -> None:
    batch = processing_batch(store, 1)
    job = claim_job(store, IngestState.PENDING)
    admin = backend.open("admin")
    assert admin.change_jobs([JobChange(admin.job(job.id), None, by_hand=True)]) == [None]
    [refused] = advance(store, [job])
    assert not isinstance(refused, IngestJob)
    store.release([job])
    [reporting] = store.claim_batches(BatchState.REPORTING, 1)
    assert admin.change_batch(BatchChange(admin.batch(batch.id), None, by_hand=True)) is None
    with pytest.raises(Exception, match=reporting.id):
        store.batch(batch.id)
    assert store.check() == []


def test_a_batch_reports_once_when_its_last_jobs_end_together(
    backend: Backend, store: IngestStore
) -> None:
    other = backend.open("other")
    for number in range(15):
        batch = processing_batch(store, 2, f"u{number}")
        one, two = claim_job(store, IngestState.PENDING), claim_job(other, IngestState.PENDING)
        together = threading.Barrier(2)

        def end(session: IngestStore, job: IngestJob, together: threading.Barrier) -> None:
            together.wait()
            finish(session, job, IngestState.FAILED)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(end, (store, other), (one, two), (together, together)))
        found = store.batch(batch.id)
        assert found.status is BatchState.REPORTING
        # Its expansion, its start, its end: no change more.
        assert found.version == 3
    claimed = store.claim_batches(BatchState.REPORTING, 50)
    assert len(claimed) == 15
    assert other.claim_batches(BatchState.REPORTING, 50) == []
    assert store.check() == []


def test_a_waiting_session_wakes_on_a_change(backend: Backend, store: IngestStore) -> None:
    for change in (store.wake, lambda: store.submit(submission())):
        is_over = threading.Event()

        def wait(over: threading.Event = is_over) -> None:
            store.wait(600)
            over.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        while not is_over.is_set():
            change()
            is_over.wait(0.02)
        waiter.join()
    store.wait(0.001)


def test_two_sessions_take_a_batch_through_all_stages_together(
    backend: Backend, store: IngestStore
) -> None:
    batch = pending_batch(store)
    batch = store.add_jobs(batch, new_jobs(batch, 120))
    transition_batch(store, batch, BatchState.PROCESSING)
    moves: list[tuple[str, IngestState]] = []

    def work(number: int, session: IngestStore) -> None:
        while session.batch(batch.id).status is BatchState.PROCESSING:
            for stage in INGEST_STAGES:
                jobs = session.claim_jobs(stage, 3 + number)
                for outcome in advance(session, jobs):
                    assert isinstance(outcome, IngestJob)
                    moves.append((outcome.id, outcome.status))

    sessions = [store, backend.open("other"), store, backend.open("third")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4), sessions))
    assert len(moves) == len(set(moves)) == 120 * len(INGEST_STAGES)
    assert [line.jobs for line in store.tally(batch.id)] == [120]
    assert store.check() == []


def test_a_lock_is_lost_with_the_session_that_took_it(backend: Backend, store: IngestStore) -> None:
    processing_batch(store, 1)
    advance_to_stage(store, IngestState.NOTIFY)
    other = backend.open("other")
    job = claim_job(other, IngestState.NOTIFY)
    other.close()
    stale = JobChange(job, move_job(job, IngestState.COMPLETED, system_clock()))
    [refused] = store.change_jobs([stale])
    assert isinstance(refused, Conflict)
    assert store.job(job.id).status is IngestState.NOTIFY


def test_a_thousand_jobs_go_through_all_stages(store: IngestStore) -> None:
    batch = pending_batch(store)
    for _ in range(4):
        batch = store.add_jobs(batch, new_jobs(batch, 250))
    transition_batch(store, batch, BatchState.PROCESSING)
    for stage in INGEST_STAGES:
        moved = 0
        while jobs := store.claim_jobs(stage, 128):
            assert all(isinstance(outcome, IngestJob) for outcome in advance(store, jobs))
            moved += len(jobs)
        assert moved == 1000
    assert [(line.status, line.jobs) for line in store.tally(batch.id)] == [
        (IngestState.COMPLETED, 1000)
    ]
    [done] = store.claim_batches(BatchState.REPORTING, 5)
    assert (done.id, done.jobs) == (batch.id, 1000)
    assert store.check() == []
