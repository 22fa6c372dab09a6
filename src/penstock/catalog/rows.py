"""The rows of the catalog, one frozen struct per table; field order is column order.

Columns with JSON are `str`: a rule decodes what it needs and passes the rest on unchanged.
"""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from penstock.clock import Micros
from penstock.schema.catalog import DatasetRole
from penstock.states import RunState

__all__ = [
    "LATEST_RUN_STATES",
    "AliasRow",
    "ColumnEdgeRow",
    "DatasetAdvance",
    "DatasetRow",
    "EdgeRow",
    "EventRow",
    "FacetSetRow",
    "GrantRow",
    "JobAdvance",
    "JobRow",
    "JobVersionAdvance",
    "JobVersionRow",
    "NamespaceRow",
    "Origin",
    "QualityReportRow",
    "RunAdvance",
    "RunDatasetRow",
    "RunRow",
    "SearchRow",
    "SightingRow",
    "SourceRow",
    "StreamSchemaRow",
    "TagRow",
    "VersionAdvance",
    "VersionRow",
    "replace",
]

LATEST_RUN_STATES = ("", *RunState)  # of a job; "" if it has no run


class Origin(StrEnum):
    """How a dataset version became known."""

    RUN = "RUN"  # a run wrote it
    DECLARED = "DECLARED"  # it was declared without a run
    IMPLIED = "IMPLIED"  # a reader named the dataset before any writer did


class Row(Struct, frozen=True, gc=False):
    """A row of one table."""


class NamespaceRow(Row, frozen=True):
    """A namespace; deleting it hides everything in it."""

    name: str
    owner_name: str
    description: str | None
    hidden: int
    created_at: Micros
    updated_at: Micros
    hidden_at: Micros = 0  # time of the last deletion, and what it hid


class GrantRow(Row, frozen=True):
    """Permission for the runs of one namespace to write the datasets of another."""

    namespace: str
    grantee: str
    granted_by: str
    granted_at: Micros


class SourceRow(Row, frozen=True):
    """The system that datasets are kept in."""

    name: str
    type: str
    connection_url: str
    description: str | None
    created_at: Micros
    updated_at: Micros


class TagRow(Row, frozen=True):
    """A tag for datasets, fields and jobs."""

    name: str
    description: str | None


class TagUseRow(Row, frozen=True):
    """A tag that was used in a namespace."""

    namespace: str
    tag: str


class DatasetRow(Row, frozen=True):
    """A dataset: what all its versions share, and which version is current."""

    id: str
    namespace: str
    name: str
    type: str
    physical_name: str
    source_name: str
    description: str | None
    description_stamp: int
    current_version_id: str | None
    published_at: Micros | None  # of the current version
    latest_version_id: str | None  # highest number of any version
    latest_number: int
    version_count: int
    implied_version_id: str | None
    observed: str  # facets that readers reported while a version is implied
    tags: str
    field_tags: str
    lifecycle: str
    hidden: int
    hidden_at: Micros
    created_at: Micros
    updated_at: Micros
    declared: str = "{}"  # declared facets, whichever version was current
    declared_stamps: str = "{}"
    declared_column_set_id: str | None = None


class StreamSchemaRow(Row, frozen=True):
    """The location of a stream's schema."""

    dataset_id: str
    location: str


class DatasetAdvance(Row, frozen=True):
    """The fields of a dataset that an ordinary run changes."""

    id: str
    current_version_id: str | None
    published_at: Micros | None
    latest_version_id: str | None
    latest_number: int
    version_count: int
    updated_at: Micros


class SightingRow(Row, frozen=True):
    """When readers last reported each facet of a dataset."""

    dataset_id: str
    stamps: str


class AliasRow(Row, frozen=True):
    """A second name of a dataset; the id is the digest of that name."""

    id: str
    namespace: str
    name: str
    dataset_id: str
    type: str


class VersionRow(Row, frozen=True):
    """One version of a dataset, numbered from 1."""

    id: str
    dataset_id: str
    number: int
    origin: Origin
    run_id: str | None
    schema_id: str
    fields: str
    facets: str
    stamps: str
    type: str
    physical_name: str
    source_name: str
    description: str | None
    lifecycle: str
    column_set_id: str | None
    created_at: Micros
    published_at: Micros | None
    unconfirmed: int = 0  # the key of its run may not write the dataset; it is never published
    inherited_set_id: str | None = None


class FacetSetRow(Row, frozen=True):
    """Facets that versions inherit from earlier versions."""

    id: str
    dataset_id: str
    facets: str
    stamps: str


class VersionAdvance(Row, frozen=True):
    """The fields of a version that the end of its run changes."""

    id: str
    stamps: str
    published_at: Micros | None


class JobRow(Row, frozen=True):
    """A job: what all its runs share, its current version and its newest run."""

    id: str
    namespace: str
    name: str
    type: str
    type_stamp: int
    description: str | None
    description_stamp: int
    location: str | None
    location_stamp: int
    parent_job_id: str | None
    parent_stamp: int
    current_version_id: str | None
    version_at: Micros
    latest_run_id: str | None
    latest_run_at: Micros | None
    latest_run_state: str
    run_count: int
    version_count: int
    tags: str
    labels: str
    facets: str  # from job events; job facets of a run stand with the run
    stamps: str
    hidden: int
    hidden_at: Micros
    created_at: Micros
    updated_at: Micros


class JobAdvance(Row, frozen=True):
    """The fields of a job that an ordinary run changes."""

    id: str
    type_stamp: int
    description_stamp: int
    location_stamp: int
    parent_stamp: int
    current_version_id: str | None
    version_at: Micros
    latest_run_id: str | None
    latest_run_at: Micros | None
    latest_run_state: str
    run_count: int
    updated_at: Micros


class JobVersionRow(Row, frozen=True):
    """One version of a job: its inputs, outputs and code location."""

    id: str
    job_id: str
    location: str | None
    inputs: str
    outputs: str
    latest_run_id: str | None  # the newest run
    created_at: Micros
    declared_at: Micros | None  # when it was last declared without a run


class JobVersionAdvance(Row, frozen=True):
    """The fields of a job version that an ordinary run changes."""

    id: str
    latest_run_id: str | None


class EdgeRow(Row, frozen=True):
    """A dataset that a job reads or writes."""

    job_id: str
    role: DatasetRole
    dataset_id: str
    current: int
    first_at: Micros


class RunRow(Row, frozen=True):
    """One run of a job."""

    id: str
    external_id: str | None
    job_id: str
    job_version_id: str | None
    parent_run_id: str | None
    state: RunState
    nominal_start: Micros | None
    nominal_end: Micros | None
    args: str
    started_at: Micros | None
    ended_at: Micros | None
    facets: str
    job_facets: str
    stamps: str
    created_at: Micros
    updated_at: Micros


class RunAdvance(Row, frozen=True):
    """The fields of a run that its later events change."""

    id: str
    job_version_id: str | None
    state: RunState
    started_at: Micros | None
    ended_at: Micros | None
    stamps: str
    updated_at: Micros


class RunDatasetRow(Row, frozen=True):
    """The version of a dataset that a run read or wrote."""

    run_id: str
    role: DatasetRole
    dataset_id: str
    version_id: str
    facets: str
    stamps: str


class QualityReportRow(Row, frozen=True):
    """A quality report of a run on a version that it read or wrote."""

    run_id: str
    role: DatasetRole
    dataset_id: str
    version_id: str
    at: Micros


class ColumnEdgeRow(Row, frozen=True):
    """A field that depends on a field of an input, directly or indirectly."""

    set_id: str
    dataset_id: str
    field: str  # "" means every field
    input_dataset_id: str
    input_field: str
    description: str | None
    type: str | None
    indirect: int = 0


class EventRow(Row, frozen=True):
    """An event as received, unchanged."""

    event_time: Micros
    received_at: Micros
    kind: str
    namespace: str  # of the job or the dataset
    event_type: str
    run_id: str | None
    payload: str


class SearchRow(Row, frozen=True):
    """The search entry of a dataset or job; hidden entries are not found."""

    id: str
    kind: str
    namespace: str
    name: str
    hidden: int
    body: str  # words, separated by spaces
