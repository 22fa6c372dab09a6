"""Responses as JSON, pages and streams, and the types of an ASGI application."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, MutableMapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from penstock.errors import PenstockError
from penstock.schema.shape import Empty

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class JoiningTransport:
    """A transport that joins two writes of one round of the event loop into one packet."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._kept = b""
        self._later: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Buffer data, or send it together with buffered data."""
        if not data:
            return
        if self._later is None:
            self._kept = data
            self._later = self._loop.call_soon(self._send)
            return
        self._later.cancel()
        self._later, buffered = None, self._kept
        self._transport.writelines((buffered, data))

    def flush(self) -> None:
        """Send buffered data."""
        if self._later is not None:
            self._later.cancel()
            self._send()

    def close(self) -> None:
        """Send buffered data, and close."""
        self.flush()
        self._transport.close()

    def _send(self) -> None:
        self._later = None
        if not self._transport.is_closing():
            self._transport.write(self._kept)

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the transport."""
        return getattr(self._transport, name)


Header = tuple[bytes, bytes]

JSON = b"application/json"
NO_SNIFF: Header = (b"x-content-type-options", b"nosniff")
NO_STORE: Header = (b"cache-control", b"no-store")
_encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """A response: status, body, content type and other headers."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: tuple[Header, ...] = ()


class PlainAnswer(NamedTuple):
    """A response that is not JSON."""

    content_type: str
    text: bytes
    headers: tuple[Header, ...] = ()


Write = Callable[[bytes], Awaitable[None]]


class Flow(NamedTuple):
    """A response that a function writes piece by piece; it is cancelled if the reader leaves."""

    content_type: str
    pour: Callable[[Write], Coroutine[Any, Any, None]]


NOTHING = Empty()


def answer(value: object, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    """Return a value as a JSON response, or a page as it is."""
    if isinstance(value, PlainAnswer):
        return Answer(status, value.text, value.content_type.encode(), value.headers)
    return Answer(status, _encode(value), headers=headers)


def messages(
    response: Answer, guards: tuple[Header, ...] = (NO_SNIFF, NO_STORE)
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a response as the two messages of ASGI.

    By default, `guards` forbid content sniffing and caching.
    """
    headers = [
        (b"content-type", response.content_type),
        (b"content-length", str(len(response.body)).encode()),
        *guards,
        *response.headers,
    ]
    start = {"type": "http.response.start", "status": response.status, "headers": headers}
    return start, {"type": "http.response.body", "body": response.body}


_log = logging.getLogger(__name__)


async def pour(flow: Flow, method: str, receive: Receive, send: Send) -> None:
    """Send a response piece by piece, until it ends or its reader leaves."""
    headers = [
        (b"content-type", flow.content_type.encode()),
        NO_SNIFF,
        NO_STORE,
        (b"x-accel-buffering", b"no"),  # proxies must not buffer the pieces
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if method == "HEAD" or await _ended_well(flow, receive, send):
        await send({"type": "http.response.body", "body": b""})


async def _ended_well(flow: Flow, receive: Receive, send: Send) -> bool:
    async def write(piece: bytes) -> None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    work = asyncio.ensure_future(flow.pour(write))
    leaving = asyncio.ensure_future(gone())
    try:
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        work.cancel()
        leaving.cancel()
        await asyncio.gather(work, leaving, return_exceptions=True)
    if work.cancelled():
        return False
    error = work.exception()
    if isinstance(error, PenstockError):
        _log.warning("an answer broke off: %s", error)
    elif error is not None:
        _log.error("an answer broke off", exc_info=error)
    return error is None


NDJSON = "application/x-ndjson"
HEARTBEAT_SECONDS = 10.0


def lines(values: Iterator[Struct], stop: threading.Event) -> Flow:
    """Stream slow values, computed in a thread, as lines; set `stop` when the reader leaves.

    While no value is ready, an empty line every ten seconds shows that the stream is alive.
    """

    async def pour(write: Write) -> None:
        try:
            while True:
                work = asyncio.ensure_future(asyncio.to_thread(next, values, None))
                while not (await asyncio.wait({work}, timeout=HEARTBEAT_SECONDS))[0]:
                    await write(b"\n")
                if (value := work.result()) is None:
                    return
                await write(_encode(value) + b"\n")
        finally:
            stop.set()

    return Flow(NDJSON, pour)
