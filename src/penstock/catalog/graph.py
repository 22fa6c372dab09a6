"""What a lineage graph looks like: nodes, each with the edges that lead to it and from it.

The shape is Marquez's. A node's `type` is DATASET, JOB or DATASET_FIELD; nodes stand in the order
of their ids, and edges in the order of their ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import UNSET, Raw, UnsetType

from penstock.catalog.shapes import EntityId, InputField, Shape
from penstock.db import Transaction
from penstock.errors import Invalid, TooLarge
from penstock.states import RunState

DEPTH_DEFAULT = 20
# A graph of this size is 70 MB of JSON; nobody looks at more, and a server need not hold it.
NODES_MAX = 50_000


class Edge(Shape, frozen=True):
    """That data flows from one node to another."""

    origin: str
    destination: str


class GraphRun(Shape, frozen=True):
    """The newest run of a job."""

    id: str
    created_at: str
    updated_at: str
    nominal_start_time: str | None
    nominal_end_time: str | None
    state: RunState
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None


class JobData(Shape, frozen=True):
    """What a graph shows of a job; inputs and outputs are all it has, also outside the graph."""

    id: EntityId
    type: str
    name: str
    simple_name: str
    parent_job_name: str | None
    created_at: str
    updated_at: str
    namespace: str
    inputs: Sequence[EntityId]
    outputs: Sequence[EntityId]
    location: str | None
    description: str | None
    latest_run: GraphRun | None


class DatasetData(Shape, frozen=True):
    """What a graph shows of a dataset."""

    id: EntityId
    type: str
    name: str
    physical_name: str
    created_at: str
    updated_at: str
    namespace: str
    source_name: str
    fields: Raw
    tags: Raw
    last_modified_at: str | None
    last_lifecycle_state: str
    description: str | None
    current_version: str | None
    current_version_number: int | None
    deleted: bool


class FieldData(Shape, frozen=True):
    """What a graph shows of a field; input fields are all it has, also outside the graph."""

    namespace: str
    dataset: str
    dataset_version: str | None
    field: str
    field_type: str  # "" where it is unknown: Marquez' Java client reads no null
    transformation_description: str | None
    transformation_type: str | None
    input_fields: Sequence[InputField]


class JobNode(Shape, frozen=True, tag_field="type", tag="JOB"):
    """A job in a graph."""

    id: str
    data: JobData
    in_edges: Sequence[Edge]
    out_edges: Sequence[Edge]


class DatasetNode(Shape, frozen=True, tag_field="type", tag="DATASET"):
    """A dataset in a graph."""

    id: str
    data: DatasetData
    in_edges: Sequence[Edge]
    out_edges: Sequence[Edge]


class FieldNode(Shape, frozen=True, tag_field="type", tag="DATASET_FIELD"):
    """A field of a dataset in a graph."""

    id: str
    data: FieldData
    in_edges: Sequence[Edge]
    out_edges: Sequence[Edge]


class LineageGraph(Shape, frozen=True):
    """Jobs and the datasets between them."""

    graph: Sequence[JobNode | DatasetNode]


class IndirectLineage(Shape, frozen=True):
    """The fields that every field of a dataset depends on, such as keys of joins and filters."""

    namespace: str
    dataset: str
    dataset_version: str | None
    input_fields: Sequence[InputField]


class ColumnGraph(Shape, frozen=True):
    """Fields and what they are made from; with indirect lineage only if it was asked for."""

    graph: Sequence[FieldNode]
    indirect: Sequence[IndirectLineage] | UnsetType = UNSET


class EdgeIndex:
    """The edges of a graph by the node they touch."""

    def __init__(self, ends: Iterable[tuple[str, str]]) -> None:
        self.into: defaultdict[str, list[Edge]] = defaultdict(list)
        self.out_of: defaultdict[str, list[Edge]] = defaultdict(list)
        for origin, destination in sorted(ends):
            edge = Edge(origin, destination)
            self.into[destination].append(edge)
            self.out_of[origin].append(edge)


def begin_walk(tx: Transaction, size: int, parameter: str = "depth") -> None:
    """Refuse a negative size, and make every statement of the transaction find rows by key."""
    if size < 0:
        raise Invalid(f"{parameter} {size} is below 0; the smallest graph has {parameter} 0")
    tx.execute("walk_by_key")


def check_size(nodes: int) -> None:
    """Refuse a walk that has grown past what an answer can hold."""
    if nodes > NODES_MAX:
        raise TooLarge(
            f"the graph has more than {NODES_MAX} nodes; ask for a smaller depth or one direction"
        )
