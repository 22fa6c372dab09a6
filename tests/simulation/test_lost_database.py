"""Loss of the database at any moment costs answers, but never stops the writer."""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.writes import open_write_queue
from penstock.clock import system_clock
from penstock.db import Database, Transaction, open_database
from penstock.db.database import Listener, Sent, Write
from penstock.errors import Away, Unavailable
from tests.databases import sqlite_database
from tests.invariants import broken_invariants
from tests.patience import HANG_SECONDS
from tests.servers import PostgresServer
from tests.simulation.consistency import Tables, problems
from tests.simulation.tables import STATEMENTS

EVENTS = 40
CUT_EVENTS = 3000
CALLERS = 32
LOOK_SECONDS = 0.1


class LosableWrite:
    """A sent write that may be lost."""

    def __init__(self, write: Sent, *, lost: bool) -> None:
        self.sent = write
        self.epoch = write.epoch
        self._lost = lost

    def land(self) -> None:
        if self._lost:
            raise Unavailable("the connection was lost")
        self.sent.land()


class FailingDatabase:
    """A real database that loses its connection before or after a chosen transaction."""

    def __init__(self, database: Database, lost_at: int, *, at_the_end: bool) -> None:
        self._database = database
        self._lost_at = lost_at
        self._at_the_end = at_the_end
        self._number = count()

    @property
    def dialect(self) -> str:
        return self._database.dialect

    def read(self, *, by_key: bool = False) -> AbstractContextManager[Transaction]:
        return self._losing(self._database.read(by_key=by_key))

    def write(self) -> AbstractContextManager[Transaction]:
        return self._losing(self._database.write())

    def send(self, writes: Sequence[Write], *, after: int | Sent) -> Sent:
        lost = next(self._number) == self._lost_at
        if lost and not self._at_the_end:
            raise Unavailable("the connection was lost")
        after = after.sent if isinstance(after, LosableWrite) else after
        return LosableWrite(self._database.send(writes, after=after), lost=lost)

    def listen(self, channel: str) -> AbstractContextManager[Listener]:
        return self._database.listen(channel)

    def migrate(self) -> list[str]:
        return self._database.migrate()

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _losing(self, opened: AbstractContextManager[Transaction]) -> Iterator[Transaction]:
        lost = next(self._number) == self._lost_at
        if lost and not self._at_the_end:
            raise Unavailable("the connection was lost")
        with opened as tx:
            yield tx
            if lost:
                raise Unavailable("the connection was lost")


def event(number: int) -> str:
    document = {
        "eventTime": f"2026-11-15T10:{number // 60:02}:{number % 60:02}Z",
        "eventType": "COMPLETE",
        "run": {"runId": f"run {number}"},
        "job": {"namespace": "jobs", "name": f"job {number % 3}"},
        "inputs": [{"namespace": "s3://lake", "name": f"dataset {number % 5}"}],
        "outputs": [{"namespace": "s3://lake", "name": f"dataset {number % 4}"}],
    }
    return json.dumps(document)


@pytest.mark.parametrize("at_the_end", [False, True], ids=["at its beginning", "at its end"])
@pytest.mark.parametrize("lost_at", range(12))
def test_a_lost_connection_fails_only_its_own_writes(
    tmp_path: Path, lost_at: int, at_the_end: bool
) -> None:
    url = sqlite_database(tmp_path / "penstock.db")
    with closing(open_database(url, extra=[STATEMENTS])) as database:
        database.migrate()
        failing = FailingDatabase(database, lost_at, at_the_end=at_the_end)
        catalog = open_write_queue(
            failing, clock=system_clock, batch_events_max=4, queue_length_max=EVENTS
        )
        writes = [
            catalog.submit(ReceiveEvent(read_event(event(number).encode(), Limits())))
            for number in range(EVENTS)
        ]
        catalog.start()
        errors = [write.exception(HANG_SECONDS) for write in writes]
        catalog.stop()

        assert {type(error) for error in errors} <= {type(None), Unavailable}
        assert broken_invariants(database, system_clock) == []
        with database.read() as tx:
            assert problems(tx) == []
            payloads = [row.payload for row in Tables(tx).events]
    assert payloads == [event(number) for number, error in enumerate(errors) if error is None]
    assert len(payloads) >= EVENTS - 8


def cut_off_writers(url: str) -> int:
    """End every session with a write in progress."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l"
            " WHERE l.relation = 'writer'::regclass AND l.mode = 'RowExclusiveLock'"
            " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchall()
    return len(ended)


def test_repeated_connection_cuts_lose_nothing_acknowledged(
    postgres: PostgresServer,
) -> None:
    """If two batches were sent, then none, the first or both may be committed."""
    url = postgres.create_database()
    with closing(open_database(url, extra=[STATEMENTS])) as database:
        database.migrate()
        catalog = open_write_queue(
            database, clock=system_clock, batch_events_max=16, queue_length_max=1000
        )
        catalog.start()
        errors: dict[int, BaseException | None] = {}
        numbers, cuts = count(), 0
        acknowledging = threading.Event()

        def send() -> None:
            while (number := next(numbers)) < CUT_EVENTS:
                command = ReceiveEvent(read_event(event(number).encode(), Limits()))
                error = errors[number] = catalog.submit(command).exception(HANG_SECONDS)
                if error is None:
                    acknowledging.set()

        with ThreadPoolExecutor(CALLERS) as callers:
            sending = [callers.submit(send) for _ in range(CALLERS)]
            while any(not one.done() for one in sending):
                # With a cut at every moment no write would ever succeed.
                if acknowledging.wait(LOOK_SECONDS) and (ended := cut_off_writers(url)):
                    cuts += ended
                    acknowledging.clear()
            for one in sending:
                one.result()
        catalog.stop()

        assert {type(error) for error in errors.values()} == {type(None), Away}
        assert cuts > 10
        assert broken_invariants(database, system_clock) == []
        with database.read() as tx:
            assert problems(tx) == []
            payloads = Counter(row.payload for row in Tables(tx).events)
    postgres.drop_database(url)
    acknowledged = {event(number) for number, error in errors.items() if error is None}
    assert acknowledged <= payloads.keys() <= {event(number) for number in range(CUT_EVENTS)}
    assert set(payloads.values()) == {1}
