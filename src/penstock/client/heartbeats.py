"""Claims kept alive while their holder works, in a thread of the client's."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from penstock.client.operation import Blocking
from penstock.client.request import Flow

# An idle thread ends; the next claim starts another.
IDLE_SECONDS = 10.0


class Kept(Protocol):
    """Something with a lease."""

    def beat(self) -> Flow[float | None]:
        """Extend the lease; it comes to in how many seconds to do so again, None for never."""


class Heartbeats:
    """Sends heartbeats, over a connection of its own that never waits long for an answer."""

    def __init__(self, connect: Callable[[], AbstractContextManager[Blocking]]) -> None:
        self._connect = connect
        self._changed = threading.Condition()
        self._due: dict[Kept, float] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def keep(self, kept: Kept, seconds: float) -> None:
        """Begin with a heartbeat in so many seconds."""
        with self._changed:
            self._due[kept] = time.monotonic() + seconds
            # After a fork the thread is not there, whatever the parent had.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="penstock heartbeats", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def drop(self, kept: Kept) -> None:
        """Send no more; one that is under way may still arrive."""
        with self._changed:
            self._due.pop(kept, None)

    def close(self) -> None:
        """Send none any more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        with self._connect() as caller:
            while (kept := self._next()) is not None:
                again = caller._perform(kept.beat())
                with self._changed:
                    if kept not in self._due:
                        continue
                    if again is None:
                        del self._due[kept]
                    else:
                        self._due[kept] = time.monotonic() + again

    def _next(self) -> Kept | None:
        """Wait for the next that is due; None to end, when there was nothing for a while."""
        with self._changed:
            idle_until = time.monotonic() + IDLE_SECONDS
            while not self._closed:
                now = time.monotonic()
                kept = min(self._due, key=self._due.__getitem__, default=None)
                until = idle_until if kept is None else self._due[kept]
                if kept is not None and until <= now:
                    return kept
                if until <= now:
                    break
                self._changed.wait(until - now)
            self._thread = None
            return None
