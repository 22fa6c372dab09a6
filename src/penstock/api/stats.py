"""Counts by hour and by day."""

from collections.abc import Sequence

from penstock.api.parameters import Query
from penstock.api.routing import BASE, Reach, Route
from penstock.catalog import reading
from penstock.catalog.shapes import EventInterval, IntervalCount
from penstock.clock import Micros
from penstock.db import Transaction


class StatsQuery(Query, frozen=True):
    """How far back: DAY is 24 hours, WEEK is 7 days of the time zone."""

    period: reading.Period = reading.Period.DAY
    timezone: str = "UTC"


def event_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[EventInterval]:
    """Count the events received in each interval, by type."""
    return reading.lineage_event_stats(tx, query.period, query.timezone, now)


def job_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the jobs there were at the end of each interval."""
    return reading.job_stats(tx, query.period, query.timezone, now)


def dataset_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the datasets there were at the end of each interval."""
    return reading.dataset_stats(tx, query.period, query.timezone, now)


def source_stats(tx: Transaction, query: StatsQuery, now: Micros) -> Sequence[IntervalCount]:
    """Count the sources there were at the end of each interval."""
    return reading.source_stats(tx, query.period, query.timezone, now)


ROUTES = (
    Route("GET", f"{BASE}/stats/lineage-events", event_stats, Reach.EVERYTHING),
    Route("GET", f"{BASE}/stats/jobs", job_stats, Reach.EVERYTHING),
    Route("GET", f"{BASE}/stats/datasets", dataset_stats, Reach.EVERYTHING),
    Route("GET", f"{BASE}/stats/sources", source_stats, Reach.EVERYTHING),
)
