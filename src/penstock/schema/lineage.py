"""Wire types of lineage: graphs, runs upstream, and families of runs."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from penstock.schema.catalog import DatasetField, EntityId, InputField
from penstock.schema.shape import Shape
from penstock.states import RunState


class Edge(Shape, frozen=True):
    """A flow of data from one node to another."""

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
    """A job in a graph, with all its inputs and outputs, also those outside the graph."""

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
    """A dataset in a graph."""

    id: EntityId
    type: str
    name: str
    physical_name: str
    created_at: str
    updated_at: str
    namespace: str
    source_name: str
    fields: Sequence[DatasetField]
    tags: Sequence[str]
    last_modified_at: str | None
    last_lifecycle_state: str
    description: str | None
    current_version: str | None
    current_version_number: int | None
    deleted: bool


class FieldData(Shape, frozen=True):
    """A field in a graph, with all its input fields, also those outside the graph."""

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
    """Fields and their input fields. Indirect lineage is included on request."""

    graph: Sequence[FieldNode]
    indirect: Sequence[IndirectLineage] | UnsetType = UNSET


class UpstreamJob(Shape, frozen=True):
    """The job of a run, in the version it had then."""

    namespace: str
    name: str
    version: str | None


class UpstreamRunTimes(Shape, frozen=True):
    """The times and the state of a run."""

    id: str
    start: str | None
    end: str | None
    status: RunState


class UpstreamInput(Shape, frozen=True):
    """A version that a run read; one that no run made has no `producedByRunId`."""

    namespace: str
    name: str
    version: str
    produced_by_run_id: str | None


class UpstreamRun(Shape, frozen=True):
    """A run and what it read."""

    job: UpstreamJob
    run: UpstreamRunTimes
    inputs: Sequence[UpstreamInput]


class UpstreamRuns(Shape, frozen=True):
    """Runs, the nearest first."""

    runs: Sequence[UpstreamRun]


class FamilyRun(Shape, frozen=True):
    """One run of a family. `depth` is its distance from the run of the request."""

    id: str
    parent: str | None
    job: EntityId
    state: RunState
    started_at: str | None
    ended_at: str | None
    depth: int


class RunFamily(Shape, frozen=True):
    """A run and its descendants, in order of their start. With `is_cut`, more exist."""

    runs: Sequence[FamilyRun]
    is_cut: bool
