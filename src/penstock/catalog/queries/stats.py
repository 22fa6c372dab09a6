"""Numbers of events, jobs, datasets and sources by hour or day."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.catalog.queries.events import hour_of
from penstock.clock import HOUR, Micros, format_time, from_datetime, to_datetime
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.schema.catalog import EventInterval, IntervalCount

# In every time zone, days begin on a quarter of an hour of UTC.
SLOT: Micros = HOUR // 4


class Period(StrEnum):
    """The period of statistics."""

    DAY = "DAY"  # 24 hours
    WEEK = "WEEK"  # 7 days


def lineage_event_stats(
    tx: Transaction, period: Period, timezone: str, now: Micros
) -> list[EventInterval]:
    """Return events by interval and type; an hour belongs to the day on which it begins."""
    bounds = _bounds(period, timezone, now)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    rows = tx.fetch("count_events_per_hour", after=bounds[0], before=bounds[-1])
    for hour, event_type, total in rows:
        counts[bisect_right(bounds, hour) - 1][event_type] += total
    return [_events(*span, counts[index]) for index, span in enumerate(pairwise(bounds))]


def dataset_stats(
    tx: Transaction, period: Period, timezone: str, now: Micros
) -> list[IntervalCount]:
    """Return the number of today's datasets that existed at the end of each interval."""
    bounds = _bounds(period, timezone, now)
    return _cumulative(tx, bounds, "count_datasets_created", "read_tallies", "DATASET")


def job_stats(tx: Transaction, period: Period, timezone: str, now: Micros) -> list[IntervalCount]:
    """Return the number of today's jobs that existed at the end of each interval."""
    bounds = _bounds(period, timezone, now)
    return _cumulative(tx, bounds, "count_jobs_created", "read_tallies", "JOB")


def source_stats(
    tx: Transaction, period: Period, timezone: str, now: Micros
) -> list[IntervalCount]:
    """Return the number of sources that existed at the end of each interval."""
    return _cumulative(tx, _bounds(period, timezone, now), "count_sources_created", "count_sources")


def _cumulative(
    tx: Transaction, bounds: Sequence[Micros], created: str, totals: str, kind: str = ""
) -> list[IntervalCount]:
    """Subtract those created after an interval from all that exist now."""
    rows, counted = tx.fetch_many(
        [(created, {"after": bounds[1], "slot": SLOT}), (totals, {"kind": kind})]
    )
    total = sum(count for _, count in counted)
    return [
        IntervalCount(
            start_interval=format_time(start),
            end_interval=format_time(end),
            count=total - sum(count for slot, count in rows if slot * SLOT >= end),
        )
        for start, end in pairwise(bounds)
    ]


def _events(start: Micros, end: Micros, counts: Counter[str]) -> EventInterval:
    total = counts.total()
    named = [counts[kind] for kind in ("FAIL", "START", "COMPLETE", "ABORT")]
    fail, started, complete, abort = named
    return EventInterval(
        start_interval=format_time(start),
        end_interval=format_time(end),
        count=total,
        fail=fail,
        start=started,
        complete=complete,
        abort=abort,
        other=total - sum(named),
    )


def _bounds(period: Period, timezone: str, now: Micros) -> list[Micros]:
    """Return the starts of the intervals, and the end of the last one, which contains `now`."""
    zone = _zone(timezone)
    if period is Period.DAY:
        end = hour_of(now) + HOUR
        return [end - hours * HOUR for hours in range(24, -1, -1)]
    today = to_datetime(now).astimezone(zone).date()
    days = (today + timedelta(days=days) for days in range(-6, 2))
    return [from_datetime(datetime.combine(day, time.min, tzinfo=zone)) for day in days]


def _zone(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(f"{name[:64]!r} is not a time zone; write it like Europe/Amsterdam") from None
