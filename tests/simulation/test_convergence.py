"""Convergence: the events of a run give the same state in any order and with any repetition."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog.changes import changes
from penstock.catalog.commands import DeleteDataset, DeleteJob, ReceiveEvent, RestoreDataset
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import Micros, parse_time, system_clock
from penstock.db import Database, Transaction, open_database
from penstock.errors import NotFound
from penstock.store.unit_of_work import NeedsOwnTransaction, write_changes
from penstock.store.write_queue import Command
from tests.invariants import broken_invariants, transaction_view
from tests.servers import PostgresServer
from tests.simulation.consistency import problems
from tests.simulation.stories import RUN_ID, Document, Story, histories, stories
from tests.simulation.tables import STATEMENTS, Seen, differences, visible

NOW = 1_800_000_000_000_000
LIMITS = Limits()


class _RollBack(Exception):
    """Raised to roll a write back."""


@contextmanager
def rolled_back(database: Database) -> Iterator[Transaction]:
    """A write transaction that is rolled back, so that the next story starts empty."""
    try:
        with database.write() as tx:
            yield tx
            raise _RollBack
    except _RollBack:
        pass


class Receiver:
    """Folds batches of events into the rows of one transaction."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._uow = UnitOfWork()

    def receive(self, events: Sequence[Document], *, forget: bool = False) -> None:
        """Fold one batch. `forget` reloads its rows, like a server that shares its database."""
        if forget:
            self._uow.forget()
        commands = [_command(event) for event in events]
        uow = self._uow
        uow.open(self._tx)
        keys = RowKeys()
        for command, _ in commands:
            command.prefetch(keys)
        uow.load(keys, NOW)
        for command, now in commands:
            uow.undo.begin()
            try:
                command.execute(uow, now)
            except NotFound:
                uow.undo.undo()
            except NeedsOwnTransaction:
                uow.undo.undo()
                self._write()
                self._write_alone(command, now)
        self._write()

    def _write(self) -> None:
        write_changes(self._tx, changes(self._uow))
        self._uow.mark_sent()
        self._uow.open(self._tx)

    def _write_alone(self, command: Command[None], now: Micros) -> None:
        self._uow.forget()
        self._uow.open(self._tx, is_shared=False)
        command.execute(self._uow, now)
        self._write()
        self._uow.forget()
        self._uow.open(self._tx)


def _command(event: Document) -> tuple[Command[None], Micros]:
    at = parse_time(event["eventTime"])
    if event.get("delete") == "job":
        return DeleteJob(event["namespace"], event["name"], "ann"), at
    if event.get("delete") == "dataset":
        return DeleteDataset(event["namespace"], event["name"], "ann"), at
    if event.get("restore") == "dataset":
        return RestoreDataset(event["namespace"], event["name"], "ann"), at
    return ReceiveEvent(read_event(msgspec.json.encode(event), LIMITS)), NOW


Arrival = tuple[Story, list[list[Document]], bool]


@st.composite
def arrivals(draw: st.DrawFn) -> Arrival:
    """Draw a story and its run's events in another order, some of them twice, cut into batches."""
    story = draw(stories())
    again = draw(st.lists(st.sampled_from(story.run), max_size=3))
    shuffled = draw(st.permutations(story.run + again))
    batches: list[list[Document]] = [[]]
    for event in shuffled:
        batches[-1].append(event)
        if draw(st.booleans()):
            batches.append([])
    return story, [batch for batch in batches if batch], draw(st.booleans())


def state_after(
    database: Database, background: list[Document], batches: list[list[Document]], forget: bool
) -> Seen:
    with rolled_back(database) as tx:
        receiver = Receiver(tx)
        if background:
            receiver.receive(background)
        for batch in batches:
            receiver.receive(batch, forget=forget)
        assert problems(tx) == []
        assert broken_invariants(transaction_view(tx), system_clock) == []
        return visible(tx)
    raise AssertionError("unreachable")


def check(database: Database, arrival: Arrival) -> None:
    story, batches, forget = arrival
    in_order = state_after(database, story.background, [[event] for event in story.run], False)
    otherwise = state_after(database, story.background, batches, forget)
    assert differences(in_order, otherwise) == {}


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("convergence") / "penstock.db"
    database = open_database(f"sqlite:///{path}", extra=[STATEMENTS])
    database.migrate()
    yield database
    database.close()


@pytest.fixture(scope="module")
def postgresql(postgres: PostgresServer) -> Iterator[Database]:
    url = postgres.create_database()
    database = open_database(url, extra=[STATEMENTS])
    database.migrate()
    yield database
    database.close()
    postgres.drop_database(url)


@given(arrivals())
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_any_event_order_gives_the_same_state_on_sqlite(sqlite: Database, arrival: Arrival) -> None:
    check(sqlite, arrival)


@given(arrivals())
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_any_event_order_gives_the_same_state_on_postgresql(
    postgresql: Database, arrival: Arrival
) -> None:
    check(postgresql, arrival)


@st.composite
def repetitions(draw: st.DrawFn) -> tuple[list[Document], list[Document]]:
    """Draw events of several runs, and some of them again."""
    events = draw(histories())
    return events, draw(st.lists(st.sampled_from(events), min_size=1, max_size=4))


def check_again(database: Database, repetition: tuple[list[Document], list[Document]]) -> None:
    events, again = repetition
    with rolled_back(database) as tx:
        receiver = Receiver(tx)
        for event in events:
            receiver.receive([event])
        before = visible(tx)
        for event in again:
            receiver.receive([event], forget=True)
        assert problems(tx) == []
        assert broken_invariants(transaction_view(tx), system_clock) == []
        after = visible(tx)
    assert differences(before, after) == {}


@given(repetitions())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_events_repeated_after_other_runs_change_nothing(
    sqlite: Database, repetition: tuple[list[Document], list[Document]]
) -> None:
    check_again(sqlite, repetition)


@pytest.mark.stress
@given(repetitions())
@settings(max_examples=20_000, derandomize=False, suppress_health_check=[HealthCheck.too_slow])
def test_long_search_for_a_repeated_event_that_matters(
    sqlite: Database, repetition: tuple[list[Document], list[Document]]
) -> None:
    check_again(sqlite, repetition)


@pytest.mark.stress
@given(arrivals())
@settings(max_examples=20_000, derandomize=False, suppress_health_check=[HealthCheck.too_slow])
def test_long_search_for_an_order_that_matters_on_sqlite(
    sqlite: Database, arrival: Arrival
) -> None:
    check(sqlite, arrival)


@pytest.mark.stress
@given(arrivals())
@settings(max_examples=2_000, derandomize=False, suppress_health_check=[HealthCheck.too_slow])
def test_long_search_for_an_order_that_matters_on_postgresql(
    postgresql: Database, arrival: Arrival
) -> None:
    check(postgresql, arrival)


@pytest.mark.parametrize("ends", [("COMPLETE", "FAIL"), ("FAIL", "COMPLETE"), ("ABORT", "FAIL")])
def test_the_first_received_of_two_contradictory_ends_wins(
    sqlite: Database, ends: tuple[str, str]
) -> None:
    first, second = (
        {
            "eventTime": at,
            "eventType": end,
            "run": {"runId": RUN_ID},
            "job": {"namespace": "jobs", "name": "j"},
            "outputs": [{"namespace": "s3://lake", "name": "orders"}],
        }
        for end, at in zip(ends, ("2026-03-01T10:20:00Z", "2026-03-01T10:10:00Z"), strict=True)
    )
    with rolled_back(sqlite) as tx:
        receiver = Receiver(tx)
        receiver.receive([first])
        [after_first] = visible(tx)["run"]
        receiver.receive([second, second])
        state = visible(tx)
    assert {"COMPLETE": "COMPLETED", "FAIL": "FAILED", "ABORT": "ABORTED"}[ends[0]] == (
        after_first["state"]
    )
    [run], [version] = state["run"], state["version"]
    assert (run["state"], run["ended_at"]) == (after_first["state"], after_first["ended_at"])
    assert (version["published_at"] is not None) == (ends[0] == "COMPLETE")


def _streamed(at: str, lifecycle: str | None = None, kind: str | None = "STREAMING") -> Document:
    """Return an event of a run that streams into a dataset, at some time of one day."""
    facets = {"lifecycleStateChange": {"lifecycleStateChange": lifecycle}} if lifecycle else {}
    return {
        "eventTime": f"2026-03-01T{at}:00Z",
        "eventType": "RUNNING",
        "run": {"runId": RUN_ID},
        "job": {
            "namespace": "jobs",
            "name": "j",
            "facets": {"jobType": {"processingType": kind}} if kind else {},
        },
        "outputs": [{"namespace": "s3://lake", "name": "orders", "facets": facets}],
    }


def _by_hand(verb: str, at: str) -> Document:
    when = f"2026-03-01T{at}:00Z"
    return {"eventTime": when, verb: "dataset", "namespace": "s3://lake", "name": "orders"}


_MADE_BY_ANOTHER = _streamed("10:05") | {"run": {"runId": "another"}}


@pytest.mark.parametrize("first_says_its_type", [True, False])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_stream_drop_hides_a_deleted_dataset_in_any_order(
    sqlite: Database, order: tuple[int, ...], first_says_its_type: bool
) -> None:
    background = [_MADE_BY_ANOTHER, _by_hand("delete", "10:25")]
    kind = "STREAMING" if first_says_its_type else None
    run = [_streamed("10:15", kind=kind), _streamed("11:05", lifecycle="DROP"), _streamed("11:15")]
    check(sqlite, (Story(background, run), [[run[number]] for number in order], False))
    [dataset] = state_after(sqlite, background, [[run[number]] for number in order], False)[
        "dataset"
    ]
    assert (dataset["lifecycle"], dataset["hidden"]) == ("DROP", 1)


def test_a_restored_dataset_stays_until_its_streams_next_drop(
    sqlite: Database,
) -> None:
    dropped = [[_streamed("10:15")], [_streamed("10:45", lifecycle="DROP")]]
    restored = [*dropped, [_by_hand("restore", "11:05")], [_streamed("11:15")]]

    def hidden(batches: list[list[Document]]) -> int:
        [dataset] = state_after(sqlite, [_MADE_BY_ANOTHER], batches, False)["dataset"]
        hidden_flag: int = dataset["hidden"]
        return hidden_flag

    assert hidden(dropped) == 1
    assert hidden(restored) == 0
    assert hidden([*restored, [_streamed("11:25", lifecycle="DROP")]]) == 1


@pytest.mark.parametrize("width", [2, 300])  # few names are kept in memory as they were read
def test_runs_with_equal_inputs_share_a_shape_of_any_size(sqlite: Database, width: int) -> None:
    def ended(run: str, at: str, inputs: int) -> Document:
        return {
            "eventTime": f"2026-03-01T{at}:00Z",
            "eventType": "COMPLETE",
            "run": {"runId": run},
            "job": {"namespace": "jobs", "name": "j"},
            "inputs": [{"namespace": "s3://lake", "name": f"part/{n:04}"} for n in range(inputs)],
        }

    alike = [ended("one", "10:05", width), ended("two", "10:15", width)]
    rows = state_after(sqlite, [], [[event] for event in alike], True)
    assert [len(rows[table]) for table in ("job_version", "edge", "run")] == [1, width, 2]
    rows = state_after(sqlite, [], [[*alike, ended("three", "10:25", width - 1)]], False)
    assert [len(rows[table]) for table in ("job_version", "run")] == [2, 3]
    assert sum(edge["current"] for edge in rows["edge"]) == width - 1


@pytest.mark.parametrize("dropped_at", ["10:05", "10:15", "10:45"])
@pytest.mark.parametrize("says_it_goes_on", [True, False])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_stream_drop_after_a_declared_drop_keeps_it_hidden(
    sqlite: Database, order: tuple[int, ...], says_it_goes_on: bool, dropped_at: str
) -> None:
    [mention] = _streamed("", lifecycle="DROP")["outputs"]
    background = [{"eventTime": f"2026-03-01T{dropped_at}:00Z", "dataset": mention}]
    last = _streamed("10:55") if says_it_goes_on else _streamed("10:25")
    run = [_streamed("10:05", kind=None), _streamed("10:35", lifecycle="DROP"), last]
    story = Story(background, sorted(run, key=lambda event: event["eventTime"]))
    batches = [[run[number]] for number in order]
    check(sqlite, (story, batches, False))
    [dataset] = state_after(sqlite, background, batches, False)["dataset"]
    assert dataset["lifecycle"] == "DROP"
    assert dataset["hidden"] == int(dropped_at != "10:45" or not says_it_goes_on)


_TABLE, _FILES = ("hive://m", "shop.orders"), ("s3://lake", "orders")


def _dataset(name: tuple[str, str], *fields: str, also: tuple[str, str] | None = None) -> Document:
    facets: Document = {}
    if fields:
        facets["schema"] = {"fields": [{"name": field} for field in fields]}
    if also is not None:
        identifier = {"namespace": also[0], "name": also[1], "type": "TABLE"}
        facets["symlinks"] = {"identifiers": [identifier]}
    return {"namespace": name[0], "name": name[1], "facets": facets}


def _wrote(run: str, job: str, at: str, *outputs: Document, ends: bool = True) -> Document:
    return {
        "eventTime": f"2026-03-01T{at}:00Z",
        "eventType": "COMPLETE" if ends else "START",
        "run": {"runId": run},
        "job": {"namespace": "jobs", "name": job},
        "outputs": outputs,
    }


def _by_name(rows: Seen) -> Seen:
    """Return the rows without the ids, which depend on the order of the versions."""
    left_out = {"id", "version_id", "number", "stamps"}
    left_out |= {"current_version_id", "latest_version_id", "implied_version_id"}
    tables = ("dataset", "alias", "version", "job_version", "edge", "run_dataset", "tally")
    return {
        table: sorted(
            (
                {
                    key: value
                    for key, value in row.items()
                    if key not in left_out or (key == "id" and table == "dataset")
                }
                for row in rows[table]
            ),
            key=repr,
        )
        for table in (*tables, "search_doc")
    }


_OF_ONE_DATASET = (
    _wrote("one", "load", "10:05", _dataset(_TABLE, "id")),
    _wrote("two", "load", "10:25", _dataset(_FILES, "id", "x", also=_TABLE)),
    _wrote("three", "fix", "10:15", _dataset(_TABLE, "id", "y"), _dataset(_FILES)),
    {"eventTime": "2026-03-01T10:20:00Z", "dataset": _dataset(_TABLE, "id", "z")},
)


@pytest.mark.parametrize("order", list(permutations(range(4))))
@pytest.mark.parametrize("at_once", [True, False])
def test_a_second_name_merges_two_datasets_in_any_order(
    sqlite: Database, order: tuple[int, ...], at_once: bool
) -> None:
    events = [_OF_ONE_DATASET[number] for number in order]
    batches = [events] if at_once else [[event] for event in events]

    rows = _by_name(state_after(sqlite, [], batches, False))

    first = _by_name(state_after(sqlite, [], [[event] for event in _OF_ONE_DATASET], False))
    assert differences_by_table(rows, first) == {}
    [dataset] = rows["dataset"]
    assert (dataset["namespace"], dataset["version_count"]) == (_FILES[0], 4)


def differences_by_table(one: Seen, other: Seen) -> Seen:
    return {
        table: [row for row in one[table] if row not in other[table]]
        + [row for row in other[table] if row not in one[table]]
        for table in one
        if one[table] != other[table]
    }


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_run_using_both_names_has_one_dataset(sqlite: Database, order: tuple[int, ...]) -> None:
    run = [
        _wrote(RUN_ID, "j", "10:05", _dataset(_TABLE, "a"), ends=False)
        | {"inputs": [_dataset(("pg://db", "raw"), "a")]},
        _wrote(RUN_ID, "j", "10:06", _dataset(_FILES), ends=False)
        | {"inputs": [_dataset(("pg://db", "RAW"), also=("pg://db", "raw"))]},
        _wrote(RUN_ID, "j", "10:07", _dataset(_FILES, "a", "b", also=_TABLE)),
    ]

    rows = _by_name(state_after(sqlite, [], [[run[number]] for number in order], False))

    first = _by_name(state_after(sqlite, [], [[event] for event in run], False))
    assert differences_by_table(rows, first) == {}
    assert sorted(row["name"] for row in rows["dataset"]) == ["RAW", "orders"]
