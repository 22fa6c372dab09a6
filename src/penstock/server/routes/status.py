"""Health, metrics, overview and statistics."""

import asyncio
from collections.abc import Mapping, Sequence

from penstock.access.keys import Key
from penstock.catalog.lineage.runs import family
from penstock.catalog.queries import catalog
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import PenstockError, Unavailable
from penstock.ingest.models import Tally
from penstock.locks.queries.overview import Backlog, get_backlog, get_overview
from penstock.locks.queries.partitioning import get_dataset_partitioning, get_job_partitioning
from penstock.schema.admin import Health, SystemOverview
from penstock.schema.catalog import EventInterval, IntervalCount
from penstock.schema.lineage import RunFamily
from penstock.schema.locks import DatasetPartitioning, JobPartitioning
from penstock.server.content import Query
from penstock.server.metrics import CONTENT_TYPE
from penstock.server.requests import RequestContext, ServerState
from penstock.server.responses import PlainAnswer
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.subscribers.commands import DeliveryState, count_by_delivery

TALLY_SECONDS_MAX = 2  # a scrape must not wait for a database or queue that is down


async def get_livez(context: RequestContext) -> Health:
    """Report that the process is alive."""
    return Health()


async def get_readyz(context: RequestContext) -> Health:
    """Report whether the server is ready: database and queue answer, and it is not stopping."""
    if context.state.stopping:
        raise Unavailable("the server is stopping; use another one")
    await context.state.in_thread(context.plane.ping)
    if context.plane.context.store.is_away:
        raise Unavailable("the queue cannot be reached; look at its ZooKeeper, or wait for it")
    return Health()


async def get_metrics(context: RequestContext) -> PlainAnswer:
    """Show counters and timings in Prometheus' text format."""
    state = context.state
    tally, (backlog, deliveries) = await asyncio.gather(_tally(state), _backlog(state))
    state.metrics.queue_counted(tally)
    state.metrics.backlog_counted(backlog, deliveries)
    return PlainAnswer(CONTENT_TYPE, state.metrics.text())


async def _tally(state: ServerState) -> list[Tally] | None:
    """Return the ingest jobs by state; None if the queue does not answer soon."""
    try:
        async with asyncio.timeout(TALLY_SECONDS_MAX):
            return await state.in_ingest_thread(state.plane.context.store.tally)
    except (PenstockError, TimeoutError):
        return None


async def _backlog(state: ServerState) -> tuple[Backlog | None, Mapping[DeliveryState, int]]:
    """Return open work and deliveries; None if the database does not answer soon."""
    try:
        async with asyncio.timeout(TALLY_SECONDS_MAX):
            return await state.in_thread(_look, state)
    except (PenstockError, TimeoutError):
        return None, {}


def _look(state: ServerState) -> tuple[Backlog, Mapping[DeliveryState, int]]:
    with state.plane.catalog.read() as tx:
        return get_backlog(tx, state.plane.clock()), count_by_delivery(tx)


async def get_openapi(context: RequestContext) -> PlainAnswer:
    """Show this API as an OpenAPI 3.1 document."""
    return PlainAnswer("application/json", context.state.openapi())


async def get_docs(context: RequestContext) -> PlainAnswer:
    """Show this API as a page to read."""
    return context.state.docs()


def get_standing(tx: Transaction, key: Key, now: Micros) -> SystemOverview:
    """Show the overview: open work by job; stuck, held and late lots; lots by the hour.

    A key of one namespace sees only that namespace. Numbers of lots are counted up to a
    thousand for each job and state; the hours count the last fifty thousand lot events.
    """
    return get_overview(tx, key.namespace, now)


def get_dataset_standing(
    tx: Transaction, now: Micros, namespace: str, dataset: str
) -> DatasetPartitioning:
    """Show the hold of a dataset, and the interval of its gaps, if it has one."""
    return get_dataset_partitioning(tx, namespace, dataset, now)


def get_job_standing(tx: Transaction, namespace: str, job: str) -> JobPartitioning:
    """Show the wiring of a job, if it works lot by lot, and whether it is an arc."""
    return get_job_partitioning(tx, namespace, job)


def get_run_family(tx: Transaction, key: Key, run: str) -> RunFamily:
    """Show a run and its descendants, with their times.

    A key of one namespace sees the runs of that namespace.
    """
    row = catalog.get_run(tx, run)
    key.require_own(row.job.namespace)
    return family(tx, row.id, only=key.namespace)


class StatsQuery(Query, frozen=True):
    """The period: DAY is 24 hours, WEEK is 7 days of the time zone."""

    period: catalog.Period = catalog.Period.DAY
    timezone: str = "UTC"


def event_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[EventInterval]:
    """Count the events received in each interval, by type."""
    return catalog.lineage_event_stats(tx, query.period, query.timezone, now)


def job_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the jobs at the end of each interval."""
    return catalog.job_stats(tx, query.period, query.timezone, now)


def dataset_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the datasets at the end of each interval."""
    return catalog.dataset_stats(tx, query.period, query.timezone, now)


def source_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the sources at the end of each interval."""
    return catalog.source_stats(tx, query.period, query.timezone, now)


ROUTES = (
    Route(ASYNC, "GET", "/livez", get_livez, Reach.SHARED, None),
    Route(ASYNC, "GET", "/readyz", get_readyz, Reach.SHARED, None),
    Route(ASYNC, "GET", "/metrics", get_metrics, Reach.SHARED, media="text/plain"),
    Route(ASYNC, "GET", "/openapi.json", get_openapi, Reach.SHARED),
    Route(ASYNC, "GET", "/docs", get_docs, Reach.SHARED, media="text/html"),
    Route(READ, "GET", f"{BASE}/standing", get_standing, Reach.OWN),
    Route(
        READ,
        "GET",
        f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}/standing",
        get_dataset_standing,
    ),
    Route(READ, "GET", f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}/standing", get_job_standing),
    Route(READ, "GET", f"{BASE}/jobs/runs/{{run}}/family", get_run_family, Reach.OWN),
    Route(READ, "GET", f"{BASE}/stats/lineage-events", event_stats, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/stats/jobs", job_stats, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/stats/datasets", dataset_stats, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/stats/sources", source_stats, Reach.EVERYTHING),
)
