"""The wire types of provenance."""

from collections.abc import Sequence

from penstock.catalog.shapes import EntityId, Shape
from penstock.states import ManifestState


class File(Shape, frozen=True):
    """One item of a version."""

    uri: str
    size: int | None
    digest: str | None
    part: str | None
    ark: str | None


class Contents(Shape, frozen=True):
    """The items of a version, or of a removed one; `files` are the first of all.

    `error` explains why they cannot be shown; the other fields were recorded at publication.
    """

    state: ManifestState
    key: str
    digest: str
    attempt: str
    total_count: int
    bytes: int
    files: Sequence[File]
    error: str | None = None


class Arrived(Shape, frozen=True):
    """An arrived object of a lot; `mark` is its ETag, or its time and size."""

    uri: str
    size: int
    mark: str
    modified: str
    seen_at: str


class DepositedObject(Shape, frozen=True):
    """A version of an object that an ingest job stored; `digest` is of its inventory."""

    ark: str
    object_version: int | None
    ingest_job: str | None
    location: str | None
    digest: str | None
    run: str | None


class Deposit(Shape, frozen=True):
    """A batch behind a version: its depositor, and the objects whose files are shown."""

    batch: str
    collection: str
    depositor: str | None
    objects: Sequence[DepositedObject]


class Outside(Shape, frozen=True):
    """The origin of an external version: its registrar, or the arrived objects."""

    registered_by: str | None
    registered_at: str | None
    arrived_count: int
    arrived: Sequence[Arrived]


class Maker(Shape, frozen=True):
    """The run that made a version: its job version, its owner, and its times."""

    id: str
    job: EntityId
    job_version: str | None
    location: str | None
    state: str
    owner: str | None
    attempt: int | None
    parts: int
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None


class LotVersion(Shape, frozen=True):
    """One version of a lot; `inputs` are the versions that its run pinned.

    `is_cut` means that its inputs are deeper than requested, and were not followed.
    """

    id: str
    namespace: str
    dataset: str
    lot: str | None
    number: int
    depth: int
    published_at: str | None
    run: Maker | None
    outside: Outside | None
    deposits: Sequence[Deposit]
    contents: Contents | None
    inputs: Sequence[str]
    is_cut: bool


class Provenance(Shape, frozen=True):
    """The provenance of a lot: the requested version first, then each version behind it once.

    `as_of` is the requested time; null means now. `is_whole` is false if there is more behind it
    than one answer shows.
    """

    namespace: str
    dataset: str
    lot: str
    version: str
    as_of: str | None
    is_current: bool
    is_whole: bool
    versions: Sequence[LotVersion]
