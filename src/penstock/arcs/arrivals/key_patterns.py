"""Patterns for object keys, which give the time or the lot of a key.

`dt={year}-{month}-{day}/hour={hour}/` matches from the start of a key. `*` matches anything, and
the key may continue after the pattern. Times are UTC. `{epoch}` counts seconds, milliseconds or
microseconds since 1970, according to its digits. `{lot}` is the lot itself.

Depositors choose the keys, so no key may take long to match. The text between two `*` is a piece.
The first place where a piece fits leaves the most room for later pieces, so it is final. Time
therefore grows linearly with the key. Only a piece whose fields recur in a later piece is tried at
each of its places.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from penstock.clock import SECOND, Micros, from_datetime, to_datetime
from penstock.errors import Invalid
from penstock.schema.lot_ids import Interval, check_lot

CALENDAR: Final = ("year", "month", "day", "hour", "minute")
_EXPRESSIONS: Final = {
    "year": "[0-9]{4}",
    "month": "0[1-9]|1[0-2]",
    "day": "0[1-9]|[12][0-9]|3[01]",
    "hour": "[01][0-9]|2[0-3]",
    "minute": "[0-5][0-9]",
    "epoch": "(?<![0-9])(?:[0-9]{9,10}|[0-9]{13}|[0-9]{16})(?![0-9])",
    "lot": "[^/]+",
}
_EPOCH_UNITS: Final = {9: SECOND, 10: SECOND, 13: 1000, 16: 1}  # by digits
_TOKEN = re.compile(r"\{([^{}]*)\}|(\*)")
_FIELD = re.compile(r"\{([^{}]*)\}")
_FINEST: Final = {Interval.HOUR: "hour", Interval.DAY: "day"}  # the others need the minute
Piece = Sequence[str]  # literals, and the names of fields between them


class KeyPattern:
    """A checked pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces = _TOKEN.split(text)[::3]
        tokens = list(_TOKEN.finditer(text))
        self._tokens = [token[1] if token[1] is not None else "*" for token in tokens]
        fields = [token for token in self._tokens if token != "*"]
        if unknown := [field for field in fields if field not in _EXPRESSIONS]:
            names = ", ".join(f"{{{field}}}" for field in _EXPRESSIONS)
            raise Invalid(f"pattern {text!r} has {{{unknown[0]}}}, which is none of {names}")
        self.fields = frozenset(fields)
        kinds = [bool(self.fields & set(kind)) for kind in (CALENDAR, ("epoch",), ("lot",))]
        if sum(kinds) != 1:
            raise Invalid(
                f"pattern {text!r} must have {{year}}, {{month}}, {{day}} and so on, or {{epoch}}, "
                "or {lot}: one of the three"
            )
        if kinds[0] and not self.fields >= {"year", "month", "day"}:
            raise Invalid(f"pattern {text!r} has no day; add {{year}}{{month}}{{day}}")
        if "minute" in self.fields and "hour" not in self.fields:
            raise Invalid(f"pattern {text!r} has {{minute}} without {{hour}}; add {{hour}}")
        pieces = [_FIELD.split(piece) for piece in text.split("*")]
        self._keys = _LotKeys(text, pieces) if kinds[2] else _TimeKeys(text, pieces)

    def check_places(self, interval: Interval) -> None:
        """Refuse an interval that is finer than the time in the keys."""
        needed = _FINEST.get(interval, "minute")
        if "epoch" not in self.fields and needed not in self.fields:
            raise Invalid(f"the pattern has no {needed}; {interval} lots need {{{needed}}} in it")

    def time_of(self, key: str) -> Micros | None:
        """Return the time of a key; None if the key does not match or has no valid date."""
        values = self._keys.match(key)
        if values is None:
            return None
        if epoch := values.get("epoch"):
            return int(epoch) * _EPOCH_UNITS[len(epoch)]
        year, month, day, hour, minute = (int(values.get(field, 0)) for field in CALENDAR)
        try:
            moment = datetime(year, month, day, hour, minute, tzinfo=UTC)
        except ValueError:
            return None
        return from_datetime(moment)

    def lot_of(self, key: str) -> str | None:
        """Return the lot of a key; None if the key does not match or has no valid lot id."""
        values = self._keys.match(key)
        try:
            return check_lot(values["lot"]) if values is not None else None
        except Invalid:
            return None

    def refusal(self, key: str) -> str:
        """Explain why a key has no time or lot; empty if it has."""
        values = self._keys.match(key)
        if values is None:
            return f"its key does not fit the pattern {self._text}"
        if "lot" not in self.fields:
            return "its key names a day that is not" if self.time_of(key) is None else ""
        try:
            check_lot(values["lot"])
        except Invalid as refusal:
            return str(refusal)
        return ""

    def before(self, at: Micros) -> str:
        """Return a key that sorts before every key of this time or later; empty if there is none.

        Keys sort by time only if their fields come largest first, with no wildcard before them.
        """
        last = max((i for i, token in enumerate(self._tokens) if token in CALENDAR), default=-1)
        leading = self._tokens[: last + 1]
        first_met = tuple(dict.fromkeys(leading))
        if not leading or first_met != CALENDAR[: len(first_met)]:
            return ""
        moment = to_datetime(at)
        text = "".join(
            f"{literal}{getattr(moment, field):0{4 if field == 'year' else 2}d}"
            for literal, field in zip(self._pieces, leading, strict=False)
        )
        # One character less, because the key itself must be listed too.
        return text[:-1]


class _TimeKeys:
    """Keys with a time. At one place each field has only one value that can fit."""

    def __init__(self, text: str, pieces: Sequence[Piece]) -> None:
        seen = set[str]()
        parts = list[str]()
        loose = 0
        for index, piece in enumerate(pieces):
            later = {field for other in pieces[index + 1 :] for field in other[1::2]}
            is_loose = bool(index and (set(piece[1::2]) - seen) & later)
            loose += is_loose
            expression = _expression(piece, seen)
            if index:
                expression = f".*?{expression}" if is_loose else f"(?>.*?{expression})"
            parts.append(expression)
        if loose > 1:
            raise Invalid(
                f"pattern {text!r} repeats fields from several places behind a *; write * where "
                "they come again"
            )
        self._fitting = re.compile("".join(parts), re.DOTALL)

    def match(self, key: str) -> Mapping[str, str] | None:
        """Return the fields of a key; None if it does not match."""
        fit = self._fitting.match(key)
        return fit.groupdict() if fit is not None else None


def _expression(piece: Piece, seen: set[str]) -> str:
    """Return a piece as a regular expression; a repeated field must have the same value."""
    parts = [re.escape(piece[0])]
    for field, literal in zip(piece[1::2], piece[2::2], strict=True):
        parts.append(f"(?P={field})" if field in seen else f"(?P<{field}>{_EXPRESSIONS[field]})")
        parts.append(re.escape(literal))
        seen.add(field)
    return "".join(parts)


class _LotKeys:
    """Keys with a lot. The lot is as long as possible: it ends before a `/` or the next piece.

    A regular expression would try every length of the lot at every place.
    """

    def __init__(self, text: str, pieces: Sequence[Piece]) -> None:
        literals = [piece[::2] for piece in pieces]
        first = next(index for index, piece in enumerate(literals) if len(piece) > 1)
        self._before = [piece[0] for piece in literals[:first]]
        self._head = literals[first][0]
        self._tail = literals[first][1]
        self._after = literals[first][1:]
        self._rest = literals[first + 1 :]
        self._is_repeated = len(self._after) > 1 or any(len(piece) > 1 for piece in self._rest)
        is_bounded = self._head.endswith("/") or self._tail.startswith("/")
        if self._is_repeated and first and not is_bounded:
            raise Invalid(
                f"pattern {text!r} has {{lot}} again, and a * before the first; put a / directly "
                "before or behind the first {lot}, or write * where it comes again"
            )

    def match(self, key: str) -> Mapping[str, str] | None:
        """Return the lot of a key; None if it does not match."""
        limit = len(key) if self._is_repeated else self._limit(key)
        if limit < 0:
            return None
        for start, end in self._runs(key):
            # Try the longest lot first: go back from the end of the run.
            stop = min(end + len(self._tail), limit)
            while (found := key.rfind(self._tail, start + 1, stop)) >= 0:
                lot = key[start:found]
                if not self._is_repeated or self._fits(key, lot, found):
                    return {"lot": lot}
                stop = found + len(self._tail) - 1
        return None

    def _limit(self, key: str) -> int:
        """Return the last place where the text after the lot may end so that the rest fits;
        or -1.
        """
        limit = len(key)
        for piece in reversed(self._rest):
            if limit >= 0:
                limit = key.rfind(piece[0], 0, limit)
        return limit

    def _runs(self, key: str) -> Iterator[tuple[int, int]]:
        """Yield the places where a lot may begin, each with the `/` or end of key that
        bounds it.
        """
        position = 0
        for index, literal in enumerate(self._before):
            at = key.find(literal, position)
            if at < 0 or (not index and at):
                return
            position = at + len(literal)
        while (at := key.find(self._head, position)) >= 0:
            start = at + len(self._head)
            end = key.find("/", start)
            end = len(key) if end < 0 else end
            if self._before or not at:
                yield start, end
            if not self._before:
                return
            # Where it does not fit, no later start before the same `/` fits, unless it repeats.
            position = at + 1 if self._is_repeated else max(at + 1, end + 1 - len(self._head))

    def _fits(self, key: str, lot: str, end: int) -> bool:
        """Whether the text after a lot fits; the lot is known, so all of it is literal."""
        suffix = lot.join(self._after)
        if not key.startswith(suffix, end):
            return False
        position = end + len(suffix)
        for piece in self._rest:
            text = lot.join(piece)
            at = key.find(text, position)
            if at < 0:
                return False
            position = at + len(text)
        return True
