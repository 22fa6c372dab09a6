"""A call as a value: what is sent, how the answer is read, and whether it may be sent twice.

Nothing here speaks to a server. Whoever does, in threads or in an event loop, takes these.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from penstock.client.errors import ApiError, Failure
from penstock.client.uploads import Upload
from penstock.errors import Invalid
from penstock.ids import DOTS

T = TypeVar("T")
U = TypeVar("U")

BASE = "/api/v1"


class Pause(Struct, frozen=True):
    """That nothing is to be done for a while."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Request(Generic[T]):
    """One call of the API.

    `repeatable`: sent twice it does what it does once, so that it may be sent again when its
    answer was lost. `settle` is then given the second answer, or the refusal (404, 409) that it
    is because the first call was carried out, and says what became of both.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    query: Mapping[str, str | list[str]] = field(default_factory=dict)
    body: bytes | None = None
    upload: Upload | None = None
    timeout_seconds: float | None = None
    repeatable: bool = False
    settle: "Callable[[T | ApiError], Flow[T]] | None" = None

    def then(self, change: Callable[[T], U]) -> "Request[U]":
        """The same call, whose answer is changed by a function."""
        assert self.settle is None, "what settles a call knows its last form"
        before = self.read
        kept = {name: getattr(self, name) for name in _KEPT}
        return Request(read=lambda content: change(before(content)), **kept)

    def settled(self, settle: "Callable[[T | ApiError], Flow[T]]") -> "Request[T]":
        """The same call, which may be sent again."""
        return replace(self, repeatable=True, settle=settle)


_KEPT = tuple(each.name for each in fields(Request) if each.name != "read")
Step = Request[Any] | Pause
Flow = Generator[Step, Any, T]


def ask(request: Request[T]) -> Flow[T]:
    """Have one call made, once."""
    answer: T = yield request
    return answer


class Empty(Struct, frozen=True):
    """An answer that says no more than that it is done."""


def nothing(answer: object) -> None:
    """What is said of an answer that says nothing."""


def gone(outcome: ApiError | None) -> Flow[None]:
    """What was to be deleted and is not there was deleted."""
    if outcome is not None and outcome.code != 404:
        raise outcome
    yield from ()  # a flow, though one without steps


def get(shape: type[T], *segments: str, **query: object) -> Request[T]:
    """A call that only looks; a query parameter that is None is left out."""
    return _request("GET", shape, segments, query, repeatable=True)


def put(shape: type[T], *segments: str, body: bytes) -> Request[T]:
    """A call that makes something so."""
    return _request("PUT", shape, segments, {}, body=body, repeatable=True)


def delete(shape: type[T], *segments: str, **query: object) -> Request[T]:
    """A call that takes something away."""
    return _request("DELETE", shape, segments, query, repeatable=True)


def post(
    shape: type[T],
    *segments: str,
    body: bytes | None = None,
    repeatable: bool = False,
    **query: object,
) -> Request[T]:
    """A call that does something; unless it is `repeatable`, it is never done twice."""
    return _request("POST", shape, segments, query, body=body, repeatable=repeatable)


def page(read: Callable[[bytes], T], path: str) -> Request[T]:
    """A call for what is not below the API's base."""
    return Request(method="GET", path=path, read=read, repeatable=True)


def _request(
    method: str, shape: type[T], segments: Sequence[str], query: Mapping[str, object], **more: Any
) -> Request[T]:
    read = reader(shape)
    return Request(method=method, path=path(segments), read=read, query=params(query), **more)


def said(**fields: object) -> bytes:
    """A body of what is not None."""
    return written(given(**fields))


def written(value: object) -> bytes:
    """A value as JSON, or what of it JSON cannot hold."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise _no_text(error.object) from None
    except TypeError as error:
        raise Invalid(f"that cannot be written as JSON: {error}; send something else") from None


def _no_text(text: str) -> Invalid:
    return Invalid(
        f"{text[:64]!r} cannot be sent as a name or text: it holds half of a surrogate pair, "
        "or is made of bytes that are not UTF-8; correct it"
    )


def given(**fields: object) -> dict[str, object]:
    """What is not None."""
    return {name: value for name, value in fields.items() if value is not None}


def path(segments: Sequence[str]) -> str:
    """The path below the API's base; each segment is encoded whole.

    With an empty one it would be the path of something else, such as a list; httpx and proxies
    make the path of something else of one that is only dots.
    """
    for before, segment in zip(("", *segments), segments, strict=False):
        if not isinstance(segment, str):
            raise Invalid(f"a name is a text, and {segment!r} is none")
        if not segment:
            raise Invalid(f"the name after {before!r} is empty; give one")
        if segment in DOTS:
            raise Invalid(
                f"the name after {before!r} is {segment!r}, which means a folder in a path and "
                "names nothing; give another"
            )
    return "/".join([BASE, *(quote(_sendable(segment), safe="") for segment in segments)])


def params(query: Mapping[str, object]) -> dict[str, str | list[str]]:
    """Query parameters as they are sent."""
    return {
        name: _text(value) for name, value in query.items() if value is not None and value != ()
    }


def _text(value: object) -> str | list[str]:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_sendable(str(each)) for each in value]
    return _sendable(str(value))


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _no_text(text) from None
    return text


def reader(shape: type[T]) -> Callable[[bytes], T]:
    """What reads a shape; two threads that use one first at once would crash msgspec.

    Facets hold what any producer wrote, also numbers beyond a double: those are infinite here,
    and do not make the whole answer unreadable.
    """
    with _reading:
        found: msgspec.json.Decoder[T] | None = _readers.get(shape)
        if found is None:
            found = _readers[shape] = msgspec.json.Decoder(shape, float_hook=float)
        return found.decode


_reading = threading.Lock()
_readers: dict[type[Any], msgspec.json.Decoder[Any]] = {}


SILENCE_SECONDS_MAX = 45.0  # four empty lines of the server


class Reading(ABC, Generic[T]):
    """One answer, over as many connections as it takes; `media` is the type that it must have."""

    media: ClassVar[str]

    def __init__(self, request: Request[Empty]) -> None:
        self.request = request

    @abstractmethod
    def begin(self) -> dict[str, str]:
        """The headers that a connection begins with."""

    @abstractmethod
    def take(self, piece: bytes) -> Iterator[T]:
        """What a piece completes."""

    @abstractmethod
    def again_seconds(self, failure: Failure | None) -> float | None:
        """When to connect again after a connection has ended: None for never, or the failure."""


class Lines(Reading[T]):
    """An answer of lines, each a document of its own; an empty line says that there will be more.

    However long it takes, it is broken off only when nothing at all has come for a while.
    """

    media = "application/x-ndjson"

    def __init__(self, request: Request[Empty], shape: type[T]) -> None:
        super().__init__(replace(request, timeout_seconds=SILENCE_SECONDS_MAX))
        self._decode = reader(shape)
        self._rest = b""

    def begin(self) -> dict[str, str]:
        """Nothing is special."""
        return {}

    def take(self, piece: bytes) -> Iterator[T]:
        """The documents that a piece completes."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return (self._decode(line) for line in whole if line)

    def again_seconds(self, failure: Failure | None) -> float | None:
        """It is asked for once."""
        if failure is not None:
            raise failure
        return None
