"""What goes back to a caller."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

Header = tuple[bytes, bytes]

JSON = b"application/json"
NO_SNIFF: Header = (b"x-content-type-options", b"nosniff")
NO_STORE: Header = (b"cache-control", b"no-store")
_encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """A status, a body and its type, and what else the headers say."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: tuple[Header, ...] = ()


class Empty(Struct, frozen=True):
    """An answer that says nothing but its status, as the JSON object that clients expect."""


class Page(NamedTuple):
    """An answer that is not JSON."""

    content_type: str
    text: bytes
    headers: tuple[Header, ...] = ()


Write = Callable[[bytes], Awaitable[None]]


class Flow(NamedTuple):
    """An answer written piece by piece, by a function that is cancelled when nobody reads it."""

    content_type: str
    pour: Callable[[Write], Coroutine[Any, Any, None]]


NOTHING = Empty()


def answer(value: object, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    """A value as JSON, or a page as it is."""
    if isinstance(value, Page):
        return Answer(status, value.text, value.content_type.encode(), value.headers)
    return Answer(status, _encode(value), headers=headers)


def messages(
    given: Answer, guards: tuple[Header, ...] = (NO_SNIFF, NO_STORE)
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer in the two messages of ASGI.

    Unless other `guards` say so, no browser takes it for another type, and no cache keeps it.
    """
    headers = [
        (b"content-type", given.content_type),
        (b"content-length", str(len(given.body)).encode()),
        *guards,
        *given.headers,
    ]
    start = {"type": "http.response.start", "status": given.status, "headers": headers}
    return start, {"type": "http.response.body", "body": given.body}
