"""The check for new runs: usually it needs no read, and it always finds a stored run."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec
import pytest

from penstock import ids
from penstock.catalog.changes import changes
from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import HOUR, SECOND, Micros, format_time, system_clock
from penstock.db import Database, Transaction, open_database
from penstock.db.database import Ask
from penstock.store.unit_of_work import write_changes


@pytest.fixture
def database(own_url: str) -> Iterator[Database]:
    with closing(open_database(own_url)) as opened:
        opened.migrate()
        yield opened


class RecordingTransaction:
    """A transaction that records the runs it looks up."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.looked_for: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def rows(self, shape: type[Row], statement: str, /, **params: Any) -> list[Row]:
        self._note(statement, params)
        return self._tx.rows(shape, statement, **params)

    def fetch_many(self, asks: Sequence[Ask]) -> list[list[tuple[Any, ...]]]:
        for statement, params in asks:
            self._note(statement, params)
        return self._tx.fetch_many(asks)

    def _note(self, statement: str, params: Any) -> None:
        if statement == "runs_by_ids":
            self.looked_for.update(params["ids"])


class Site:
    """Batches of events of one job, folded by one writer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.uow = UnitOfWork()
        self.now = system_clock()

    def receive(self, *events: tuple[str, str]) -> set[str]:
        """Receive one batch of run ids with event types and return the runs that were looked up."""
        commands = [ReceiveEvent(read_event(_event(*each, self.now), Limits())) for each in events]
        with self._database.write() as tx:
            watched: Any = RecordingTransaction(tx)
            self.uow.open(watched)
            keys = RowKeys()
            for command in commands:
                command.prefetch(keys)
            self.uow.load(keys, self.now)
            for command in commands:
                self.uow.undo.begin()
                command.execute(self.uow, self.now)
            write_changes(tx, changes(self.uow))
        self.uow.mark_sent()
        self.now += SECOND
        looked_for: set[str] = watched.looked_for
        return looked_for

    def states(self, *runs: str) -> list[str]:
        """Return the states of these runs."""
        with self._database.read() as tx:
            states = {row[0]: row[5] for row in tx.fetch("runs_by_ids", ids=runs)}
        return [states[run] for run in runs]


def _event(run: str, event_type: str, at: Micros) -> bytes:
    return msgspec.json.encode(
        {
            "eventTime": format_time(at),
            "eventType": event_type,
            "run": {"runId": run},
            "job": {"namespace": "jobs", "name": "j"},
        }
    )


def id_at(at: Micros, number: int = 0) -> str:
    """Return an id of this moment."""
    return f"{ids.last_id_at(at)[:13]}-7000-8000-{number:012x}"


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database)


def test_new_runs_need_no_lookup_above_the_highest_id(site: Site) -> None:
    first, *others = (id_at(site.now, number) for number in range(1, 5))
    assert site.receive((first, "START")) == {first}
    assert site.receive(*((run, "START") for run in others)) == set()
    assert site.receive((id_at(site.now + HOUR // 3), "START")) == set()


def test_a_stored_run_is_found_after_leaving_the_cache(site: Site) -> None:
    early, late, other = (id_at(site.now, number) for number in (1, 2, 3))
    site.receive((early, "START"))
    site.receive((late, "START"), (other, "START"))
    site.receive((late, "COMPLETE"))
    for number in range(4, 8):  # a finished run leaves the cache two batches later
        site.receive((id_at(site.now, number), "START"))
    assert site.receive((late, "FAIL")) == {late}
    assert site.receive((early, "COMPLETE"), (other, "COMPLETE")) == set()
    assert site.states(early, late, other) == ["COMPLETED"] * 3


def test_a_run_leaving_the_cache_hides_no_later_one(site: Site, database: Database) -> None:
    early, later, last = (id_at(site.now, number) for number in (1, 2, 3))
    Site(database).receive((early, "START"), (later, "START"), (last, "START"))
    site.receive((early, "COMPLETE"))
    for number in range(4, 8):
        site.receive((id_at(site.now, number), "START"))
    assert later in site.receive((later, "COMPLETE"))
    assert site.states(early, later, last) == ["COMPLETED", "COMPLETED", "RUNNING"]


def test_runs_with_unordered_ids_are_looked_up(site: Site) -> None:
    site.receive((id_at(site.now, 9), "START"))
    site.uow.forget()
    site.receive((id_at(site.now, 9), "START"))
    early, late = id_at(site.now - HOUR), id_at(site.now + 2 * HOUR)
    others = {early, late, "ffffffff-0000-4000-8000-000000000001"}
    assert site.receive(*((run, "START") for run in others)) == others


def test_the_highest_id_is_read_again_as_time_passes(site: Site) -> None:
    site.receive((id_at(site.now, 1), "START"))
    site.now += HOUR // 2
    run, next_run = id_at(site.now + HOUR * 3 // 4, 1), id_at(site.now + HOUR * 3 // 4, 2)
    assert site.receive((run, "START")) == {run}
    assert site.receive((next_run, "START")) == set()


def test_runs_are_looked_up_after_another_writer(site: Site, database: Database) -> None:
    site.receive((id_at(site.now, 1), "START"))
    rival, run = Site(database), id_at(site.now, 2)
    rival.receive((run, "START"))
    site.uow.forget()
    assert site.receive((run, "COMPLETE")) == {run}
    assert site.states(run) == ["COMPLETED"]
