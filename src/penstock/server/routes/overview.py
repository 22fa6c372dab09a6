"""How everything stands now, and what a dataset, a job or a run is, for whoever shows it."""

from collections.abc import Sequence
from contextlib import suppress

from penstock.access.keys import Key
from penstock.arcs.queries import find_arc
from penstock.catalog.lineage.runs import family
from penstock.catalog.queries import catalog
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.locks.queries.overview import standing
from penstock.locks.queries.partitioning import lotwise_dataset, lotwise_job
from penstock.schema.admin import SystemOverview
from penstock.schema.catalog import EventInterval, IntervalCount
from penstock.schema.lineage import RunFamily
from penstock.schema.locks import LotwiseDataset, LotwiseJob
from penstock.server.parameters import Query
from penstock.server.routing import BASE, READ, Reach, Route


def get_standing(tx: Transaction, key: Key, now: Micros) -> SystemOverview:
    """Show how everything stands: open work by job, what is stuck, held or late, lots by the hour.

    A key that is for one namespace sees what is of that one. Numbers of lots are counted up to a
    thousand for each job and state; the last fifty thousand lot events make the hours.
    """
    return standing(tx, key.namespace, now)


def get_dataset_standing(
    tx: Transaction, now: Micros, namespace: str, dataset: str
) -> LotwiseDataset:
    """Say whether a dataset is held, and by which interval its gaps can be named, if by any."""
    return lotwise_dataset(tx, namespace, dataset, now)


def get_job_standing(tx: Transaction, namespace: str, job: str) -> LotwiseJob:
    """Say whether a job works lot by lot, and how; and whether it is an arc."""
    is_arc = False
    with suppress(NotFound):
        find_arc(tx, namespace, job)
        is_arc = True
    return lotwise_job(tx, namespace, job, is_arc=is_arc)


def get_run_family(tx: Transaction, key: Key, run: str) -> RunFamily:
    """Show a run and the runs that it began, and so on, with when each went.

    A key that is for one namespace sees those of that one.
    """
    found = catalog.get_run(tx, run)
    key.require_own(found.job.namespace)
    return family(tx, found.id, only=key.namespace)


ROUTES = (
    Route(READ, "GET", f"{BASE}/standing", get_standing, Reach.OWN),
    Route(
        READ,
        "GET",
        f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}/standing",
        get_dataset_standing,
    ),
    Route(READ, "GET", f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}/standing", get_job_standing),
    Route(READ, "GET", f"{BASE}/jobs/runs/{{run}}/family", get_run_family, Reach.OWN),
)


class StatsQuery(Query, frozen=True):
    """How far back: DAY is 24 hours, WEEK is 7 days of the time zone."""

    period: catalog.Period = catalog.Period.DAY
    timezone: str = "UTC"


def event_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[EventInterval]:
    """Count the events received in each interval, by type."""
    return catalog.lineage_event_stats(tx, query.period, query.timezone, now)


def job_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the jobs there were at the end of each interval."""
    return catalog.job_stats(tx, query.period, query.timezone, now)


def dataset_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the datasets there were at the end of each interval."""
    return catalog.dataset_stats(tx, query.period, query.timezone, now)


def source_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the sources there were at the end of each interval."""
    return catalog.source_stats(tx, query.period, query.timezone, now)


STATS_ROUTES = (
    Route(READ, "GET", f"{BASE}/stats/lineage-events", event_stats, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/stats/jobs", job_stats, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/stats/datasets", dataset_stats, Reach.EVERYTHING),
    Route(READ, "GET", f"{BASE}/stats/sources", source_stats, Reach.EVERYTHING),
)
