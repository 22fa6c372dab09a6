"""No id is given twice against one database, wherever the queue is, was, and will be kept."""

import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.config import Settings
from penstock.errors import Unavailable
from penstock.ingest.models import NumberRange, NumberSequence, Reservation
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.queue.sql import commands
from penstock.ingest.queue.sql.commands import ReserveNumbers
from penstock.ingest.queue.zookeeper.store import ZkIngestStore
from penstock.plane import Plane
from penstock.zookeeper import ZooKeeperSession
from tests.acceptance.ingest_scene import zookeeper_tree
from tests.databases import sqlite_database
from tests.ingest_stores import new_jobs, pending_batch
from tests.servers import ZookeeperServer

IN_DATABASE = "database"


@contextmanager
def queue(database_url: str, url: str) -> Iterator[IngestStore]:
    """The queue, kept here or there, of one database."""
    with Plane.open(Settings(database=database_url, queue=url)) as plane:
        yield plane.context.store


def given(store: IngestStore, uid: str) -> list[int]:
    """The numbers of a new batch and of its two jobs."""
    batch = pending_batch(store, uid)
    store.add_jobs(batch, new_jobs(batch, 2))
    ids = [batch.id, *(job.id for job in store.jobs(batch.id, 10))]
    return [int(each[3:]) for each in ids]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few numbers are reserved at once that they are soon used up."""
    monkeypatch.setattr(
        commands, "RESERVED_COUNTS", {NumberSequence.BATCHES: 3, NumberSequence.JOBS: 5}
    )


@pytest.mark.usefixtures("few")
def test_a_moved_queue_continues_the_numbers(database_url: str, zookeeper_url: str) -> None:
    here, there, elsewhere = IN_DATABASE, f"{zookeeper_url}-a", f"{zookeeper_url}-b"
    found: list[list[int]] = []
    for turn, url in enumerate((here, there, elsewhere, there, here, elsewhere, there)):
        with queue(database_url, url) as store:
            found += [given(store, f"{turn}-{number}") for number in range(4)]
    batches = [batch for batch, *_ in found]
    jobs = [job for _, *both in found for job in both]
    assert len(set(batches)) == len(batches)
    assert len(set(jobs)) == len(jobs)
    assert (batches[0], jobs[0]) == (1, 1)
    for url in (there, elsewhere):
        with queue(database_url, url) as store:
            assert store.check() == []


@pytest.mark.usefixtures("few")
def test_a_queue_that_stays_where_it_is_leaves_no_number_out(
    database_url: str, zookeeper_url: str
) -> None:
    found = []
    for turn in range(3):
        with queue(database_url, zookeeper_url) as one, queue(database_url, zookeeper_url) as two:
            found += [given(store, f"{turn}{name}") for name, store in (("a", one), ("b", two))]
    assert found == [[n, 2 * n - 1, 2 * n] for n in range(1, 7)]


def test_a_queue_ahead_of_the_database_continues(database_url: str, zookeeper_url: str) -> None:
    with ZooKeeperSession.open(zookeeper_url) as session:
        ZkIngestStore(
            session,
            "before",
            clock=lambda: 0,
            reserve=lambda *_: Reservation(NumberRange(1, 1000), 0),
        )
        session.create_sequences("/batches/bid", 40)
    with queue(database_url, zookeeper_url) as store:
        assert given(store, "one")[0] == 41
    with queue(database_url, IN_DATABASE) as store:
        assert given(store, "two")[0] > 41


@pytest.mark.usefixtures("few")
def test_a_restored_queue_repeats_no_number(
    tmp_path: Path,
) -> None:
    database_url = sqlite_database(tmp_path / "penstock.db")
    folder = Path(tempfile.mkdtemp(prefix="penstock-zk-numbers-", dir="/tmp"))
    server = ZookeeperServer.start(folder)
    data, backup = folder / "data", folder / "backup"
    url = f"zookeeper://{server.address}/queue"
    found: list[list[int]] = []

    def give(times: int) -> None:
        turn = len(found)
        with queue(database_url, url) as store:
            found.extend(given(store, f"{turn}-{number}") for number in range(times))

    try:
        give(2)
        shutil.copytree(data, backup)
        give(2)
        give(6)
        for _ in range(2):
            server.stop()
            shutil.rmtree(data)
            shutil.copytree(backup, data)
            server.restart()
            give(2)
            give(1)
    finally:
        server.stop()
        shutil.rmtree(folder)
    ids = [("batch", batch) for batch, *_ in found]
    ids += [("job", job) for _, *jobs in found for job in jobs]
    assert len(ids) == len(set(ids)) == 48


def test_a_process_that_is_behind_another_gives_its_numbers_all_the_same(
    database_url: str, zookeeper_url: str
) -> None:
    others: list[list[int]] = []
    with queue(database_url, zookeeper_url) as store:
        assert given(store, "first") == [1, 1, 2]
    with Plane.open(Settings(database=database_url)) as plane:

        def reserve(
            queue: str, name: NumberSequence, wanted: NumberRange, is_put_back: bool | None
        ) -> Reservation:
            if is_put_back is None:  # another is faster
                with ZooKeeperSession.open(zookeeper_url) as other:
                    store = ZkIngestStore(other, "other", clock=lambda: 0, reserve=directly)
                    others.append(given(store, f"other-{name}"))
            return directly(queue, name, wanted, is_put_back)

        def directly(
            queue: str, name: NumberSequence, wanted: NumberRange, is_put_back: bool | None
        ) -> Reservation:
            command = ReserveNumbers(queue, name, wanted, is_put_back)
            return plane.catalog.submit(command).result()

        with ZooKeeperSession.open(zookeeper_url) as session:
            store = ZkIngestStore(session, "slow", clock=lambda: 0, reserve=reserve)
            assert given(store, "slow") == [2, 5, 6]
    assert others == [[3, 3, 4], [4, 7, 8]]


def test_numbers_of_another_queue_are_skipped_and_logged(
    database_url: str, zookeeper_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Plane.open(Settings(database=database_url)) as plane:
        reserve = ReserveNumbers("another", NumberSequence.JOBS, NumberRange(2_500, 2_500))
        taken = plane.catalog.submit(reserve).result().numbers
    with caplog.at_level(logging.INFO), queue(database_url, zookeeper_url) as store:
        assert given(store, "one") == [1, taken.last + 1, taken.last + 2]
    assert "jobs: skipping numbers up to 12500" in caplog.text


def test_numbers_that_cannot_be_reserved_are_not_given_and_leave_nothing(
    database_url: str, zookeeper_url: str
) -> None:
    def away(
        queue: str, name: NumberSequence, wanted: NumberRange, is_put_back: bool | None
    ) -> Reservation:
        raise Unavailable("the database is away")

    with ZooKeeperSession.open(zookeeper_url) as session:
        store = ZkIngestStore(session, "cut off", clock=lambda: 0, reserve=away)
        with pytest.raises(Unavailable, match="the database is away"):
            pending_batch(store)
    assert [path for path in zookeeper_tree(zookeeper_url) if "bid" in path] == []
