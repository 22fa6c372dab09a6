"""Answers that leave in one piece.

Uvicorn writes the head of an answer and its body one after the other, and uvloop hands each to the
system at once: two calls, two packets, and a client that wakes up twice.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.api.answers import messages
from penstock.api.refusals import refusal
from penstock.errors import Malformed

_NOT_HTTP = (
    "the request is not HTTP as it is spoken here: its method, its headers or its chunks cannot be "
    "read, or its URL is too long"
)


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

    def close(self) -> None:
        """Send what was kept, and close."""
        if self._later is not None:
            self._later.cancel()
            self._send()
        self._transport.close()

    def _send(self) -> None:
        self._later = None
        if not self._transport.is_closing():
            self._transport.write(self._kept)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the transport's own."""
        return getattr(self._transport, name)


class JoiningProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP over such a transport."""

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(cast(asyncio.Transport, JoiningTransport(transport)))

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read as a request, in the form that all refusals have."""
        refused = refusal(Malformed(_NOT_HTTP))
        start, body = messages(refused)
        lines = [b": ".join(header) for header in (*start["headers"], (b"connection", b"close"))]
        head = b"\r\n".join([b"HTTP/1.1 400 Bad Request", *lines, b"", b""])
        self.transport.write(head + body["body"])
        self.transport.close()
