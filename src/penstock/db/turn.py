"""The turn to write within one process."""

import threading
from collections import deque
from collections.abc import Callable


class Turn:
    """The right to use the connection that writes: for one block, or for a row of sent writes.

    A block takes the turn with `with`. A thread that has the turn already gets an error instead of
    a deadlock. Sent writes share the turn until the last of them has landed. Each depends on the
    write before it, so one caller sends them and lands them in order. Waiting threads get the turn
    in the order in which they came, also ahead of the next write of a row.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._owner = 0  # the thread whose block has the turn
        self._sent = 0  # how many sent writes share the turn
        self._last = ""  # the name of the last of them

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            raise RuntimeError("this thread is writing already; use that transaction")
        with self._changed:
            self._wait(lambda: not self._owner and not self._sent)
            self._owner = me

    def __exit__(self, *exc: object) -> None:
        with self._changed:
            self._owner = 0
            self._changed.notify_all()

    def board(self, name: str, behind: str) -> bool:
        """Take the turn for a write that depends on another; return whether it starts a row."""
        with self._changed:
            self._wait(lambda: not self._owner and (not self._sent or self._last == behind))
            self._sent += 1
            self._last = name
            return self._sent == 1

    def leave(self) -> None:
        """Give the turn back for a sent write that has landed, or could not be sent."""
        with self._changed:
            self._sent -= 1
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many threads wait for the turn."""
        return len(self._waiting)

    def _wait(self, is_free: Callable[[], bool]) -> None:
        ticket = object()
        self._waiting.append(ticket)
        try:
            self._changed.wait_for(lambda: self._waiting[0] is ticket and is_free())
        finally:
            self._waiting.remove(ticket)
            self._changed.notify_all()
