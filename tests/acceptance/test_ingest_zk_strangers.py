"""What other programs leave in ZooKeeper: holds without data, nodes without sense, whole trees."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli import exit_codes
from penstock.errors import Invalid
from penstock.ingest.models import IngestHoldKind
from penstock.ingest.queue.zookeeper.layout import batch_path, job_path
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Create, Delete, Set, ZooKeeperSession
from tests.acceptance.ingest_site import ADMIN, Site
from tests.doors.commands import program
from tests.ingest_stores import Backend, open_backend, processing_batch, submission
from tests.web import content

QUEUE_HOLD = "/locks/queue/ingest"
COLLECTION_HOLD = "/locks/collections/maps"
in_zookeeper = pytest.mark.parametrize("site", ["zookeeper"], indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    with open_backend("zookeeper", request, tmp_path) as backend:
        yield backend


def found(site: Site) -> list[tuple[str, str]]:
    steps = site.desk.check(ADMIN, repair=False)
    return [(step.target, step.what) for step in steps if isinstance(step, Finding)]


@in_zookeeper
@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 20_000])
def test_a_queue_hold_of_another_program_holds_and_is_released(site: Site, data: bytes) -> None:
    with ZooKeeperSession.open(site.plane.settings.queue) as session:
        session.multi([Create(QUEUE_HOLD, data), Create("/locks/queue/accessSmall")])
    url = site.web.on("/map.csv", content(b"1"))

    [hold] = site.context.store.holds()
    [(target, what)] = found(site)

    assert (hold.kind, hold.name, hold.who) == (IngestHoldKind.QUEUE, "ingest", "another program")
    assert abs(hold.since - site.clock()) < 3600 * 1_000_000
    assert target == "queue"
    assert QUEUE_HOLD in what
    assert "penstock ingest release queue" in what
    batch = site.deposit(url)
    assert site.context.store.claim_batches(BatchState.PENDING, 5) == []
    site.desk.release(ADMIN, IngestHoldKind.QUEUE)
    assert site.run(batch)[0].status is BatchState.COMPLETED
    assert found(site) == []


@in_zookeeper
def test_an_empty_hold_of_a_collection_holds_it(site: Site) -> None:
    with ZooKeeperSession.open(site.plane.settings.queue) as session:
        session.multi([Create(COLLECTION_HOLD)])
    [batch] = site.run(site.deposit(site.web.on("/map.csv", content(b"1"))))

    assert batch.status is BatchState.HELD
    assert batch.message == (
        f"collection maps is held by another program: {COLLECTION_HOLD} is empty"
    )
    [(target, what)] = found(site)
    assert target == "collection maps"
    assert "penstock ingest release collection maps" in what
    site.desk.release(ADMIN, IngestHoldKind.COLLECTION, "maps")
    site.desk.release_batch(ADMIN, batch.id)
    assert site.run(batch)[0].status is BatchState.COMPLETED


@pytest.mark.parametrize(
    ("node", "data"),
    [
        ("status", b"{"),
        ("status", b'{"status": "\xff"}'),
        ("status", b"[" * 20_000),
        ("submission", b""),
        ("submission", b'{"profile_name": "\xff"}'),
        ("submission", None),
        ("status-report", b"\x1f\x8b-"),
        ("status-report", b"\xff"),
    ],
)
def test_a_corrupt_batch_is_a_fault_with_its_path(
    backend: Backend, node: str, data: bytes | None
) -> None:
    store = backend.open()
    broken = store.submit(submission("broken")).batch
    whole = processing_batch(store, 2, "whole")
    path = batch_path(broken.id, node)
    with ZooKeeperSession.open(backend.url) as session:
        if data is None:
            session.multi([Delete(path)])
        else:
            session.multi([Set(path, data, -1) if session.exists(path) else Create(path, data)])

        [finding] = backend.open("other").check(repair=True)

        assert (finding.target, finding.repairable) == (f"batch {broken.id}", False)
        assert path in finding.what
        assert len(store.jobs(whole.id, 5)) == 2


@pytest.mark.parametrize("data", [b'{"status": "\xff"}', b"[" * 20_000])
def test_a_corrupt_job_is_a_fault_with_its_path(backend: Backend, data: bytes) -> None:
    store = backend.open()
    [job, other] = store.jobs(processing_batch(store, 2).id, 5)
    with ZooKeeperSession.open(backend.url) as session:
        session.multi([Set(job_path(job.id, "status"), data, -1)])

    [finding] = backend.open("other").check(repair=True)

    assert finding.target == f"ingest job {job.id}"
    assert job_path(job.id, "status") in finding.what
    claimed = backend.open("third").claim_jobs(IngestState.PENDING, 5)
    assert [each.id for each in claimed] == [other.id]


@in_zookeeper
def test_a_check_continues_after_a_corrupt_batch(site: Site) -> None:
    batch = site.deposit(site.web.on("/map.csv", content(b"1")))
    (site.folder / batch.id).mkdir(parents=True)
    path = batch_path(batch.id, "status")
    with ZooKeeperSession.open(site.plane.settings.queue) as session:
        data, _ = session.get(path) or (b"", 0)
        session.multi([Set(path, b"{", -1)])

        [(target, what)] = found(site)

        session.multi([Set(path, data, -1)])
    assert target == f"batch {batch.id}"
    assert path in what
    assert (site.folder / batch.id).is_dir()


@pytest.mark.parametrize("nodes", [("/brokers",), ("/batches", "/jobs", "/locks")])
def test_the_tree_of_another_program_is_refused(zookeeper_url: str, nodes: tuple[str, ...]) -> None:
    with ZooKeeperSession.open(zookeeper_url) as session:
        session.multi([Create(node) for node in nodes])
        backend = Backend(zookeeper_url)

        with pytest.raises(Invalid, match="is another program's: it has nodes") as refusal:
            backend.open()

        assert ", ".join(node[1:] for node in nodes) in str(refusal.value)
        assert sorted(session.children("/")) == sorted(node[1:] for node in nodes)
        backend.close()


def test_a_server_does_not_start_on_the_tree_of_another_program(
    zookeeper_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ZooKeeperSession.open(zookeeper_url) as session:
        session.multi([Create("/brokers")])
    folder = tmp_path_factory.mktemp("server")

    done = program(folder, "serve", variables={"PENSTOCK_QUEUE": zookeeper_url})

    assert done.code not in (exit_codes.DONE, None)
    assert "is another program's: it has nodes (brokers)" in done.err
    assert "Traceback" not in done.err
