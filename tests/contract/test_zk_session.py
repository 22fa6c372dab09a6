"""A session with a real ZooKeeper: transactions, sequences, locks and failures."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence

import pytest

from penstock.errors import Conflict, Forbidden, Invalid, Unavailable
from penstock.zookeeper import (
    Address,
    Check,
    Create,
    Delete,
    ErrorKind,
    Op,
    Set,
    TransactionRefused,
    ZooKeeperSession,
)
from penstock.zookeeper.operations import ReadMany
from tests.doors.waiting import until

HOLDER = """
import sys
from penstock.zookeeper import ZooKeeperSession
session = ZooKeeperSession.open(sys.argv[1], session_seconds=1)
print(session.create_ephemeral("/lock", b"holder"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def session(zookeeper_url: str) -> Iterator[ZooKeeperSession]:
    with ZooKeeperSession.open(zookeeper_url) as session:
        yield session


def test_a_transaction_is_done_whole_and_answers_for_each_operation(
    session: ZooKeeperSession,
) -> None:
    session.multi([Create("/a", b"1"), Create("/b")])
    results = session.multi(
        [Check("/b", 0), Set("/a", b"2", 0), Create("/a/c", b"3"), Delete("/b", 0)]
    )
    assert results == [None, 1, "/a/c", None]
    assert session.get_many(["/a", "/a/c", "/b"]) == [(b"2", 1), (b"3", 0), None]


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        (Create("/job/status", b"new"), ErrorKind.NODE_EXISTS),
        (Create("/nowhere/status", b"new"), ErrorKind.NO_NODE),
        (Set("/job/status", b"new", 0), ErrorKind.BAD_VERSION),
        (Set("/nowhere", b"new", -1), ErrorKind.NO_NODE),
        (Check("/job/status", 7), ErrorKind.BAD_VERSION),
        (Delete("/job/status", 0), ErrorKind.BAD_VERSION),
        (Delete("/job"), ErrorKind.NOT_EMPTY),
        (Delete("/nowhere"), ErrorKind.NO_NODE),
    ],
)
def test_a_refused_transaction_does_nothing_and_names_the_operation(
    session: ZooKeeperSession, op: Op, kind: ErrorKind
) -> None:
    session.multi([Create("/job"), Create("/job/status", b"old"), Set("/job/status", b"old", 0)])
    with pytest.raises(TransactionRefused) as refused:
        session.multi([Create("/before"), Set("/job", b"changed", 0), op, Create("/after")])
    assert (refused.value.index, refused.value.op, refused.value.kind) == (2, op, kind)
    assert op.path in str(refused.value)
    found = session.get_many(["/before", "/job", "/job/status", "/after"])
    assert found == [None, (b"", 0), (b"old", 1), None]


def test_one_of_two_changes_of_a_version_is_refused(
    session: ZooKeeperSession, zookeeper_url: str
) -> None:
    session.multi([Create("/status", b"pending")])
    with ZooKeeperSession.open(zookeeper_url) as other:
        assert other.multi([Set("/status", b"held", 0)]) == [1]
    with pytest.raises(TransactionRefused, match="/status: it was changed meanwhile"):
        session.multi([Set("/status", b"estimating", 0)])
    assert session.get("/status") == (b"held", 1)


def test_a_thousand_transactions_are_done_in_order(session: ZooKeeperSession) -> None:
    session.multi([Create("/counter")])
    steps: list[list[Op]] = [
        [Set("/counter", b"%d" % n, n), Create(f"/n{n}", b"%d" % n)] for n in range(1000)
    ]
    outcomes = session.multi_many(steps)
    assert outcomes == [[n + 1, f"/n{n}"] for n in range(1000)]
    assert session.get("/counter") == (b"999", 1000)
    assert session.get_many([f"/n{n}" for n in range(1000)]) == [
        (b"%d" % n, 0) for n in range(1000)
    ]


def test_many_nodes_are_read_in_few_requests_whatever_is_there(
    session: ZooKeeperSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.multi([Create("/full"), *(Create(f"/full/n{n}", b"x" * n) for n in range(250))])
    session.multi([Create("/empty"), Create("/brief", ephemeral=True)])
    asked: list[int] = []
    read = ReadMany.__init__

    def counted(request: ReadMany, paths: Sequence[str]) -> None:
        asked.append(len(paths))
        read(request, paths)

    monkeypatch.setattr(ReadMany, "__init__", counted)
    paths = [f"/full/n{n}" for n in range(251)]
    assert session.get_many(paths) == [*((b"x" * n, 0) for n in range(250)), None]
    assert asked == [100, 100, 51]
    assert session.children_counts(["/full", "/none", "/empty", "/brief"]) == [250, 0, 0, 0]
    listed = session.children_many(["/full", "/none", "/empty"])
    assert [len(names) for names in listed] == [250, 0, 0]
    assert session.get_many([]) == []


def test_a_refused_transaction_among_many_stops_no_other(session: ZooKeeperSession) -> None:
    outcomes = session.multi_many([[Create("/a")], [Create("/b"), Create("/a")], [Create("/c")]])
    assert [outcomes[0], outcomes[2]] == [["/a"], ["/c"]]
    assert isinstance(outcomes[1], TransactionRefused)
    assert (outcomes[1].index, outcomes[1].kind) == (1, ErrorKind.NODE_EXISTS)
    assert not session.exists("/b")


def test_an_empty_transaction_changes_nothing(session: ZooKeeperSession) -> None:
    assert session.multi([]) == []
    assert session.multi_many([]) == []


def test_a_too_large_transaction_is_not_sent(
    session: ZooKeeperSession,
) -> None:
    epoch = session.epoch
    with pytest.raises(Invalid, match="the first being /0"):
        session.multi([Create(f"/{n}", bytes(100_000)) for n in range(11)])
    assert session.multi([Create("/large", bytes(999_000))]) == ["/large"]
    assert session.multi([Create(f"/{n}", b"x") for n in range(9_000)])[-1] == "/8999"
    assert session.epoch == epoch


def test_sequence_ids_ascend_and_are_never_given_twice(session: ZooKeeperSession) -> None:
    session.ensure("/jobs")
    assert session.create_sequence("/jobs/jid", b"data") == "/jobs/jid0000000000"
    assert session.get("/jobs/jid0000000000") == (b"data", 0)
    many = session.create_sequences("/jobs/jid", 1000)
    assert many == [f"/jobs/jid{n:010}" for n in range(1, 1001)]
    assert session.delete(many[-1])
    assert session.create_sequence("/jobs/jid") == "/jobs/jid0000001001"
    with pytest.raises(Invalid, match="/jobs/ cannot begin"):
        session.create_sequence("/jobs/")


def test_only_one_gets_an_ephemeral_node(session: ZooKeeperSession, zookeeper_url: str) -> None:
    with ZooKeeperSession.open(zookeeper_url) as other:
        assert other.create_ephemeral("/b", b"other")
        assert session.create_ephemerals(["/a", "/b", "/gone/lock"], b"me") == [True, False, False]
        assert not other.create_ephemeral("/a", b"other")
        assert not session.create_ephemeral("/a", b"me")
    assert not session.exists("/b")
    assert session.create_ephemeral("/b", b"me")


def test_a_closed_session_refuses_and_has_no_locks(
    session: ZooKeeperSession, zookeeper_url: str
) -> None:
    other = ZooKeeperSession.open(zookeeper_url)
    epoch = other.epoch
    assert other.create_ephemeral("/lock", b"other")
    other.close()
    assert not session.exists("/lock")
    with pytest.raises(Unavailable, match="was closed"):
        other.get("/lock")
    with pytest.raises(Unavailable, match="was closed"):
        other.multi([Create("/a")])
    with pytest.raises(Conflict):
        other.require(epoch)
    other.close()


def test_the_lock_of_a_killed_process_vanishes(
    session: ZooKeeperSession, zookeeper_url: str
) -> None:
    command = [sys.executable, "-c", HOLDER, zookeeper_url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert session.get("/lock") == (b"holder", 0)
        holder.send_signal(signal.SIGKILL)
    until(lambda: not session.exists("/lock"))
    assert session.create_ephemeral("/lock", b"next")


def test_trees_are_made_and_removed(session: ZooKeeperSession) -> None:
    session.ensure("/a/b/c")
    session.ensure("/a/b/c")
    session.multi_many([[Create(f"/a/b/c/{n}"), Create(f"/a/b/c/{n}/x")] for n in range(200)])
    assert session.children_count("/a/b/c") == 200
    assert sorted(session.children("/a/b/c")) == sorted(map(str, range(200)))
    assert not session.delete("/nowhere")
    with pytest.raises(TransactionRefused, match="it has children"):
        session.delete("/a/b")
    session.delete_tree("/a/b")
    session.delete_tree("/nowhere")
    assert session.children("/a") == []
    assert (session.children_count("/a"), session.children_count("/nowhere")) == (0, 0)
    session.delete_tree("/")
    assert not session.exists("/")
    session.ensure("/a")
    assert session.children("/") == ["a"]


def test_a_watch_fires_once_when_children_change(
    session: ZooKeeperSession, zookeeper_url: str
) -> None:
    session.ensure("/jobs")
    fired = threading.Event()
    assert session.children("/jobs", fired.set) == []
    assert not fired.is_set()
    with ZooKeeperSession.open(zookeeper_url) as other:
        other.multi([Create("/jobs/1")])
        until(fired.is_set)
        fired.clear()
        other.multi([Create("/jobs/2")])
        calls: list[int] = []
        assert sorted(session.children("/jobs", lambda: calls.append(1))) == ["1", "2"]
        other.delete("/jobs/1")
        until(lambda: calls == [1])
    assert not fired.is_set()


def test_a_watch_fires_when_a_missing_node_comes(session: ZooKeeperSession) -> None:
    fired = threading.Event()
    assert session.children("/jobs", fired.set) == []
    session.ensure("/jobs")
    until(fired.is_set)


def test_a_watch_that_fails_hurts_no_other(session: ZooKeeperSession) -> None:
    session.ensure("/jobs")
    fired = threading.Event()

    def fail() -> None:
        raise RuntimeError("a watch that fails")

    session.children("/jobs", fail)
    session.multi([Create("/jobs/1")])
    session.children("/jobs", fired.set)
    session.multi([Create("/jobs/2")])
    until(fired.is_set)


def test_sessions_see_only_nodes_below_their_chroot(zookeeper: str, zookeeper_url: str) -> None:
    with (
        ZooKeeperSession.open(f"{zookeeper_url}/deep/er") as below,
        ZooKeeperSession.open(zookeeper_url) as above,
    ):
        below.multi([Create("/a", b"x")])
        assert below.create_sequence("/n") == "/n0000000001"
        assert above.get("/deep/er/a") == (b"x", 0)
        with pytest.raises(TransactionRefused, match="refused to create /a:"):
            below.multi([Create("/a")])
    with ZooKeeperSession.open(f"zookeeper://{zookeeper}") as root:
        assert root.get(f"{Address.parse(zookeeper_url).chroot}/deep/er/a") == (b"x", 0)


def test_nodes_of_an_account_are_closed_to_others(zookeeper: str, zookeeper_url: str) -> None:
    folder = f"{zookeeper}{Address.parse(zookeeper_url).chroot}"
    with ZooKeeperSession.open(f"zookeeper://ann:p%40ss@{folder}") as ann:
        ann.multi([Create("/a", b"secret")])
        with ZooKeeperSession.open(f"zookeeper://bob:guess@{folder}") as bob:
            with pytest.raises(Forbidden, match="bob@") as refused:
                bob.get("/a")
            assert "guess" not in str(refused.value)
            with pytest.raises(Forbidden, match="does not allow this at /b"):
                bob.multi([Create("/b")])
        assert ann.get("/a") == (b"secret", 0)
