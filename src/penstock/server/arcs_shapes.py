"""Arcs and arrivals on the wire: as they are declared, and as they are shown."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from penstock.arcs.arrivals.arrival import (
    DIGEST_BYTES_MAX,
    Arrival,
    DigestBytes,
    Late,
    OnMissing,
    TimeFrom,
)
from penstock.arcs.arrivals.rows import ArrivalRow
from penstock.arcs.overview import ArcCounts
from penstock.arcs.rows import ArcRow
from penstock.arcs.spec import (
    Arc,
    BackOffSeconds,
    Bytes,
    Count,
    EmptyOutput,
    GraceSeconds,
    LeaseSeconds,
    OnEmpty,
    TimeoutSeconds,
)
from penstock.catalog.shapes import Shape
from penstock.catalog.text_schemas import ArcName, Name, NameOrNone
from penstock.clock import format_time
from penstock.locks.rows import Stale
from penstock.lots.ids import Interval
from penstock.lots.rows import LandingRow

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

    def declared(self, namespace: str, name: str) -> Arc:
        """The declaration as it is kept."""
        arc = msgspec.convert(_builtins(self), Arc)
        return msgspec.structs.replace(arc, namespace=namespace, name=name)


class NamedArc(ArcBody, frozen=True, kw_only=True):
    """An arc as it is declared, with its name."""

    namespace: Name
    name: ArcName

    def whole(self) -> Arc:
        """The declaration as it is kept."""
        return msgspec.convert(_builtins(self), Arc)


class ShownArc(ArcBody, frozen=True, kw_only=True):
    """An arc, and how many of its lots stand where."""

    namespace: str
    name: str
    created_at: str
    updated_at: str
    counts: ArcCounts


def shown_arc(row: ArcRow, counts: ArcCounts) -> ShownArc:
    """An arc as it is shown."""
    arc = row.arc
    return ShownArc(
        namespace=row.namespace,
        name=row.name,
        project=arc.project,
        version=arc.version,
        description=arc.description,
        inputs=[ArcInput(**msgspec.structs.asdict(each)) for each in arc.inputs],
        outputs=[ArcOutput(**msgspec.structs.asdict(each)) for each in arc.outputs],
        workload=ArcWorkload(**msgspec.structs.asdict(arc.workload)),
        parts=ArcParts(**msgspec.structs.asdict(arc.parts)) if arc.parts else None,
        retry=ArcRetry(**msgspec.structs.asdict(arc.retry)),
        running_max=arc.running_max,
        on_empty=arc.on_empty,
        stale=arc.stale,
        checks=arc.checks,
        newest_first=arc.newest_first,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        counts=counts,
    )


class ArrivalBody(Said, frozen=True, kw_only=True):
    """Where the objects of a dataset arrive, and how they become lots.

    With `{lot}` in the pattern keys name their lots; otherwise lots are intervals of the time that
    the store knows, or that the pattern finds in the key (time `event`). Without `start` objects
    count from when it is declared.
    """

    version: str = "1"
    location: str
    interval: str = ""
    time: TimeFrom = TimeFrom.MODIFIED
    pattern: str = ""
    grace_seconds: GraceSeconds = 60
    late: Late = Late.AMEND
    start: str = ""
    missing: OnMissing = OnMissing.MISSING
    digest_bytes_max: DigestBytes = DIGEST_BYTES_MAX

    def declared(self, namespace: str, dataset: str) -> Arrival:
        """The declaration as it is kept."""
        return Arrival(**msgspec.structs.asdict(self), namespace=namespace, dataset=dataset)


class NamedArrival(ArrivalBody, frozen=True, kw_only=True):
    """Where the objects of a dataset arrive, with its name."""

    namespace: Name
    dataset: Name

    def whole(self) -> Arrival:
        """The declaration as it is kept."""
        return Arrival(**msgspec.structs.asdict(self))


class RefusedObject(Shape, frozen=True):
    """An object that is in no lot as it is now: it came when its interval was closed."""

    uri: str
    lot: str
    size: int
    at: str


class ArrivalFailure(Shape, frozen=True):
    """Why the place where objects arrive cannot be looked at, and since when."""

    since: str
    error: str


class UntakenObjects(Shape, frozen=True):
    """How many objects cannot be taken into lots, by their names; one of them, and why not."""

    count: int
    example: str
    reason: str


class ShownArrival(ArrivalBody, frozen=True, kw_only=True):
    """Where a dataset arrives; every interval before `openFrom` is closed."""

    namespace: str
    dataset: str
    open_from: str
    created_at: str
    updated_at: str
    refused: Sequence[RefusedObject]
    failed: ArrivalFailure | None
    untaken: UntakenObjects | None


def shown_arrival(
    row: ArrivalRow, refused: Sequence[RefusedObject], met: LandingRow | None
) -> ShownArrival:
    """An arrival as it is shown, with what was met there."""
    failed = untaken = None
    if met is not None and met.error:
        failed = ArrivalFailure(format_time(met.failed_at), met.error)
    if met is not None and met.untaken:
        untaken = UntakenObjects(met.untaken, met.example, met.reason)
    return ShownArrival(
        **msgspec.structs.asdict(row.arrival),
        open_from=format_time(row.open_from),
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        refused=refused,
        failed=failed,
        untaken=untaken,
    )


def _builtins(value: object) -> object:
    """A declaration as plain values, under the names that the code has."""
    if isinstance(value, Struct):
        return {key: _builtins(each) for key, each in msgspec.structs.asdict(value).items()}
    if isinstance(value, tuple | list):
        return [_builtins(each) for each in value]
    return value
