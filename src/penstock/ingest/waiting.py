"""What could not go on when it was last tried: others pass it, until it is time to try again.

Without this, some jobs that wait for one storage would be taken up again and again, because they
are first in the queue, and nobody else's would ever have a turn.
"""

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from penstock.ingest.values import Batch, IngestJob, Place

REMEMBERED_MAX = 100_000

T = TypeVar("T", IngestJob, Batch)


class Waiting(Generic[T]):
    """What one daemon remembers; every method may be called from any of its threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def note(self, item: T, seconds: float) -> None:
        """It cannot go on; do not try it again for so long."""
        if len(self._until) >= REMEMBERED_MAX:
            self._until.clear()
        self._until[item.id] = self._now() + seconds

    def forget(self, item: T) -> None:
        """It has gone on: whatever it waited for is there again, for others too perhaps."""
        if item.id in self._until:
            self._until.clear()

    def untried(self, items: Sequence[T]) -> list[T]:
        """Those that are not known to wait."""
        return [item for item in items if item.id not in self._until]

    def due(self, items: Sequence[T]) -> list[T]:
        """Those that it is time to try again."""
        now = self._now()
        return [item for item in items if self._until.get(item.id, now) <= now]


class Walk:
    """Which of the jobs that were claimed are to be tried, and behind which to claim the next.

    What is untried comes first, wherever it stands; only when there is none is tried again what
    waits at the head of the queue.
    """

    def __init__(self, waiting: Waiting[IngestJob]) -> None:
        self._waiting = waiting
        self._has_seen_all = False
        self.behind: Place | None = None

    def choose(self, jobs: Sequence[IngestJob], most: int) -> list[IngestJob]:
        """Of these, which are all that could be claimed where they are fewer than `most`."""
        untried = self._waiting.untried(jobs)
        is_head, is_end = self.behind is None, len(jobs) < most
        if untried:
            return untried
        if is_head and (is_end or self._has_seen_all):
            self._has_seen_all = False
            self.behind = None if is_end else self.behind
            return self._waiting.due(jobs)
        self._has_seen_all = is_end
        self.behind = None if is_end else jobs[-1].place
        return []
