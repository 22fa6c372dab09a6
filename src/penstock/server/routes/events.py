"""OpenLineage events: received one by one or in batches, and listed word for word."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.namespaced import NamespacedEvent
from penstock.catalog.events.parse import EVENT_TYPES, RUN, Event, items_of_list, read_event
from penstock.catalog.queries import catalog
from penstock.catalog.queries.events import EventKind
from penstock.clock import say_time
from penstock.db import Transaction
from penstock.errors import Busy, Invalid, PenstockError, Unavailable
from penstock.locks.commands import LockingEvent
from penstock.schema.admin import KeyRole
from penstock.schema.catalog import BatchResult, BatchSummary, Events, FailedEvent
from penstock.schema.shape import Empty
from penstock.schema.texts import Name, Time
from penstock.server.content import PARSE_INLINE_BYTES_MAX, Paging, moment
from penstock.server.requests import RequestContext
from penstock.server.responses import NOTHING
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.subscribers import payloads

_RETRIABLE = (Busy, Unavailable)

_log = logging.getLogger(__name__)

_decode_batch = msgspec.json.Decoder(list[Raw]).decode


EventType = Annotated[str, Meta(extra_json_schema={"enum": sorted(EVENT_TYPES)})]


class EventRun(Struct, frozen=True, rename="camel"):
    """The run that an event is about."""

    run_id: Name
    facets: dict[str, Any] = {}


class EventNames(Struct, frozen=True, rename="camel"):
    """A job or a dataset of an event."""

    namespace: Name
    name: Name
    facets: dict[str, Any] = {}


class AnyEvent(Struct, frozen=True, rename="camel"):
    """An OpenLineage RunEvent, JobEvent or DatasetEvent, by its `schemaURL` or its fields.

    The schema lists the fields that the server reads. Unknown facets and fields are kept.
    """

    event_time: Time
    producer: str = ""
    schema_url: str = field(name="schemaURL", default="")
    event_type: EventType | None = None
    run: EventRun | UnsetType = UNSET
    job: EventNames | UnsetType = UNSET
    dataset: EventNames | UnsetType = UNSET
    inputs: Sequence[EventNames] = ()
    outputs: Sequence[EventNames] = ()


class SortDirection(StrEnum):
    """The order of time of a list of events."""

    DESC = "desc"
    ASC = "asc"


EventTypes = Annotated[
    tuple[EventKind, ...], Meta(description="only events of runs, of jobs or of datasets")
]


class EventsQuery(Paging, frozen=True):
    """The selection of events: by time, in [after, before)."""

    before: Time | None = None
    after: Time | None = None
    sort_direction: SortDirection = SortDirection.DESC
    types: EventTypes = ()


class RunEventsQuery(EventsQuery, frozen=True):
    """The selection of events: those of runs, as in Marquez, or of the given types."""

    types: EventTypes = (EventKind.RUN,)


# An event is about a job, with a run or without, or about a dataset.
OneEvent = Annotated[
    AnyEvent, Meta(extra_json_schema={"anyOf": [{"required": ["job"]}, {"required": ["dataset"]}]})
]


async def receive_event(context: RequestContext, content: bytes) -> Empty:
    """Receive one OpenLineage event: a run, job or dataset event.

    An `eventTime` that is further ahead of the server's clock than the setting
    `event_ahead_seconds` counts as received now. The event is kept as it was sent.

    The answer follows the commit. The body may be packed with gzip. Sending an event twice
    does no harm.
    """
    if context.head.sender is not None and await _is_own(context, context.head.sender):
        return NOTHING
    await _receive(context, await _read(context, content), len(content))
    return NOTHING


async def receive_batch(context: RequestContext, content: bytes) -> BatchResult:
    """Receive a list of OpenLineage events; each succeeds or fails alone.

    The answer lists refused events, with the reason and whether a retry may help.
    """
    if len(content) > PARSE_INLINE_BYTES_MAX:
        batch = await context.state.parse(_read_batch, content)
    else:
        batch = _read_batch(content) if content else ()
    events = enumerate(batch)
    failed: list[FailedEvent] = []
    received = 0
    # In windows, so that one long batch does not fill the queue of all clients.
    while window := list(islice(events, context.plane.settings.batch_events_max)):
        received += len(window)
        failed += await _receive_window(context, window)
    return _result(received, failed)


def _read_batch(content: bytes) -> Sequence[bytes]:
    """Split a batch into its events; an error of one event concerns only that event."""
    try:
        return [bytes(event) for event in _decode_batch(content)]
    except msgspec.ValidationError as error:
        raise Invalid(f"the body does not fit: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return items_of_list(content)


async def _receive_window(
    context: RequestContext, window: Iterable[tuple[int, bytes]]
) -> list[FailedEvent]:
    async def attempt(index: int, event: bytes) -> FailedEvent | None:
        try:
            await _receive(context, await _read(context, event), len(event))
        except PenstockError as error:
            return FailedEvent(index, str(error), isinstance(error, _RETRIABLE))
        return None

    outcomes = await asyncio.gather(*(attempt(index, event) for index, event in window))
    return [failure for failure in outcomes if failure is not None]


async def _is_own(context: RequestContext, sender: bytes) -> bool:
    """Return whether an event is about a run of Penstock itself, which the catalog has already."""
    own = await context.read(payloads.is_own_sender, sender.decode("latin-1"))
    if own:
        _log.info("our own run came back, and is passed over: a subscriber leads to this server")
    return own


async def _read(context: RequestContext, content: bytes) -> Event:
    if len(content) > PARSE_INLINE_BYTES_MAX:
        return await context.state.parse(read_event, content, context.state.limits)
    return read_event(content, context.state.limits)


async def _receive(context: RequestContext, event: Event, size: int) -> None:
    key = context.key
    if (at := context.not_ahead(event.at)) != event.at:
        _log.info("event time was ahead of the clock sent=%s", say_time(event.at))
        event = replace(event, at=at)
    if event.dataset is None:
        key.require_namespace(event.job_namespace)
    receiving = partial(_receive_run if event.kind == RUN else _receive_static, key.namespace)
    bound = key.namespace is not None
    await context.submit(
        NamespacedEvent(key, event, receiving) if bound else receiving(event), size
    )
    context.state.metrics.event_received(event.event_type)


def _receive_run(within: str | None, event: Event) -> LockingEvent:
    return LockingEvent(event, within)


def _receive_static(within: str | None, event: Event) -> ReceiveEvent:
    return ReceiveEvent(event, within)


def _result(received: int, failed: Sequence[FailedEvent]) -> BatchResult:
    retriable = sum(failure.retriable for failure in failed)
    summary = BatchSummary(
        received=received,
        successful=received - len(failed),
        failed=len(failed),
        retriable=retriable,
        non_retriable=len(failed) - retriable,
    )
    if not failed:
        return BatchResult("success", summary, failed)
    status: Literal["partial_success", "failure"] = (
        "partial_success" if summary.successful else "failure"
    )
    return BatchResult(status, summary, failed)


def list_events(tx: Transaction, query: EventsQuery) -> Events:
    """List events as they were received, newest first unless asked otherwise."""
    return _events(tx, query, None)


def list_run_events(tx: Transaction, query: RunEventsQuery) -> Events:
    """List events of runs as they were received, newest first unless asked otherwise.

    `types` adds those of jobs and datasets.
    """
    return _events(tx, query, None)


def list_events_of_namespace(tx: Transaction, namespace: str, query: EventsQuery) -> Events:
    """List events about the jobs and datasets of one namespace, newest first."""
    return _events(tx, query, namespace)


def _events(tx: Transaction, query: EventsQuery, namespace: str | None) -> Events:
    page = catalog.list_events(
        tx,
        moment(query.before, "before"),
        moment(query.after, "after"),
        descending=query.sort_direction is SortDirection.DESC,
        limit=query.limit,
        offset=query.offset,
        namespace=namespace,
        kinds=query.types,
    )
    return Events(page.items, page.total_count)


_ONE = f"{BASE}/lineage"

ROUTES = (
    Route(ASYNC, "POST", _ONE, receive_event, Reach.OWN, KeyRole.WRITER, 201, accepts=OneEvent),
    Route(
        ASYNC,
        "POST",
        f"{_ONE}/batch",
        receive_batch,
        Reach.OWN,
        KeyRole.WRITER,
        accepts=list[OneEvent],
    ),
    Route(READ, "GET", f"{BASE}/events", list_events, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/events/lineage", list_run_events, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/events/{{namespace}}", list_events_of_namespace, rest=True),
)
