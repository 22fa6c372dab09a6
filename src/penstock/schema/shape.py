"""The base of wire types, and what all of them share.

Attributes are camelCase on the wire and nulls are kept. Times are ISO-8601 texts.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from msgspec import Raw, Struct

from penstock.clock import Micros, format_time


class Shape(Struct, frozen=True, rename="camel", gc=False):
    """A value in an answer. A client ignores fields that it does not know."""


T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True):
    """A page of a list, and the total."""

    items: Sequence[T]
    total_count: int


def raw(text: str) -> Any:
    """Return stored JSON that is sent as it is; the field that holds it states its type."""
    return Raw(text.encode())


def stored_json(value: object) -> bytes:
    """Return the JSON behind a value that `raw` made."""
    assert isinstance(value, Raw)
    return bytes(value)


def time_or_none(at: Micros | None) -> str | None:
    """Return a time as ISO-8601, or None."""
    return None if at is None else format_time(at)


class Empty(Struct, frozen=True):
    """An answer without content, as the empty JSON object that clients expect."""


class Refusal(Struct, frozen=True):
    """The body of an error: the status again, and a message with the next step."""

    code: int
    message: str
