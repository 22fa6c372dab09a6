"""What a daemon passes over for a while, so that what is behind it gets its turn.

A collection whose storage does not answer, or a job that waits for another, would else be claimed
again and again, for it is the oldest, and nothing behind it ever. Of a collection whose jobs fail
because somebody outside does not answer, one is tried at a time: it takes not all threads.
"""

import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from penstock.ingest.models import Batch, IngestJob

T = TypeVar("T", IngestJob, Batch)

# What has rested is tried with one alone, for so long; then with another.
_TRY_SECONDS = 60.0
# At most a 20th of the time is spent on passing over. What took longer than this has waited for
# the store, and says nothing of how much there is to pass over.
_SHARE = 20
_PASSING_SECONDS_MAX = 1.0
# What took longer than this in vain did not take so long because something does not answer.
_VAIN_SECONDS_MAX = 60.0


class Backoff(NamedTuple):
    """What was worked on cannot go on for so long, or nothing of its collection can.

    After no time at all it can, and is tried with one alone.
    """

    seconds: float
    is_of_all: bool = False


class CollectionBackoff(Generic[T]):
    """Names that rest, and the last that was passed over. Belongs to the thread of one daemon."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[str, float] = {}
        self._doubtful: set[str] = set()  # their rest is over, and nobody has tried since
        self._trying: set[str] = set()
        self._passed: T | None = None
        self._owed = 0.0  # so long others were kept waiting by what was tried in vain
        self._front_at = 0.0

    @property
    def is_any(self) -> bool:
        """Whether something may be passed over."""
        return bool(self._until)

    def behind(self) -> T | None:
        """Behind what to claim; None is the front, where it is begun again after a rest.

        Before that, what is behind all that rest gets as much time as was spent on those in vain.
        """
        now = self._monotonic()
        rested = {name for name, until in self._until.items() if until <= now}
        if rested and now >= self._front_at and not self._owed:
            self._passed = None
            self._doubtful |= rested
            for name in rested:
                del self._until[name]
        return self._passed

    def going(self, claimed: Sequence[T], most: int) -> list[T]:
        """Those of the next in the queue that are to be worked on, and no more than so many."""
        if not claimed:
            self._owed = 0.0
            if self._passed is None:
                self._doubtful.clear()  # nothing waits: they were others' to do
        going: list[T] = []
        for item in claimed:
            if len(going) == most:
                break
            if self._rests(item):
                self._passed = item
            else:
                going.append(item)
        return going

    def is_too_early(self, item: T) -> bool:
        """Whether one that is at hand is to be left, as it rests by now; from any thread."""
        return item.id not in self._trying and any(name in self._until for name in _names(item))

    def took(self, seconds: float) -> None:
        """So long it took to find what is to be worked on."""
        self._front_at = max(
            self._front_at, self._monotonic() + _SHARE * min(seconds, _PASSING_SECONDS_MAX)
        )

    def note(self, item: T, rest: Backoff | None, took: float = 0.0) -> None:
        """What became of one that was worked on so long: whether it has to rest, or could go on."""
        names = _names(item)
        self._trying.discard(item.id)
        if rest is not None:
            self._owed += min(took, _VAIN_SECONDS_MAX) if rest.seconds else 0.0
            self._until[names[rest.is_of_all]] = self._monotonic() + rest.seconds
            return
        self._owed = max(0.0, self._owed - took)
        for name in names:
            self._doubtful.discard(name)
            if self._until.pop(name, None) is not None:
                self._passed = None

    def _rests(self, item: T) -> bool:
        names = _names(item)
        if any(name in self._until for name in names):
            return True
        for name in self._doubtful.intersection(names):
            self._doubtful.discard(name)
            self._until[name] = self._monotonic() + _TRY_SECONDS
            self._trying.add(item.id)
        return False


def _names(item: IngestJob | Batch) -> tuple[str, str]:
    """By which it may rest: its own, and that of its collection."""
    of_all = item.configuration.profile_name if isinstance(item, IngestJob) else item.collection
    return item.id, f"collection {of_all}"
