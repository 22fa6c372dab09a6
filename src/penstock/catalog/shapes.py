"""What the catalog shows, in the shapes that Marquez clients know.

Attributes are camelCase on the wire and nulls are kept. Times are ISO-8601 texts. JSON that was
stored goes out as `Raw`, unread.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from penstock.clock import Micros, format_time
from penstock.states import RunState

T = TypeVar("T")


class Shape(Struct, frozen=True, rename="camel", gc=False):
    """Something that is shown and never changed."""


class Page(Struct, Generic[T], frozen=True):
    """A part of a list, and how many there are in all."""

    items: Sequence[T]
    total_count: int


class Namespace(Shape, frozen=True):
    """A namespace."""

    name: str
    created_at: str
    updated_at: str
    owner_name: str
    description: str | None
    is_hidden: bool


class Grant(Shape, frozen=True):
    """That the runs of `grantee` may write the datasets of `namespace`."""

    namespace: str
    grantee: str
    granted_by: str
    granted_at: str


class Source(Shape, frozen=True):
    """Where datasets physically live."""

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


class InputField(Shape, frozen=True):
    """A field from which another is made, or on which it depends indirectly."""

    namespace: str
    dataset: str
    field: str
    transformation_description: str | None
    transformation_type: str | None
    indirect: bool | UnsetType = UNSET


class ColumnLineage(Shape, frozen=True):
    """From which fields a field is made; what is said of all inputs alike is said once more."""

    name: str
    input_fields: Sequence[InputField]
    transformation_description: str | None
    transformation_type: str | None


class Dataset(Shape, frozen=True):
    """A dataset with its current version's fields, or its latest's while none is current."""

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
    column_lineage: Sequence[ColumnLineage] | None
    indirect_input_fields: Sequence[InputField]
    facets: Raw
    deleted: bool
    aliases: Sequence[Alias] | UnsetType = UNSET
    schema_location: str | UnsetType | None = UNSET  # of streams


class RunDatasetVersion(Shape, frozen=True):
    """A dataset version that a run read or wrote."""

    dataset_version_id: VersionId
    number: int | None
    facets: Raw


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
    args: Raw
    job: EntityId
    job_version: VersionId | None
    parent: ParentRun | None
    cause: str | None
    input_dataset_versions: Sequence[RunDatasetVersion]
    output_dataset_versions: Sequence[RunDatasetVersion]
    facets: Raw


class RunFacets(Shape, frozen=True):
    """The facets of a run, or of its job as the run reported them."""

    run_id: str
    facets: Raw


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
    fields: Raw
    tags: Raw
    lifecycle_state: str
    description: str | None
    current_schema_version: str
    created_by_run: Run | None
    facets: Raw
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
    latest_runs: Sequence[Run] | None  # None without any: Marquez' page expects that
    facets: Raw
    current_version: str | None
    labels: Raw
    tags: Raw


class JobVersion(Shape, frozen=True):
    """One shape of a job: its inputs, outputs and code location."""

    id: VersionId
    name: str
    created_at: str
    version: str
    namespace: str
    location: str | None
    inputs: Raw
    outputs: Raw
    latest_run: Run | None


class SearchResult(Shape, frozen=True):
    """A dataset or job that was found."""

    type: str
    name: str
    updated_at: str
    namespace: str
    node_id: str


class SearchResults(Shape, frozen=True):
    """A part of what was found, and how many there are in all."""

    total_count: int
    results: Sequence[SearchResult]


class IntervalCount(Shape, frozen=True):
    """How many there were when an interval ended."""

    start_interval: str
    end_interval: str
    count: int


class EventInterval(Shape, frozen=True):
    """How many events there were in an interval, by type."""

    start_interval: str
    end_interval: str
    count: int
    fail: int
    start: int
    complete: int
    abort: int
    other: int


def raw(text: str) -> Raw:
    """Stored JSON, to go out unread."""
    return Raw(text.encode())


def time_or_none(at: Micros | None) -> str | None:
    """A time that may be missing, as ISO-8601."""
    return None if at is None else format_time(at)
