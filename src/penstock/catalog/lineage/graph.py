"""The lineage graph around a dataset or job.

The walk goes breadth first, with one set-based statement for each level. Its size is counted in one
of two ways. `depth` counts as Marquez does: steps from job to job, each job with all its datasets.
Depth 0 of a dataset shows the jobs that write it, or else those that read it. `hops` counts edges
between datasets and jobs, and 0 shows the node alone.

`both` walks edges in both directions from every node, as Marquez does; `upstream` and `downstream`
never turn around.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from penstock.catalog.events.schema import shown_fields, with_tags
from penstock.catalog.lineage.edges import (
    EdgeSource,
    History,
    JobEdge,
    Roles,
    dropped_then,
    edge_source,
)
from penstock.catalog.lineage.nodes import (
    NamedDataset,
    NamedJob,
    NamedRun,
    PinnedJobVersion,
    PinnedVersion,
    dataset_node,
    find_node,
    job_node,
    time_of,
)
from penstock.catalog.queries.runs import began
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.db.database import Ask, Row
from penstock.errors import Invalid, TooLarge
from penstock.schema.catalog import DatasetRole, EntityId
from penstock.schema.lineage import (
    DatasetData,
    DatasetNode,
    Edge,
    GraphRun,
    JobData,
    JobNode,
    LineageGraph,
)
from penstock.schema.shape import raw, time_or_none
from penstock.states import RunState

DEPTH_DEFAULT = 20
# A graph of this size is 70 MB of JSON. Larger ones are of no use and would fill the server's
# memory.
NODES_MAX = 50_000


class EdgeIndex:
    """The edges of a graph by node."""

    def __init__(self, ends: Iterable[tuple[str, str]]) -> None:
        self.into: defaultdict[str, list[Edge]] = defaultdict(list)
        self.out_of: defaultdict[str, list[Edge]] = defaultdict(list)
        for origin, destination in sorted(ends):
            edge = Edge(origin, destination)
            self.into[destination].append(edge)
            self.out_of[origin].append(edge)


def begin_walk(tx: Transaction, size: int, parameter: str = "depth") -> None:
    """Refuse a negative size; make all statements of the transaction find rows by key."""
    if size < 0:
        raise Invalid(f"{parameter} {size} is below 0; the smallest graph has {parameter} 0")
    tx.execute("walk_by_key")


def check_size(nodes: int) -> None:
    """Refuse a graph that is too large for an answer."""
    if nodes > NODES_MAX:
        raise TooLarge(
            f"the graph has more than {NODES_MAX} nodes; ask for a smaller depth or one direction"
        )


Direction = Literal["both", "upstream", "downstream"]

_INPUT, _OUTPUT = DatasetRole.INPUT.value, DatasetRole.OUTPUT.value
_Sides = defaultdict[tuple[str, str], list[EntityId]]  # by job and role


_READERS: Roles = (_INPUT, _INPUT)
_WRITERS: Roles = (_OUTPUT, _OUTPUT)
_ANY: Roles = (_INPUT, _OUTPUT)


class _Steps(Struct, frozen=True):
    """The roles to follow from jobs and from datasets.

    `first_jobs` are the jobs at depth 0 of a dataset: the first of these roles that has jobs.
    """

    from_job: Roles
    from_dataset: Roles
    first_jobs: tuple[Roles, ...]


_STEPS: Mapping[str, _Steps] = {
    "both": _Steps(_ANY, _ANY, (_WRITERS, _READERS)),
    "upstream": _Steps(_READERS, _WRITERS, (_WRITERS,)),
    "downstream": _Steps(_WRITERS, _READERS, (_READERS,)),
}


class _Walk(Struct, frozen=True):
    """The nodes of the first level, and the number of further levels."""

    first: set[str]
    has_jobs_first: bool
    levels: int


class _Root(Struct, frozen=True):
    """The root of a graph, and its time."""

    id: str
    is_job: bool
    as_of: Micros | None
    version: PinnedVersion | None = None
    job_version: PinnedJobVersion | None = None
    dropped: bool = False  # at that time, though not now

    def ask(self, statement: str, ids: list[str]) -> Ask:
        """Return a query about nodes, now or at the time."""
        if self.as_of is None:
            return statement, {"ids": ids, "root": self.id}
        return f"{statement}_as_of", {"ids": ids, "root": self.id, "at": self.as_of}


class _Found(NamedTuple):
    """The rows that a walk found, and every edge of its jobs."""

    jobs: list[Row]
    datasets: list[Row]
    edges: list[JobEdge]


def lineage(
    tx: Transaction,
    node_id: str,
    depth: int | None = None,
    direction: Direction = "both",
    history: History = "current",
    as_of: Micros | None = None,
    *,
    hops: int | None = None,
) -> LineageGraph:
    """Return the graph around a node, now or at a time.

    A dataset with `#version` selects the time of that version, a run the time of its end. Names,
    descriptions and tags are always current.
    """
    if depth is not None and hops is not None:
        raise Invalid("depth and hops are both set; set depth to count jobs, hops to count edges")
    if hops is not None:
        begin_walk(tx, hops, "hops")
    else:
        depth = DEPTH_DEFAULT if depth is None else depth
        begin_walk(tx, depth)
    if direction not in _STEPS:
        raise Invalid(f"direction {direction!r} is none of {', '.join(_STEPS)}")
    steps = _STEPS[direction]
    root = _find_root(tx, node_id, as_of)
    source = edge_source(tx, root.id, history, root.as_of, root.job_version)
    if hops is None:
        walk = _walk_by_jobs(tx, source, root, steps, depth or 0)
    else:
        walk = _Walk({root.id}, root.is_job, hops)
    return _draw(root, _follow(tx, source, root, steps, walk))


def _find_root(tx: Transaction, node_id: str, as_of: Micros | None) -> _Root:
    named = find_node(tx, node_id)
    at = time_of(named, as_of)
    match named:
        case NamedDataset():
            dropped = bool(dropped_then(tx, [named.id], at))
            return _Root(named.id, False, at, version=named.version, dropped=dropped)
        case NamedJob():
            return _Root(named.id, True, at, job_version=named.version)
        case NamedRun():
            return _Root(named.job_id, True, at)


def _walk_by_jobs(
    tx: Transaction, source: EdgeSource, root: _Root, steps: _Steps, depth: int
) -> _Walk:
    """Walk from job to job: one level of jobs and one of datasets for each depth."""
    levels = 2 * depth + 1
    if root.is_job:
        return _Walk({root.id}, has_jobs_first=True, levels=levels)
    for roles in steps.first_jobs:
        jobs, _ = source.jobs_beside([root.id], roles)
        rows = tx.fetch_many([root.ask("lineage_jobs", jobs)])[0] if jobs else []
        if rows:
            return _Walk({row[0] for row in rows}, has_jobs_first=True, levels=levels)
    return _Walk({root.id}, has_jobs_first=False, levels=0)


def _follow(tx: Transaction, source: EdgeSource, root: _Root, steps: _Steps, walk: _Walk) -> _Found:
    """Walk level by level; a level has only jobs or only datasets."""
    walked = _Found([], [], [])
    frontier = set(walk.first)
    seen = set(frontier)
    for level in range(walk.levels + 1):
        here = list(frontier)
        if walk.has_jobs_first == (level % 2 == 0):
            edges, (rows,) = source.edges_of(here, root.ask("lineage_jobs", here))
            visible = {row[0] for row in rows}
            edges = [edge for edge in edges if edge.job_id in visible]
            walked.jobs.extend(rows)
            walked.edges.extend(edges)
            frontier = {edge.dataset_id for edge in edges if edge.role in steps.from_job}
            if level == 0 and not root.is_job:
                frontier.add(root.id)  # in one direction, its own jobs do not lead to it
        elif level < walk.levels:
            ask = root.ask("lineage_datasets", here)
            jobs, (rows,) = source.jobs_beside(here, steps.from_dataset, ask)
            walked.datasets.extend(rows)
            frontier = set(jobs)
        else:
            (rows,) = tx.fetch_many([root.ask("lineage_datasets", here)])
            walked.datasets.extend(rows)
        frontier -= seen
        if not frontier:
            break
        seen |= frontier
        check_size(len(seen))
    return walked


def _draw(root: _Root, walked: _Found) -> LineageGraph:
    """Return the nodes found and the edges between them."""
    names = {row[0]: job_node(row[1], row[2]) for row in walked.jobs}
    names |= {row[0]: dataset_node(row[1], row[2]) for row in walked.datasets}
    index = EdgeIndex(_ends(walked.edges, names))
    sides = _sides(walked.edges)
    nodes: list[JobNode | DatasetNode] = []
    for row in walked.jobs:
        job, node = _job_data(row, sides, root.as_of), names[row[0]]
        nodes.append(JobNode(node, job, index.into[node], index.out_of[node]))
    for row in walked.datasets:
        is_root = row[0] == root.id
        version, dropped = (root.version, root.dropped) if is_root else (None, False)
        dataset, node = _dataset_data(row, version, dropped), names[row[0]]
        nodes.append(DatasetNode(node, dataset, index.into[node], index.out_of[node]))
    nodes.sort(key=lambda node: node.id)
    return LineageGraph(nodes)


def _ends(edges: list[JobEdge], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return origin and destination of edges with both ends in the graph."""
    for edge in edges:
        job, dataset = names.get(edge.job_id), names.get(edge.dataset_id)
        if job is not None and dataset is not None:
            yield (dataset, job) if edge.role == _INPUT else (job, dataset)


def _sides(edges: list[JobEdge]) -> _Sides:
    """Return all inputs and outputs of each job, by name."""
    sides: _Sides = defaultdict(list)
    for job, role, _, namespace, name in sorted(edges, key=lambda edge: edge[3:]):
        sides[job, role].append(EntityId(namespace, name))
    return sides


def _job_data(row: Row, sides: _Sides, at: Micros | None) -> JobData:
    job, namespace, name, kind, parent, created_at, updated_at, location, description, *run = row
    return JobData(
        id=EntityId(namespace, name),
        type=kind,
        name=name,
        simple_name=name.removeprefix(f"{parent}.") if parent else name,
        parent_job_name=parent,
        created_at=format_time(created_at),
        updated_at=format_time(updated_at),
        namespace=namespace,
        inputs=sides[job, _INPUT],
        outputs=sides[job, _OUTPUT],
        location=location,
        description=description,
        latest_run=None if run[0] is None else _run_data(run, at),
    )


def _run_data(run: list[Any], at: Micros | None) -> GraphRun:
    """Return a run as it was at a time, without later changes."""
    run_id, state, created_at, updated_at, nominal_start, nominal_end, started_at, ended_at = run
    if at is not None and ended_at is not None and ended_at > at:
        state, ended_at = RunState.RUNNING, None
    if at is not None and started_at is not None and started_at > at:
        state, started_at = RunState.NEW, None
    ended = started_at is not None and ended_at is not None
    return GraphRun(
        id=run_id,
        created_at=format_time(created_at),
        updated_at=format_time(updated_at),
        nominal_start_time=time_or_none(nominal_start),
        nominal_end_time=time_or_none(nominal_end),
        state=RunState(state),
        started_at=time_or_none(began(state, started_at, created_at)),
        ended_at=time_or_none(ended_at),
        duration_ms=(ended_at - started_at) // 1000 if ended else None,
    )


def _dataset_data(row: Row, pinned: PinnedVersion | None, dropped: bool) -> DatasetData:
    (
        _, namespace, name, kind, physical_name, source_name, description, lifecycle, tags,
        field_tags, observed, hidden, created_at, updated_at, version, number, published_at, fields,
    ) = row  # fmt: skip
    if pinned is not None:
        version, number, published_at = pinned.id, pinned.number, pinned.published_at
        fields = pinned.fields
    return DatasetData(
        id=EntityId(namespace, name),
        type=kind,
        name=name,
        physical_name=physical_name,
        created_at=format_time(created_at),
        updated_at=format_time(updated_at),
        namespace=namespace,
        source_name=source_name,
        fields=raw(with_tags(shown_fields(fields, observed), field_tags)),
        tags=raw(tags),
        last_modified_at=time_or_none(published_at or None),
        last_lifecycle_state=lifecycle,
        description=description,
        current_version=version,
        current_version_number=None if version is None else number,
        deleted=bool(hidden) or dropped,
    )
