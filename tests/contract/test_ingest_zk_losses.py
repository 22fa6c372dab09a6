"""The store on ZooKeeper when any one transaction, or its answer, gets lost.

A story goes from a submission to the deletion of its batch. It is told again and again, each time
with another transaction lost, and ends the same.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from penstock.clock import system_clock
from penstock.errors import PenstockError, Unavailable
from penstock.ingest.models import Batch, BatchChange, Identifiers, IngestJob, JobChange
from penstock.ingest.queue.port import BatchFilter
from penstock.ingest.queue.zookeeper.store import ZkIngestStore
from penstock.ingest.transitions import move_batch, move_job
from penstock.states import INGEST_STAGES, BatchState, IngestState
from penstock.zookeeper import Op, OutcomeUnknown, Result, ZooKeeperSession
from tests.doors.waiting import until
from tests.ingest_stores import NEXT, all_numbers, new_jobs, submission

JOBS = 3
TOLD_AT_ONCE = 6  # a story mostly waits for its server


class Forgetful(ZooKeeperSession):
    """A session that loses one transaction, or only the answer to it."""

    number = 0
    lost = 0
    is_sent = True

    def multi_many(
        self, transactions: Iterable[Sequence[Op]]
    ) -> list[list[Result] | PenstockError]:
        """As ever, but for the one."""
        outcomes: list[list[Result] | PenstockError] = []
        for ops in transactions:
            self.number += 1
            if self.number != self.lost:
                outcomes += super().multi_many([ops])
                continue
            if self.is_sent:
                super().multi_many([ops])
            outcomes.append(OutcomeUnknown(f"transaction {self.number} was lost"))
        return outcomes


class Told(NamedTuple):
    """How a story ended."""

    transactions: int
    versions: list[int]
    arks: list[str | None]


def claimed_batch(store: ZkIngestStore, status: BatchState) -> Batch:
    found: list[Batch] = []

    def claim() -> bool:
        try:
            found.extend(store.claim_batches(status, 5))
        except Unavailable:
            store.keep_alive()
        return bool(found)

    until(claim)
    [batch] = found
    return batch


def claimed_jobs(store: ZkIngestStore, stage: IngestState) -> list[IngestJob]:
    found: list[IngestJob] = []

    def claim() -> bool:
        try:
            found.extend(store.claim_jobs(stage, 5))
        except Unavailable:
            store.keep_alive()
        return len(found) == JOBS

    until(claim)
    return found


def changed(store: ZkIngestStore, changes: list[JobChange]) -> list[IngestJob]:
    outcomes = store.change_jobs(changes)
    jobs = [outcome for outcome in outcomes if isinstance(outcome, IngestJob)]
    assert len(jobs) == len(changes), outcomes
    return jobs


def story(store: ZkIngestStore, session: Forgetful) -> Told:
    batch, is_new = store.submit(submission("story", key="k"))
    assert is_new
    pending = claimed_batch(store, BatchState.PENDING)
    pending = store.add_jobs(pending, new_jobs(pending, JOBS))
    after = move_batch(pending, BatchState.PROCESSING, system_clock())
    assert store.change_batch(BatchChange(pending, after)) == store.batch(batch.id)
    store.release(claimed_jobs(store, IngestState.PENDING))
    for stage in INGEST_STAGES:
        jobs = claimed_jobs(store, stage)
        if stage is IngestState.PROCESSING:
            minted = [replace(job, identifiers=Identifiers(f"ark:/1/{job.id}")) for job in jobs]
            pairs = zip(jobs, minted, strict=True)
            jobs = changed(store, [JobChange(a, b, keep_lock=True) for a, b in pairs])
        now = system_clock()
        changed(store, [JobChange(job, move_job(job, NEXT[stage], now)) for job in jobs])
    reporting = claimed_batch(store, BatchState.REPORTING)
    after = move_batch(reporting, BatchState.COMPLETED, system_clock(), report="{}")
    done = store.change_batch(BatchChange(reporting, after))
    assert done == store.batch(batch.id)
    jobs = store.jobs(batch.id, 10)
    assert [line.jobs for line in store.tally(batch.id)] == [JOBS]
    told = Told(
        session.number,
        [done.version, *(job.version for job in jobs)] if done else [],
        [(job.identifiers.primary or "").partition("jid")[0] for job in jobs],
    )
    assert store.change_jobs([JobChange(job, None) for job in jobs]) == [None] * JOBS
    assert done is not None
    assert store.change_batch(BatchChange(done, None, by_hand=True)) is None
    return told


def tell(url: str, lost: int, *, is_sent: bool) -> Told:
    """The story with one transaction lost, on an empty part of ZooKeeper."""
    with Forgetful.open(url) as session:
        session.delete_tree("/")
        session.ensure("/")
        session.lost, session.is_sent = lost, is_sent
        store = ZkIngestStore(session, "teller", clock=system_clock, reserve=all_numbers)
        told = story(store, session)
        session.lost = 0
        store.check(repair=True)
        assert store.check() == []
        assert store.batches(BatchFilter(), 5) == []
        assert session.children("/batches") == []
        assert session.children("/jobs") == ["states"]
        assert session.children("/submissions") == []
        return told


@pytest.mark.parametrize("is_sent", [True, False], ids=["answer", "transaction"])
def test_lost_answers_do_not_change_the_result(
    zookeeper_url: str, is_sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.ingest.queue.zookeeper.check.NEW_ID_SECONDS", 0.0)
    quiet = tell(zookeeper_url, 0, is_sent=True)
    assert quiet.transactions > 40

    def losing(lost: int) -> Told:
        return tell(f"{zookeeper_url}-{lost}", lost, is_sent=is_sent)

    numbers = range(1, quiet.transactions + 8)
    with ThreadPoolExecutor(TOLD_AT_ONCE) as pool:
        for lost, told in zip(numbers, pool.map(losing, numbers), strict=True):
            assert told.versions == quiet.versions, f"transaction {lost}"
            assert told.arks == quiet.arks
