"""Patterns in the keys of objects: the time, or the lot, that a key tells.

`dt={year}-{month}-{day}/hour={hour}/` is fitted from the beginning of a key; `*` stands for
anything, and what follows the pattern is free. Times are UTC. `{epoch}` is a count of seconds,
milliseconds or microseconds since 1970, told apart by its digits; `{lot}` is the lot itself.
"""

import re
from datetime import UTC, datetime
from typing import Final

from penstock.clock import SECOND, Micros, from_datetime, to_datetime
from penstock.errors import Invalid
from penstock.lots.ids import Interval, check_lot

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
_FINEST: Final = {Interval.HOUR: "hour", Interval.DAY: "day"}  # the others need the minute


class KeyPattern:
    """A pattern that was found to make sense."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces = _TOKEN.split(text)[::3]
        tokens = list(_TOKEN.finditer(text))
        self._tokens = [token[1] if token[1] is not None else "*" for token in tokens]
        fields = [token for token in self._tokens if token != "*"]
        if unknown := [field for field in fields if field not in _EXPRESSIONS]:
            known = ", ".join(f"{{{field}}}" for field in _EXPRESSIONS)
            raise Invalid(f"pattern {text!r} has {{{unknown[0]}}}, which is none of {known}")
        self.fields = frozenset(fields)
        kinds = [bool(self.fields & set(kind)) for kind in (CALENDAR, ("epoch",), ("lot",))]
        if sum(kinds) != 1:
            raise Invalid(
                f"pattern {text!r} must have {{year}}, {{month}}, {{day}} and so on, or {{epoch}}, "
                "or {lot}: one of the three"
            )
        if kinds[0] and not self.fields >= {"year", "month", "day"}:
            raise Invalid(f"pattern {text!r} does not tell the day; add {{year}}{{month}}{{day}}")
        if "minute" in self.fields and "hour" not in self.fields:
            raise Invalid(f"pattern {text!r} has {{minute}} without {{hour}}; add {{hour}}")
        self._fitting = re.compile(self._expression(), re.DOTALL)

    def _expression(self) -> str:
        parts, met = [re.escape(self._pieces[0])], set[str]()
        for token, literal in zip(self._tokens, self._pieces[1:], strict=True):
            if token == "*":
                parts.append(".*?")
            elif token in met:  # a field that comes again says the same again
                parts.append(f"(?P={token})")
            else:
                met.add(token)
                parts.append(f"(?P<{token}>{_EXPRESSIONS[token]})")
            parts.append(re.escape(literal))
        return "".join(parts)

    def check_places(self, interval: Interval) -> None:
        """Refuse an interval that is finer than the time in the keys."""
        needed = _FINEST.get(interval, "minute")
        if "epoch" not in self.fields and needed not in self.fields:
            raise Invalid(f"the pattern tells no {needed}; {interval} lots need {{{needed}}} in it")

    def time_of(self, key: str) -> Micros | None:
        """The time that a key tells; None if it does not fit, or names a day that is not."""
        found = self._fitting.match(key)
        if found is None:
            return None
        told = found.groupdict()
        if epoch := told.get("epoch"):
            return int(epoch) * _EPOCH_UNITS[len(epoch)]
        year, month, day, hour, minute = (int(told.get(field) or 0) for field in CALENDAR)
        try:
            moment = datetime(year, month, day, hour, minute, tzinfo=UTC)
        except ValueError:
            return None
        return from_datetime(moment)

    def lot_of(self, key: str) -> str | None:
        """The lot that a key names; None if it does not fit, or is no lot id."""
        found = self._fitting.match(key)
        try:
            return check_lot(found["lot"]) if found is not None else None
        except Invalid:
            return None

    def refusal(self, key: str) -> str:
        """Why a key tells neither a time nor a lot; nothing if it does."""
        found = self._fitting.match(key)
        if found is None:
            return f"its key does not fit the pattern {self._text}"
        if "lot" not in self.fields:
            return "its key names a day that is not" if self.time_of(key) is None else ""
        try:
            check_lot(found["lot"])
        except Invalid as refusal:
            return str(refusal)
        return ""

    def before(self, at: Micros) -> str:
        """A key before every key that tells this time or a later one; nothing, if none is.

        Keys sort by time only where fields come largest first, with nothing free before them.
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
        # One character less: the key itself is to be listed, too.
        return text[:-1]
