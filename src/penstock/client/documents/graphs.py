"""Lineage graphs as a server answers them."""

from msgspec import Struct

from penstock.client.documents.catalog import Document, EntityId, Field, InputField


class Edge(Document, frozen=True):
    """That data flows from one node to another."""

    origin: str
    destination: str


class GraphRun(Document, frozen=True):
    """The newest run of a job."""

    id: str
    created_at: str
    updated_at: str
    nominal_start_time: str | None
    nominal_end_time: str | None
    state: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None


class JobData(Document, frozen=True):
    """A job in a graph; inputs and outputs are all it has, also outside the graph."""

    id: EntityId
    type: str
    name: str
    simple_name: str
    parent_job_name: str | None
    created_at: str
    updated_at: str
    namespace: str
    inputs: tuple[EntityId, ...]
    outputs: tuple[EntityId, ...]
    location: str | None
    description: str | None
    latest_run: GraphRun | None


class DatasetData(Document, frozen=True):
    """A dataset in a graph."""

    id: EntityId
    type: str
    name: str
    physical_name: str
    created_at: str
    updated_at: str
    namespace: str
    source_name: str
    fields: tuple[Field, ...]
    tags: tuple[str, ...]
    last_modified_at: str | None
    last_lifecycle_state: str
    description: str | None
    current_version: str | None
    current_version_number: int | None
    deleted: bool


class FieldData(Document, frozen=True):
    """A field in a graph; input fields are all it has, also outside the graph."""

    namespace: str
    dataset: str
    dataset_version: str | None
    field: str
    field_type: str
    transformation_description: str | None
    transformation_type: str | None
    input_fields: tuple[InputField, ...]


class JobNode(Document, frozen=True, tag_field="type", tag="JOB"):
    """A job with the edges that lead to it and from it."""

    id: str
    data: JobData
    in_edges: tuple[Edge, ...]
    out_edges: tuple[Edge, ...]


class DatasetNode(Document, frozen=True, tag_field="type", tag="DATASET"):
    """A dataset with the edges that lead to it and from it."""

    id: str
    data: DatasetData
    in_edges: tuple[Edge, ...]
    out_edges: tuple[Edge, ...]


class FieldNode(Document, frozen=True, tag_field="type", tag="DATASET_FIELD"):
    """A field with the edges that lead to it and from it."""

    id: str
    data: FieldData
    in_edges: tuple[Edge, ...]
    out_edges: tuple[Edge, ...]


class LineageGraph(Document, frozen=True):
    """Jobs and the datasets between them."""

    graph: tuple[JobNode | DatasetNode, ...]


class IndirectLineage(Document, frozen=True):
    """The fields that every field of a dataset depends on, such as keys of joins and filters."""

    namespace: str
    dataset: str
    dataset_version: str | None
    input_fields: tuple[InputField, ...]


class ColumnGraph(Document, frozen=True):
    """Fields and what they are made from; with indirect lineage only if it was asked for."""

    graph: tuple[FieldNode, ...]
    indirect: tuple[IndirectLineage, ...] = ()


class UpstreamJob(Document, frozen=True):
    """The job of a run, in the version it had then."""

    namespace: str
    name: str
    version: str | None


class UpstreamRunTimes(Document, frozen=True):
    """When a run went and how it ended."""

    id: str
    start: str | None
    end: str | None
    status: str


class UpstreamInput(Document, frozen=True):
    """A version that a run read, and the run that made it."""

    namespace: str
    name: str
    version: str
    produced_by_run_id: str | None


class UpstreamRun(Struct, frozen=True):
    """A run and what it read."""

    job: UpstreamJob
    run: UpstreamRunTimes
    inputs: tuple[UpstreamInput, ...]


class UpstreamRuns(Struct, frozen=True):
    """Runs, the nearest first."""

    runs: tuple[UpstreamRun, ...]
