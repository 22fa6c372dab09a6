"""A call as a value: what is sent, how the answer is read, and whether it may be sent twice.

Nothing here speaks to a server. Whoever does, in threads or in an event loop, takes these.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec
from msgspec import Struct

from penstock.client.errors import ApiError, Failure, Unreachable
from penstock.client.uploads import Upload
from penstock.errors import Invalid
from penstock.ids import DOTS
from penstock.outgoing import certificates, is_near

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


_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def settings(url: str, api_key: str | None, timeout_seconds: float) -> dict[str, Any]:
    """What a connection to a server is made with."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{url!r} is not a server's URL; write it like http://127.0.0.1:5000")
    key = (api_key or "").strip()  # files end with a line break
    if not (key.isascii() and key.isprintable()):
        raise Invalid(
            "the API key cannot be sent: there is a line break in it, or a character that is not "
            "ASCII; give it as `penstock keys create` has printed it"
        )
    return {
        "base_url": url,
        "headers": {"authorization": f"Bearer {key}"} if key else {},
        "timeout": timeout_seconds,
        "trust_env": not is_near(url),
        "verify": certificates(url, trust_env=not is_near(url)),
    }


def sendable(request: Request[Any], timeout_seconds: float) -> dict[str, Any]:
    """A request as HTTP has it, but for a body that is read while it is sent."""
    headers: dict[str, str] = {}
    if request.body is not None:
        headers["content-type"] = "application/json"
    if request.upload is not None:
        headers["content-type"] = "application/octet-stream"
        if request.upload.size is not None:
            headers["content-length"] = str(request.upload.size)
    answered_in = request.timeout_seconds or timeout_seconds
    return {
        "method": request.method,
        "url": request.path,
        "params": request.query,
        "content": request.body,
        "headers": headers,
        "timeout": httpx.Timeout(min(timeout_seconds, answered_in), read=answered_in),
    }


def taken(request: Request[T], answer: httpx.Response, url: str) -> T:
    """What an answer says, or the refusal that it is."""
    if not answer.is_success:
        raise refused(answer, url)
    try:
        return request.read(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_ours(answer, url, str(error)) from None


def check_media(reading: Reading[Any], answer: httpx.Response, url: str) -> None:
    """Refuse to listen to what answers another thing than what was asked for."""
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != reading.media:
        raise _not_ours(answer, url, f"{media or 'nothing'} instead of {reading.media}")


def _not_ours(answer: httpx.Response, url: str, why: str) -> ApiError:
    return ApiError(
        answer.status_code,
        f"{url} does not answer as a Penstock server does ({why}); "
        "check PENSTOCK_URL and the server's version",
    )


class _Refusal(msgspec.Struct):
    message: str


_decode = msgspec.json.Decoder(_Refusal).decode


def refused(answer: httpx.Response, url: str) -> ApiError:
    """What an answer says that is not one of success."""
    try:
        message = _decode(answer.content).message
    except msgspec.DecodeError:
        message = f"{url} answered {answer.status_code} {answer.reason_phrase}; check PENSTOCK_URL"
    wait = answer.headers.get("retry-after", "")
    return ApiError(answer.status_code, message, int(wait) if wait.isdigit() else None)


def closed() -> Invalid:
    """What it means that a connection was closed by the program itself."""
    return Invalid("this client is closed, and makes no more calls; open another")


def unreachable(url: str, error: httpx.TransportError) -> Unreachable:
    """What it means that no answer came."""
    if isinstance(error, httpx.TimeoutException):
        reason = "it takes too long to answer"
    else:
        reason = str(error) or type(error).__name__
    return Unreachable(
        f"cannot reach {url} ({reason}); start it with `penstock serve` or set PENSTOCK_URL",
        may_be_done=not isinstance(error, _NOT_SENT),
    )
