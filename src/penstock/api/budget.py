"""The bytes of request bodies that the server holds at a time.

A body counts from its first byte until its request is answered: while it arrives, is unpacked and
parsed, and while its write waits in the queue. See docs/adr/0025-limits-of-clients.md.
"""

import threading

from penstock.errors import Busy


class Budget:
    """How many bytes all requests may hold together. Used by several threads."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many bytes are held now."""
        return self._held

    def take(self, size: int) -> None:
        """Hold some bytes, or raise Busy."""
        with self._lock:
            if self._held + size > self.bytes_max:
                raise Busy(
                    f"the server holds {self._held} bytes of other requests, and at most "
                    f"{self.bytes_max} in all; send this again in a second"
                )
            self._held += size

    def give_back(self, size: int) -> None:
        """Hold some bytes no longer."""
        with self._lock:
            self._held -= size


class Share:
    """What one request holds of the budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.size = 0

    def grow(self, size: int) -> None:
        """Hold more bytes, or raise Busy."""
        self._budget.take(size)
        self.size += size

    def shrink(self, size: int) -> None:
        """Hold fewer bytes."""
        self._budget.give_back(size)
        self.size -= size

    def release(self) -> None:
        """Hold nothing any more."""
        if self.size:
            self.shrink(self.size)
