"""What a server answers, as values. Times are ISO-8601 texts; facets are kept as they come."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

Facets = dict[str, Any]


class Document(Struct, frozen=True, rename="camel"):
    """Something that a server showed; what it shows beyond this is ignored."""


class Namespace(Document, frozen=True):
    """A namespace."""

    name: str
    created_at: str
    updated_at: str
    owner_name: str
    description: str | None
    is_hidden: bool


class Namespaces(Document, frozen=True):
    """A part of the namespaces."""

    namespaces: tuple[Namespace, ...]


class Grant(Document, frozen=True):
    """That the runs of `grantee` may write the datasets of `namespace`."""

    namespace: str
    grantee: str
    granted_by: str
    granted_at: str


class Grants(Document, frozen=True):
    """The grants of a namespace."""

    grants: tuple[Grant, ...]


class Source(Document, frozen=True):
    """Where datasets physically live."""

    type: str
    name: str
    created_at: str
    updated_at: str
    connection_url: str
    description: str | None


class Sources(Document, frozen=True):
    """A part of the sources."""

    sources: tuple[Source, ...]


class Tag(Document, frozen=True):
    """A tag that datasets, fields and jobs may carry."""

    name: str
    description: str | None


class Tags(Document, frozen=True):
    """A part of the tags."""

    tags: tuple[Tag, ...]


class EntityId(Document, frozen=True):
    """The name of a dataset or a job."""

    namespace: str
    name: str


class VersionId(Document, frozen=True):
    """One version of a dataset or a job."""

    namespace: str
    name: str
    version: str


class Alias(Document, frozen=True):
    """A second name of a dataset."""

    namespace: str
    name: str
    type: str


class Field(Document, frozen=True):
    """One field of a dataset; nested ones are kept as they come."""

    name: str
    type: str | None = None
    tags: tuple[str, ...] = ()
    description: str | None = None
    fields: Any = UNSET


class InputField(Document, frozen=True):
    """A field from which another is made, or on which it depends indirectly."""

    namespace: str
    dataset: str
    field: str
    transformation_description: str | None
    transformation_type: str | None
    indirect: bool = False


class ColumnLineage(Document, frozen=True):
    """From which fields a field is made."""

    name: str
    input_fields: tuple[InputField, ...]
    transformation_description: str | None
    transformation_type: str | None


class Dataset(Document, frozen=True):
    """A dataset with the fields of its current version."""

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
    column_lineage: tuple[ColumnLineage, ...] | None
    indirect_input_fields: tuple[InputField, ...]
    facets: Facets
    deleted: bool
    aliases: tuple[Alias, ...] | UnsetType = UNSET
    schema_location: str | UnsetType | None = UNSET


class CreatedDataset(Document, frozen=True):
    """A dataset that is new, and whether its namespace is new too."""

    namespace: str
    name: str
    is_namespace_new: bool


class Datasets(Document, frozen=True):
    """A part of a namespace's datasets, and how many there are in all."""

    datasets: tuple[Dataset, ...]
    total_count: int


class RunDatasetVersion(Document, frozen=True):
    """A dataset version that a run read or wrote."""

    dataset_version_id: VersionId
    number: int | None
    facets: Facets


class ParentRun(Document, frozen=True):
    """The run that started another."""

    namespace: str
    name: str
    run_id: str


class Run(Document, frozen=True):
    """One run of a job."""

    id: str
    created_at: str
    updated_at: str
    nominal_start_time: str | None
    nominal_end_time: str | None
    state: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    args: dict[str, Any]
    job: EntityId
    job_version: VersionId | None
    parent: ParentRun | None
    cause: str | None
    input_dataset_versions: tuple[RunDatasetVersion, ...]
    output_dataset_versions: tuple[RunDatasetVersion, ...]
    facets: Facets


class AllRuns(Document, frozen=True):
    """A part of the list of all runs; `next` asks for the part after it, None ends the list."""

    runs: tuple[Run, ...]
    next: str | None


class Runs(Document, frozen=True):
    """A part of a job's runs, and how many there are in all."""

    runs: tuple[Run, ...]
    total_count: int


class DatasetVersion(Document, frozen=True):
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
    fields: tuple[Field, ...]
    tags: tuple[str, ...]
    lifecycle_state: str
    description: str | None
    current_schema_version: str
    created_by_run: Run | None
    facets: Facets
    schema_location: str | UnsetType | None = UNSET


class DatasetVersions(Document, frozen=True):
    """A part of a dataset's versions, and how many there are in all."""

    versions: tuple[DatasetVersion, ...]
    total_count: int


class Job(Document, frozen=True):
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
    inputs: tuple[EntityId, ...]
    outputs: tuple[EntityId, ...]
    location: str | None
    description: str | None
    latest_run: Run | None
    latest_runs: tuple[Run, ...] | None
    facets: Facets
    current_version: str | None
    labels: tuple[str, ...]
    tags: tuple[str, ...]


class Jobs(Document, frozen=True):
    """A part of the jobs, and how many there are in all."""

    jobs: tuple[Job, ...]
    total_count: int


class JobVersion(Document, frozen=True):
    """One shape of a job: its inputs, outputs and code location."""

    id: VersionId
    name: str
    created_at: str
    version: str
    namespace: str
    location: str | None
    inputs: tuple[EntityId, ...]
    outputs: tuple[EntityId, ...]
    latest_run: Run | None


class JobVersions(Document, frozen=True):
    """A part of a job's versions, and how many there are in all."""

    versions: tuple[JobVersion, ...]
    total_count: int


class Events(Document, frozen=True):
    """A part of the events, word for word, and how many there are in all."""

    events: tuple[dict[str, Any], ...]
    total_count: int


class SearchResult(Document, frozen=True):
    """A dataset or job that was found."""

    type: str
    name: str
    updated_at: str
    namespace: str
    node_id: str


class SearchResults(Document, frozen=True):
    """A part of what was found, and how many there are in all."""

    total_count: int
    results: tuple[SearchResult, ...]


class SearchRecord(Document, frozen=True):
    """A record, and the property that has the text: `matched` names it, `value` is the whole of it.

    A lot has its dataset, a run its job, an object or file its ARK, version and collection.
    """

    kind: str
    name: str
    matched: str
    value: str
    namespace: str | None
    dataset: str | None
    job: str | None
    collection: str | None
    ark: str | None
    version: int | None


class SearchRecords(Document, frozen=True):
    """The records that have the text. With `is_cut` there are more."""

    records: tuple[SearchRecord, ...]
    is_cut: bool


class IntervalCount(Document, frozen=True):
    """How many there were when an interval ended."""

    start_interval: str
    end_interval: str
    count: int


class EventInterval(Document, frozen=True):
    """How many events there were in an interval, by type."""

    start_interval: str
    end_interval: str
    count: int
    fail: int
    start: int
    complete: int
    abort: int
    other: int


class AuditEntry(Document, frozen=True):
    """Who did what to what, when and from where; the hash covers it and the entry before it."""

    id: int
    at: str
    who: str
    address: str
    action: str
    target: str
    detail: str
    hash: str


class AuditLog(Document, frozen=True):
    """A part of what administrators did."""

    entries: tuple[AuditEntry, ...]


class AuditExport(Document, frozen=True):
    """A page of what administrators did, oldest first; `next` leads to the page after it."""

    entries: tuple[AuditEntry, ...]
    next: str | None


class BatchSummary(Struct, frozen=True):
    """How many events of a batch were received, and how many were not."""

    received: int
    successful: int
    failed: int
    retriable: int
    non_retriable: int


class FailedEvent(Struct, frozen=True):
    """An event that was refused, and whether sending it again may help."""

    index: int
    reason: str
    retriable: bool


class BatchResult(Struct, frozen=True):
    """What became of a batch of events."""

    status: str
    summary: BatchSummary
    failed_events: tuple[FailedEvent, ...]


class RunFacets(Document, frozen=True):
    """What a run's events told about it."""

    run_id: str
    facets: Facets


class FamilyRun(Document, frozen=True):
    """One run of a family; `depth` is how far it is from the run that was asked for."""

    id: str
    parent: str | None
    job: EntityId
    state: str
    started_at: str | None
    ended_at: str | None
    depth: int


class RunFamily(Document, frozen=True):
    """A run and its descendants, the first begun first; `is_cut` says that there are more."""

    runs: tuple[FamilyRun, ...]
    is_cut: bool
