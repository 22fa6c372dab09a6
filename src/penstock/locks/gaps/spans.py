"""Spans of time as the lots of one interval, and the interval of a dataset's lots."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import MAXYEAR, UTC, datetime
from functools import lru_cache

from msgspec import Struct

from penstock.clock import DAY, Micros, format_time, from_datetime, parse_time, to_datetime
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import Interval, IntervalLot, clock_interval, parse_interval

LOTS_MAX = 10_000_000
Bound = str | Micros | None  # a time, a lot id, or None for the first or last lot

_SAMPLE = 100
_DAY_CHARS = 8
_HEAD_CHARS = {Interval.HOUR: 6, Interval.DAY: 4}  # of a month, and of a year; else of a day


class Span(Struct, frozen=True):
    """All lots of an interval that begin in [start, end); both are multiples of the interval."""

    interval: Interval
    start: Micros
    end: Micros

    @property
    def count(self) -> int:
        """The number of lots."""
        return (self.end - self.start) // self.interval.length

    @property
    def first(self) -> str:
        """Its first lot."""
        return IntervalLot(self.interval, self.start).id

    @property
    def last(self) -> str:
        """Its last lot."""
        return IntervalLot(self.interval, self.end - self.interval.length).id

    @property
    def key(self) -> str:
        """The first and last lot as one text, for statements."""
        return self.first + self.last

    @property
    def width(self) -> int:
        """The length of the lot ids in characters."""
        return len(self.first)

    @property
    def head(self) -> int:
        """The length of the prefix that the lot ids of a stretch share, and no others have."""
        return _HEAD_CHARS.get(self.interval, _DAY_CHARS)

    def lots(self) -> Iterator[str]:
        """Yield the lots, oldest first; faster than formatting each interval."""
        length, at = self.interval.length, self.start
        while at < self.end:
            day = at - at % DAY
            following = min(day + DAY, self.end)
            name = IntervalLot(Interval.DAY, day).id[:8]
            endings = _endings(self.interval)[(at - day) // length : (following - day) // length]
            yield from (name + ending for ending in endings)
            at = following

    def stretches(self) -> list["Span"]:
        """Divide the span into pieces that are counted together.

        A piece ends with its day, or with its month or year for long intervals. Inside a piece, ids
        of one interval are adjacent as text, whatever the other lots and the collation are.
        """
        starts = [self.start]
        while (following := _after(starts[-1], self.head)) < self.end:
            starts.append(following)
        ends = [*starts[1:], self.end]
        pairs = zip(starts, ends, strict=True)
        return [Span(self.interval, start, end) for start, end in pairs if start < end]


def _after(at: Micros, head: int) -> Micros:
    """Return the start of the next day, month or year; `head` is the length of its name."""
    if head == _DAY_CHARS:
        return at - at % DAY + DAY
    day = to_datetime(at)
    month = day.month % 12 + 1 if head == _HEAD_CHARS[Interval.HOUR] else 1
    year = day.year + (month == 1)
    if year > MAXYEAR:  # the end of time
        return from_datetime(datetime.max.replace(tzinfo=UTC)) + 1
    return from_datetime(datetime(year, month, 1, tzinfo=UTC))


@lru_cache(maxsize=len(Interval))
def _endings(interval: Interval) -> tuple[str, ...]:
    """Return the suffixes of the lot ids of a day."""
    return tuple(lot[8:] for lot in interval.lots(0, DAY))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Sort spans, and merge those that overlap or touch."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start <= merged[-1].end:
            end = max(span.end, merged[-1].end)
            merged[-1] = Span(span.interval, merged[-1].start, end)
        else:
            merged.append(span)
    return merged


def intersect(spans: Sequence[Span], others: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Yield the intersections of spans with others, with the index of the other.

    Both are sorted, and neither overlaps itself.
    """
    for span in spans:
        first = bisect_right(others, span.start, key=lambda other: other.end)
        for which in range(first, len(others)):
            other = others[which]
            if other.start >= span.end:
                break
            start, end = max(span.start, other.start), min(span.end, other.end)
            yield which, Span(span.interval, start, end)


def subtract(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Subtract others from spans; both are sorted, and neither overlaps itself."""
    pieces = []
    for span in spans:
        start = span.start
        for _, piece in intersect([span], others):
            if piece.start > start:
                pieces.append(Span(span.interval, start, piece.start))
            start = piece.end
        if start < span.end:
            pieces.append(Span(span.interval, start, span.end))
    return pieces


def select_touching(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return the spans that intersect others; both are sorted."""
    return [spans[which] for which in sorted({which for which, _ in intersect(others, spans)})]


def find_span(
    tx: Transaction,
    dataset_id: str,
    name: EntityId,
    first: Bound,
    last: Bound,
    now: Micros,
    interval: Interval | None = None,
) -> Span:
    """Return the lots of a dataset between two bounds; raise Invalid without an interval.

    Times are half-open: [first, last). A lot as a bound includes its whole interval. Without
    `last`, the span ends with the last interval that has ended; without `first`, it begins with
    the first lot.
    """
    cut = interval or find_interval(tx, dataset_id, name)
    start = _begin(tx, dataset_id, name, cut) if first is None else _moment(first, is_end=False)
    end = now - now % cut.length if last is None else _moment(last, is_end=True)
    span = Span(cut, start + -start % cut.length, end + -end % cut.length)
    if span.count < 1:
        raise Invalid(
            f"there is no lot of {cut} from {format_time(start)} to {format_time(end)}; "
            "begin the range earlier, or end it later"
        )
    if span.count > LOTS_MAX:
        raise Invalid(
            f"{span.first} to {span.last} are {span.count} lots; ask for {LOTS_MAX} at most"
        )
    return span


def _moment(bound: str | Micros, *, is_end: bool) -> Micros:
    if not isinstance(bound, str):
        return bound
    lot = parse_interval(bound)
    if lot is None:
        return parse_time(bound)
    return lot.end if is_end else lot.start


def find_interval(tx: Transaction, dataset_id: str, name: EntityId) -> Interval:
    """Return the interval that was declared for a dataset, or that its lots have."""
    if (clock := clock_interval(name.name)) is not None:
        return clock
    declared = tx.fetch_one("interval_of_dataset", dataset_id=dataset_id)
    if declared is not None and declared[0]:
        return Interval(declared[0])
    lots = _sample(tx, dataset_id)
    intervals = sorted({lot.interval for lot in lots if lot is not None})
    where = f"the lots of {name.namespace}/{name.name}"
    if not intervals:
        what = "have free ids" if lots else "are unknown: it has none"
        raise Invalid(
            f"the missing lots cannot be listed: {where} {what}; name an interval, or declare it "
            "on the output of the arc that makes them"
        )
    if len(intervals) > 1:
        raise Invalid(
            f"{where} have the intervals {', '.join(intervals)}; name the one that you mean"
        )
    return intervals[0]


def _begin(tx: Transaction, dataset_id: str, name: EntityId, interval: Interval) -> Micros:
    lots = _sample(tx, dataset_id)
    starts = [lot.start for lot in lots if lot is not None and lot.interval is interval]
    if not starts:
        raise Invalid(
            f"{name.namespace}/{name.name} has no lot of {interval} to begin with; "
            "name the first time"
        )
    return min(starts)


def has_free_ids(tx: Transaction, dataset_id: str) -> bool:
    """Whether a dataset has lots, and no sampled one is named by an interval."""
    lots = _sample(tx, dataset_id)
    return bool(lots) and not any(lots)


def _sample(tx: Transaction, dataset_id: str) -> list[IntervalLot | None]:
    """Read the first and last lots of a dataset; None stands for a free id."""
    rows = tx.fetch("sample_lots", dataset_id=dataset_id, most=_SAMPLE)
    return [parse_interval(lot) for (lot,) in rows]
