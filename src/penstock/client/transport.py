"""How the client speaks to a server, in threads: one request, one answer."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from penstock.client.refusals import ApiError, refused, unreachable
from penstock.client.request import Flow, Pause, Request
from penstock.errors import Invalid

T = TypeVar("T")

TIMEOUT_SECONDS = 60.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Transport:
    """A connection to one server, kept open between calls; any thread may use it."""

    def __init__(self, url: str, api_key: str | None, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._http = httpx.Client(**settings(self.url, api_key, timeout_seconds))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def perform(self, flow: Flow[T]) -> T:
        """Take the steps of a flow; what a step fails with is the flow's to handle."""
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
        return time.sleep(step.seconds) if isinstance(step, Pause) else self.send(step)

    def send(self, request: Request[T]) -> T:
        """Make one call and read its answer."""
        sent = sendable(request, self._timeout_seconds)
        if request.upload is not None:
            sent["content"] = request.upload.pieces()
        try:
            answer = self._http.request(**sent)
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
        return taken(request, answer, self.url)

    @contextmanager
    def listen(self, request: Request[T], headers: Mapping[str, str]) -> Iterator[Iterator[bytes]]:
        """Read an answer while it comes; one that falls silent for too long is broken off."""
        sent = sendable(request, self._timeout_seconds)
        sent["headers"] |= headers
        try:
            with self._http.stream(**sent) as answer:
                if not answer.is_success:
                    answer.read()
                    raise refused(answer, self.url)
                yield answer.iter_bytes()
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None


def settings(url: str, api_key: str | None, timeout_seconds: float) -> dict[str, Any]:
    """What a connection to a server is made with."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{url!r} is not a server's URL; write it like http://127.0.0.1:5000")
    return {
        "base_url": url,
        "headers": {"authorization": f"Bearer {api_key}"} if api_key else {},
        "timeout": timeout_seconds,
        "trust_env": parts.hostname not in _LOOPBACK,
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
        raise ApiError(
            answer.status_code,
            f"{url} does not answer as a Penstock server does ({error}); "
            "check PENSTOCK_URL and the server's version",
        ) from None
