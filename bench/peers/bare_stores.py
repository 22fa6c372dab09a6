"""The limit of a store: the smallest change that a transition needs, repeated."""

import time
from collections.abc import Callable, Sequence
from itertools import cycle

from msgspec import Struct

from bench.peers.single import PostgresSession, Session, SqliteSession
from penstock import zookeeper
from penstock.zookeeper import Create, Delete, Op, Set

NODES = 256
PIPELINED = 64
_ROOT = "/bare"


class Bare(Struct, frozen=True):
    """A way to change a store, and its changes per second."""

    what: str
    per_second: float


def bare_sql(url: str, job_ids: Sequence[str], seconds: float) -> list[Bare]:
    """Change one row per transaction, one at a time, in a database with these jobs."""
    session: Session = SqliteSession(url) if url.startswith("sqlite:") else PostgresSession(url)
    ids = cycle(job_ids)

    def commit() -> int:
        session.begin()
        session.run("change_one_row", id=next(ids))
        session.commit()
        return 1

    return [Bare("one row in a transaction", _rate(commit, seconds))]


def bare_zookeeper(url: str, seconds: float) -> list[Bare]:
    """Commit transactions of five operations, one at a time and pipelined."""
    with zookeeper.ZooKeeperSession.open(url) as session:
        for path in ("", "/jobs", "/a", "/b"):
            session.ensure(_ROOT + path)
        session.multi([Create(f"{_ROOT}/jobs/{node}") for node in range(NODES)])
        session.multi([Create(f"{_ROOT}/a/{node}") for node in range(NODES)])
        moves = cycle([*_moves("a", "b"), *_moves("b", "a")])

        def one() -> int:
            session.multi(next(moves))
            return 1

        def many() -> int:
            for outcome in session.multi_many([next(moves) for _ in range(PIPELINED)]):
                if isinstance(outcome, Exception):
                    raise outcome
            return PIPELINED

        return [
            Bare("a multi of 5, one at a time", _rate(one, seconds)),
            Bare(f"multis of 5, {PIPELINED} on their way", _rate(many, seconds)),
        ]


def _moves(here: str, there: str) -> list[list[Op]]:
    """Return the operations of a transition: a status, a queue entry moved, and the lock."""
    return [
        [
            Set(f"{_ROOT}/jobs/{node}", b"x" * 300, -1),
            Delete(f"{_ROOT}/{here}/{node}"),
            Create(f"{_ROOT}/{there}/{node}"),
            Create(f"{_ROOT}/jobs/{node}/lock", ephemeral=True),
            Delete(f"{_ROOT}/jobs/{node}/lock"),
        ]
        for node in range(NODES)
    ]


def _rate(change: Callable[[], int], seconds: float) -> float:
    began = time.perf_counter()
    done = 0
    while time.perf_counter() < began + seconds:
        done += change()
    return done / (time.perf_counter() - began)
