"""A stretch of time as the lots of one interval, and which interval the lots of a dataset have."""

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
Bound = str | Micros | None  # a time, or a lot id, or nothing: as far as there is anything

_SAMPLE = 100
_DAY_CHARS = 8
_HEAD_CHARS = {Interval.HOUR: 6, Interval.DAY: 4}  # of a month, and of a year; else of a day


class Span(Struct, frozen=True):
    """Every lot of an interval that begins in [start, end); both are whole multiples of it."""

    interval: Interval
    start: Micros
    end: Micros

    @property
    def count(self) -> int:
        """How many lots there are in it."""
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
        """Its first and its last lot as one text, as statements take it."""
        return self.first + self.last

    @property
    def width(self) -> int:
        """How many characters the ids of its lots have."""
        return len(self.first)

    @property
    def head(self) -> int:
        """How many characters the ids of all lots of a stretch begin with, and no others do."""
        return _HEAD_CHARS.get(self.interval, _DAY_CHARS)

    def lots(self) -> Iterator[str]:
        """Its lots, oldest first; quicker than to name each interval by itself."""
        length, at = self.interval.length, self.start
        while at < self.end:
            day = at - at % DAY
            following = min(day + DAY, self.end)
            name = IntervalLot(Interval.DAY, day).id[:8]
            endings = _endings(self.interval)[(at - day) // length : (following - day) // length]
            yield from (name + ending for ending in endings)
            at = following

    def stretches(self) -> list["Span"]:
        """The span cut into pieces that are counted at once.

        A piece ends with its day, or its month or year where lots are long: there, ids of one
        interval stand together as text, whatever other lots the dataset has and however the
        database collates.
        """
        starts = [self.start]
        while (following := _after(starts[-1], self.head)) < self.end:
            starts.append(following)
        ends = [*starts[1:], self.end]
        pairs = zip(starts, ends, strict=True)
        return [Span(self.interval, start, end) for start, end in pairs if start < end]


def _after(at: Micros, head: int) -> Micros:
    """When the next day begins, or the next month or year, by how many characters name it."""
    if head == _DAY_CHARS:
        return at - at % DAY + DAY
    day = to_datetime(at)
    month = day.month % 12 + 1 if head == _HEAD_CHARS[Interval.HOUR] else 1
    year = day.year + (month == 1)
    if year > MAXYEAR:  # nothing begins after it
        return from_datetime(datetime.max.replace(tzinfo=UTC)) + 1
    return from_datetime(datetime(year, month, 1, tzinfo=UTC))


@lru_cache(maxsize=len(Interval))
def _endings(interval: Interval) -> tuple[str, ...]:
    """What follows the day in the ids of a day's lots."""
    return tuple(lot[8:] for lot in interval.lots(0, DAY))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Spans in their order, those that overlap or follow each other as one."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if found and span.start <= found[-1].end:
            end = max(span.end, found[-1].end)
            found[-1] = Span(span.interval, found[-1].start, end)
        else:
            found.append(span)
    return found


def intersect(spans: Sequence[Span], others: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """What spans have in common with others, and with which; both in order, and each apart."""
    for span in spans:
        first = bisect_right(others, span.start, key=lambda other: other.end)
        for which in range(first, len(others)):
            other = others[which]
            if other.start >= span.end:
                break
            start, end = max(span.start, other.start), min(span.end, other.end)
            yield which, Span(span.interval, start, end)


def subtract(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What of spans is in none of others; both in order, and each apart."""
    found = []
    for span in spans:
        start = span.start
        for _, piece in intersect([span], others):
            if piece.start > start:
                found.append(Span(span.interval, start, piece.start))
            start = piece.end
        if start < span.end:
            found.append(Span(span.interval, start, span.end))
    return found


def select_touching(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The spans that have anything in common with others; both in order, and each apart."""
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
    """The lots of a dataset between two bounds, or Invalid if its lots have no interval.

    Times are half-open: [first, last). A lot is a bound with its whole interval, so that the last
    one belongs to the span. Without `last` it goes as far as intervals have ended; without
    `first` it begins with the first lot that there is.
    """
    cut = interval or find_interval(tx, dataset_id, name)
    start = _begin(tx, dataset_id, name, cut) if first is None else _moment(first, is_end=False)
    end = now - now % cut.length if last is None else _moment(last, is_end=True)
    span = Span(cut, start + -start % cut.length, end + -end % cut.length)
    if span.count < 1:
        raise Invalid(
            f"there is no lot of {cut} from {format_time(start)} to {format_time(end)}; "
            "let the range begin earlier, or end later"
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
    """The interval that was declared for a dataset, or that its lots have."""
    if (clock := clock_interval(name.name)) is not None:
        return clock
    declared = tx.fetch_one("interval_of_dataset", dataset_id=dataset_id)
    if declared is not None and declared[0]:
        return Interval(declared[0])
    lots = _sample(tx, dataset_id)
    met = sorted({lot.interval for lot in lots if lot is not None})
    where = f"the lots of {name.namespace}/{name.name}"
    if not met:
        what = "have free ids" if lots else "are not known: there are none"
        raise Invalid(
            f"{where} {what}, so nobody can say which are missing; say their interval, or declare "
            "it with the output of the arc that makes them"
        )
    if len(met) > 1:
        raise Invalid(f"{where} have the intervals {', '.join(met)}; say which one is meant")
    return met[0]


def _begin(tx: Transaction, dataset_id: str, name: EntityId, interval: Interval) -> Micros:
    lots = _sample(tx, dataset_id)
    starts = [lot.start for lot in lots if lot is not None and lot.interval is interval]
    if not starts:
        raise Invalid(
            f"{name.namespace}/{name.name} has no lot of {interval} to begin with; "
            "say from which time on"
        )
    return min(starts)


def has_free_ids(tx: Transaction, dataset_id: str) -> bool:
    """Whether a dataset has lots, and none of those looked at is named by an interval."""
    lots = _sample(tx, dataset_id)
    return bool(lots) and not any(lots)


def _sample(tx: Transaction, dataset_id: str) -> list[IntervalLot | None]:
    """The first and the last lots of a dataset; None for one whose id is free."""
    rows = tx.fetch("sample_lots", dataset_id=dataset_id, most=_SAMPLE)
    return [parse_interval(lot) for (lot,) in rows]
