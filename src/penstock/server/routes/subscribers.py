"""Who is told of what happens to lots, for administrators."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from penstock.clock import format_time
from penstock.db import Transaction
from penstock.lots.outbox import last_id
from penstock.lots.rows import SubscriberRow
from penstock.schema.admin import KeyRole
from penstock.schema.shape import time_or_none
from penstock.schema.subscribers import Subscriber, SubscriberKind, Subscribers
from penstock.server.content import Body
from penstock.server.requests import RequestContext
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.subscribers.commands import (
    DeleteSubscriber,
    SetSubscriber,
    check_secret,
    get_subscriber,
    listed,
    outbox_of,
)
from penstock.subscribers.own_backend import refuse_by_hand

_NEXT = {"lots": "next_lot_event", "runs": "next_run_end"}


class SubscriberBody(Body, frozen=True):
    """Where and what a subscriber is told; a secret that is left out stays as it is."""

    kind: SubscriberKind
    url: str
    secret: str | UnsetType | None = UNSET
    namespace: str | None = None
    dataset: str | None = None
    after: Annotated[int, Meta(ge=0, le=2**62)] | None = None


def list_subscribers(tx: Transaction) -> Subscribers:
    """List who is told of what happens to lots, and how far each has been told."""
    return Subscribers([_shown(tx, row) for row in listed(tx)])


def show_subscriber(tx: Transaction, subscriber: str) -> Subscriber:
    """Show one subscriber: how far it has been told, and why it was not told more."""
    return _shown(tx, get_subscriber(tx, subscriber))


async def set_subscriber(
    context: RequestContext, subscriber: str, body: SubscriberBody
) -> Subscriber:
    """Make a subscriber, or change it; it is tried again at once.

    A webhook gets a signed POST for each event of a lot. A backend of kind openlineage gets our
    own runs as OpenLineage events, with the secret as its key. Each gets every event in order, at
    least once. A new one is told from now on, or after the event that `after` names.
    """
    refuse_by_hand(subscriber)
    secret = body.secret
    if isinstance(secret, str):
        check_secret(secret)
        secret = await context.state.in_thread(context.plane.secrets.seal, secret)
    command = SetSubscriber(
        who=context.key.name,
        name=subscriber,
        kind=body.kind,
        url=body.url,
        secret=secret,
        namespace=body.namespace or "",
        dataset=body.dataset or "",
        after=body.after,
    )
    row = await context.submit(command)
    context.state.deliverer.wake()
    return await context.read(_shown, row)


async def delete_subscriber(context: RequestContext, subscriber: str) -> Subscriber:
    """Tell a subscriber nothing more."""
    row = await context.submit(DeleteSubscriber(context.key.name, subscriber))
    return await context.read(_shown, row)


def _shown(tx: Transaction, row: SubscriberRow) -> Subscriber:
    outbox = outbox_of(row.kind)
    waiting = tx.fetch_one(_NEXT[outbox], after=row.cursor)
    return Subscriber(
        name=row.name,
        kind=row.kind,
        url=row.url,
        has_secret=row.secret is not None,
        namespace=row.namespace or None,
        dataset=row.dataset or None,
        cursor=row.cursor,
        lag=max(0, last_id(tx, outbox) - row.cursor) if waiting is not None else 0,
        waiting_since=format_time(waiting[0]) if waiting is not None else None,
        failures=row.failures,
        last_error=row.error or None,
        last_failed_at=time_or_none(row.failed_at),
        next_try_at=format_time(row.next_try_at) if row.failures else None,
        last_delivered_at=time_or_none(row.delivered_at),
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
    )


_ALL = f"{BASE}/subscribers"
_ONE = f"{_ALL}/{{subscriber}}"

ROUTES = (
    Route(READ, "GET", _ALL, list_subscribers, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(READ, "GET", _ONE, show_subscriber, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(ASYNC, "PUT", _ONE, set_subscriber, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(ASYNC, "DELETE", _ONE, delete_subscriber, Reach.EVERYTHING, KeyRole.ADMIN),
)
