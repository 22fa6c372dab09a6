"""A session when the connection breaks, the session expires or ZooKeeper restarts."""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.errors import Conflict, PenstockError, Unavailable
from penstock.zookeeper import Address, Create, OutcomeUnknown, Result, Set, ZooKeeperSession
from tests.contract.zk_wire import Wire
from tests.doors.waiting import until
from tests.servers import ZookeeperServer


@pytest.fixture
def session(zookeeper_url: str) -> Iterator[ZooKeeperSession]:
    with ZooKeeperSession.open(zookeeper_url) as session:
        yield session


@pytest.fixture
def wire(zookeeper: str) -> Iterator[Wire]:
    with Wire(zookeeper) as wire:
        yield wire


@pytest.fixture
def own_server() -> Iterator[ZookeeperServer]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-zk-own-", dir="/tmp"))
    server = ZookeeperServer.start(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


def through(wire: Wire, url: str) -> str:
    """Return the same URL through the proxy."""
    return f"zookeeper://{wire.address}{Address.parse(url).chroot}"


def wait_for_more(session: ZooKeeperSession) -> None:
    seen = session.children_count("/")
    until(lambda: session.children_count("/") > seen + 20)


def test_a_break_of_the_connection_keeps_session_and_locks(
    session: ZooKeeperSession, zookeeper_url: str, wire: Wire
) -> None:
    with ZooKeeperSession.open(through(wire, zookeeper_url)) as worker:
        epoch = worker.epoch
        fired = threading.Event()
        assert worker.create_ephemeral("/lock", b"worker")
        assert worker.children("/", fired.set) == ["lock"]
        wire.cut()
        until(lambda: worker.is_suspended)
        until(fired.is_set)
        assert not worker.wait_connected(0.01)
        wire.mend()
        assert worker.get("/lock") == (b"worker", 0)
        assert not worker.is_suspended
        worker.require(epoch)
        assert worker.multi([Set("/lock", b"still", 0)]) == [1]


def test_a_lost_session_begins_a_new_epoch_without_its_locks(
    session: ZooKeeperSession, zookeeper_url: str, wire: Wire
) -> None:
    with ZooKeeperSession.open(through(wire, zookeeper_url), session_seconds=1) as worker:
        epoch = worker.epoch
        assert worker.create_ephemeral("/lock", b"worker")
        wire.cut()
        until(lambda: not session.exists("/lock"))
        assert session.create_ephemeral("/lock", b"another")
        wire.mend()
        until(lambda: worker.epoch > epoch)
        with pytest.raises(Conflict, match="the ZooKeeper session was lost"):
            worker.require(epoch)
        assert worker.wait_connected(60)
        assert worker.epoch == epoch + 1
        assert worker.get("/lock") == (b"another", 0)
        assert worker.create_ephemeral("/lock2", b"worker")


@pytest.mark.parametrize("lost", ["answers", "requests"])
def test_a_change_whose_answer_is_lost_is_unknown_and_not_made_again(
    session: ZooKeeperSession, zookeeper_url: str, wire: Wire, lost: str
) -> None:
    session.multi([Create("/status", b"old")])
    with (
        ZooKeeperSession.open(through(wire, zookeeper_url)) as worker,
        ThreadPoolExecutor() as pool,
    ):
        wire.lose("answers" if lost == "answers" else "requests")
        change = pool.submit(worker.multi, [Set("/status", b"new", 0)])
        if lost == "answers":
            until(lambda: session.get("/status") == (b"new", 1))
        else:
            until(lambda: wire.lost_bytes > 40)
        wire.cut()
        with pytest.raises(OutcomeUnknown, match="look before you make it again"):
            change.result()
        wire.mend()
        worker.sync()
        expected = (b"new", 1) if lost == "answers" else (b"old", 0)
        assert worker.get("/status") == expected
        assert worker.epoch == 1


def test_nothing_more_is_sent_after_an_unknown_change(
    session: ZooKeeperSession, zookeeper_url: str, wire: Wire
) -> None:
    with (
        ZooKeeperSession.open(through(wire, zookeeper_url)) as worker,
        ThreadPoolExecutor() as pool,
    ):
        wire.lose("answers")
        steps = [[Create(f"/{n:03}")] for n in range(300)]
        changes = pool.submit(worker.multi_many, steps)
        until(lambda: session.children_count("/") == 64)
        wire.cut()
        wire.mend()
        outcomes = changes.result()
        assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 64 + [
            Unavailable
        ] * 236
        assert session.children_count("/") == 64


@pytest.mark.parametrize("lost", ["answers", "requests"])
def test_whether_a_lock_was_taken_is_looked_up_when_the_answer_is_lost(
    session: ZooKeeperSession, zookeeper_url: str, wire: Wire, lost: str
) -> None:
    assert session.create_ephemeral("/2", b"somebody else")
    with (
        ZooKeeperSession.open(through(wire, zookeeper_url)) as worker,
        ThreadPoolExecutor() as pool,
    ):
        assert worker.create_ephemeral("/3", b"another of this session")
        wire.lose("answers" if lost == "answers" else "requests")
        locks = pool.submit(worker.create_ephemerals, ["/1", "/2", "/3", "/4"], b"me")
        until(lambda: session.exists("/4") if lost == "answers" else wire.lost_bytes > 350)
        wire.cut()
        wire.mend()
        was_taken = lost == "answers"
        assert locks.result() == [was_taken, False, False, was_taken]
        assert session.exists("/1") == session.exists("/4") == was_taken


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_session_survives_a_server_restart(
    own_server: ZookeeperServer, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "penstock.zookeeper")
    url = f"zookeeper://{own_server.address}/x"
    with ZooKeeperSession.open(url, session_seconds=30) as session:
        assert session.create_ephemeral("/lock", b"me")
        made = session.create_sequences("/n", 100)
        own_server.stop() if how == "stop" else own_server.kill()
        until(lambda: session.is_suspended)
        with ThreadPoolExecutor() as pool:
            read = pool.submit(session.get, "/lock")
            write = pool.submit(session.multi, [Create("/later")])
            own_server.restart()
            assert read.result() == (b"me", 0)
            assert write.result() == ["/later"]
        assert session.epoch == 1
        assert sorted(session.children("/")) == sorted(
            ["lock", "later", *(path[1:] for path in made)]
        )
    assert [line for line in caplog.messages if line.startswith(url)] == [
        f"{url} does not answer; the client keeps trying",
        f"{url} answers again",
    ]


def test_work_continues_while_the_server_is_killed_repeatedly(
    own_server: ZookeeperServer,
) -> None:
    """Every answered change exists, and each unknown one exists completely or not at all."""
    with (
        ZooKeeperSession.open(f"zookeeper://{own_server.address}/x", session_seconds=30) as session,
        ThreadPoolExecutor() as pool,
    ):
        is_over = threading.Event()

        def work() -> dict[int, list[Result] | PenstockError]:
            outcomes: dict[int, list[Result] | PenstockError] = {}
            while not is_over.is_set():
                start = len(outcomes)
                steps = [[Create(f"/{n}"), Create(f"/{n}/x")] for n in range(start, start + 100)]
                outcomes |= {start + i: o for i, o in enumerate(session.multi_many(steps))}
            return outcomes

        working = pool.submit(work)
        for _ in range(3):
            wait_for_more(session)
            own_server.kill()
            own_server.restart()
        is_over.set()
        outcomes = working.result()
        there = {int(name) for name in session.children("/")}
        assert {n for n, o in outcomes.items() if isinstance(o, list)} <= there
        assert {n for n in there if not isinstance(outcomes[n], list)} <= {
            n for n, o in outcomes.items() if isinstance(o, OutcomeUnknown)
        }
        assert all(session.children_count(f"/{n}") == 1 for n in there)
        assert session.epoch == 1


def test_a_missing_server_is_unavailable(zookeeper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.zookeeper.connection.WAIT_SECONDS_MAX", 0.2)
    with Wire(zookeeper) as wire:
        wire.cut()
        with pytest.raises(Unavailable, match=f"{wire.address}/x cannot be reached"):
            ZooKeeperSession.open(f"zookeeper://{wire.address}/x", session_seconds=1)


def test_an_unreachable_server_raises_unavailable(
    zookeeper_url: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZooKeeperSession.open(through(wire, zookeeper_url)) as worker:
        wire.cut()
        until(lambda: worker.is_suspended)
        monkeypatch.setattr("penstock.zookeeper.connection.WAIT_SECONDS_MAX", 0.05)
        for ask in (worker.get, worker.exists, worker.children, worker.delete, worker.ensure):
            with pytest.raises(Unavailable, match="nothing was sent"):
                ask("/a")
        with pytest.raises(Unavailable, match="nothing was sent"):
            worker.multi([Create("/a")])
        with pytest.raises(OutcomeUnknown, match="which of 1 locks were acquired is unknown"):
            worker.create_ephemeral("/a", b"")
