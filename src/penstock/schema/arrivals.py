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
    """The source of an object's time."""

    MODIFIED = "modified"  # the store reports it
    EVENT = "event"  # the key, by the pattern


class Late(StrEnum):
    """The policy for an object whose interval has closed."""

    AMEND = "amend"  # its lot has a new version, with the object in it
    NEXT = "next"  # it goes to the lot that closes next
    REFUSE = "refuse"  # it is recorded, and is in no lot


class OnMissing(StrEnum):
    """The policy for an interval that closes without an object."""

    MISSING = "missing"  # it has no lot
    EMPTY = "empty"  # its lot is published empty


class ArrivalBody(Said, frozen=True, kw_only=True):
    """The location where objects of a dataset arrive, and the rule that makes them lots.

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
    """The arrival of a dataset, with the dataset's name."""

    namespace: Name
    dataset: Name


class RefusedObject(Shape, frozen=True):
    """An object that is in no lot, because its interval was closed when it arrived."""

    uri: str
    lot: str
    size: int
    at: str


class ArrivalFailure(Shape, frozen=True):
    """The error that keeps a location from being read, and since when."""

    since: str
    error: str


class UntakenObjects(Shape, frozen=True):
    """The number of objects whose names fit no lot, one example, and the reason."""

    count: int
    example: str
    reason: str


class ShownArrival(ArrivalBody, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The arrival of a dataset. Every interval before `openFrom` is closed."""

    namespace: str
    dataset: str
    open_from: str
    created_at: str
    updated_at: str
    refused: Sequence[RefusedObject]
    failed: ArrivalFailure | None
    untaken: UntakenObjects | None


class Arrivals(Shape, frozen=True):
    """All arrivals, by dataset. Refused objects are shown with a single arrival only."""

    arrivals: Sequence[ShownArrival]
