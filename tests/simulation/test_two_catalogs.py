"""Two catalogs on one database reach the same state as a single one."""

import random
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.writes import open_write_queue
from penstock.clock import parse_time, system_clock
from penstock.db import Database, open_database
from penstock.store.write_queue import WriteQueue
from tests.invariants import broken_invariants
from tests.servers import PostgresServer
from tests.simulation.consistency import problems
from tests.simulation.stories import Document, Story, stories
from tests.simulation.tables import STATEMENTS, Seen, differences, visible

RUNS, JOBS, DATASETS, THREADS = 60, 5, 7, 6
NOW = parse_time("2026-03-02T00:00:00Z")


@contextmanager
def migrated_database(url: str) -> Iterator[Database]:
    database = open_database(url, extra=[STATEMENTS])
    try:
        database.migrate()
        yield database
    finally:
        database.close()


@contextmanager
def open_catalog(url: str) -> Iterator[WriteQueue]:
    """A catalog as one server has it: its own connection, writer and cache."""
    with migrated_database(url) as database:
        catalog = open_write_queue(
            database, clock=lambda: NOW, batch_events_max=8, queue_length_max=10_000
        )
        catalog.start()
        try:
            yield catalog
        finally:
            catalog.stop()


class Databases:
    """Empty databases with their schema, made quickly by copying one."""

    def __init__(self, folder: Path, postgres: PostgresServer | None) -> None:
        self._folder = folder
        self._postgres = postgres
        self._template = self._new(None)
        with migrated_database(self._template):
            pass

    @contextmanager
    def empty(self) -> Iterator[str]:
        """Yield the URL of a database for the length of a block."""
        url = self._new(self._template)
        yield url
        self._drop(url)

    def close(self) -> None:
        """Drop the template."""
        self._drop(self._template)

    def _drop(self, url: str) -> None:
        if self._postgres is not None:
            self._postgres.drop_database(url)

    def _new(self, template: str | None) -> str:
        if self._postgres is not None:
            name = conninfo_to_dict(template)["dbname"] if template else "template0"
            return self._postgres.create_database(str(name))
        path = self._folder / f"{random.getrandbits(64):x}.db"
        if template is not None:
            shutil.copy(template.removeprefix("sqlite:///"), path)
        return f"sqlite:///{path}"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Databases]:
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    databases = Databases(tmp_path_factory.mktemp("two"), server)
    yield databases
    databases.close()


def submit(catalog: WriteQueue, event: Document) -> "Future[None]":
    return catalog.submit(ReceiveEvent(read_event(msgspec.json.encode(event), Limits())))


def state_of(url: str) -> Seen:
    with migrated_database(url) as database, database.read() as tx:
        assert problems(tx) == []
        assert broken_invariants(database, system_clock) == []
        return visible(tx)


@given(stories(), st.randoms(use_true_random=False))
@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_events_sent_alternately_to_two_catalogs_end_as_in_one(
    databases: Databases, story: Story, chance: random.Random
) -> None:
    """Each notices that the other one has written and drops its cache."""
    events = [event for event in story.background if "delete" not in event] + story.run
    with databases.empty() as alone_url, databases.empty() as both_url, ExitStack() as stack:
        alone = stack.enter_context(open_catalog(alone_url))
        both = [stack.enter_context(open_catalog(both_url)) for _ in range(2)]
        for event in events:
            submit(alone, event).result()
            submit(chance.choice(both), event).result()
        assert differences(state_of(alone_url), state_of(both_url)) == {}


def busy_events(chance: random.Random) -> tuple[list[Document], list[list[Document]]]:
    """Draw declarations of all datasets, and events of many runs that share jobs and datasets."""
    names = [{"namespace": "s3://lake", "name": f"dataset {n}"} for n in range(DATASETS)]

    def random_dataset(columns: int) -> Document:
        fields = [{"name": f"column{n}", "type": "INT"} for n in range(columns)]
        return {**chance.choice(names), "facets": {"schema": {"fields": fields}}}

    declared: list[Document] = [
        {"eventTime": "2026-03-01T00:00:00Z", "dataset": {**name, "facets": {}}} for name in names
    ]
    runs = []
    for number in range(RUNS):
        run = {"runId": f"run {number}"}
        job = {"namespace": "jobs", "name": f"job {chance.randrange(JOBS)}"}
        sides = {"inputs": [random_dataset(1)], "outputs": [random_dataset(chance.randrange(1, 4))]}
        end = chance.choice(["COMPLETE", "COMPLETE", "FAIL", "ABORT"])
        times = [f"2026-03-01T10:{number:02}:{second:02}Z" for second in (0, 30)]
        runs.append(
            [
                {"eventTime": at, "eventType": kind, "run": run, "job": job, **sides}
                for at, kind in zip(times, ("START", end), strict=True)
            ]
        )
    return declared, runs


def without_order(tables: Seen) -> Seen:
    """Return the rows without the columns that depend on the order of runs: numbers and inputs.

    A reader's report of the fields applies to the version that it read, if that has none.
    """
    for row in tables["version"]:
        del row["number"]
    for row in tables["dataset"]:
        del row["latest_version_id"], row["observed"]
    for row in tables["run_dataset"]:
        if row["role"] == "INPUT":
            del row["version_id"]
    return {table: sorted(rows, key=repr) for table, rows in tables.items()}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.stress) for n in (1, 2))])
@pytest.mark.parametrize("count", [1, 2])
def test_concurrent_events_to_catalogs_end_as_sequential_ones(
    databases: Databases, count: int, seed: int
) -> None:
    chance = random.Random(f"{count}/{seed}")
    declared, runs = busy_events(chance)

    def submit_all(
        catalogs: Sequence[WriteQueue], events: list[Document], order: random.Random
    ) -> None:
        for event in order.sample(events, len(events)):
            submit(order.choice(catalogs), event).result()

    with databases.empty() as alone_url, databases.empty() as busy_url, ExitStack() as stack:
        alone = stack.enter_context(open_catalog(alone_url))
        busy = [stack.enter_context(open_catalog(busy_url)) for _ in range(count)]
        for event in declared:
            submit(alone, event).result()
            submit(busy[0], event).result()
        for events in runs:
            submit_all([alone], events, random.Random(0))
        with ThreadPoolExecutor(THREADS) as pool:
            futures = [
                pool.submit(submit_all, busy, events, random.Random(f"{seed}/{number}"))
                for number, events in enumerate(chance.sample(runs, len(runs)))
            ]
        for each in futures:
            each.result()
        expected, actual = without_order(state_of(alone_url)), without_order(state_of(busy_url))
    assert differences(expected, actual) == {}
