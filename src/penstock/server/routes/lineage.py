"""Lineage graphs: datasets and jobs, columns, and the runs behind a run.

`routes/events.py` receives the events of `POST /api/v1/lineage`.
"""

from typing import Annotated

from msgspec import Meta

from penstock.catalog.lineage import columns, graph, runs
from penstock.catalog.lineage.edges import History
from penstock.catalog.lineage.graph import Direction
from penstock.db import Transaction
from penstock.schema.lineage import ColumnGraph, LineageGraph, UpstreamRuns
from penstock.schema.texts import Time
from penstock.server.content import DEPTH_MAX, Depth, Query, moment
from penstock.server.routing import BASE, READ, Reach, Route

NODE_PATTERN = r"^((dataset|job):.+:.+|datasetField:.+:.+:.+|run:.+)$"
NodeId = Annotated[
    str,
    Meta(
        min_length=1,
        extra_json_schema={"pattern": NODE_PATTERN},
        description="`dataset:NAMESPACE:NAME`, `job:NAMESPACE:NAME`, `run:UUID` or "
        "`datasetField:NAMESPACE:NAME:FIELD`, each also with `#VERSION`",
    ),
]
AsOf = Annotated[Time | None, Meta(description="show what was so at this time")]


Levels = Annotated[
    int,
    Meta(
        ge=0,
        le=DEPTH_MAX,
        description="how many jobs away to look, as Marquez counts: each job is shown with all its "
        "datasets, and 0 shows the job itself, or the jobs that write the dataset, or else those "
        "that read it; 20 if neither this nor `hops` is set",
    ),
]
Hops = Annotated[
    int,
    Meta(
        ge=0,
        le=DEPTH_MAX,
        description="how many edges away to look, instead of `depth`; 0 shows the node alone",
    ),
]


class LineageQuery(Query, frozen=True):
    """The start node, the distance and the time of a graph."""

    node_id: NodeId
    depth: Levels | None = None
    hops: Hops | None = None
    direction: Direction = "both"
    history: Annotated[
        History, Meta(description="`current` edges, or `all` that the jobs ever had")
    ] = "current"
    as_of: AsOf = None


class ColumnLineageQuery(Query, frozen=True):
    """The start node, the distance and the time of a graph."""

    node_id: NodeId
    depth: Depth = 20
    with_downstream: bool = False
    as_of: AsOf = None
    with_indirect: Annotated[
        bool,
        Meta(description="also the fields that whole datasets depend on, as keys of joins"),
    ] = False


class RunLineageQuery(Query, frozen=True):
    """The start and the distance of a walk."""

    run_id: Annotated[str, Meta(min_length=1)]
    depth: Depth = 20


def get_lineage(tx: Transaction, query: LineageQuery) -> LineageGraph:
    """Show the graph of jobs and datasets around a node, now or as it was at a time."""
    as_of = moment(query.as_of, "asOf")
    return graph.lineage(
        tx, query.node_id, query.depth, query.direction, query.history, as_of, hops=query.hops
    )


def get_column_lineage(tx: Transaction, query: ColumnLineageQuery) -> ColumnGraph:
    """Show the fields from which a field, a dataset's fields or a job's outputs are made."""
    as_of = moment(query.as_of, "asOf")
    return columns.column_lineage(
        tx, query.node_id, query.depth, query.with_downstream, as_of, query.with_indirect
    )


def get_upstream_runs(tx: Transaction, query: RunLineageQuery) -> UpstreamRuns:
    """Show the runs that made what a run read, and those before them."""
    return runs.upstream_runs(tx, query.run_id, query.depth)


ROUTES = (
    Route(READ, "GET", f"{BASE}/lineage", get_lineage, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/column-lineage", get_column_lineage, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/runlineage/upstream", get_upstream_runs, Reach.EVERYTHING),
)
