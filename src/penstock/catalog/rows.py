"""The catalog's rows, one frozen value per table; field order is column order.

Columns that hold JSON are `str` here: a rule decodes what it needs, and what it does not
need passes through untouched.
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

LATEST_RUN_STATES = ("", *RunState)  # of a job; "" where it has no run


class Origin(StrEnum):
    """How a dataset version came to be known."""

    RUN = "RUN"  # a run made it
    DECLARED = "DECLARED"  # somebody stated it, without a run
    IMPLIED = "IMPLIED"  # a reader named the dataset before anybody else did


class Row(Struct, frozen=True, gc=False):
    """A row of one table."""


class NamespaceRow(Row, frozen=True):
    """A namespace: hidden with all that is in it once it is deleted."""

    name: str
    owner_name: str
    description: str | None
    hidden: int
    created_at: Micros
    updated_at: Micros
    hidden_at: Micros = 0  # when it was last deleted, and what it then showed with it


class GrantRow(Row, frozen=True):
    """That the runs of one namespace may write the datasets of another."""

    namespace: str
    grantee: str
    granted_by: str
    granted_at: Micros


class SourceRow(Row, frozen=True):
    """Where datasets physically live."""

    name: str
    type: str
    connection_url: str
    description: str | None
    created_at: Micros
    updated_at: Micros


class TagRow(Row, frozen=True):
    """A tag that datasets, fields and jobs may carry."""

    name: str
    description: str | None


class TagUseRow(Row, frozen=True):
    """A tag that something in a namespace carries, or did once."""

    namespace: str
    tag: str


class DatasetRow(Row, frozen=True):
    """A dataset: what is the same for all its versions, and which version is current."""

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
    latest_version_id: str | None  # the highest number, current or not
    latest_number: int
    version_count: int
    implied_version_id: str | None
    observed: str  # facets that readers reported, while a version is implied
    tags: str
    field_tags: str
    lifecycle: str
    hidden: int
    hidden_at: Micros
    created_at: Micros
    updated_at: Micros
    declared: str = "{}"  # facets that were stated without a run, whichever version was current
    declared_stamps: str = "{}"
    declared_column_set_id: str | None = None


class StreamSchemaRow(Row, frozen=True):
    """Where the schema of a stream is kept."""

    dataset_id: str
    location: str


class DatasetAdvance(Row, frozen=True):
    """What an ordinary run changes of a dataset."""

    id: str
    current_version_id: str | None
    published_at: Micros | None
    latest_version_id: str | None
    latest_number: int
    version_count: int
    updated_at: Micros


class SightingRow(Row, frozen=True):
    """When each facet that readers reported of a dataset was last said."""

    dataset_id: str
    stamps: str


class AliasRow(Row, frozen=True):
    """A second name of a dataset; id is that name's own digest."""

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
    unconfirmed: int = 0  # its run's key may not write the dataset: it is never published
    inherited_set_id: str | None = None


class FacetSetRow(Row, frozen=True):
    """Facets that versions inherit from those published before them."""

    id: str
    dataset_id: str
    facets: str
    stamps: str


class VersionAdvance(Row, frozen=True):
    """What the end of its run changes of a version."""

    id: str
    stamps: str
    published_at: Micros | None


class JobRow(Row, frozen=True):
    """A job: what is the same for all its runs, its current version and its newest run."""

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
    facets: str  # from job events; a run's job facets stand with the run
    stamps: str
    hidden: int
    hidden_at: Micros
    created_at: Micros
    updated_at: Micros


class JobAdvance(Row, frozen=True):
    """What an ordinary run changes of its job."""

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
    """One shape of a job: its inputs, outputs and code location."""

    id: str
    job_id: str
    location: str | None
    inputs: str
    outputs: str
    latest_run_id: str | None  # the one that began last
    created_at: Micros
    declared_at: Micros | None  # when it was last stated without a run


class JobVersionAdvance(Row, frozen=True):
    """What an ordinary run changes of its job's version."""

    id: str
    latest_run_id: str | None


class EdgeRow(Row, frozen=True):
    """That a job reads or writes a dataset."""

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
    """What the later events of a run change of it."""

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
    """That a run reported on the quality of a version that it read or wrote."""

    run_id: str
    role: DatasetRole
    dataset_id: str
    version_id: str
    at: Micros


class ColumnEdgeRow(Row, frozen=True):
    """That a field is made from a field of an input, or depends on it otherwise."""

    set_id: str
    dataset_id: str
    field: str  # "" stands for every field
    input_dataset_id: str
    input_field: str
    description: str | None
    type: str | None
    indirect: int = 0


class EventRow(Row, frozen=True):
    """An event as it was received, word for word."""

    event_time: Micros
    received_at: Micros
    kind: str
    namespace: str  # the job's, or the dataset's
    event_type: str
    run_id: str | None
    payload: str


class SearchRow(Row, frozen=True):
    """What a dataset or job is found by and shown as; hidden ones are not found."""

    id: str
    kind: str
    namespace: str
    name: str
    hidden: int
    body: str  # words, with a space between them
