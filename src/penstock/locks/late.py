"""Which datasets are late: lots that were to be there by now, after the newest that is."""

from penstock.catalog.shapes import Shape
from penstock.clock import Micros, format_time
from penstock.db.database import Row
from penstock.lots.ids import Interval, IntervalLot, parse_interval


class LateDataset(Shape, frozen=True):
    """A dataset whose newest lots are overdue: the first of them, how many, and since when.

    A lot is overdue when a whole interval has passed since its own ended. Lots that are missing
    before the newest one are gaps.
    """

    namespace: str
    dataset: str
    interval: Interval
    first: str
    count: int
    since: str


def late(rows: list[Row], now: Micros) -> list[LateDataset]:
    """The datasets that are late, the last to become so first."""
    found = [one for row in rows if (one := _late(row, now)) is not None]
    return sorted(found, key=lambda one: one.since, reverse=True)


def _late(row: Row, now: Micros) -> LateDataset | None:
    """One dataset, by its newest lot that is READY, or else by the oldest that was looked at."""
    namespace, dataset, declared, ready, oldest = row
    interval = Interval(declared)
    known = parse_interval(ready or oldest or "")
    if known is None or known.interval is not interval:
        return None
    length = interval.length
    first = known.end if ready else known.start
    count = (now - first) // length - 1
    if count < 1:
        return None
    lot = IntervalLot(interval, first).id
    since = format_time(first + 2 * length)
    return LateDataset(namespace, dataset, interval, lot, count, since)
