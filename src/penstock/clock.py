"""Time as whole microseconds since 1970 in UTC, and its ISO-8601 form at the edges.

Integers compare, subtract and store the same way on every database; only people and
wire formats see text.
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
    """The machine's own time."""
    return time.time_ns() // 1000


def after(now: Micros, *times: Micros | None) -> Micros:
    """The time of a write that counts after those before it, although a clock was ahead then."""
    return max((now, *(time + 1 for time in times if time is not None)))


def lasts(until: Micros, length: Micros, now: Micros) -> bool:
    """Whether something of this length that was to end then is not over yet.

    What would last for more than twice its length was begun by a clock that was ahead: it is over,
    or it might last for years. Once its length is what clocks may differ by.
    """
    return now < until <= now + 2 * length


def from_datetime(moment: datetime) -> Micros:
    """A moment without an offset is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


_FIRST = from_datetime(datetime.min.replace(tzinfo=UTC))
END_OF_TIME: Micros = from_datetime(datetime.max.replace(tzinfo=UTC))


def parse_time(text: str) -> Micros:
    """Read an ISO-8601 moment; nanoseconds are cut to microseconds."""
    try:
        at = from_datetime(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        at = END_OF_TIME + 1
    # An offset can lead out of the years that can be written again.
    if not _FIRST <= at <= END_OF_TIME:
        raise Invalid(f"{text[:64]!r} is not a time; write it like 2026-11-15T09:30:00Z")
    return at


def has_zone(text: str) -> bool:
    """Whether an ISO-8601 moment states its zone, or is no moment at all."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return True


def to_datetime(at: Micros) -> datetime:
    """The moment as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


def format_time(at: Micros) -> str:
    """The moment as Marquez writes it, with milliseconds or, where there are any, microseconds."""
    seconds, micros = divmod(at, SECOND)
    if micros % 1000:
        return f"{_format_seconds(seconds)}.{micros:06d}Z"
    return f"{_format_seconds(seconds)}.{micros // 1000:03d}Z"


def say_time(at: Micros) -> str:
    """The moment as a sentence for people says it, to the second."""
    return f"{_format_seconds(at // SECOND).replace('T', ' ')} UTC"


@lru_cache(maxsize=4096)
def _format_seconds(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
