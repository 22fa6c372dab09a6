"""Backoff of jobs, batches and collections that a daemon cannot work on now.

Without it a daemon would claim the oldest items again and again, for example those of a collection
whose storage does not answer, and never the items behind them. If the jobs of a collection fail
because another server does not answer, one of them is tried at a time, so that they do not occupy
all threads.
"""

import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from penstock.ingest.models import Batch, IngestJob

T = TypeVar("T", IngestJob, Batch)

# After a backoff one item is tried alone, for this long; then another.
_TRIAL_SECONDS = 60.0
# Scans for other items take at most a 20th of the time. A scan that took longer than the limit
# waited for the store, so its time is not a measure of the items that it skipped.
_SCAN_SHARE = 20
_SCAN_SECONDS_MAX = 1.0
# A failed try that took longer than this did not wait for a server.
_FAILED_TRY_SECONDS_MAX = 60.0


class Backoff(NamedTuple):
    """The seconds for which an item, or everything of its collection, is skipped.

    With 0 seconds the collection is not skipped, but one item of it is tried alone.
    """

    seconds: float
    is_of_all: bool = False


class CollectionBackoff(Generic[T]):
    """The backoffs of one daemon, and the last item that it skipped; for the daemon's thread."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[str, float] = {}
        self._untested: set[str] = set()  # their backoff is over, and no item was tried since
        self._trial_ids: set[str] = set()
        self._last_skipped: T | None = None
        self._owed_seconds = 0.0  # the time of failed tries, which other items waited for
        self._front_at = 0.0

    @property
    def has_backoffs(self) -> bool:
        """Whether some items may be skipped."""
        return bool(self._until)

    def next_after(self) -> T | None:
        """Return the item behind which to claim; None for the front of the queue.

        The daemon returns to the front after a backoff is over. Before that, the items behind get
        as much time as the failed tries took.
        """
        now = self._monotonic()
        expired = {name for name, until in self._until.items() if until <= now}
        if expired and now >= self._front_at and not self._owed_seconds:
            self._last_skipped = None
            self._untested |= expired
            for name in expired:
                del self._until[name]
        return self._last_skipped

    def select(self, claimed: Sequence[T], most: int) -> list[T]:
        """Select the items to work on, at most `most`, from the next in the queue."""
        if not claimed:
            self._owed_seconds = 0.0
            if self._last_skipped is None:
                self._untested.clear()  # nothing waits: other workers have claimed the items
        selected: list[T] = []
        for item in claimed:
            if len(selected) == most:
                break
            if self._is_skipped(item):
                self._last_skipped = item
            else:
                selected.append(item)
        return selected

    def is_backed_off(self, item: T) -> bool:
        """Whether a selected item has to be skipped by now; may be called in any thread."""
        return item.id not in self._trial_ids and any(n in self._until for n in _names(item))

    def record_scan(self, seconds: float) -> None:
        """Record how long the scan for items took."""
        self._front_at = max(
            self._front_at, self._monotonic() + _SCAN_SHARE * min(seconds, _SCAN_SECONDS_MAX)
        )

    def record(self, item: T, backoff: Backoff | None, seconds: float = 0.0) -> None:
        """Record the result of a try that took these seconds; start or end its backoff."""
        names = _names(item)
        self._trial_ids.discard(item.id)
        if backoff is not None:
            if backoff.seconds:
                self._owed_seconds += min(seconds, _FAILED_TRY_SECONDS_MAX)
            self._until[names[backoff.is_of_all]] = self._monotonic() + backoff.seconds
            return
        self._owed_seconds = max(0.0, self._owed_seconds - seconds)
        for name in names:
            self._untested.discard(name)
            if self._until.pop(name, None) is not None:
                self._last_skipped = None

    def _is_skipped(self, item: T) -> bool:
        names = _names(item)
        if any(name in self._until for name in names):
            return True
        for name in self._untested.intersection(names):
            self._untested.discard(name)
            self._until[name] = self._monotonic() + _TRIAL_SECONDS
            self._trial_ids.add(item.id)
        return False


def _names(item: IngestJob | Batch) -> tuple[str, str]:
    """Return the two keys of an item's backoffs: the item and its collection."""
    collection = item.configuration.profile_name if isinstance(item, IngestJob) else item.collection
    return item.id, f"collection {collection}"
