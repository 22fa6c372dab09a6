"""Where lots come from, what a verification finds and whether invariants hold, as answered."""

from typing import Literal

from penstock.client.documents.catalog import Document, EntityId


class File(Document, frozen=True):
    """One thing that a version consists of."""

    uri: str
    size: int | None
    digest: str | None
    part: str | None
    ark: str | None


class Contents(Document, frozen=True):
    """What a version consists of, or did until it was removed: `files` are the first of all."""

    state: str
    key: str
    digest: str
    attempt: str
    total_count: int
    bytes: int
    files: tuple[File, ...]
    error: str | None


class Arrived(Document, frozen=True):
    """An object of a lot that arrived by itself."""

    uri: str
    size: int
    mark: str
    modified: str
    seen_at: str


class DepositedObject(Document, frozen=True):
    """A version of an object that an ingest job has stored; `digest` is of its inventory."""

    ark: str
    object_version: int | None
    ingest_job: str | None
    location: str | None
    digest: str | None
    run: str | None


class Deposit(Document, frozen=True):
    """A batch behind a version: who handed it in, and the objects whose files are shown."""

    batch: str
    collection: str
    depositor: str | None
    objects: tuple[DepositedObject, ...]


class Outside(Document, frozen=True):
    """How a version came here that no run made."""

    registered_by: str | None
    registered_at: str | None
    arrived_count: int
    arrived: tuple[Arrived, ...]


class Maker(Document, frozen=True):
    """The run that made a version."""

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


class LotVersion(Document, frozen=True):
    """One version of a lot; `inputs` are the versions that its run pinned."""

    id: str
    namespace: str
    dataset: str
    lot: str | None
    number: int
    depth: int
    published_at: str | None
    run: Maker | None
    outside: Outside | None
    deposits: tuple[Deposit, ...]
    contents: Contents | None
    inputs: tuple[str, ...]
    is_cut: bool


class Provenance(Document, frozen=True):
    """Where a lot comes from: the version asked about first, then whatever is behind it."""

    namespace: str
    dataset: str
    lot: str
    version: str
    as_of: str | None
    is_current: bool
    is_whole: bool
    versions: tuple[LotVersion, ...]


class VerifyCounts(Document, frozen=True):
    """How much was read so far; objects are those that deposits have stored.

    The data of `removed` versions is not there to be read.
    """

    lots: int
    versions: int
    removed: int
    files: int
    bytes: int
    objects: int
    faults: int


class VerifyStep(Document, frozen=True):
    """How far a verification is and, if it is a fault, what is wrong where."""

    kind: Literal["progress", "fault", "end"]
    done: VerifyCounts
    where: str | None
    what: str | None
    lot: str | None
    version: str | None


class Verdict(Document, frozen=True):
    """Whether an invariant holds; `first` names what breaks it, `error` why nobody can tell."""

    name: str
    sentence: str
    holds: bool
    broken: int
    more: bool
    first: tuple[str, ...]
    error: str | None
