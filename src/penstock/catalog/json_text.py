"""JSON that may be hostile, looked at as text: how deep it nests, what is wrong with it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from penstock.errors import Invalid, Malformed, TooLarge

# Python reads no longer integer; one that is kept would make every list unreadable that it is in.
INTEGER_DIGITS_MAX: Final = 4000

# What it has read it never gives back, and a text without an end goes to the end: on hostile bytes
# it would else begin anew at every quote.
_QUOTED = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[][{},]', re.DOTALL)
# The first half of a surrogate pair that the second does not follow, written as an escape.
_LONE_HALF = re.compile(
    rb"(?<!\\)(?:\\\\)*\\u(d[89ab][0-9a-f]{2})(?!\\ud[c-f][0-9a-f]{2})", re.IGNORECASE
)
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_BRACKETS_OPEN_MAX = 100_000  # of an event that is refused anyway, though alone
# A few thousand strings and what is between them. One call over a large body would keep every
# other thread waiting until it ends.
_STRETCH = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+"?){1,4096}+', re.DOTALL)
_STRETCH_BYTES = 1024 * 1024
_DIGITS = b"0123456789"
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (INTEGER_DIGITS_MAX + 1))


def check_depth(body: bytes, depth_max: int) -> None:
    """Refuse JSON that nests deeper than the limit, before anything recurses into it."""
    if body.count(b"{") + body.count(b"[") <= depth_max:
        return
    depth = 0
    for stretch in _stretches(body):
        for bracket in _QUOTED.sub(b"", stretch).translate(None, _NOT_BRACKETS):
            if bracket in b"{[":
                depth += 1
                if depth > depth_max:
                    raise TooLarge(f"the JSON nests deeper than {depth_max} levels; flatten it")
            else:
                depth -= 1


def _stretches(body: bytes) -> Iterator[bytes]:
    """Cut a large body where no string is cut."""
    if len(body) <= _STRETCH_BYTES:
        yield body
        return
    for match in _STRETCH.finditer(body):
        yield match[0]


def check_numbers(body: bytes) -> None:
    """Refuse numbers with so many digits that those who read them back give up."""
    # A number that is too long covers one of these places.
    places = range(0, len(body), INTEGER_DIGITS_MAX)
    if len(body) <= INTEGER_DIGITS_MAX or not any(
        _LONG_NUMBER.search(body, max(0, at - INTEGER_DIGITS_MAX), at + INTEGER_DIGITS_MAX + 1)
        for at in places
        if body[at] in _DIGITS
    ):
        return
    if _LONG_NUMBER.search(_QUOTED.sub(b"", body)):
        raise Invalid(
            f"a number has more than {INTEGER_DIGITS_MAX} digits, which nobody can read back; "
            "write it as a text"
        )


def why_not_json(error: Exception, body: bytes) -> str:
    """What is wrong with a text that is not JSON.

    Where half a surrogate pair stands alone, msgspec says that the text is truncated.
    """
    half = _LONE_HALF.search(body) if "truncated" in str(error) else None
    if half is None:
        return str(error)
    return f"it holds half of a surrogate pair, \\u{half[1].decode()}; write both or neither"


def items_of_list(body: bytes) -> Sequence[bytes]:
    """The items of a JSON list, of which some are not JSON; each is told by its brackets alone."""
    text = body.strip()
    items: list[bytes] = []
    depth, begin = 0, 1
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case b"[" | b"{":
                depth += 1
                if depth > _BRACKETS_OPEN_MAX:
                    break
            case b"]" | b"}":
                depth -= 1
            case b"," if depth == 1:
                items.append(text[begin : mark.start()])
                begin = mark.end()
        if depth == 0:
            break
    if not text.startswith(b"[") or depth != 0 or mark.end() != len(text):
        raise Malformed("the body is not JSON: no list whose brackets fit together")
    return [*items, text[begin : mark.start()]]
