"""Wire types of subscribers and of the stream of lot events."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.schema.catalog import EntityId
from penstock.schema.shape import Shape


class SubscriberKind(StrEnum):
    """The messages that a subscriber gets."""

    WEBHOOK = "webhook"  # every event of a lot, as a signed POST
    OPENLINEAGE = "openlineage"  # our runs that have ended, as OpenLineage events


class Subscriber(Shape, frozen=True):
    """A subscriber without its secret: its progress, and its last error.

    `lag` is the number of events after its cursor, at most; `waitingSince` is the time of the
    first of these events.
    """

    name: str
    kind: SubscriberKind
    url: str
    has_secret: bool
    namespace: str | None
    dataset: str | None
    cursor: int
    lag: int
    waiting_since: str | None
    failures: int
    last_error: str | None
    last_failed_at: str | None
    next_try_at: str | None
    last_delivered_at: str | None
    created_at: str
    updated_at: str


class Subscribers(Shape, frozen=True):
    """All subscribers."""

    subscribers: Sequence[Subscriber]


class LotEvent(Shape, frozen=True):
    """An event of a lot. `state` is that of its manifest, `run` the run that caused it."""

    id: int
    at: str
    kind: str
    dataset: EntityId
    lot: str
    state: str
    version: str | None
    job: EntityId | None
    run: str | None
