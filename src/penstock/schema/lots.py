"""Wire types of lots: status, log, checks, holds and manifests."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.schema.catalog import EntityId
from penstock.schema.shape import Shape
from penstock.states import ManifestState


class Status(StrEnum):
    """The status of a lot in a job."""

    PENDING = "PENDING"  # announced from outside; no job may touch it yet
    RUNNING = "RUNNING"
    READY = "READY"  # OUTPUT only: can be read
    DONE = "DONE"  # INPUT only: consumed
    ERROR = "ERROR"
    RESUBMIT = "RESUBMIT"  # OUTPUT only: to be made again; RERUN is another name for it
    HOLD = "HOLD"  # waits for a person


class Held(Shape, frozen=True):
    """A hold of an administrator."""

    who: str
    why: str
    since: str


class Consumer(Shape, frozen=True):
    """A job that reads, or has read, a lot, and the version that it read."""

    namespace: str
    job: str
    status: Status
    version: str | None
    since: str


class Lot(Shape, frozen=True):
    """One lot of a dataset: its producer, its locks and its consumers.

    Without a status, the lot had only a hold, which was released.
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
    """A lot with a new hold, and the hold that it had before."""

    held_before: Held | None


class CheckResult(Shape, frozen=True):
    """The result of a check on a version of a lot."""

    version: str
    name: str
    field: str | None
    success: bool
    detail: str | None
    run: str | None
    at: str


class LotChecks(Shape, frozen=True):
    """The results of the checks on a lot, newest version first."""

    checks: Sequence[CheckResult]


class CheckOfLot(CheckResult, frozen=True):
    """The result of a check, with the lot."""

    lot: str


class DatasetChecks(Shape, frozen=True):
    """A page of check results of a dataset's lots, newest first."""

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
    """The number of new lots."""

    registered: int


class Lots(Shape, frozen=True):
    """A page of a dataset's lots, and the total, counted up to ten thousand."""

    lots: Sequence[Lot]
    total_count: int


class Log(Shape, frozen=True):
    """A page of the log of lots, newest first."""

    entries: Sequence[Transition]


class HeldLot(Shape, frozen=True):
    """A lot that no job may read or write; `who` held it last.

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
    """A page of the held lots, and the total, counted up to ten thousand."""

    lots: Sequence[HeldLot]
    total_count: int


class LotHoldKind(StrEnum):
    """The kind of a hold of a lot."""

    PERSON = "PERSON"
    CHECKS = "CHECKS"  # checks of it failed; a person may accept it
    UPSTREAM = "UPSTREAM"  # a lot that it was made from is held
    ATTEMPTS = "ATTEMPTS"  # the job that makes it has no tries left


class LotHold(Shape, frozen=True):
    """The hold of a lot; without a hold, `kind` is null.

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
    """The kind of URIs in a manifest."""

    IDENTIFIER = "identifier"  # one object each
    PATH = "path"  # all objects under it; it ends in /
    PREFIX = "prefix"  # the one object whose name begins so


class ManifestPart(Shape, frozen=True):
    """A part of a lot, and what its own manifest says."""

    part: str
    key: str
    state: ManifestState
    uris: int
    bytes: int


class ManifestItem(Shape, frozen=True):
    """One item of a lot. `part` is the part that lists it."""

    uri: str
    size: int | None
    digest: str | None
    created: str | None
    format: str | None
    ark: str | None
    part: str | None


class LotManifest(Shape, frozen=True):
    """The manifest of one version of a lot. `uris` is a page of its items, with those of parts."""

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
    """The result of a removal. A lot without a manifest that no job read is deleted."""

    namespace: str
    dataset: str
    lot: str
    manifest: LotManifest | None
