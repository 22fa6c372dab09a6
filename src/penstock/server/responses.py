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
    """Keeps what is written until more comes, at the latest until the loop has done its round."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._kept = b""
        self._later: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Send this with what was kept, or keep it."""
        if not data:
            return
        if self._later is None:
            self._kept = data
            self._later = self._loop.call_soon(self._send)
            return
        self._later.cancel()
        self._later, kept = None, self._kept
        self._transport.writelines((kept, data))

    def flush(self) -> None:
        """Send what was kept."""
        if self._later is not None:
            self._later.cancel()
            self._send()

    def close(self) -> None:
        """Send what was kept, and close."""
        self.flush()
        self._transport.close()

    def _send(self) -> None:
        self._later = None
        if not self._transport.is_closing():
            self._transport.write(self._kept)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the transport's own."""
        return getattr(self._transport, name)


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


_log = logging.getLogger(__name__)


async def pour(flow: Flow, method: str, receive: Receive, send: Send) -> None:
    """Send the answer piece by piece, until it ends or its reader is gone."""
    headers = [
        (b"content-type", flow.content_type.encode()),
        NO_SNIFF,
        NO_STORE,
        (b"x-accel-buffering", b"no"),  # a proxy must not collect the pieces
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
    """Values that come slowly, worked out in a thread; `stop` is set when nobody reads on.

    While there is none an empty line comes now and then, so that nobody thinks it was broken off.
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
