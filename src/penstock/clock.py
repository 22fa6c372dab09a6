"""Times as integer microseconds since 1970 in UTC; ISO-8601 at the edges.

Integers compare, subtract and store the same way on every database. Only people and wire formats
see text.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from penstock.errors import Invalid

Micros = int
Clock = Callable[[], Micros]

SECOND: Micros = 1_000_000
HOUR: Micros = 3600 * SECOND
DAY: Micros = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def system_clock() -> Micros:
    """Return the time of the machine."""
    return time.time_ns() // 1000


def after(now: Micros, *times: Micros | None) -> Micros:
    """Return the time of a write: later than all before it, even if a clock was ahead."""
    return max((now, *(time + 1 for time in times if time is not None)))


def lasts(until: Micros, length: Micros, now: Micros) -> bool:
    """Return whether a period that ends at a time is not over yet.

    A period that would last more than twice its length was begun by a clock that was ahead. It
    counts as over, because it might last for years. For short lengths the permitted difference of
    clocks applies.
    """
    return now < until <= now + 2 * length


def from_datetime(moment: datetime) -> Micros:
    """Return a moment; without an offset it is UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


_FIRST = from_datetime(datetime.min.replace(tzinfo=UTC))
END_OF_TIME: Micros = from_datetime(datetime.max.replace(tzinfo=UTC))


def parse_time(text: str) -> Micros:
    """Parse an ISO-8601 moment; cut nanoseconds to microseconds."""
    try:
        at = from_datetime(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        at = END_OF_TIME + 1
    # An offset can lead to a year that cannot be written.
    if not _FIRST <= at <= END_OF_TIME:
        raise Invalid(f"{text[:64]!r} is not a time; write it like 2026-11-15T09:30:00Z")
    return at


def has_zone(text: str) -> bool:
    """Return whether an ISO-8601 moment states its zone, or is no moment."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return True


def to_datetime(at: Micros) -> datetime:
    """Return the moment as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


def format_time(at: Micros) -> str:
    """Format a moment as Marquez does: with milliseconds, or microseconds if needed."""
    seconds, micros = divmod(at, SECOND)
    if micros % 1000:
        return f"{_format_seconds(seconds)}.{micros:06d}Z"
    return f"{_format_seconds(seconds)}.{micros // 1000:03d}Z"


def say_time(at: Micros) -> str:
    """Format a moment for people, to the second."""
    return f"{_format_seconds(at // SECOND).replace('T', ' ')} UTC"


@lru_cache(maxsize=4096)
def _format_seconds(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
