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

# What is kept in a database, or added to a time, has to fit there.
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Bytes = Annotated[int, Meta(ge=1, le=1 << 62)]
LeaseSeconds = Annotated[int, Meta(ge=1, le=LEASE_SECONDS_MAX)]
BackOffSeconds = Annotated[int, Meta(ge=0, le=LEASE_SECONDS_MAX)]
GraceSeconds = Annotated[int, Meta(ge=0, le=366 * 24 * 3600)]
TimeoutSeconds = Annotated[int, Meta(ge=1, le=366 * 24 * 3600)]


class OnEmpty(StrEnum):
    """What an arc does with a lot of which every subscribed input is empty."""

    RUN = "run"
    SKIP = "skip"  # its own lot is published empty, without a run of the workload


class EmptyOutput(StrEnum):
    """What becomes of a lot when its workload wrote nothing and did not declare it empty."""

    FAIL = "fail"
    ALLOW = "allow"  # the lot is published empty


class PartState(StrEnum):
    """Where a part of a lot stands."""

    RUNNING = "running"
    COMPLETE = "complete"
    EMPTY = "empty"
    FAILED = "failed"


class ArcCounts(Shape, frozen=True):
    """How many lots stand where: by the arc's states, then by what is to be done with them.

    They are counted up to a thousand of each kind, complete ones among the first ten thousand:
    `at_least` names those of which there may be more.
    """

    running: int
    complete: int
    partial: int
    missing: int
    ready: int
    waiting: int
    later: int
    held: int
    at_least: Sequence[str]

    def shown(self, name: str) -> str:
        """Return one count as people read it."""
        more = "+" if name in self.at_least else ""
        return f"{getattr(self, name):,}{more}"


class ArcLot(Shape, frozen=True):
    """Where an arc stands with a lot; `state` is null if nothing was tried."""

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
    """One part of a lot; the run is its own, the attempt is the claim that ran it."""

    part: str
    state: PartState
    run: str | None
    attempt: str | None
    error: str | None
    uris: int
    bytes: int


class FailedAttempt(Shape, frozen=True):
    """An attempt that failed: the manifests of what it left, which may have been removed."""

    run: str
    state: ManifestState
    keys: Sequence[str]
    at: str


class ManifestLine(Shape, frozen=True):
    """The manifest of one version of a lot; the first one of a dataset is the last published."""

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
    """All there is about a lot of an arc."""

    parts: Sequence[ArcPart]
    failed_attempts: Sequence[FailedAttempt]
    manifests: Sequence[ManifestLine]


class Synced(Shape, frozen=True):
    """What a part of a sync has done; `next` is the lot to go on after, null at the end.

    `lost` counts manifests that the database knows and the object store does not have.
    """

    lots: int
    changed: int
    removed: int
    lost: int
    next: str | None


# Behind the schema these are refused in words that name the arc.
_SOME = Meta(extra_json_schema={"minItems": 1})
_ONE_OF_TWO = Meta(
    extra_json_schema={"anyOf": [{"required": ["function"]}, {"required": ["command"]}]}
)


class Said(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a declaration; what it does not know is a mistake, and refused."""


class ArcInput(Said, frozen=True, kw_only=True):
    """A dataset that an arc reads; one that only joins sets nothing going."""

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
    """What is run: a Python function as `module:function`, or a command; one of the two.

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
    """How a lot is split: by a pattern in its URIs, by size, or by a function."""

    pattern: str | None = None
    bytes_max: Bytes | None = None
    function: str | None = None
    running_max: Count = 4


class ArcRetry(Said, frozen=True, kw_only=True):
    """How often a lot is tried, and how long after a failure."""

    tries: Count = 3
    back_off_seconds: BackOffSeconds = 10
    lease_seconds: LeaseSeconds = 60


class ArcBody(Said, frozen=True, kw_only=True):
    """An arc as it is declared; its name and namespace are those of the path."""

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
    """An arc as it is declared, with its name."""

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
    """A part of an arc's lots, by lot; `next` is the lot to go on after, null at the end."""

    lots: Sequence[ArcLot]
    next: str | None


class ChangedDeclarations(Shape, frozen=True):
    """Which arcs and arrivals are other than before, or would be."""

    changed: Sequence[str]
