"""The calls of the client about what happens to lots, and who is told of it."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from penstock.client.documents import Document
from penstock.client.lots import Call
from penstock.client.stream import LotEvent, follow
from penstock.client.transport import Transport

SubscriberKind = Literal["webhook", "openlineage"]


class Subscriber(Document, frozen=True):
    """Who is told of what happens to lots: how far, and what went wrong last."""

    name: str
    kind: str
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


class Subscribers(Document, frozen=True):
    """All subscribers."""

    subscribers: tuple[Subscriber, ...]


class _Settings(Struct, frozen=True, omit_defaults=True):
    kind: str
    url: str
    secret: str | UnsetType | None = UNSET
    namespace: str | None = None
    dataset: str | None = None
    after: int | None = None


class OutboxCalls:
    """What a server tells of lots, and to whom. Subscribers are an administrator's matter."""

    _call: Call
    _transport: Transport

    def lot_events(
        self,
        *,
        after: int | None = None,
        namespace: str | None = None,
        dataset: str | None = None,
    ) -> Iterator[LotEvent]:
        """What happens to lots, as it happens: loop over it, it does not end.

        It begins now, or after an event; 0 is all that is kept. A connection that is lost is made
        again, and nothing is left out. After an event that was pruned it raises ApiError (409).
        """
        return follow(self._transport, after=after, namespace=namespace, dataset=dataset)

    def subscribers(self) -> Subscribers:
        """Who is told of what happens to lots."""
        return self._call("GET", Subscribers, "subscribers")

    def subscriber(self, name: str) -> Subscriber:
        """One subscriber."""
        return self._call("GET", Subscriber, "subscribers", name)

    def set_subscriber(
        self,
        name: str,
        kind: SubscriberKind,
        url: str,
        *,
        secret: str | UnsetType | None = UNSET,
        namespace: str | None = None,
        dataset: str | None = None,
        after: int | None = None,
    ) -> Subscriber:
        """Make or change a subscriber; a secret that is left out stays, None takes it away."""
        settings = _Settings(kind, url, secret, namespace, dataset, after)
        body = msgspec.json.encode(settings)
        return self._call("PUT", Subscriber, "subscribers", name, body=body)

    def delete_subscriber(self, name: str) -> Subscriber:
        """Tell a subscriber nothing more."""
        return self._call("DELETE", Subscriber, "subscribers", name)
