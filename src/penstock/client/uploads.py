"""Bodies that are read while they are sent, so that never all of one is in memory."""

import os
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import IO, cast

from penstock.errors import Invalid

Content = IO[bytes] | Iterable[bytes] | AsyncIterable[bytes]

PIECE_BYTES = 256 * 1024


class Upload:
    """What is to be sent: a file that is open for reading, or pieces as they come.

    A file that can be wound back may be sent again.
    """

    def __init__(self, content: Content, size: int | None = None) -> None:
        self.content = content
        self._begin, self.size = _bounds(content)
        if size is not None:
            self.size = size

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be read once more from where it began."""
        return self._begin is not None

    def pieces(self) -> Iterator[bytes]:
        """All of it, from its beginning where that is possible."""
        if isinstance(self.content, AsyncIterable):
            raise Invalid("pieces that come asynchronously are for penstock.AsyncClient")
        if hasattr(self.content, "read"):
            self._rewind()
            while piece := self.content.read(PIECE_BYTES):
                yield piece
        else:
            yield from self.content

    def _rewind(self) -> None:
        if self._begin is not None:
            cast(IO[bytes], self.content).seek(self._begin)


def _bounds(content: Content) -> tuple[int | None, int | None]:
    """Where it begins and how much there is, where that can be told."""
    file = cast(IO[bytes], content)
    try:
        at = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(at)
    except (AttributeError, OSError):
        return None, None
    return int(at), int(end - at)
