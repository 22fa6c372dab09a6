"""Wire types of provenance, verification and invariants."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.schema.catalog import EntityId
from penstock.schema.shape import Shape
from penstock.states import ManifestState


class File(Shape, frozen=True):
    """One file of a version."""

    uri: str
    size: int | None
    digest: str | None
    part: str | None
    ark: str | None


class Contents(Shape, frozen=True):
    """The contents of a version, also of a removed one. `files` are the first of all files.

    `error` is the reason why they cannot be listed; all else was recorded at its publication.
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
    """An object of a lot that arrived. `mark` is its ETag, or its time and size."""

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
    """A batch behind a version: its depositor, and the objects whose files are listed."""

    batch: str
    collection: str
    depositor: str | None
    objects: Sequence[DepositedObject]


class Outside(Shape, frozen=True):
    """The origin of a version that no run made: its registration, or the objects that arrived."""

    registered_by: str | None
    registered_at: str | None
    arrived_count: int
    arrived: Sequence[Arrived]


class Maker(Shape, frozen=True):
    """The run that made a version, with its job version, owner and times."""

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

    With `is_cut`, its inputs are deeper than the request allows, and are left out.
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
    """The provenance of a lot: the requested version, then each version behind it, once.

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


class VerifyStepKind(StrEnum):
    """The kind of a line of a verification."""

    PROGRESS = "progress"
    FAULT = "fault"
    END = "end"


class VerifyCounts(Shape, frozen=True):
    """The amount that was read so far. Objects are those that deposits have stored.

    The data of `removed` versions no longer exists.
    """

    lots: int = 0
    versions: int = 0
    removed: int = 0
    files: int = 0
    bytes: int = 0
    objects: int = 0
    faults: int = 0


class VerifyStep(Shape, frozen=True):
    """The progress of a verification and, for a fault, its place and description."""

    kind: VerifyStepKind
    done: VerifyCounts
    where: str | None = None
    what: str | None = None
    lot: str | None = None
    version: str | None = None


class Verdict(Shape, frozen=True):
    """The result of an invariant: the number of violations, at least if `more`, and the first."""

    name: str
    sentence: str
    holds: bool
    broken: int
    more: bool
    first: tuple[str, ...]
    error: str | None = None  # why it could not be checked
