"""How the client speaks to a server: one request, one answer, and errors that say what to do."""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from penstock.errors import Invalid, PenstockError, Unavailable

T = TypeVar("T")
Content = IO[bytes] | Iterable[bytes]

BASE = "/api/v1"
TIMEOUT_SECONDS = 60.0
# What was uploaded is on the server's disk before it answers, and that can take a while.
UPLOAD_TIMEOUT_SECONDS = 1800.0
_PIECE_BYTES = 256 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Unreachable(Unavailable):
    """No server answers at the URL."""


class ApiError(PenstockError):
    """The server refused; `code` is the HTTP status and `message` says why."""

    def __init__(self, code: int, message: str, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class _Refusal(msgspec.Struct):
    message: str


class Transport:
    """A connection to one server, kept open between calls."""

    def __init__(self, url: str, api_key: str | None, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"{url!r} is not a server's URL; write it like http://127.0.0.1:5000")
        self._timeout_seconds = timeout_seconds
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=timeout_seconds,
            trust_env=parts.hostname not in _LOOPBACK,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def call(
        self,
        method: str,
        shape: type[T],
        *segments: str,
        body: bytes | None = None,
        **query: object,
    ) -> T:
        """Make one call and read its answer; a query parameter that is None is left out."""
        headers = {"content-type": "application/json"} if body is not None else {}
        return self._answered(
            shape,
            method,
            _path(segments),
            params=_params(query),
            content=body,
            headers=headers,
        )

    def upload(
        self, shape: type[T], *segments: str, content: Content, size: int | None = None
    ) -> T:
        """Send a body while it is being read, and read the answer."""
        size = _size_left(content) if size is None else size
        headers = {"content-type": "application/octet-stream"}
        if size is not None:
            headers["content-length"] = str(size)
        timeout = httpx.Timeout(self._timeout_seconds, read=UPLOAD_TIMEOUT_SECONDS)
        return self._answered(
            shape,
            "POST",
            _path(segments),
            content=_pieces(content),
            headers=headers,
            timeout=timeout,
        )

    @contextmanager
    def listen(
        self, *segments: str, headers: Mapping[str, str], silence_seconds: float, **query: object
    ) -> Iterator[Iterator[bytes]]:
        """Read an answer while it comes; one that falls silent for too long is broken off."""
        timeout = httpx.Timeout(self._timeout_seconds, read=silence_seconds)
        request: dict[str, Any] = {"params": _params(query), "headers": headers, "timeout": timeout}
        try:
            with self._http.stream("GET", _path(segments), **request) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _refused(answer, self.url)
                yield answer.iter_bytes()
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _answered(self, shape: type[T], method: str, path: str, **request: Any) -> T:
        try:
            answer = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if not answer.is_success:
            raise _refused(answer, self.url)
        try:
            return decoder(shape).decode(answer.content)
        except msgspec.DecodeError as error:
            raise ApiError(
                answer.status_code,
                f"{self.url} does not answer as a Penstock server does ({error}); "
                "check PENSTOCK_URL and the server's version",
            ) from None

    def _unreachable(self, error: httpx.TransportError) -> Unreachable:
        return Unreachable(
            f"cannot reach {self.url} ({_reason(error)}); start it with `penstock serve` "
            "or set PENSTOCK_URL"
        )


def _path(segments: Iterable[str]) -> str:
    return "/".join([BASE, *(quote(segment, safe="") for segment in segments)])


def _pieces(content: Content) -> Iterator[bytes]:
    if hasattr(content, "read"):
        while piece := content.read(_PIECE_BYTES):
            yield piece
    else:
        yield from content


def _size_left(content: Content) -> int | None:
    """How much is left to read, where that can be told."""
    try:
        at = content.tell()  # type: ignore[union-attr]
        end = content.seek(0, os.SEEK_END)  # type: ignore[union-attr]
        content.seek(at)  # type: ignore[union-attr]
    except (AttributeError, OSError):
        return None
    return int(end - at)


def _params(query: Mapping[str, object]) -> dict[str, Any]:
    return {
        name: _text(value) for name, value in query.items() if value is not None and value != ()
    }


def _text(value: object) -> str | list[str]:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(each) for each in value]
    return str(value)


def decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    """What reads a shape; two threads that use one first at once would crash msgspec."""
    with _decoding:
        found: msgspec.json.Decoder[T] | None = _decoders.get(shape)
        if found is None:
            found = _decoders[shape] = msgspec.json.Decoder(shape)
        return found


_decoding = threading.Lock()
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def _reason(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it takes too long to answer"
    return str(error) or type(error).__name__


def _refused(answer: httpx.Response, url: str) -> ApiError:
    try:
        message = decoder(_Refusal).decode(answer.content).message
    except msgspec.DecodeError:
        message = f"{url} answered {answer.status_code} {answer.reason_phrase}; check PENSTOCK_URL"
    wait = answer.headers.get("retry-after", "")
    return ApiError(answer.status_code, message, int(wait) if wait.isdigit() else None)
