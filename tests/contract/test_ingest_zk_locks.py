"""A lock that a session gives up is its own: never one that another session took meanwhile."""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from penstock.ingest.queue.zookeeper.claims import NodeLocks
from penstock.zookeeper import Create, Op, ZooKeeperSession

NODE = "/jobs/jid0000000001"
MEET_SECONDS = 1.0


class SlowSession:
    """A session whose threads meet after each reading; another locks after the first removal."""

    def __init__(self, session: ZooKeeperSession, other: NodeLocks) -> None:
        self._session = session
        self._other = other
        self._meeting = threading.Barrier(2)
        self._turn = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        found = self._session.get_many(paths)
        # Whoever takes turns never meets, and must not be stopped by that.
        with suppress(threading.BrokenBarrierError):
            self._meeting.wait(MEET_SECONDS)
        return found

    def multi_many(self, transactions: Iterable[Sequence[Op]]) -> list[Any]:
        with self._turn:
            outcomes = self._session.multi_many(transactions)
            if not self._other.has(NODE):
                self._other.take([NODE], {})
        return outcomes


def test_two_threads_releasing_one_lock_keep_the_next_owner(
    zookeeper_url: str,
) -> None:
    with ZooKeeperSession.open(zookeeper_url) as one, ZooKeeperSession.open(zookeeper_url) as two:
        one.ensure("/jobs")
        one.multi([Create(NODE), Create(f"{NODE}/status")])
        slow: Any = SlowSession(one, NodeLocks(two, "two"))
        locks = NodeLocks(slow, "one")
        taken = locks.take([NODE], {})
        locks.drop([NODE], taken.name)
        threads = [threading.Thread(target=locks.free_doubtful) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lock = two.get(f"{NODE}/lock")
    assert lock is not None
    assert lock[0].startswith(b"two/")
