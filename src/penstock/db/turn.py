"""The writer's turn within one process."""

import threading
from collections import deque
from collections.abc import Callable


class Turn:
    """Who may use the connection that writes: one block, or writes that are sent in a row.

    A block asks with `with`, and is refused, instead of waiting for ever, when its own thread has
    the turn. Writes that are sent keep it together until the last of them has landed; in such a row
    each stands on the one before it, so one caller has it, who lands them in order. Whoever waits
    is let in before those who come later, also before the next write of a row.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._owner = 0  # the thread of the block that has it
        self._sent = 0  # writes that have it
        self._last = ""  # the name of the one sent last

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
        """Take the turn for a write that stands on another; whether it is the first of a row."""
        with self._changed:
            self._wait(lambda: not self._owner and (not self._sent or self._last == behind))
            self._sent += 1
            self._last = name
            return self._sent == 1

    def leave(self) -> None:
        """A write that was sent has landed, or could not be sent."""
        with self._changed:
            self._sent -= 1
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many wait for it."""
        return len(self._waiting)

    def _wait(self, is_free: Callable[[], bool]) -> None:
        place = object()
        self._waiting.append(place)
        try:
            self._changed.wait_for(lambda: self._waiting[0] is place and is_free())
        finally:
            self._waiting.remove(place)
            self._changed.notify_all()
