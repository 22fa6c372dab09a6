"""Properties of every graph: a walk finds all nodes in reach; the past is as it was shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog.changes import changes
from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.lineage.edges import History
from penstock.catalog.lineage.graph import Direction, lineage
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import SECOND, Micros, format_time, parse_time
from penstock.db import Database, Transaction
from penstock.errors import NotFound
from penstock.store.unit_of_work import write_changes
from tests.contract.catalog_rows import NAMESPACE, NOW
from tests.contract.lineage_rows import Arrow, Scene, arrows, at, nodes

DATASETS = [f"d{number}" for number in range(5)]
JOBS = [f"j{number}" for number in range(5)]
STREAM = JOBS[1]
Shape = tuple[list[str], set[Arrow]]


class _RollBack(Exception):
    """Raised to roll a write back."""


@contextmanager
def rolled_back(database: Database) -> Iterator[Transaction]:
    """A write that is rolled back, so that the next example starts empty."""
    try:
        with database.write() as tx:
            yield tx
            raise _RollBack
    except _RollBack:
        pass


def node_id(name: str) -> str:
    return f"{'job' if name in JOBS else 'dataset'}:{NAMESPACE}:{name}"


class Edge(msgspec.Struct, frozen=True):
    """An edge between a random job and a dataset."""

    job: str
    dataset: str
    reads: bool
    current: bool

    @property
    def arrow(self) -> Arrow:
        """The edge in the direction of the data."""
        return (self.dataset, self.job) if self.reads else (self.job, self.dataset)


class Question(msgspec.Struct, frozen=True):
    """A random graph, some of it deleted, and a question about it."""

    edges: dict[Arrow, Edge]
    deleted: set[str]
    root: str
    size: int
    by_depth: bool
    direction: Direction
    history: History

    def scene(self) -> Scene:
        """Return the graph as rows."""
        scene = Scene()
        for name in DATASETS:
            scene.dataset(name, hidden=int(name in self.deleted), hidden_at=at(1))
        for name in JOBS:
            scene.job(name, hidden=int(name in self.deleted), hidden_at=at(1))
        for edge in self.edges.values():
            sides = ([edge.dataset], []) if edge.reads else ([], [edge.dataset])
            scene.job(edge.job, *sides, current=edge.current)
        return scene

    def within_reach(self) -> Shape:
        """Compute the answer with a slow and simple search."""
        flow = {e.arrow for e in self.edges.values() if e.current or self.history == "all"}
        steps = set()
        if self.direction != "upstream":
            steps |= flow
        if self.direction != "downstream":
            steps |= {(destination, origin) for origin, destination in flow}
        nodes = {self.root}
        hops = self.size
        if self.by_depth:
            nodes |= self._first_jobs(steps) - self.deleted
            hops = 2 * self.size + 1 if nodes & set(JOBS) else 0
        for _ in range(hops):
            nodes |= {there for here, there in steps if here in nodes} - self.deleted
        names = sorted(nodes & set(DATASETS)) + sorted(nodes & set(JOBS))
        return names, {edge for edge in flow if set(edge) <= nodes}

    def _first_jobs(self, steps: set[Arrow]) -> set[str]:
        """Return the jobs at depth 0: the root, or the first nonempty side of a dataset."""
        if self.root in JOBS:
            return {self.root}
        beside = {there for here, there in steps if here == self.root} - self.deleted
        standing = [e for e in self.edges.values() if e.current or self.history == "all"]
        writers = {e.job for e in standing if e.dataset == self.root and not e.reads}
        return beside & writers or beside


@st.composite
def questions(draw: st.DrawFn) -> Question:
    edge = st.builds(
        Edge, st.sampled_from(JOBS), st.sampled_from(DATASETS), st.booleans(), st.booleans()
    )
    names = st.sampled_from(DATASETS + JOBS)
    return Question(
        edges={edge.arrow: edge for edge in draw(st.lists(edge, max_size=16))},
        deleted=draw(st.sets(names, max_size=2)),
        root=draw(names),
        size=draw(st.integers(0, 6)),
        by_depth=draw(st.booleans()),
        direction=draw(st.sampled_from(["both", "upstream", "downstream"])),
        history=draw(st.sampled_from(["current", "all"])),
    )


@given(question=questions())
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_walk_finds_exactly_the_nodes_within_reach(
    database: Database, question: Question
) -> None:
    with rolled_back(database) as tx:
        question.scene().write(tx)
        root = node_id(question.root)
        depth, hops = (question.size, None) if question.by_depth else (None, question.size)
        graph = lineage(tx, root, depth, question.direction, question.history, hops=hops)
        assert (nodes(graph), arrows(graph)) == question.within_reach()


def _names(draw: st.DrawFn) -> list[dict[str, str]]:
    names = draw(st.lists(st.sampled_from(DATASETS), max_size=2, unique=True))
    return [{"namespace": NAMESPACE, "name": name} for name in names]


@st.composite
def stories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw events one second apart: runs that report their edges at the start, and declared jobs.

    The graph dates later reports of a run to its start, so the runs here report nothing later.
    """
    unfinished: dict[str, str] = {}
    events: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 9))):
        event: dict[str, Any] = {"eventTime": format_time(at(number)), "producer": "test"}
        kind = draw(st.sampled_from(["start", "start", "end", "state"]))
        if kind == "end" and unfinished:
            run = draw(st.sampled_from(sorted(unfinished)))
            event |= {
                "eventType": draw(st.sampled_from(["COMPLETE", "FAIL"])),
                "run": {"runId": run},
                "job": {"namespace": NAMESPACE, "name": unfinished.pop(run)},
                "schemaURL": "x#/$defs/RunEvent",
            }
        else:
            job = draw(st.sampled_from(JOBS[:2]))
            kind_of_job = {"processingType": "STREAMING" if job == STREAM else "BATCH"}
            facets = {"jobType": kind_of_job}
            event |= {"job": {"namespace": NAMESPACE, "name": job, "facets": facets}}
            event |= {"inputs": _names(draw), "outputs": _names(draw)}
            if kind == "state":
                event |= {"schemaURL": "x#/$defs/JobEvent"}
            else:
                run = f"01930000-0000-7000-8000-{number:012}"
                unfinished[run] = job
                event |= {"eventType": "START", "run": {"runId": run}}
                event |= {"schemaURL": "x#/$defs/RunEvent"}
        events.append(event)
    return events


def receive(tx: Transaction, uow: UnitOfWork, event: dict[str, Any], now: Micros) -> None:
    """Fold one event, as the server does."""
    command = ReceiveEvent(read_event(msgspec.json.encode(event), Limits()))
    keys = RowKeys()
    command.prefetch(keys)
    uow.open(tx)
    uow.load(keys, NOW)
    command.execute(uow, now)
    write_changes(tx, changes(uow))
    uow.mark_sent()


def whole_graph(tx: Transaction, as_of: Micros | None) -> dict[str, Shape]:
    """Return the graph around every node."""
    graphs: dict[str, Shape] = {}
    for name in DATASETS + JOBS[:2]:
        try:
            graph = lineage(tx, node_id(name), as_of=as_of)
        except NotFound:
            continue
        graphs[name] = nodes(graph), arrows(graph)
    return graphs


def graphs_after_each(tx: Transaction, events: list[dict[str, Any]]) -> list[dict[str, Shape]]:
    """Return the graph as it was shown directly after each event."""
    uow, graphs = UnitOfWork(), []
    for event in events:
        receive(tx, uow, event, NOW)
        graphs.append(whole_graph(tx, None))
    return graphs


@given(events=stories())
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_graph_of_a_past_time_equals_the_one_shown(
    database: Database, events: list[dict[str, Any]]
) -> None:
    with rolled_back(database) as tx:
        graphs = graphs_after_each(tx, events)
        past_graphs = [whole_graph(tx, at(second) + SECOND // 2) for second in range(len(events))]
    assert past_graphs == graphs


def _event(second: int, kind: str, job: str, reads: str, writes: str, **facets: Any) -> Any:
    """Return the event. Its job and outputs identify the run."""
    dataset = {"namespace": NAMESPACE, "name": writes, "facets": facets}
    return {
        "eventTime": format_time(at(second)),
        "eventType": kind,
        "run": {"runId": f"{job} {writes} {second // 10}"},
        "job": {"namespace": NAMESPACE, "name": job},
        "inputs": [{"namespace": NAMESPACE, "name": reads}] if reads else [],
        "outputs": [dataset] if writes else [],
        "schemaURL": "x#/$defs/RunEvent",
    }


_DROP = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}


@pytest.mark.parametrize(
    "back",
    [
        [_event(30, "START", "j0", "d0", "d1"), _event(31, "COMPLETE", "j0", "d0", "d1")],
        [_event(30, "START", "j0", "d0", "d1"), _event(31, "FAIL", "j0", "d0", "d1")],
        [_event(30, "START", "j1", "d1", "d3"), _event(31, "COMPLETE", "j1", "d1", "d3")],
        [],
    ],
    ids=["written again", "tried in vain", "read", "nothing"],
)
def test_a_recreated_dataset_is_absent_while_dropped(
    database: Database, back: list[dict[str, Any]]
) -> None:
    events = [
        _event(0, "START", "j0", "d0", "d1"),
        _event(1, "COMPLETE", "j0", "d0", "d1"),
        _event(2, "START", "j1", "d1", "d2"),
        _event(3, "COMPLETE", "j1", "d1", "d2"),
        _event(10, "START", "j2", "", "d1", **_DROP),
        _event(11, "COMPLETE", "j2", "", "d1", **_DROP),
        *back,
        _event(40, "START", "j0", "d0", "d1"),
        _event(41, "COMPLETE", "j0", "d0", "d1"),
    ]
    with rolled_back(database) as tx:
        graphs = graphs_after_each(tx, events)
        times = [parse_time(event["eventTime"]) + SECOND // 2 for event in events]
        assert [whole_graph(tx, time) for time in times] == graphs
