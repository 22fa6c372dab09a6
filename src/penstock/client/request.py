"""Calls as values, and the methods that make them for blocking and asynchronous clients."""

import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, fields, replace
from functools import update_wrapper, wraps
from typing import IO, Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload
from urllib.parse import quote

import msgspec
from msgspec import Struct

from penstock.client.errors import ApiError, Failure, Unreachable, is_passing
from penstock.errors import Invalid
from penstock.ids import DOTS
from penstock.schema.shape import Empty

Content = IO[bytes] | Iterable[bytes] | AsyncIterable[bytes]

PIECE_BYTES = 256 * 1024


class Upload:
    """A body to send: a file that is open for reading, or an iterator of pieces.

    A seekable file can be sent again.
    """

    def __init__(self, content: Content, size: int | None = None) -> None:
        self.content = content
        self._begin, self.size = _bounds(content)
        if size is not None:
            self.size = size

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be read again from its start."""
        return self._begin is not None

    def pieces(self) -> Iterator[bytes]:
        """Yield all pieces, from the start if the body is seekable."""
        if isinstance(self.content, AsyncIterable):
            raise Invalid("pieces that come asynchronously are for penstock.AsyncClient")
        if hasattr(self.content, "read"):
            self._rewind()
            while piece := self.content.read(PIECE_BYTES):
                yield piece
        else:
            yield from self.content

    def _rewind(self) -> None:
        if self._begin is not None:
            cast(IO[bytes], self.content).seek(self._begin)


def _bounds(content: Content) -> tuple[int | None, int | None]:
    """Return the start and the size of a seekable file, or None."""
    file = cast(IO[bytes], content)
    try:
        at = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(at)
    except (AttributeError, OSError):
        return None, None
    return int(at), int(end - at)


T = TypeVar("T")
U = TypeVar("U")

BASE = "/api/v1"


class Pause(Struct, frozen=True):
    """A wait between two requests."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Request(Generic[T]):
    """One request of the API.

    `repeatable`: two requests have the effect of one, so it may be sent again if its
    answer was lost. `settle` then gets the second answer, or the refusal (404, 409) that
    the first request caused, and returns the result of both.
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
        """Return the same request with a function applied to its answer."""
        assert self.settle is None, "what settles a call knows its last form"
        before = self.read
        others = {name: getattr(self, name) for name in _KEPT}
        return Request(read=lambda content: change(before(content)), **others)

    def settled(self, settle: "Callable[[T | ApiError], Flow[T]]") -> "Request[T]":
        """Return the same request as a repeatable one."""
        return replace(self, repeatable=True, settle=settle)


_KEPT = tuple(each.name for each in fields(Request) if each.name != "read")
Step = Request[Any] | Pause
Flow = Generator[Step, Any, T]


def ask(request: Request[T]) -> Flow[T]:
    """Send one request, once."""
    answer: T = yield request
    return answer


def nothing(answer: object) -> None:
    """Discard an answer without content."""


def gone(outcome: ApiError | None) -> Flow[None]:
    """Treat a 404 as success: the thing to delete does not exist."""
    if outcome is not None and outcome.code != 404:
        raise outcome
    yield from ()  # makes this a generator


def get(shape: type[T], *segments: str, **query: object) -> Request[T]:
    """Return a GET request; query parameters that are None are omitted."""
    return _request("GET", shape, segments, query, repeatable=True)


def put(shape: type[T], *segments: str, body: bytes) -> Request[T]:
    """Return a PUT request."""
    return _request("PUT", shape, segments, {}, body=body, repeatable=True)


def delete(shape: type[T], *segments: str, **query: object) -> Request[T]:
    """Return a DELETE request."""
    return _request("DELETE", shape, segments, query, repeatable=True)


def post(
    shape: type[T],
    *segments: str,
    body: bytes | None = None,
    repeatable: bool = False,
    **query: object,
) -> Request[T]:
    """Return a POST request; unless it is `repeatable`, it is never sent twice."""
    return _request("POST", shape, segments, query, body=body, repeatable=repeatable)


def page(read: Callable[[bytes], T], path: str) -> Request[T]:
    """Return a request for a path outside the API's base."""
    return Request(method="GET", path=path, read=read, repeatable=True)


def _request(
    method: str, shape: type[T], segments: Sequence[str], query: Mapping[str, object], **more: Any
) -> Request[T]:
    read = reader(shape)
    return Request(method=method, path=path(segments), read=read, query=params(query), **more)


def json_body(**fields: object) -> bytes:
    """Return a JSON object of the fields that are not None."""
    return encode_json(drop_none(**fields))


def encode_json(value: object) -> bytes:
    """Return a value as JSON, or raise Invalid with the part that cannot be encoded."""
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


def drop_none(**fields: object) -> dict[str, object]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def path(segments: Sequence[str]) -> str:
    """Return a path below the API's base, with each segment percent-encoded.

    An empty segment would make it the path of something else, such as a list, and so would
    one of dots only, which httpx and proxies resolve.
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
    """Return query parameters as text."""
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
    """Return the decoder of a type. msgspec crashes if two threads use one first at once.

    Facets may have numbers beyond a double: those become infinite,
    so that the rest of the answer stays readable.
    """
    with _reading:
        decoder: msgspec.json.Decoder[T] | None = _readers.get(shape)
        if decoder is None:
            decoder = _readers[shape] = msgspec.json.Decoder(shape, float_hook=float)
        return decoder.decode


_reading = threading.Lock()
_readers: dict[type[Any], msgspec.json.Decoder[Any]] = {}


SILENCE_SECONDS_MAX = 45.0  # four empty lines of the server


class Reading(ABC, Generic[T]):
    """A streamed answer, over as many connections as needed; `media` is its content type."""

    media: ClassVar[str]

    def __init__(self, request: Request[Empty]) -> None:
        self.request = request

    @abstractmethod
    def begin(self) -> dict[str, str]:
        """Return the headers of a new connection."""

    @abstractmethod
    def take(self, piece: bytes) -> Iterator[T]:
        """Yield the values that a piece completes."""

    @abstractmethod
    def again_seconds(self, failure: Failure | None) -> float | None:
        """Return the seconds until the next connection, None at the end, or raise the failure."""


class Lines(Reading[T]):
    """An answer of lines, each a JSON document. Empty lines show that the server works on.

    It is cut off only after a long silence.
    """

    media = "application/x-ndjson"

    def __init__(self, request: Request[Empty], shape: type[T]) -> None:
        super().__init__(replace(request, timeout_seconds=SILENCE_SECONDS_MAX))
        self._decode = reader(shape)
        self._rest = b""

    def begin(self) -> dict[str, str]:
        """Return no headers."""
        return {}

    def take(self, piece: bytes) -> Iterator[T]:
        """Yield the documents that a piece completes."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return (self._decode(line) for line in whole if line)

    def again_seconds(self, failure: Failure | None) -> float | None:
        """Never connect again."""
        if failure is not None:
            raise failure
        return None


TIMEOUT_SECONDS = 60.0
RETRY_SECONDS = 10.0
_FIRST_SECONDS = 0.1
_MOST_SECONDS = 2.0
_DONE_ALREADY = frozenset({404, 409})
_NOTE = "an earlier try of this call may have been carried out: its answer was lost"


def patiently(
    request: Request[T],
    until: float,
    again: Callable[[Failure], bool] | None = None,
) -> Flow[T]:
    """Send a request, and repeat it while that is safe and may help, until a time.

    A request that was surely not carried out can always be repeated; one in doubt only
    if it is repeatable. `again` replaces this rule.
    """
    tries, in_doubt = 0, False
    while True:
        settle = request.settle if in_doubt else None
        try:
            answer: T = yield request
            return answer if settle is None else (yield from settle(answer))
        except (ApiError, Unreachable) as error:
            failure = error
        if in_doubt and isinstance(failure, ApiError) and failure.code in _DONE_ALREADY:
            failure.add_note(_NOTE)
            if settle is not None:
                return (yield from settle(failure))
        in_doubt = in_doubt or failure.may_be_done
        wanted = again(failure) if again else _is_safe(request, failure)
        wait = _back_off(tries, failure)
        if not wanted or time.monotonic() + wait > until:
            raise failure
        yield Pause(wait)
        tries += 1


def _is_safe(request: Request[T], failure: Failure) -> bool:
    return is_passing(failure) and (request.repeatable or not failure.may_be_done)


def _back_off(tries: int, failure: Failure) -> float:
    """Return the wait before a retry, with jitter so that clients do not retry together."""
    most = min(_FIRST_SECONDS * 2.0 ** min(tries, 10), _MOST_SECONDS)
    wait = random.uniform(most / 2, most)
    retry_after_seconds = failure.retry_after_seconds if isinstance(failure, ApiError) else None
    return wait if retry_after_seconds is None else max(wait, retry_after_seconds)


P = ParamSpec("P")


class Blocking(ABC):
    """A client whose calls block."""

    _retry_seconds: float = 0.0

    @abstractmethod
    def _perform(self, flow: Flow[T]) -> T:
        """Run the steps of a flow, and return its result."""


class Awaiting(ABC):
    """A client whose calls are coroutines."""

    _retry_seconds: float = 0.0

    @abstractmethod
    async def _perform(self, flow: Flow[T]) -> T:
        """Run the steps of a flow, and return its result."""


class _Method(ABC, Generic[P, T]):
    """A method that works on blocking and asynchronous clients."""

    def __init__(self, function: Callable[Concatenate[Any, P], Any]) -> None:
        self._function = function
        self.__name__: str
        update_wrapper(cast(Any, self), function)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @wraps(self._function)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._perform(self._flow(instance, *args, **kwargs))

        return method

    @abstractmethod
    def _flow(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        """Return the steps of a call."""


class Operation(_Method[P, T]):
    """One call of the server's API."""

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        """Return the request that a call sends."""
        described: Request[T] = self._function(None, *args, **kwargs)
        return described

    def _flow(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        until = time.monotonic() + instance._retry_seconds
        return patiently(self.request(*args, **kwargs), until)


class Procedure(_Method[P, T]):
    """A sequence of calls."""

    def _flow(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        steps: Flow[T] = self._function(instance, *args, **kwargs)
        return steps


def call(function: Callable[Concatenate[Any, P], Request[T]]) -> Operation[P, T]:
    """Turn a function that returns a request into a method that sends it; `self` is None."""
    return Operation(function)


def procedure(function: Callable[Concatenate[Any, P], Flow[T]]) -> Procedure[P, T]:
    """Turn a generator of requests into a method that sends them."""
    return Procedure(function)


class BlockingReader(ABC):
    """A client that reads streamed answers, and blocks until there is more."""

    @abstractmethod
    def _read(self, reading: Reading[T]) -> Iterator[T]:
        """Yield the values of a streamed answer."""


class AwaitingReader(ABC):
    """A client that reads streamed answers in an event loop."""

    @abstractmethod
    def _read(self, reading: Reading[T]) -> AsyncIterator[T]:
        """Yield the values of a streamed answer."""


class Listening(Generic[P, T]):
    """A method with a streamed answer, for both kinds of clients."""

    def __init__(self, function: Callable[Concatenate[Any, P], Reading[T]]) -> None:
        self._function = function
        update_wrapper(cast(Any, self), function)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: BlockingReader, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: AwaitingReader, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @wraps(self._function)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._read(self._function(None, *args, **kwargs))

        return method


def read(function: Callable[Concatenate[Any, P], Reading[T]]) -> Listening[P, T]:
    """Turn a function that returns a Reading into a method that reads it; `self` is None."""
    return Listening(function)
