"""Answers that leave in one piece.

Uvicorn writes the head of an answer and its body one after the other, and uvloop hands each to the
system at once: two calls, two packets, and a client that wakes up twice.
"""

import asyncio
from typing import Any


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
