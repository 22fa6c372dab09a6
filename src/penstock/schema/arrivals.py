"""Wire types of arrivals: objects that become lots of a dataset."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from penstock.schema.arcs import GraceSeconds, Said
from penstock.schema.shape import Shape
from penstock.schema.texts import Name

DIGEST_BYTES_MAX = 64 * 1024 * 1024
DigestBytes = Annotated[int, Meta(ge=0, le=1 << 62)]


class TimeFrom(StrEnum):
    """Where the time of an object comes from."""

    MODIFIED = "modified"  # the store's own word
    EVENT = "event"  # the key, by the pattern


class Late(StrEnum):
    """What becomes of an object whose interval has closed."""

    AMEND = "amend"  # its lot has a new version, with the object in it
    NEXT = "next"  # it goes to the lot that closes next
    REFUSE = "refuse"  # it is noted, and is in no lot


class OnMissing(StrEnum):
    """What becomes of an interval that closes without any object."""

    MISSING = "missing"  # it has no lot
    EMPTY = "empty"  # its lot is published empty


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


class NamedArrival(ArrivalBody, frozen=True, kw_only=True):
    """Where the objects of a dataset arrive, with its name."""

    namespace: Name
    dataset: Name


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


class ShownArrival(ArrivalBody, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Where a dataset arrives; every interval before `openFrom` is closed."""

    namespace: str
    dataset: str
    open_from: str
    created_at: str
    updated_at: str
    refused: Sequence[RefusedObject]
    failed: ArrivalFailure | None
    untaken: UntakenObjects | None


class Arrivals(Shape, frozen=True):
    """Where datasets arrive, by name; what was refused is shown with each alone."""

    arrivals: Sequence[ShownArrival]
