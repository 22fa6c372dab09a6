"""Bodies that are read while they are sent, so that never all of one is in memory."""

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import IO, cast

from penstock.errors import Invalid

Content = IO[bytes] | Iterable[bytes] | AsyncIterable[bytes]

PIECE_BYTES = 256 * 1024


class Upload:
    """What is to be sent: a file that is open for reading, or pieces as they come.

    A file that can be wound back may be sent again.
    """

    def __init__(self, content: Content, size: int | None = None) -> None:
        self._content = content
        self._begin, self.size = _bounds(content)
        if size is not None:
            self.size = size

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be read once more from where it began."""
        return self._begin is not None

    def pieces(self) -> Iterator[bytes]:
        """All of it, from its beginning where that is possible."""
        if isinstance(self._content, AsyncIterable):
            raise Invalid("pieces that come asynchronously are for penstock.AsyncClient")
        if hasattr(self._content, "read"):
            self._rewind()
            while piece := self._content.read(PIECE_BYTES):
                yield piece
        else:
            yield from self._content

    async def pieces_async(self) -> AsyncIterator[bytes]:
        """The same for an event loop, which is not held up by a slow disk."""
        if isinstance(self._content, AsyncIterable):
            async for piece in self._content:
                yield piece
            return
        pieces = self.pieces()
        while piece := await asyncio.to_thread(_next, pieces):
            yield piece

    def _rewind(self) -> None:
        if self._begin is not None:
            cast(IO[bytes], self._content).seek(self._begin)


def _next(pieces: Iterator[bytes]) -> bytes:
    """The next piece that is not empty; nothing at the end."""
    return next(filter(None, pieces), b"")


def _bounds(content: Content) -> tuple[int | None, int | None]:
    """Where it begins and how much there is, where that can be told."""
    try:
        at = content.tell()  # type: ignore[union-attr]
        end = content.seek(0, os.SEEK_END)  # type: ignore[union-attr]
        content.seek(at)  # type: ignore[union-attr]
    except (AttributeError, OSError):
        return None, None
    return int(at), int(end - at)
