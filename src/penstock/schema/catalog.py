"""Wire types of the catalog, in the form that Marquez clients know."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from penstock.schema.shape import Shape
from penstock.states import RunState


class Namespace(Shape, frozen=True):
    """A namespace."""

    name: str
    created_at: str
    updated_at: str
    owner_name: str
    description: str | None
    is_hidden: bool


class Grant(Shape, frozen=True):
    """The right of the runs of `grantee` to write the datasets of `namespace`."""

    namespace: str
    grantee: str
    granted_by: str
    granted_at: str


class Source(Shape, frozen=True):
    """A system that holds datasets."""

    type: str
    name: str
    created_at: str
    updated_at: str
    connection_url: str
    description: str | None


class Tag(Shape, frozen=True):
    """A tag that datasets, fields and jobs may carry."""

    name: str
    description: str | None


class EntityId(Shape, frozen=True):
    """The name of a dataset or a job."""

    namespace: str
    name: str


class VersionId(Shape, frozen=True):
    """One version of a dataset or a job."""

    namespace: str
    name: str
    version: str


class Alias(Shape, frozen=True):
    """A second name of a dataset."""

    namespace: str
    name: str
    type: str


Facets = dict[str, Any]


class DatasetField(Shape, frozen=True):
    """A field of a dataset. Nested fields keep the form in which the producer sent them."""

    name: str
    type: str | None = None
    tags: Sequence[str] = ()
    description: str | None = None
    fields: Any = UNSET


class InputField(Shape, frozen=True):
    """A field from which another is made, or on which it depends indirectly."""

    namespace: str
    dataset: str
    field: str
    transformation_description: str | None
    transformation_type: str | None
    indirect: bool | UnsetType = UNSET


class ColumnLineage(Shape, frozen=True):
    """The fields that a field is made from. A transformation that all inputs share is repeated."""

    name: str
    input_fields: Sequence[InputField]
    transformation_description: str | None
    transformation_type: str | None


class Dataset(Shape, frozen=True):
    """A dataset with the fields of its current version, or else of its latest."""

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
    column_lineage: Sequence[ColumnLineage] | None
    indirect_input_fields: Sequence[InputField]
    facets: Facets
    deleted: bool
    aliases: Sequence[Alias] | UnsetType = UNSET
    schema_location: str | UnsetType | None = UNSET  # of streams


class RunDatasetVersion(Shape, frozen=True):
    """A dataset version that a run read or wrote."""

    dataset_version_id: VersionId
    number: int | None
    facets: Facets


class ParentRun(Shape, frozen=True):
    """The run that started another."""

    namespace: str
    name: str
    run_id: str


class Run(Shape, frozen=True):
    """One run of a job."""

    id: str
    created_at: str
    updated_at: str
    nominal_start_time: str | None
    nominal_end_time: str | None
    state: RunState
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    args: dict[str, Any]
    job: EntityId
    job_version: VersionId | None
    parent: ParentRun | None
    cause: str | None
    input_dataset_versions: Sequence[RunDatasetVersion]
    output_dataset_versions: Sequence[RunDatasetVersion]
    facets: Facets


class RunFacets(Shape, frozen=True):
    """The facets of a run, or of its job as the run reported them."""

    run_id: str
    facets: Facets


class DatasetVersion(Shape, frozen=True):
    """One version of a dataset."""

    id: EntityId
    type: str
    name: str
    physical_name: str
    created_at: str
    version: str
    number: int
    is_current: bool
    is_unconfirmed: bool
    namespace: str
    source_name: str
    fields: Sequence[DatasetField]
    tags: Sequence[str]
    lifecycle_state: str
    description: str | None
    current_schema_version: str
    created_by_run: Run | None
    facets: Facets
    schema_location: str | UnsetType | None = UNSET  # of streams


class Job(Shape, frozen=True):
    """A job with the edges it has now and its newest runs."""

    id: EntityId
    type: str
    name: str
    simple_name: str
    parent_job_name: str | None
    parent_job_uuid: str | None
    created_at: str
    updated_at: str
    namespace: str
    inputs: Sequence[EntityId]
    outputs: Sequence[EntityId]
    location: str | None
    description: str | None
    latest_run: Run | None
    latest_runs: Sequence[Run] | None  # null, not empty: the page of Marquez expects that
    facets: Facets
    current_version: str | None
    labels: Sequence[str]
    tags: Sequence[str]


class JobVersion(Shape, frozen=True):
    """One shape of a job: its inputs, outputs and code location."""

    id: VersionId
    name: str
    created_at: str
    version: str
    namespace: str
    location: str | None
    inputs: Sequence[EntityId]
    outputs: Sequence[EntityId]
    latest_run: Run | None


class IntervalCount(Shape, frozen=True):
    """The number of things at the end of an interval."""

    start_interval: str
    end_interval: str
    count: int


class EventInterval(Shape, frozen=True):
    """The number of events in an interval, by type."""

    start_interval: str
    end_interval: str
    count: int
    fail: int
    start: int
    complete: int
    abort: int
    other: int


class Namespaces(Struct, frozen=True):
    """A page of namespaces."""

    namespaces: Sequence[Namespace]


class Grants(Struct, frozen=True):
    """The grants of a namespace."""

    grants: Sequence[Grant]


class Sources(Struct, frozen=True):
    """A page of sources."""

    sources: Sequence[Source]


class Tags(Struct, frozen=True):
    """A page of tags."""

    tags: Sequence[Tag]


class Datasets(Shape, frozen=True):
    """A page of a namespace's datasets, and the total."""

    datasets: Sequence[Dataset]
    total_count: int


class DatasetVersions(Shape, frozen=True):
    """A page of a dataset's versions, and the total."""

    versions: Sequence[DatasetVersion]
    total_count: int


class CreatedDataset(Shape, frozen=True):
    """A dataset that is new, and whether its namespace is new too."""

    namespace: str
    name: str
    is_namespace_new: bool


class Jobs(Shape, frozen=True):
    """A page of jobs, and the total."""

    jobs: Sequence[Job]
    total_count: int


class JobVersions(Shape, frozen=True):
    """A page of a job's versions, and the total."""

    versions: Sequence[JobVersion]
    total_count: int


class Runs(Shape, frozen=True):
    """A page of a job's runs, and the total."""

    runs: Sequence[Run]
    total_count: int


class AllRuns(Shape, frozen=True):
    """A page of all runs. `next` is the `after` of the next page, null at the end."""

    runs: Sequence[Run]
    next: str | None


class Events(Shape, frozen=True):
    """A page of events, and the total."""

    events: Sequence[dict[str, Any]]
    total_count: int


class BatchSummary(Struct, frozen=True):
    """The number of events of a batch that were received, and that were refused."""

    received: int
    successful: int
    failed: int
    retriable: int
    non_retriable: int


class FailedEvent(Struct, frozen=True):
    """An event of a batch that was refused, and whether sending it again may help."""

    index: int
    reason: str
    retriable: bool


class BatchResult(Struct, frozen=True):
    """The result of a batch of events."""

    status: Literal["success", "partial_success", "failure"]
    summary: BatchSummary
    failed_events: Sequence[FailedEvent]


class DatasetRole(StrEnum):
    """The side of a job on which a dataset is."""

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"
