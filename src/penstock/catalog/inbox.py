"""Where writes wait for the writer's thread, and what wakes it."""

import asyncio
import queue
from collections import deque
from typing import Generic, Protocol, TypeVar

from penstock.errors import Busy, Unavailable


class Sized(Protocol):
    """An entry that knows how many bytes it keeps."""

    @property
    def size(self) -> int:
        """Bytes of the request that the entry came with."""


E = TypeVar("E", bound=Sized)


class Inbox(Generic[E]):
    """Entries in the order they came; put by any thread, taken by one.

    Entries from an event loop wake the taker once for each turn of the loop: a thread woken for
    every one of them would fight the loop for the interpreter.
    """

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._entries: deque[E] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._enough = 1
        self._loops: set[asyncio.AbstractEventLoop] = set()  # that will ring at their next turn
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: E) -> None:
        """Add an entry, or refuse it: Busy when too many wait, Unavailable when closed."""
        self._add(entry)
        self.ring()

    def put_from(self, loop: asyncio.AbstractEventLoop, entry: E) -> None:
        """Add an entry in an event loop's own thread."""
        self._add(entry)
        if loop not in self._loops:
            self._loops.add(loop)
            loop.call_soon(self._turn, loop)

    def _add(self, entry: E) -> None:
        if self._closed:
            raise Unavailable("the server is stopping; send this again in a moment")
        if len(self._entries) >= self._length_max:
            raise Busy(
                f"{self._length_max} writes are waiting already; send this again in a second"
            )
        self._entries.append(entry)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loops.discard(loop)
        if len(self._entries) >= self._enough:
            self.ring()

    def ring(self) -> None:
        """Wake the taker, or have it not fall asleep."""
        # Rung twice between two looks, it would only look in vain.
        if self._bell.empty():
            self._bell.put(None)

    def close(self) -> None:
        """Take no more entries."""
        self._closed = True
        self.ring()

    def wait(self, enough: int) -> None:
        """Return when there are enough entries or somebody rings.

        Who asks for more than one must know that somebody will ring.
        """
        self._enough = enough
        if len(self._entries) < enough and not self.is_over:
            self._bell.get()

    def take(self, most: int, bytes_max: int) -> list[E]:
        """Take so many entries at most, and no more than so many bytes unless in one entry."""
        taken: list[E] = []
        size = 0
        while self._entries and len(taken) < most:
            size += self._entries[0].size
            if taken and size > bytes_max:
                break
            taken.append(self._entries.popleft())
        return taken

    @property
    def is_over(self) -> bool:
        """Whether it is closed and all that it took was taken from it."""
        return self._closed and not self._entries
