"""The calls of the client about who is told of what happens to lots."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from penstock.client.operation import call
from penstock.client.request import Request, delete, get, put, written
from penstock.schema.shape import Shape

SubscriberKind = Literal["webhook", "openlineage"]


class Subscriber(Shape, frozen=True):
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


class Subscribers(Shape, frozen=True):
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
    """Who is told of what happens to lots; an administrator's matter."""

    @call
    def subscribers(self) -> Request[Subscribers]:
        """Who is told of what happens to lots."""
        return get(Subscribers, "subscribers")

    @call
    def subscriber(self, name: str) -> Request[Subscriber]:
        """One subscriber."""
        return get(Subscriber, "subscribers", name)

    @call
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
    ) -> Request[Subscriber]:
        """Make or change a subscriber; a secret that is left out stays, None takes it away."""
        settings = _Settings(kind, url, secret, namespace, dataset, after)
        return put(Subscriber, "subscribers", name, body=written(settings))

    @call
    def delete_subscriber(self, name: str) -> Request[Subscriber]:
        """Tell a subscriber nothing more."""
        return delete(Subscriber, "subscribers", name)
