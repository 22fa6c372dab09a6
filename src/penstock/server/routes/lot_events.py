"""Lot events: streamed to readers and delivered to subscribers."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import Busy, Invalid, Malformed, Unauthorized
from penstock.lots.outbox import check_not_pruned, last_id
from penstock.lots.rows import SubscriberRow
from penstock.schema.admin import KeyRole
from penstock.schema.shape import time_or_none
from penstock.schema.subscribers import Subscriber, SubscriberKind, Subscribers
from penstock.server.content import Body, Query
from penstock.server.relay import FRESH_SECONDS, PAGE, Follower, Frame, read_frames
from penstock.server.requests import RequestContext
from penstock.server.responses import Flow, Write
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.subscribers.commands import (
    DeleteSubscriber,
    SetSubscriber,
    check_secret,
    get_subscriber,
    load_subscribers,
    outbox_of,
)
from penstock.subscribers.own_backend import check_not_managed

HEARTBEAT_SECONDS = 15.0
EVENT_STREAM = "text/event-stream"
_ID_MAX = 2**63 - 1


class StreamQuery(Query, frozen=True):
    """The selection of events: after one, of a dataset or a namespace."""

    after: int | None = None
    namespace: str | None = None
    dataset: str | None = None


async def stream_events(context: RequestContext, query: StreamQuery) -> Flow:
    """Stream lot events as server-sent events, until the client disconnects.

    An event has its outbox number as `id`, its kind as `event`, and JSON as `data`.
    It begins now, or after the event that `Last-Event-ID` or `after` names; `after=0` begins with
    the oldest event. Events are in commit order, without gaps. Without events, a
    comment comes every 15 seconds. A reader that is too slow is cut off and can resume.
    """
    namespace = query.namespace if query.namespace is not None else context.key.namespace
    if namespace is not None:
        context.key.require_namespace(namespace)
    context.state.relay.check_room()
    wants = _filter(namespace, query.dataset)
    position = await context.read(_position, _asked(context.head.last_event_id, query.after))
    return Flow(EVENT_STREAM, _Stream(context, wants, position).pour)


def _filter(namespace: str | None, dataset: str | None) -> Callable[[Frame], bool]:
    def wants(frame: Frame) -> bool:
        return namespace in (None, frame.namespace) and dataset in (None, frame.dataset)

    return wants


def _asked(last_event_id: bytes | None, after: int | None) -> int | None:
    """Return the last event that a reader has; its header is newer than its URL."""
    if last_event_id:
        # Python refuses numbers with very many digits.
        if not last_event_id.isdigit() or len(last_event_id) > 20 or int(last_event_id) > _ID_MAX:
            raise Malformed("Last-Event-ID is not the id of an event; leave it out to begin now")
        return int(last_event_id)
    if after is not None and not 0 <= after <= _ID_MAX:
        raise Invalid("after is the id of an event, or 0 for all that is kept")
    return after


def _position(tx: Transaction, after: int | None) -> int:
    if after is None:
        return last_id(tx)
    check_not_pruned(tx, after)
    return after


@dataclass
class _Stream:
    """One reader's stream; `position` is the last event that was sent or passed over."""

    context: RequestContext
    wants: Callable[[Frame], bool]
    position: int

    async def pour(self, write: Write) -> None:
        await write(_mark("following", self.position))
        if not await self._catch_up(write):
            return
        relay = self.context.state.relay
        follower = relay.join(self.wants, self.position)
        try:
            if await self._catch_up(write):
                while not follower.is_over and await self._next(follower, write):
                    pass
        finally:
            relay.leave(follower)

    async def _catch_up(self, write: Write) -> bool:
        """Send earlier events; return False once the key is revoked.

        A reader does this alone, until it has caught up with the others.
        """
        state, more = self.context.state, True
        while more and not state.relay.is_stopping:
            frames = await state.in_thread(read_frames, state.plane.database, self.position)
            if frames and not await may_stay(self.context):
                return False
            await self._send([each for each in frames if self.wants(each)], write)
            if frames:
                self.position = max(self.position, frames[-1].id)
            more = len(frames) == PAGE
        return True

    async def _next(self, follower: Follower, write: Write) -> bool:
        """Send the next events, or a comment without any; return False once the key is revoked.

        The key is checked each time, however fast the events come.
        """
        is_quiet = False
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await follower.news.wait()
        except TimeoutError:
            is_quiet = True
        if not await may_stay(self.context):
            return False
        # New events may have arrived since; skipping to the last seen one would lose them.
        if is_quiet and not follower.waiting:
            self.position = max(self.position, follower.seen)
            await write(_mark("still here", self.position))
            return True
        await self._send(follower.taken(), write)
        return True

    async def _send(self, frames: Sequence[Frame], write: Write) -> None:
        fresh = [each for each in frames if each.id > self.position]
        if fresh:
            bound = self.context.key.namespace is not None
            await write(b"".join(each.own_text if bound else each.text for each in fresh))
            self.position = fresh[-1].id


async def may_stay(context: RequestContext) -> bool:
    """Return whether the key that a stream was opened with still works.

    The cached answer is a few seconds old at most. A stream
    that was opened without a key ends when the first key is made.
    """
    gate = context.state.gate
    try:
        if gate.at_once("GET", context.head, context.sender) is None:
            await context.state.in_thread(gate.ask, "GET", context.head, context.sender)
    except (Unauthorized, Busy):  # a revoked key counts as a wrong key
        return False
    return True


def _mark(words: str, position: int) -> bytes:
    """Return a comment with an id, so that a reader can resume there though no event matched."""
    return f": {words}\nid: {position}\n\n".encode()


# At any write rate: each reader loads its data again after a hint.
QUIET_SECONDS = 1.0


async def follow_pulse(context: RequestContext) -> Flow:
    """Stream a hint after each commit, at most one per second.

    An event `changed` has the number of the last write as its `id`, and no data of the write, so
    every key may follow it. The web page loads its data again after each hint.
    """
    context.state.relay.check_room()
    return Flow(EVENT_STREAM, _Following(context).pour)


@dataclass
class _Following:
    """One reader; `spoke` is the time of the last message to it."""

    context: RequestContext
    seen: int = 0
    spoke: float = 0.0

    async def pour(self, write: Write) -> None:
        state = self.context.state
        self.seen = await state.epochs.last()
        await self._say(write, f": following\nid: {self.seen}\n\n")
        while not state.stopping:
            await asyncio.sleep(FRESH_SECONDS)
            epoch = await state.epochs.last()
            quiet = monotonic() - self.spoke
            is_due = epoch != self.seen and quiet >= QUIET_SECONDS
            if (is_due or quiet >= HEARTBEAT_SECONDS) and not await may_stay(self.context):
                return
            if is_due:
                self.seen = epoch
                await self._say(write, f"id: {epoch}\nevent: changed\ndata: {epoch}\n\n")
            elif quiet >= HEARTBEAT_SECONDS:
                await self._say(write, ": still here\n\n")

    async def _say(self, write: Write, text: str) -> None:
        self.spoke = monotonic()
        await write(text.encode())


_NEXT = {"lots": "next_lot_event", "runs": "next_run_end"}


class SubscriberBody(Body, frozen=True):
    """The URL and the selection of a subscriber. A secret that is omitted stays as it is."""

    kind: SubscriberKind
    url: str
    secret: str | UnsetType | None = UNSET
    namespace: str | None = None
    dataset: str | None = None
    after: Annotated[int, Meta(ge=0, le=2**62)] | None = None


def list_subscribers(tx: Transaction) -> Subscribers:
    """List the subscribers, with the progress of each."""
    return Subscribers([_shown(tx, row) for row in load_subscribers(tx)])


def show_subscriber(tx: Transaction, subscriber: str) -> Subscriber:
    """Show a subscriber, with its progress and its last error."""
    return _shown(tx, get_subscriber(tx, subscriber))


async def set_subscriber(
    context: RequestContext, subscriber: str, body: SubscriberBody
) -> Subscriber:
    """Create or change a subscriber; its next delivery starts at once.

    A webhook gets a signed POST for each event of a lot. A backend of kind openlineage gets our
    own runs as OpenLineage events, with the secret as its key. Each gets every event in order, at
    least once. A new subscriber begins now, or after the event that `after` names.
    """
    check_not_managed(subscriber)
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
    """Delete a subscriber."""
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
    Route(ASYNC, "GET", f"{BASE}/events/stream", stream_events, Reach.OWN, media=EVENT_STREAM),
    Route(ASYNC, "GET", f"{BASE}/pulse", follow_pulse, Reach.SHARED, media=EVENT_STREAM),
    Route(READ, "GET", _ALL, list_subscribers, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(READ, "GET", _ONE, show_subscriber, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(ASYNC, "PUT", _ONE, set_subscriber, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(ASYNC, "DELETE", _ONE, delete_subscriber, Reach.EVERYTHING, KeyRole.ADMIN),
)
