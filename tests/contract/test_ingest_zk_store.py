"""What the store on ZooKeeper does beyond the port: lost answers, lost sessions, what it costs."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from penstock.clock import system_clock
from penstock.errors import Conflict
from penstock.ingest.models import BatchChange, IngestJob, JobChange, NewJob
from penstock.ingest.queue.port import BatchFilter
from penstock.ingest.queue.zookeeper.layout import batch_path, job_path, side_path, stage_path
from penstock.ingest.queue.zookeeper.store import ZkIngestStore
from penstock.ingest.transitions import BatchSide, move_batch, move_job
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Address, Set, ZooKeeperSession
from tests.contract.zk_wire import Wire
from tests.doors.waiting import until
from tests.ingest_stores import (
    advance,
    all_numbers,
    claim_job,
    finish,
    new_jobs,
    pending_batch,
    processing_batch,
    submission,
    transition_batch,
)


@pytest.fixture
def session(zookeeper_url: str) -> Iterator[ZooKeeperSession]:
    """A look at the nodes beside the stores."""
    with ZooKeeperSession.open(zookeeper_url) as session:
        yield session


@pytest.fixture
def store(zookeeper_url: str) -> Iterator[ZkIngestStore]:
    store = ZkIngestStore(
        ZooKeeperSession.open(zookeeper_url), "quiet", clock=system_clock, reserve=all_numbers
    )
    yield store
    store.close()


@pytest.fixture
def wire(zookeeper: str) -> Iterator[Wire]:
    with Wire(zookeeper) as wire:
        yield wire


def behind(wire: Wire, url: str, session_seconds: int) -> Iterator[ZkIngestStore]:
    """A store behind a wire that can be cut; without it the session is lost after some seconds."""
    through = f"zookeeper://{wire.address}{Address.parse(url).chroot}"
    session = ZooKeeperSession.open(through, session_seconds=session_seconds)
    store = ZkIngestStore(session, "shaky", clock=system_clock, reserve=all_numbers)
    yield store
    wire.mend()
    store.close()


@pytest.fixture
def shaky(wire: Wire, zookeeper_url: str, store: ZkIngestStore) -> Iterator[ZkIngestStore]:
    """A store whose session is soon lost without its wire."""
    yield from behind(wire, zookeeper_url, session_seconds=1)


@pytest.fixture
def steady(wire: Wire, zookeeper_url: str, store: ZkIngestStore) -> Iterator[ZkIngestStore]:
    """A store whose session outlasts a cut, also on a slow machine."""
    yield from behind(wire, zookeeper_url, session_seconds=30)


def lost_answer(
    wire: Wire, call: Callable[[], object], is_done: Callable[[], bool]
) -> Future[object]:
    """A call that is carried out, and whose answer never comes."""
    with ThreadPoolExecutor(1) as pool:
        wire.lose("answers")
        answer = pool.submit(call)
        until(is_done)
        wire.cut()
        wire.mend()
    return answer


def test_a_move_whose_answer_is_lost_is_made_once(
    store: ZkIngestStore, steady: ZkIngestStore, wire: Wire
) -> None:
    processing_batch(store, 1)
    job = claim_job(steady, IngestState.PENDING)
    after = move_job(job, IngestState.ESTIMATING, system_clock())
    answer = lost_answer(
        wire,
        lambda: steady.change_jobs([JobChange(job, after)]),
        lambda: store.job(job.id).version == 1,
    )
    assert answer.result() == [replace(after, version=1, locked_by="")]
    assert store.job(job.id).status is IngestState.ESTIMATING
    assert store.check() == []


def test_a_move_that_never_arrives_is_made_once_the_connection_is_back(
    store: ZkIngestStore, steady: ZkIngestStore, wire: Wire
) -> None:
    processing_batch(store, 20)
    jobs = steady.claim_jobs(IngestState.PENDING, 20)
    with ThreadPoolExecutor(1) as pool:
        wire.lose("requests")
        seen = wire.lost_bytes
        answer = pool.submit(advance, steady, jobs)
        until(lambda: wire.lost_bytes > seen)
        wire.cut()
        wire.mend()
        outcomes = answer.result()
    # A connection that was down for so long may have cost the session, and with it the locks.
    moved = [outcome for outcome in outcomes if isinstance(outcome, IngestJob)]
    assert len(moved) == 20 or all(isinstance(outcome, Conflict) for outcome in outcomes)
    assert len(store.waiting(IngestState.ESTIMATING, 50)) == len(moved)
    assert store.check() == []


def test_a_job_claimed_before_the_session_was_lost_is_not_changed(
    store: ZkIngestStore, shaky: ZkIngestStore, wire: Wire
) -> None:
    batch = processing_batch(store, 2)
    store.submit(submission("waits"))
    jobs = shaky.claim_jobs(IngestState.PENDING, 2)
    [pending] = shaky.claim_batches(BatchState.PENDING, 1)
    wire.cut()
    until(lambda: store.job(jobs[0].id).locked_by == "")
    wire.mend()
    until(lambda: store.job(jobs[0].id).locked_by == "" and bool(shaky.holds() == []))
    refused = advance(shaky, jobs)
    assert [str(outcome) for outcome in refused] == [
        f"the lock on ingest job {job.id} was lost, and it is not locked now; nothing was changed"
        for job in jobs
    ]
    with pytest.raises(Conflict, match=f"the lock on batch {pending.id} was lost"):
        shaky.add_jobs(pending, new_jobs(pending, 1))
    with pytest.raises(Conflict, match="was lost"):
        shaky.change_batch(
            BatchChange(pending, move_batch(pending, BatchState.HELD, system_clock()))
        )
    shaky.release(jobs)
    again: list[IngestJob] = []

    def claim() -> bool:
        again.extend(shaky.claim_jobs(IngestState.PENDING, 2))
        return len(again) == 2

    until(claim)
    assert again[0].locked_by != jobs[0].locked_by
    assert all(isinstance(outcome, IngestJob) for outcome in advance(shaky, again))
    assert [line.jobs for line in store.tally(batch.id)] == [2]


def test_a_batch_whose_last_worker_died_too_early_reports_all_the_same(
    store: ZkIngestStore, zookeeper_url: str, session: ZooKeeperSession
) -> None:
    batch = processing_batch(store, 1)
    finish(store, claim_job(store, IngestState.PENDING), IngestState.FAILED)
    # What it looks like if the worker died between its two transactions.
    path = batch_path(batch.id, "status")
    data, version = session.get(path) or (b"", 0)
    unreported = data.replace(b'"reporting"', b'"processing"')
    session.multi([Set(path, unreported, version), Set("/batches", b"", -1)])
    heir = ZkIngestStore(
        ZooKeeperSession.open(zookeeper_url), "heir", clock=system_clock, reserve=all_numbers
    )
    try:
        [claimed] = heir.claim_batches(BatchState.REPORTING, 1)
        assert claimed.id == batch.id
    finally:
        heir.close()


def test_the_end_of_a_batch_wakes_the_session_that_waits_for_it(
    store: ZkIngestStore, zookeeper_url: str
) -> None:
    batch = processing_batch(store, 1)
    reporter = ZkIngestStore(
        ZooKeeperSession.open(zookeeper_url), "reporter", clock=system_clock, reserve=all_numbers
    )
    claimed: list[str] = []

    def report() -> None:
        while not claimed:
            claimed.extend(b.id for b in reporter.claim_batches(BatchState.REPORTING, 1))
            if not claimed:
                reporter.wait(600)

    waiter = threading.Thread(target=report)
    waiter.start()
    try:
        finish(store, claim_job(store, IngestState.PENDING), IngestState.FAILED)
        waiter.join()
        assert claimed == [batch.id]
    finally:
        reporter.close()


def test_a_new_job_wakes_the_session_that_waits_for_work(
    store: ZkIngestStore, zookeeper_url: str
) -> None:
    worker = ZkIngestStore(
        ZooKeeperSession.open(zookeeper_url), "worker", clock=system_clock, reserve=all_numbers
    )
    claimed: list[IngestJob] = []

    def work() -> None:
        while not claimed:
            claimed.extend(worker.claim_jobs(IngestState.PENDING, 1))
            if not claimed:
                worker.wait(600)

    waiter = threading.Thread(target=work)
    waiter.start()
    try:
        processing_batch(store, 1)
        waiter.join()
        assert len(claimed) == 1
    finally:
        worker.close()


def test_a_claim_does_not_list_the_queue(
    store: ZkIngestStore, session: ZooKeeperSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pending_batch(store)
    for _ in range(4):
        batch = store.add_jobs(batch, new_jobs(batch, 250))
    transition_batch(store, batch, BatchState.PROCESSING)
    listed: list[str] = []
    children = ZooKeeperSession.children

    def counted(
        self: ZooKeeperSession, path: str, watch: Callable[[], None] | None = None
    ) -> list[str]:
        listed.append(path)
        return children(self, path, watch)

    monkeypatch.setattr(ZooKeeperSession, "children", counted)
    monkeypatch.setattr("penstock.ingest.queue.zookeeper.caches.LISTING_SECONDS_MIN", 3600.0)
    claimed = [store.claim_jobs(IngestState.PENDING, 10) for _ in range(100)]
    assert sum(map(len, claimed)) == 1000
    assert listed == [stage_path(IngestState.PENDING)]


def test_a_tally_reads_only_the_jobs_that_have_moved_since_the_last(
    store: ZkIngestStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = processing_batch(store, 120)
    read: list[str] = []
    get_many = ZooKeeperSession.get_many

    def counted(self: ZooKeeperSession, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        read.extend(paths)
        return get_many(self, paths)

    def reads() -> int:
        read.clear()
        store.tally(batch.id)
        return len(read)

    monkeypatch.setattr(ZooKeeperSession, "get_many", counted)
    assert (reads(), reads()) == (120, 0)
    claimed = store.claim_jobs(IngestState.PENDING, 10)
    now = system_clock()
    store.change_jobs(
        [JobChange(j, move_job(j, IngestState.ESTIMATING, now, space_needed=7)) for j in claimed]
    )
    assert (reads(), reads()) == (10, 0)
    [_, estimating] = store.tally(batch.id)
    assert (estimating.jobs, estimating.bytes) == (10, 70)


def test_more_jobs_than_fit_into_one_transaction_come_in_parts(
    store: ZkIngestStore, session: ZooKeeperSession
) -> None:
    batch = pending_batch(store)
    jobs = [
        NewJob(
            replace(new.configuration, erc_what="long title " * 900), new.identifiers, new.priority
        )
        for new in new_jobs(batch, 250)
    ]
    batch = store.add_jobs(batch, jobs)
    assert batch.jobs == 250
    assert batch.version == 4
    assert len(store.claim_jobs(IngestState.PENDING, 500)) == 250
    assert len(session.children(side_path(batch.id, BatchSide.PROCESSING))) == 250


def test_unused_ids_are_invisible(store: ZkIngestStore, session: ZooKeeperSession) -> None:
    session.create_sequence("/batches/bid")
    session.create_sequence("/jobs/jid")
    batch = processing_batch(store, 1)
    assert batch.id == "bid0000000002"
    assert [b.id for b in store.batches(BatchFilter(), 10)] == [batch.id]
    assert [job.id for job in store.jobs(batch.id, 10)] == ["jid0000000002"]
    assert store.claim_batches(BatchState.PENDING, 10) == []


def test_ids_that_a_check_took_for_unused_are_made_again(
    store: ZkIngestStore, session: ZooKeeperSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pending_batch(store)
    create = ZooKeeperSession.create_sequences
    removed: list[str] = []

    def robbed(self: ZooKeeperSession, prefix: str, count: int) -> list[str]:
        paths = create(self, prefix, count)
        if not removed:
            removed.append(paths[0])
            session.delete(paths[0])
        return paths

    monkeypatch.setattr(ZooKeeperSession, "create_sequences", robbed)
    batch = store.add_jobs(batch, new_jobs(batch, 3))
    jobs = store.jobs(batch.id, 10)
    assert [job.configuration.row for job in jobs] == [0, 1, 2]
    assert all(job.configuration.working_dir.endswith(job.id) for job in jobs)
    assert sorted(session.children("/jobs")) == [*(job.id for job in jobs), "states"]
    assert session.get(job_path(jobs[0].id, "space_needed")) == (b"0", 0)


def test_a_report_larger_than_a_node_is_kept_whole(
    store: ZkIngestStore, session: ZooKeeperSession
) -> None:
    batch = processing_batch(store, 1)
    finish(store, claim_job(store, IngestState.PENDING), IngestState.FAILED)
    [claimed] = store.claim_batches(BatchState.REPORTING, 1)
    report = json.dumps({"failed_jobs": [f"jid{n:010}" for n in range(100_000)]})
    assert len(report) > 1_500_000
    after = move_batch(claimed, BatchState.FAILED, system_clock(), report=report)
    store.change_batch(BatchChange(claimed, after))
    assert store.batch(batch.id).report == report
