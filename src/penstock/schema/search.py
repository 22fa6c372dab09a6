"""Wire types of search."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.schema.shape import Shape


class SearchResult(Shape, frozen=True):
    """A dataset or job that matches a search."""

    type: str
    name: str
    updated_at: str
    namespace: str
    node_id: str


class SearchResults(Shape, frozen=True):
    """A page of search results, and their total."""

    total_count: int
    results: Sequence[SearchResult]


class RecordKind(StrEnum):
    """A kind of record that search finds, other than datasets and jobs."""

    RUN = "run"
    LOT = "lot"
    BATCH = "batch"
    INGEST_JOB = "ingest-job"
    OBJECT = "object"
    FILE = "file"


class SearchRecord(Shape, frozen=True):
    """A record with the property that has the text: `matched` is its name, `value` its value.

    A lot has its dataset, a run its job, an object or file its ARK, version and collection.
    """

    kind: RecordKind
    name: str
    matched: str
    value: str
    namespace: str | None = None
    dataset: str | None = None
    job: str | None = None
    collection: str | None = None
    ark: str | None = None
    version: int | None = None


class SearchRecords(Shape, frozen=True):
    """The records that match. With `isCut`, more exist."""

    records: Sequence[SearchRecord]
    is_cut: bool
