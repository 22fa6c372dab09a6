"""HTTP connections of the blocking client, and the HTTP rules of both clients."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from penstock.client.errors import ApiError, Failure, Unreachable
from penstock.client.request import Flow, Pause, Reading, Request
from penstock.errors import Invalid
from penstock.outgoing import certificates, is_near

T = TypeVar("T")

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def connection_settings(url: str, api_key: str | None, timeout_seconds: float) -> dict[str, Any]:
    """Return the httpx arguments of a connection to a server."""
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


def http_arguments(request: Request[Any], timeout_seconds: float) -> dict[str, Any]:
    """Return the httpx arguments of a request, without an uploaded body."""
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


def read_answer(request: Request[T], answer: httpx.Response, url: str) -> T:
    """Decode an answer, or raise its error."""
    if not answer.is_success:
        raise refusal_error(answer, url)
    try:
        return request.read(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_ours(answer, url, str(error)) from None


def check_media(reading: Reading[Any], answer: httpx.Response, url: str) -> None:
    """Refuse a streamed answer with another content type."""
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


def refusal_error(answer: httpx.Response, url: str) -> ApiError:
    """Return the error of an answer without success."""
    try:
        message = _decode(answer.content).message
    except msgspec.DecodeError:
        message = f"{url} answered {answer.status_code} {answer.reason_phrase}; check PENSTOCK_URL"
    wait = answer.headers.get("retry-after", "")
    return ApiError(answer.status_code, message, int(wait) if wait.isdigit() else None)


def closed_error() -> Invalid:
    """Return the error of a call on a closed client."""
    return Invalid("this client is closed, and makes no more calls; open another")


def unreachable_error(url: str, error: httpx.TransportError) -> Unreachable:
    """Return the error of a request without an answer."""
    if isinstance(error, httpx.TimeoutException):
        reason = "it takes too long to answer"
    else:
        reason = str(error) or type(error).__name__
    return Unreachable(
        f"cannot reach {url} ({reason}); start it with `penstock serve` or set PENSTOCK_URL",
        may_be_done=not isinstance(error, _NOT_SENT),
    )


class Transport:
    """A connection to one server that stays open between calls; any thread may use it."""

    def __init__(self, url: str, api_key: str | None, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._http = httpx.Client(**connection_settings(self.url, api_key, timeout_seconds))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def perform(self, flow: Flow[T]) -> T:
        """Run the steps of a flow, and pass the error of a step to the flow."""
        try:
            step = next(flow)
            while True:
                try:
                    answer = self._take(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    def _take(self, step: Request[Any] | Pause) -> Any:
        return self.pause(step.seconds) if isinstance(step, Pause) else self.send(step)

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def send(self, request: Request[T]) -> T:
        """Send one request and decode its answer."""
        self._check_open()
        sent = http_arguments(request, self._timeout_seconds)
        if request.upload is not None:
            sent["content"] = request.upload.pieces()
        try:
            answer = self._http.request(**sent)
        except httpx.TransportError as error:
            raise unreachable_error(self.url, error) from None
        return read_answer(request, answer, self.url)

    def read(self, reading: Reading[T]) -> Iterator[T]:
        """Yield the values of a streamed answer, as they arrive."""
        while True:
            failure: Failure | None = None
            try:
                with self._listen(reading) as pieces:
                    for piece in pieces:
                        yield from reading.take(piece)
            except (ApiError, Unreachable) as error:
                failure = error
            seconds = reading.again_seconds(failure)
            if seconds is None:
                return
            self.pause(seconds)

    @contextmanager
    def _listen(self, reading: Reading[T]) -> Iterator[Iterator[bytes]]:
        """Open a streamed answer; one that is silent for too long is cut off."""
        self._check_open()
        sent = http_arguments(reading.request, self._timeout_seconds)
        sent["headers"] |= reading.begin()
        try:
            with self._http.stream(**sent) as answer:
                if not answer.is_success:
                    answer.read()
                    raise refusal_error(answer, self.url)
                check_media(reading, answer, self.url)
                yield answer.iter_bytes()
        except httpx.TransportError as error:
            raise unreachable_error(self.url, error) from None

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise closed_error()
