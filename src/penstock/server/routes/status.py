"""What operators and tools ask: is it alive, is it ready, what does it count, what can it do."""

import asyncio
from collections.abc import Mapping

from penstock.errors import PenstockError, Unavailable
from penstock.ingest.models import Tally
from penstock.locks.queries.overview import Backlog, backlog
from penstock.schema.admin import Health
from penstock.server.metrics import CONTENT_TYPE
from penstock.server.requests import RequestContext, ServerState
from penstock.server.responses import Page
from penstock.server.routing import ASYNC, Reach, Route
from penstock.subscribers.commands import Told, told

TALLY_SECONDS_MAX = 2  # whoever collects metrics must not wait for what is gone


async def get_livez(context: RequestContext) -> Health:
    """Say that the process is alive."""
    return Health()


async def get_readyz(context: RequestContext) -> Health:
    """Say whether calls can be served: database and queue answer, the server is not stopping."""
    if context.state.stopping:
        raise Unavailable("the server is stopping; use another one")
    await context.state.in_thread(context.plane.ping)
    if context.plane.context.store.is_away:
        raise Unavailable("the queue cannot be reached; look at its ZooKeeper, or wait for it")
    return Health()


async def get_metrics(context: RequestContext) -> Page:
    """Show counters and timings in Prometheus' text format."""
    state = context.state
    tally, (backlog, told) = await asyncio.gather(_tally(state), _backlog(state))
    state.metrics.queue_counted(tally)
    state.metrics.backlog_counted(backlog, told)
    return Page(CONTENT_TYPE, state.metrics.text())


async def _tally(state: ServerState) -> list[Tally] | None:
    """How many ingest jobs are where; None if the queue does not answer soon."""
    try:
        async with asyncio.timeout(TALLY_SECONDS_MAX):
            return await state.in_ingest_thread(state.plane.context.store.tally)
    except (PenstockError, TimeoutError):
        return None


async def _backlog(state: ServerState) -> tuple[Backlog | None, Mapping[Told, int]]:
    """What jobs have to do, and who was told; None if the database does not answer soon."""
    try:
        async with asyncio.timeout(TALLY_SECONDS_MAX):
            return await state.in_thread(_look, state)
    except (PenstockError, TimeoutError):
        return None, {}


def _look(state: ServerState) -> tuple[Backlog, Mapping[Told, int]]:
    with state.plane.catalog.read() as tx:
        return backlog(tx, state.plane.clock()), told(tx)


async def get_openapi(context: RequestContext) -> Page:
    """Show this API as an OpenAPI 3.1 document."""
    return Page("application/json", context.state.openapi())


async def get_docs(context: RequestContext) -> Page:
    """Show this API as a page to read."""
    return context.state.docs()


ROUTES = (
    Route(ASYNC, "GET", "/livez", get_livez, Reach.SHARED, None),
    Route(ASYNC, "GET", "/readyz", get_readyz, Reach.SHARED, None),
    Route(ASYNC, "GET", "/metrics", get_metrics, Reach.SHARED, media="text/plain"),
    Route(ASYNC, "GET", "/openapi.json", get_openapi, Reach.SHARED),
    Route(ASYNC, "GET", "/docs", get_docs, Reach.SHARED, media="text/html"),
)
