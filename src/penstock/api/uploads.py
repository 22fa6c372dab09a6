"""Request bodies that are too large to hold: taken by a thread, piece by piece, as they arrive."""

import asyncio
from collections.abc import Callable, Iterator

from penstock.api.asgi import Receive
from penstock.api.content import Disconnected
from penstock.api.gate import Heading
from penstock.errors import Malformed, PenstockError, TooLarge


class Stream:
    """A body on its way to a thread, which asks for each piece; only one is held at a time.

    A body that is over the limit or breaks off raises in that thread; `failure` is why, for
    callers whose own work hides it. `count` gets the size of each piece.
    """

    def __init__(
        self, receive: Receive, head: Heading, bytes_max: int, count: Callable[[int], None]
    ) -> None:
        _check_encoding(head.encoding)
        self.failure: PenstockError | Disconnected | None = None
        self.length = int(head.length) if head.length and head.length.isdigit() else None
        self._receive = receive
        self._bytes_max = bytes_max
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._is_whole = False
        self._is_closed = False
        if self.length is not None and self.length > bytes_max:
            raise _too_large(bytes_max)

    def __iter__(self) -> Iterator[bytes]:
        taken = 0
        while not self._is_whole:
            piece = self._wait_for_piece()
            taken += len(piece)
            if taken > self._bytes_max:
                self.failure = _too_large(self._bytes_max)
                raise self.failure
            if piece:
                yield piece

    def close(self) -> None:
        """Let nobody wait for another piece."""
        self._is_closed = True

    def _wait_for_piece(self) -> bytes:
        if self._is_closed:
            self.failure = Disconnected()
            raise self.failure
        try:
            return asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
        except (PenstockError, Disconnected) as failure:
            self.failure = failure
            raise

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._is_whole = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        self._count(len(piece))
        return piece


def _check_encoding(encoding: bytes | None) -> None:
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise Malformed(
            f"content-encoding {encoding.decode('latin-1')[:32]!r} cannot be undone here; "
            "send the bytes as they shall be kept"
        )


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"the payload is larger than {bytes_max} bytes; send less at a time, or raise the "
        "server's payload_bytes_max"
    )
