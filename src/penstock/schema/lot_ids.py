"""Lot ids: an interval of UTC such as `20230206PT5M286`, or any text that is safe in a path.

An interval lot is the day, the length of the interval and its ordinal in that day; a whole
day (`20230206PT24H`) has no ordinal. Every other id is free-form: it has no interval.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

import msgspec

from penstock.clock import DAY, HOUR, SECOND, Micros, from_datetime, to_datetime
from penstock.errors import Invalid
from penstock.ids import DOTS

LOT_CHARS_MAX = 200
CLOCK = "clock:"

_SHOWN_CHARS_MAX = 64
_MINUTE: Micros = 60 * SECOND
_FIRST = from_datetime(datetime.min.replace(tzinfo=UTC))
_LAST = from_datetime(datetime.max.replace(tzinfo=UTC))


class Interval(StrEnum):
    """The lengths of interval lots; each divides a day of UTC."""

    MINUTES_5 = "PT5M"
    MINUTES_10 = "PT10M"
    MINUTES_15 = "PT15M"
    HOUR = "PT1H"
    DAY = "PT24H"

    @property
    def length(self) -> Micros:
        """The length of one lot."""
        return _LENGTHS[self]

    def at(self, at: Micros) -> "IntervalLot":
        """Return the interval that holds a moment."""
        return IntervalLot(self, at - at % self.length)

    def lot_at(self, at: Micros) -> str:
        """Return the lot whose interval holds a moment."""
        return self.at(at).id

    def lots(self, start: Micros, end: Micros) -> Iterator[str]:
        """Yield every lot whose interval begins in [start, end), oldest first."""
        first = start + -start % self.length
        return (IntervalLot(self, at).id for at in range(first, end, self.length))


_LENGTHS = {
    Interval.MINUTES_5: 5 * _MINUTE,
    Interval.MINUTES_10: 10 * _MINUTE,
    Interval.MINUTES_15: 15 * _MINUTE,
    Interval.HOUR: HOUR,
    Interval.DAY: DAY,
}
INTERVAL_MAX: Micros = max(_LENGTHS.values())
_ORDINAL_DIGITS = {
    Interval.MINUTES_5: 3,
    Interval.MINUTES_10: 3,
    Interval.MINUTES_15: 3,
    Interval.HOUR: 2,
    Interval.DAY: 0,
}
_DIGITS = re.compile("[0-9]+")
_INTERVAL_SHAPE = re.compile(f"([0-9]+)({'|'.join(Interval)})([0-9]*)", re.IGNORECASE)
# UTF-8 cannot encode half a surrogate pair, so no database or store accepts it.
_UNSAFE = re.compile("[/\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class IntervalLot(msgspec.Struct, frozen=True):
    """One half-open interval of UTC."""

    interval: Interval
    start: Micros

    def __post_init__(self) -> None:
        if not _FIRST <= self.start <= _LAST:
            raise Invalid(
                f"no {self.interval} lot begins at {self.start} microseconds after 1970; "
                "lots are named from the year 1 to the year 9999"
            )
        if self.start % self.interval.length:
            raise Invalid(
                f"no {self.interval} lot begins at {self.start} microseconds after 1970; "
                "a lot begins at a whole multiple of its length"
            )

    @property
    def end(self) -> Micros:
        """The end of the interval, which is not part of it."""
        return self.start + self.interval.length

    @property
    def id(self) -> str:
        """The lot id that names this interval."""
        day = to_datetime(self.start)
        ordinal = self.start % DAY // self.interval.length
        digits = _ORDINAL_DIGITS[self.interval]
        shown = f"{ordinal:0{digits}d}" if digits else ""
        return f"{day.year:04d}{day.month:02d}{day.day:02d}{self.interval}{shown}"

    @property
    def next(self) -> Self:
        """The following interval."""
        return type(self)(self.interval, self.end)


def check_lot(text: str) -> str:
    """Return the lot id, or raise Invalid if it cannot be one segment of a path."""
    if not text:
        raise Invalid("a lot id is empty; name the lot, for example 20230206PT5M286")
    if len(text) > LOT_CHARS_MAX:
        raise Invalid(
            f"lot id {_shown(text)} has {len(text)} characters; use at most {LOT_CHARS_MAX}"
        )
    if unsafe := _UNSAFE.search(text):
        raise Invalid(
            f"lot id {_shown(text)} contains {unsafe[0]!r}; use no slash, backslash "
            "or control character"
        )
    if text in DOTS:
        raise Invalid(f"lot id {text!r} means a folder in a path; use another name")
    if text != text.strip():
        raise Invalid(f"lot id {_shown(text)} begins or ends with a blank; leave the blank out")
    parse_interval(text)
    return text


def parse_interval(lot: str) -> IntervalLot | None:
    """Return the interval that an id names, or None; raise Invalid if it is almost one."""
    shape = _INTERVAL_SHAPE.fullmatch(lot)
    if shape is None:
        return None
    day, name, ordinal = shape.groups()
    if name != name.upper():
        raise Invalid(f"lot id {_shown(lot)} is in lower case; write {name.upper()}")
    interval = Interval(name)
    start = _parse_day(lot, day) + _parse_ordinal(lot, interval, ordinal) * interval.length
    return IntervalLot(interval, start)


def _parse_day(lot: str, day: str) -> Micros:
    if len(day) != 8:
        raise Invalid(
            f"lot id {_shown(lot)} has a day of {len(day)} digits; write eight, like 20230206"
        )
    try:
        return from_datetime(datetime(int(day[:4]), int(day[4:6]), int(day[6:]), tzinfo=UTC))
    except ValueError:
        raise Invalid(
            f"lot id {_shown(lot)} names the day {day}, which does not exist; "
            "write year, month and day, like 20230206"
        ) from None


def _parse_ordinal(lot: str, interval: Interval, ordinal: str) -> int:
    digits = _ORDINAL_DIGITS[interval]
    last = DAY // interval.length - 1
    if not digits:
        if ordinal:
            raise Invalid(
                f"lot id {_shown(lot)} has {len(ordinal)} digits after {interval}; write none"
            )
        return 0
    span = f"{0:0{digits}d} to {last:0{digits}d}"
    if len(ordinal) != digits:
        raise Invalid(
            f"lot id {_shown(lot)} has {len(ordinal)} digits after {interval}; "
            f"write {digits}, from {span}"
        )
    if int(ordinal) > last:
        raise Invalid(
            f"lot id {_shown(lot)} names the ordinal {ordinal}, which no day has; "
            f"{interval} goes from {span}"
        )
    return int(ordinal)


def sort_key(lot: str) -> str:
    """Return a text whose byte order is the order in which lots are worked on.

    Each number is preceded by the count of its digits, so `9` sorts before `10` and the lots of an
    interval sort by time. Leading zeros only break ties.
    """
    zeros = []

    def counted(run: re.Match[str]) -> str:
        number = run[0].lstrip("0") or "0"
        zeros.append(_count(len(run[0]) - len(number)))
        return _count(len(number)) + number

    body = _DIGITS.sub(counted, lot)
    padding = "".join(zeros)
    # No lot id has a control character, so this one sorts before the rest of any longer id.
    return f"{body}\x01{padding}" if padding.strip("0") else body


def _count(number: int) -> str:
    """Write a count as one digit, or as `9` and three; as text they are ordered and prefix-free."""
    return str(number) if number < 9 else f"9{number:03d}"


def clock_interval(dataset_name: str) -> Interval | None:
    """Return the interval of a clock dataset such as `clock:PT1H`, or None."""
    if not dataset_name.startswith(CLOCK):
        return None
    try:
        return Interval(dataset_name.removeprefix(CLOCK))
    except ValueError:
        known = ", ".join(f"{CLOCK}{interval}" for interval in Interval)
        raise Invalid(
            f"dataset {_shown(dataset_name)} is a clock of no known interval; use one of {known}"
        ) from None


def is_clock(dataset_name: str) -> bool:
    """Return whether a dataset has the name of a clock, also of one with an unknown interval."""
    return dataset_name.startswith(CLOCK)


def _shown(text: str) -> str:
    return repr(text[:_SHOWN_CHARS_MAX])
