"""Wire types of arcs: their declaration, their lots and their parts."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from penstock.schema.locks import LEASE_SECONDS_MAX, Stale
from penstock.schema.lot_ids import Interval
from penstock.schema.shape import Shape
from penstock.schema.texts import ArcName, Name, NameOrNone
from penstock.states import ArcState, ManifestState, WorkState

# These values go into integer columns, and some are added to times: they must fit.
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Bytes = Annotated[int, Meta(ge=1, le=1 << 62)]
LeaseSeconds = Annotated[int, Meta(ge=1, le=LEASE_SECONDS_MAX)]
BackOffSeconds = Annotated[int, Meta(ge=0, le=LEASE_SECONDS_MAX)]
GraceSeconds = Annotated[int, Meta(ge=0, le=366 * 24 * 3600)]
TimeoutSeconds = Annotated[int, Meta(ge=1, le=366 * 24 * 3600)]


class OnEmpty(StrEnum):
    """The action of an arc on a lot whose subscribed inputs are all empty."""

    RUN = "run"
    SKIP = "skip"  # its own lot is published empty, without a run of the workload


class EmptyOutput(StrEnum):
    """The result for a lot whose workload wrote nothing and did not declare it empty."""

    FAIL = "fail"
    ALLOW = "allow"  # the lot is published empty


class PartState(StrEnum):
    """The state of a part of a lot."""

    RUNNING = "running"
    COMPLETE = "complete"
    EMPTY = "empty"
    FAILED = "failed"


class ArcCounts(Shape, frozen=True):
    """The number of an arc's lots in each state, then by the work left to do.

    Each count ends at a thousand; complete lots are counted among the first ten thousand.
    `at_least` names the counts that may be larger.
    """

    running: int
    complete: int
    partial: int
    missing: int
    ready: int
    waiting: int
    retryable: int
    held: int
    at_least: Sequence[str]

    def shown(self, name: str) -> str:
        """Return one count as people read it."""
        more = "+" if name in self.at_least else ""
        return f"{getattr(self, name):,}{more}"


class ArcLot(Shape, frozen=True):
    """The state of a lot in an arc. `state` is null before the first attempt."""

    lot: str
    state: ArcState | None
    work: WorkState
    attempts: int
    attempts_max: int
    error: str | None
    since: str
    not_before: str | None
    run: str | None
    owner: str | None


class ArcPart(Shape, frozen=True):
    """One part of a lot. `run` is its own run, `attempt` the claim that ran it."""

    part: str
    state: PartState
    run: str | None
    attempt: str | None
    error: str | None
    uris: int
    bytes: int


class FailedAttempt(Shape, frozen=True):
    """A failed attempt, with the manifests of its output, which may have been removed."""

    run: str
    state: ManifestState
    keys: Sequence[str]
    at: str


class ManifestLine(Shape, frozen=True):
    """The manifest of one version of a lot. The newest one of a dataset comes first."""

    namespace: str
    dataset: str
    version: str
    state: ManifestState
    key: str
    uris: int
    bytes: int
    digest: str
    attempt: str
    at: str
    is_current: bool


class ArcLotDetail(ArcLot, frozen=True):
    """A lot of an arc with its parts, failed attempts and manifests."""

    parts: Sequence[ArcPart]
    failed_attempts: Sequence[FailedAttempt]
    manifests: Sequence[ManifestLine]


class Synced(Shape, frozen=True):
    """The result of one step of a sync. `next` is the last lot of the step, null at the end.

    `lost` counts manifests that the database knows and the object store does not have.
    """

    lots: int
    changed: int
    removed: int
    lost: int
    next: str | None


# The server checks these again, so that its message can name the arc.
_SOME = Meta(extra_json_schema={"minItems": 1})
_ONE_OF_TWO = Meta(
    extra_json_schema={"anyOf": [{"required": ["function"]}, {"required": ["command"]}]}
)


class Said(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a declaration. Unknown fields are refused, because they are mistakes."""


class ArcInput(Said, frozen=True, kw_only=True):
    """A dataset that an arc reads. Without `subscribe`, its lots start no work."""

    dataset: Name
    namespace: NameOrNone = ""
    subscribe: bool = True
    running_max: Count | None = None


class ArcOutput(Said, frozen=True, kw_only=True):
    """A dataset that an arc writes.

    `version` labels the way its lots are cut, its interval. `empty` says whether a workload may
    write nothing without a word.
    """

    dataset: Name
    namespace: NameOrNone = ""
    version: str = "1"
    interval: Annotated[str, Meta(extra_json_schema={"enum": ["", *Interval]})] = ""
    running_max: Count | None = None
    empty: EmptyOutput = EmptyOutput.FAIL


class ArcWorkload(Said, frozen=True, kw_only=True):
    """The program of an arc: either a Python function as `module:function`, or a command.

    `fetch`: a command finds its inputs as files, also those that are in a bucket.
    `passEnvironment`: variables of the engine that a command gets, if the engine allows them.
    """

    function: str | None = None
    command: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    pass_environment: Sequence[str] = ()
    timeout_seconds: TimeoutSeconds | None = None
    fetch: bool = True


class ArcParts(Said, frozen=True, kw_only=True):
    """The division of a lot: by a pattern in its URIs, by size, or by a function."""

    pattern: str | None = None
    bytes_max: Bytes | None = None
    function: str | None = None
    running_max: Count = 4


class ArcRetry(Said, frozen=True, kw_only=True):
    """The number of tries of a lot, and the wait after a failure."""

    tries: Count = 3
    back_off_seconds: BackOffSeconds = 10
    lease_seconds: LeaseSeconds = 60


class ArcBody(Said, frozen=True, kw_only=True):
    """The declaration of an arc. The path has its name and namespace."""

    project: ArcName = "default"
    version: ArcName = "1"
    description: str = ""
    inputs: Annotated[Sequence[ArcInput], _SOME]
    outputs: Annotated[Sequence[ArcOutput], _SOME]
    workload: Annotated[ArcWorkload, _ONE_OF_TWO]
    parts: ArcParts | None = None
    retry: ArcRetry = ArcRetry()
    running_max: Count = 4
    on_empty: OnEmpty = OnEmpty.RUN
    stale: Stale = Stale.RERUN
    checks: Sequence[str] = ()
    newest_first: bool = False


class NamedArc(ArcBody, frozen=True, kw_only=True):
    """The declaration of an arc, with its name."""

    namespace: Name
    name: ArcName


class ShownArcInput(ArcInput, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """An input of an arc in an answer, where newer servers may add fields."""


class ShownArcOutput(ArcOutput, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """An output of an arc in an answer."""


class ShownArcWorkload(ArcWorkload, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The workload of an arc in an answer."""


class ShownArcParts(ArcParts, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The division of an arc's lots in an answer."""


class ShownArcRetry(ArcRetry, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The retry policy of an arc in an answer."""


class ShownArc(ArcBody, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """An arc, and the number of its lots in each state."""

    inputs: Sequence[ShownArcInput]
    outputs: Sequence[ShownArcOutput]
    workload: ShownArcWorkload
    parts: ShownArcParts | None = None
    retry: ShownArcRetry = ShownArcRetry()
    namespace: str
    name: str
    created_at: str
    updated_at: str
    counts: ArcCounts


class Arcs(Shape, frozen=True):
    """The arcs, by name."""

    arcs: Sequence[ShownArc]


class ArcLots(Shape, frozen=True):
    """A page of an arc's lots, by lot. `next` is the `after` of the next page, null at the end."""

    lots: Sequence[ArcLot]
    next: str | None


class ChangedDeclarations(Shape, frozen=True):
    """The arcs and arrivals that a declaration changed, or would change."""

    changed: Sequence[str]
