"""Wire types of lots: status, log, checks, holds and manifests."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.schema.catalog import EntityId
from penstock.schema.shape import Shape
from penstock.states import ManifestState


class Status(StrEnum):
    """What a job does, or did, with a lot."""

    PENDING = "PENDING"  # announced from outside; nobody may touch it yet
    RUNNING = "RUNNING"
    READY = "READY"  # OUTPUT only: there to be read
    DONE = "DONE"  # INPUT only: consumed
    ERROR = "ERROR"
    RESUBMIT = "RESUBMIT"  # OUTPUT only: to be made again; RERUN is another name for it
    HOLD = "HOLD"  # waits for a person


class Held(Shape, frozen=True):
    """That an administrator has stopped something."""

    who: str
    why: str
    since: str


class Consumer(Shape, frozen=True):
    """A job that reads, or has read, a lot; the version is the one it took."""

    namespace: str
    job: str
    status: Status
    version: str | None
    since: str


class Lot(Shape, frozen=True):
    """One lot of a dataset: who made it, what is locked, who reads it.

    A hold that is lifted may leave nothing behind; only then there is no status.
    """

    namespace: str
    dataset: str
    lot: str
    status: Status | None
    version: str | None
    job: EntityId | None
    run: str | None
    since: str | None
    locks: Sequence[str]
    consumers: Sequence[Consumer]


class LotOnHold(Lot, frozen=True, kw_only=True):
    """A lot that somebody holds, and what had held it already, if something had."""

    held_before: Held | None


class CheckResult(Shape, frozen=True):
    """What a check said about a version of a lot."""

    version: str
    name: str
    field: str | None
    success: bool
    detail: str | None
    run: str | None
    at: str


class LotChecks(Shape, frozen=True):
    """What checks said about a lot, the newest version first."""

    checks: Sequence[CheckResult]


class CheckOfLot(CheckResult, frozen=True):
    """What a check said about a version of a lot, with the lot."""

    lot: str


class DatasetChecks(Shape, frozen=True):
    """A part of what checks said about the lots of a dataset, newest first."""

    checks: Sequence[CheckOfLot]


class Transition(Shape, frozen=True):
    """One entry of the log of lots."""

    at: str
    action: str
    lot: str
    namespace: str | None
    job: str | None
    dataset: str | None
    run: str | None
    was: str
    became: str
    who: str
    why: str


class Registered(Shape, frozen=True):
    """How many lots were new."""

    registered: int


class Lots(Shape, frozen=True):
    """A part of a dataset's lots, and how many there are, counted up to ten thousand."""

    lots: Sequence[Lot]
    total_count: int


class Log(Shape, frozen=True):
    """A part of the log of lots, newest first."""

    entries: Sequence[Transition]


class HeldLot(Shape, frozen=True):
    """A lot that nobody may read or write; `who` held it last.

    `for_checks` says that checks of it failed and that it can be accepted, `by_hand` that it can be
    let go; if neither, what it was made from is held.
    """

    namespace: str
    dataset: str
    lot: str
    for_checks: bool
    by_hand: bool
    version: str | None
    run: str | None
    job: EntityId | None
    who: str
    why: str
    since: str


class HeldLots(Shape, frozen=True):
    """A part of the lots that are held, and how many there are, counted up to ten thousand."""

    lots: Sequence[HeldLot]
    total_count: int


class LotHoldKind(StrEnum):
    """What holds a lot."""

    PERSON = "PERSON"
    CHECKS = "CHECKS"  # checks of it failed; a person may accept it
    UPSTREAM = "UPSTREAM"  # a lot that it was made from is held
    ATTEMPTS = "ATTEMPTS"  # the job that makes it is out of tries with it


class LotHold(Shape, frozen=True):
    """What holds a lot; no kind if nothing does.

    `source` is the dataset whose lot is held for UPSTREAM, `job` the job that is out of tries for
    ATTEMPTS. `command` is what a person can type to end the hold.
    """

    kind: LotHoldKind | None
    who: str | None
    why: str | None
    since: str | None
    source: EntityId | None
    job: EntityId | None
    command: str | None


class UriType(StrEnum):
    """What the URIs of a manifest name."""

    IDENTIFIER = "identifier"  # one object each
    PATH = "path"  # everything under it; it ends in /
    PREFIX = "prefix"  # the one object whose name begins so


class ManifestPart(Shape, frozen=True):
    """A part of a lot, and what its own manifest says."""

    part: str
    key: str
    state: ManifestState
    uris: int
    bytes: int


class ManifestItem(Shape, frozen=True):
    """One thing that a lot consists of; `part` is the part that lists it."""

    uri: str
    size: int | None
    digest: str | None
    created: str | None
    format: str | None
    ark: str | None
    part: str | None


class LotManifest(Shape, frozen=True):
    """The bill of materials of one version of a lot; `uris` are a part of all, parts' included."""

    namespace: str
    dataset: str
    lot: str
    version: str
    is_current: bool
    state: ManifestState
    uri_type: UriType
    label: str
    key: str
    url: str
    digest: str
    attempt: str
    comment: str
    created: str
    published_at: str
    total_count: int
    bytes: int
    parts: Sequence[ManifestPart]
    uris: Sequence[ManifestItem]


class RemovedLot(Shape, frozen=True):
    """What became of a lot; without a manifest it is forgotten, since nothing had read it."""

    namespace: str
    dataset: str
    lot: str
    manifest: LotManifest | None
