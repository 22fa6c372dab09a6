"""What operators and tools ask: is it alive, is it ready, what does it count, what can it do."""

import asyncio
from collections.abc import Mapping

from penstock.errors import PenstockError, Unavailable
from penstock.ingest.models import Tally
from penstock.locks.queries.overview import Backlog, backlog
from penstock.schema.admin import Health
from penstock.server.metrics import CONTENT_TYPE
from penstock.server.requests import Call, Door
from penstock.server.responses import Page
from penstock.server.routing import Reach, Route
from penstock.subscribers.commands import Told, told

TALLY_SECONDS_MAX = 2  # whoever collects metrics must not wait for what is gone


async def get_livez(call: Call) -> Health:
    """Say that the process is alive."""
    return Health()


async def get_readyz(call: Call) -> Health:
    """Say whether calls can be served: database and queue answer, the server is not stopping."""
    if call.door.stopping:
        raise Unavailable("the server is stopping; use another one")
    await call.door.in_thread(call.door.plane.ping)
    if call.door.plane.context.store.is_away:
        raise Unavailable("the queue cannot be reached; look at its ZooKeeper, or wait for it")
    return Health()


async def get_metrics(call: Call) -> Page:
    """Show counters and timings in Prometheus' text format."""
    door = call.door
    tally, (backlog, told) = await asyncio.gather(_tally(door), _backlog(door))
    door.metrics.queue_counted(tally)
    door.metrics.backlog_counted(backlog, told)
    return Page(CONTENT_TYPE, door.metrics.text())


async def _tally(door: Door) -> list[Tally] | None:
    """How many ingest jobs are where; None if the queue does not answer soon."""
    try:
        async with asyncio.timeout(TALLY_SECONDS_MAX):
            return await door.by_clerk(door.plane.context.store.tally)
    except (PenstockError, TimeoutError):
        return None


async def _backlog(door: Door) -> tuple[Backlog | None, Mapping[Told, int]]:
    """What jobs have to do, and who was told; None if the database does not answer soon."""
    try:
        async with asyncio.timeout(TALLY_SECONDS_MAX):
            return await door.in_thread(_look, door)
    except (PenstockError, TimeoutError):
        return None, {}


def _look(door: Door) -> tuple[Backlog, Mapping[Told, int]]:
    with door.plane.catalog.read() as tx:
        return backlog(tx, door.plane.clock()), told(tx)


async def get_openapi(call: Call) -> Page:
    """Show this API as an OpenAPI 3.1 document."""
    return Page("application/json", call.door.openapi())


async def get_docs(call: Call) -> Page:
    """Show this API as a page to read."""
    return call.door.docs()


ROUTES = (
    Route("GET", "/livez", get_livez, Reach.SHARED, None),
    Route("GET", "/readyz", get_readyz, Reach.SHARED, None),
    Route("GET", "/metrics", get_metrics, Reach.SHARED, media="text/plain"),
    Route("GET", "/openapi.json", get_openapi, Reach.SHARED),
    Route("GET", "/docs", get_docs, Reach.SHARED, media="text/html"),
)
