"""Times, spans and sizes as people write and read them."""

import re

from penstock.clock import DAY, HOUR, SECOND, Clock, Micros, format_time, parse_time, system_clock
from penstock.errors import Invalid

_UNITS: dict[str, Micros] = {
    "s": SECOND,
    "m": 60 * SECOND,
    "h": HOUR,
    "d": DAY,
    "w": 7 * DAY,
}
_LONGEST: Micros = 365_000 * DAY  # a thousand years: Python's dates begin in year 1
_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")
_SPAN = re.compile(r"(\d{1,9})([smhdw])")


def read_span(text: str) -> Micros:
    """Read a span such as 90d, 12h or 2w."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise Invalid(f"{text[:64]!r} is not a time span; write it like 90d, 12h or 2w")
    span = int(match[1]) * _UNITS[match[2]]
    if span > _LONGEST:
        raise Invalid(f"{text[:64]!r} is too long; the longest span is {_LONGEST // DAY}d")
    return span


def read_moment(text: str | None, clock: Clock = system_clock) -> str | None:
    """Read a time as the server expects it; a span such as 2h is that long ago."""
    if text is None:
        return None
    if _SPAN.fullmatch(text.strip()):
        return format_time(clock() - read_span(text))
    try:
        return format_time(parse_time(text))
    except Invalid:
        raise Invalid(
            f"{text[:64]!r} is not a time; write it like 2026-11-15T09:30:00Z, 2026-11-15, "
            "or 2h for two hours ago"
        ) from None


def show_time(text: str | None) -> str:
    """Format a UTC time to the second: 2026-11-15 09:30:00."""
    return text[:19].replace("T", " ") if text else ""


def show_duration(milliseconds: int | None) -> str:
    """Format a duration in the unit that fits."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def show_bytes(size: float) -> str:
    """Format a number of bytes in the unit that fits."""
    for unit in _SIZES:
        if size < 1000 or unit == _SIZES[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
