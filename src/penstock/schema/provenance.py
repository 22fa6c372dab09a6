"""Wire types of provenance, verification and invariants."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.schema.catalog import EntityId
from penstock.schema.shape import Shape
from penstock.states import ManifestState


class File(Shape, frozen=True):
    """One thing that a version consists of."""

    uri: str
    size: int | None
    digest: str | None
    part: str | None
    ark: str | None


class Contents(Shape, frozen=True):
    """What a version consists of, or did until it was removed: `files` are the first of all.

    `error` says why they cannot be shown; the rest is what was noted when it was published.
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
    """An object of a lot that arrived by itself; `mark` is its ETag, or its time and size."""

    uri: str
    size: int
    mark: str
    modified: str
    seen_at: str


class DepositedObject(Shape, frozen=True):
    """A version of an object that an ingest job has stored; `digest` is of its inventory."""

    ark: str
    object_version: int | None
    ingest_job: str | None
    location: str | None
    digest: str | None
    run: str | None


class Deposit(Shape, frozen=True):
    """A batch behind a version: who handed it in, and the objects whose files are shown."""

    batch: str
    collection: str
    depositor: str | None
    objects: Sequence[DepositedObject]


class Outside(Shape, frozen=True):
    """How a version came here that no run made: registered by whom, or from what had arrived."""

    registered_by: str | None
    registered_at: str | None
    arrived_count: int
    arrived: Sequence[Arrived]


class Maker(Shape, frozen=True):
    """The run that made a version: of which version of its job, for whom, when."""

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

    `is_cut` says that its inputs were not followed: they are deeper than was asked for.
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
    """Where a lot comes from: the version asked about first, then whatever is behind it, once each.

    `as_of` is the time that was asked about; without it, now. `is_whole` is False when more than
    can be shown at once is behind it.
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
    """What a step of a verification tells."""

    PROGRESS = "progress"
    FAULT = "fault"
    END = "end"


class VerifyCounts(Shape, frozen=True):
    """How much was read so far; objects are those that deposits have stored.

    The data of `removed` versions is not there to be read.
    """

    lots: int = 0
    versions: int = 0
    removed: int = 0
    files: int = 0
    bytes: int = 0
    objects: int = 0
    faults: int = 0


class VerifyStep(Shape, frozen=True):
    """How far it is and, if it is a fault, what is wrong where."""

    kind: VerifyStepKind
    done: VerifyCounts
    where: str | None = None
    what: str | None = None
    lot: str | None = None
    version: str | None = None


class Verdict(Shape, frozen=True):
    """Whether an invariant holds: how much breaks it, `more` if that is not all, and the first."""

    name: str
    sentence: str
    holds: bool
    broken: int
    more: bool
    first: tuple[str, ...]
    error: str | None = None  # why it could not be looked at
