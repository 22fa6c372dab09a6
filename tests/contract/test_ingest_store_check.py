"""Planted damage: each store finds it, says what it is, and puts right what can be."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from penstock.ingest.models import CheckProgress
from penstock.ingest.queue.zookeeper import check
from penstock.ingest.queue.zookeeper.layout import batch_path, job_path
from penstock.schema.ingest import Finding
from penstock.states import INGEST_STAGES, BatchState, IngestState
from penstock.zookeeper import Create, Delete, Op, Set, ZooKeeperSession
from tests.ingest_stores import (
    Backend,
    advance,
    claim_job,
    finish,
    open_backend,
    processing_batch,
    submission,
)

BATCH, JOB = "bid0000000001", "jid0000000001"
LOST = "jid0000009999"
SQL_DAMAGE = {
    "a job whose batch is gone": (
        "DELETE FROM ingest_batches",
        {("belongs to a batch that does not exist", f"ingest job {JOB}")},
    ),
    "a lock of nobody": (
        "UPDATE ingest_jobs SET locked_by = 'a ghost'",
        {("is locked by a session that is over", JOB)},
    ),
    "a lock of nobody on a batch": (
        "UPDATE ingest_batches SET locked_by = 'a ghost'",
        {("is locked by a session that is over", BATCH)},
    ),
    "a wrong count": (
        f"UPDATE ingest_tallies SET jobs = 7 WHERE status = 'pending' AND batch_id = '{BATCH}'",
        {("was counted wrongly", f"batch {BATCH}, pending")},
    ),
    "a wrong count of all": (
        "UPDATE ingest_tallies SET bytes = 7 WHERE status = 'pending' AND batch_id = ''",
        {("was counted wrongly", "all batches, pending")},
    ),
    "no count of all": (
        "DELETE FROM ingest_tallies WHERE batch_id = ''",
        {("was counted wrongly", "all batches, pending")},
    ),
    "a batch that nobody moves on": (
        "UPDATE ingest_jobs SET status = 'failed', side = 'batch-failed'",
        {
            ("was counted wrongly", f"batch {BATCH}, pending"),
            ("was counted wrongly", f"batch {BATCH}, failed"),
            ("was counted wrongly", "all batches, pending"),
            ("was counted wrongly", "all batches, failed"),
            ("is processing, but no job of it is", f"batch {BATCH}"),
        },
    ),
}


def told(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(finding.what, finding.target) for finding in findings}


def execute(url: str, statement: str) -> None:
    """Damage a database behind the store's back."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
            database.execute(statement)
    else:
        with psycopg.connect(url) as connection:
            connection.execute(statement.encode())


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("damage", SQL_DAMAGE)
def test_damage_in_sql_is_found_and_repaired(
    kind: str, damage: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    statement, expected = SQL_DAMAGE[damage]
    with open_backend(kind, request, tmp_path) as backend:
        first = backend.open()
        processing_batch(first, 1)
        assert first.check() == []
        backend.close()
        execute(backend.url, statement)
        store = backend.open()
        findings = store.check()
        assert told(findings) == expected
        assert all(finding.repairable and not finding.repaired for finding in findings)
        repaired = store.check(repair=True)
        assert told(repaired) == expected
        assert all(finding.repaired for finding in repaired)
        assert store.check() == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_lost_job_that_was_not_counted_is_repaired_at_once(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with open_backend(kind, request, tmp_path) as backend:
        processing_batch(backend.open(), 1)
        backend.close()
        execute(backend.url, "DELETE FROM ingest_batches")
        execute(backend.url, "UPDATE ingest_tallies SET jobs = 7 WHERE batch_id = ''")
        store = backend.open()
        assert len(store.check(repair=True)) == 2
        assert store.check() == []
        assert store.tally() == []


@pytest.fixture
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    with open_backend("zookeeper", request, tmp_path) as backend:
        yield backend


@pytest.fixture
def session(backend: Backend) -> Iterator[ZooKeeperSession]:
    with ZooKeeperSession.open(backend.url) as session:
        yield session


ZOOKEEPER_DAMAGE: dict[str, tuple[list[Op], set[tuple[str, str]]]] = {
    "in two queues": (
        [Create(f"/jobs/states/recording/05-{JOB}")],
        {(f"stands in the queue of recording as 05-{JOB}, where it does not belong", JOB)},
    ),
    "in the queue twice": (
        [Create(f"/jobs/states/pending/77-{JOB}")],
        {(f"stands in the queue of pending as 77-{JOB}, where it does not belong", JOB)},
    ),
    "in no queue": (
        [Delete(f"/jobs/states/pending/05-{JOB}")],
        {(f"does not stand in the queue of pending as 05-{JOB}, where it belongs", JOB)},
    ),
    "in the wrong queue": (
        [Delete(f"/jobs/states/pending/05-{JOB}"), Create(f"/jobs/states/held/05-{JOB}")],
        {
            (f"does not stand in the queue of pending as 05-{JOB}, where it belongs", JOB),
            (f"stands in the queue of held as 05-{JOB}, where it does not belong", JOB),
        },
    ),
    "under two sides": (
        [Create(f"/batches/{BATCH}/states/batch-failed/{JOB}")],
        {(f"stands under batch-failed of batch {BATCH}, where it does not belong", JOB)},
    ),
    "under no side": (
        [Delete(f"/batches/{BATCH}/states/batch-processing/{JOB}")],
        {(f"does not stand under batch-processing of batch {BATCH}, where it belongs", JOB)},
    ),
    "a queue entry of nobody": (
        [Create(f"/jobs/states/notify/05-{LOST}")],
        {(f"does not exist, but stands in the queue of notify as 05-{LOST}", LOST)},
    ),
    "a job under a batch that does not exist": (
        [Create(f"/batches/{BATCH}/states/batch-failed/{LOST}")],
        {(f"does not exist, but stands under batch-failed of batch {BATCH}", LOST)},
    ),
}


@pytest.mark.parametrize("damage", ZOOKEEPER_DAMAGE)
def test_damage_in_zookeeper_is_found_and_repaired(
    damage: str, backend: Backend, session: ZooKeeperSession
) -> None:
    ops, expected = ZOOKEEPER_DAMAGE[damage]
    store = backend.open()
    processing_batch(store, 2)
    before = [store.job(JOB), *store.jobs(BATCH, 5)]
    assert store.check() == []
    session.multi(ops)
    expected = {(what, f"ingest job {job}") for what, job in expected}
    findings = store.check()
    assert told(findings) >= expected
    assert all(finding.repairable and not finding.repaired for finding in findings)
    repaired = store.check(repair=True)
    assert told(repaired) == told(findings)
    assert all(finding.repaired for finding in repaired)
    assert store.check() == []
    after = [store.job(JOB), *store.jobs(BATCH, 5)]
    assert [(job.id, job.status) for job in after] == [(job.id, job.status) for job in before]


def test_unused_batch_ids_and_lost_keys_are_removed(
    backend: Backend, session: ZooKeeperSession
) -> None:
    store = backend.open()
    store.submit(submission("u", key="k"))
    path = session.create_sequence("/batches/bid")
    session.multi([Create("/submissions/abc", b"bid0000007777")])
    expected = {
        ("was numbered, but never created", f"batch {path.rpartition('/')[2]}"),
        ("names a batch that does not exist", "submission key abc"),
    }
    assert told(store.check(repair=True)) == expected
    assert store.check() == []
    assert session.children("/batches") == [BATCH]
    assert len(session.children("/submissions")) == 1


def test_a_job_whose_batch_is_gone_is_removed(backend: Backend, session: ZooKeeperSession) -> None:
    store = backend.open()
    processing_batch(store, 1)
    session.delete_tree(batch_path(BATCH))
    expected = {("belongs to a batch that does not exist", f"ingest job {JOB}")}
    assert told(store.check(repair=True)) == expected
    assert store.check() == []
    assert session.children("/jobs") == ["states"]
    assert session.children("/jobs/states/pending") == []


def test_a_batch_without_open_jobs_is_moved_on(backend: Backend, session: ZooKeeperSession) -> None:
    store = backend.open()
    processing_batch(store, 1)
    finish(store, claim_job(store, IngestState.PENDING), IngestState.FAILED)
    path = batch_path(BATCH, "status")
    data, version = session.get(path) or (b"", 0)
    session.multi([Set(path, data.replace(b'"reporting"', b'"processing"'), version)])
    expected = {("is processing, but no job of it is", f"batch {BATCH}")}
    assert told(store.check()) == expected
    assert told(store.check(repair=True)) == expected
    assert store.batch(BATCH).status is BatchState.REPORTING
    assert store.check() == []


@pytest.mark.parametrize(
    ("node", "data"),
    [
        ("status", b"{"),
        ("status", b'{"status": "lost"}'),
        ("priority", b'"x"'),
        ("identifiers", b""),
        ("space_needed", b"much"),
    ],
)
def test_unreadable_nodes_are_reported_and_kept(
    node: str, data: bytes, backend: Backend, session: ZooKeeperSession
) -> None:
    processing_batch(backend.open(), 2)
    session.multi([Set(job_path(JOB, node), data, -1)])
    store = backend.open("other")
    [finding] = store.check(repair=True)
    assert finding.target == f"ingest job {JOB}"
    assert job_path(JOB, node) in finding.what
    assert not finding.repairable
    # The others are worked on all the same.
    assert [job.id for job in store.claim_jobs(IngestState.PENDING, 5)] == ["jid0000000002"]
    assert len(store.jobs(BATCH, 5)) == 1
    assert [line.jobs for line in store.tally(BATCH)] == [2]


def test_a_check_finds_nothing_while_others_work(backend: Backend) -> None:
    store, worker = backend.open(), backend.open("worker")
    processing_batch(store, 150)
    moved = 0
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(store.check)
        while not answer.done():
            for stage in reversed(INGEST_STAGES):
                moved += len(advance(worker, worker.claim_jobs(stage, 7)))
    assert answer.result() == []
    assert moved > 0


def test_a_check_says_how_far_it_is(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "CHUNK", 2)
    store = backend.open()
    processing_batch(store, 5)
    assert list(store.iter_check()) == [
        CheckProgress(2, 5),
        CheckProgress(4, 5),
        CheckProgress(5, 5),
    ]


KILLED_AFTER_NUMBERING = """
import sys
from penstock.zookeeper import ZooKeeperSession
session = ZooKeeperSession.open(sys.argv[1])
session.create_sequences("/jobs/jid", 3)
session.create_sequences("/batches/bid", 1)
print("numbered", flush=True)
sys.stdin.read()
"""


def test_ids_of_a_killed_process_are_no_fault(backend: Backend, session: ZooKeeperSession) -> None:
    store = backend.open()
    processing_batch(store, 1)
    command = [sys.executable, "-c", KILLED_AFTER_NUMBERING, backend.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"numbered\n"
        process.kill()

    assert store.check() == []

    repaired = store.check(repair=True)
    assert {finding.what for finding in repaired} == {"was numbered, but never created"}
    assert [finding.repaired for finding in repaired] == [True] * 4
    assert session.children("/batches") == [BATCH]
    assert sorted(session.children("/jobs")) == [JOB, "states"]
