"""What one process remembers of the queue of a state, so that a claim does not list it."""

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Final

from penstock.ingest.values import Place
from penstock.ingest.zk.layout import entry_name, read_entry, stage_path
from penstock.states import IngestState
from penstock.zk import Session

LISTING_SECONDS_MIN: Final = 1.0  # between two listings of a queue that is not used up
LISTING_SHARE: Final = 20  # at most a 20th of the time is spent on listings,
LISTING_FREE: Final = 100  # unless they are as short as this


class Bell:
    """Rung when something may have changed; each thread hears each ring once, also a past one."""

    def __init__(self) -> None:
        self._rings = 0
        self._rung = threading.Condition()
        self._heard = threading.local()

    def ring(self) -> None:
        """Let whoever waits go on."""
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, seconds: float) -> None:
        """Return at the next ring, or at once if there was one since this thread waited last."""
        heard = getattr(self._heard, "rings", 0)
        with self._rung:
            self._rung.wait_for(lambda: self._rings != heard, seconds)
            self._heard.rings = self._rings


class Listing:
    """When to list children again: a watch says whether, the cost of the last time says when."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._listed_at = float("-inf")
        self._pause = 0.0
        self.is_stale = True

    def fire(self) -> None:
        """A watch saw a change; runs in a thread of kazoo's."""
        self.is_stale = True
        self._bell.ring()

    def is_due(self, seconds_min: float = LISTING_SECONDS_MIN) -> bool:
        """Whether enough time has passed since the last listing."""
        return time.monotonic() - self._listed_at >= max(seconds_min, self._pause)

    def make(self, read: Callable[[], list[str]]) -> list[str]:
        """List now."""
        self.is_stale = False
        begun = time.monotonic()
        listed: list[str] | None = None
        try:
            listed = read()
            return listed
        finally:
            self.is_stale |= listed is None
            self._listed_at = time.monotonic()
            is_free = listed is not None and len(listed) <= LISTING_FREE
            self._pause = 0 if is_free else LISTING_SHARE * (self._listed_at - begun)


class StageQueue:
    """Entries of a state in their order, listed once and then handed out.

    The queue is listed again when it is used up, and while it is not, at most once a second and
    for a 20th of the time. What this process moves into the state is put in at its place at once.
    """

    def __init__(
        self, session: Session, stage: IngestState, bell: Bell, is_ours: Callable[[str], bool]
    ) -> None:
        self._session = session
        self._path = stage_path(stage)
        self._is_ours = is_ours
        self._listing = Listing(bell)
        self._mutex = threading.Lock()
        self._names: list[str] = []
        self._is_used = False  # nothing is remembered of a queue that this process never takes from
        self._has_passed = False  # over entries that another session had locked

    def refresh(self) -> None:
        """List the queue, if that is worth it."""
        with self._mutex:
            self._is_used = True
            listing = self._listing
            if listing.is_stale:
                is_due = not self._names or listing.is_due()
            else:
                # A lock that is given up changes nothing in the queue, and so fires no watch.
                is_due = self._has_passed and listing.is_due()
            if not is_due:
                return
            self._names = listing.make(
                lambda: sorted(self._session.children(self._path, listing.fire))
            )
            self._has_passed = False

    def take(self, most: int, after: Place | None) -> list[Place]:
        """The next entries that this process has not locked; nobody else in it gets them."""
        taken: list[Place] = []
        with self._mutex:
            start = 0 if after is None else bisect_right(self._names, entry_name(after))
            end = start
            while len(taken) < most and end < len(self._names):
                place = read_entry(self._names[end])
                if place is not None and not self._is_ours(place.id):
                    taken.append(place)
                end += 1
            del self._names[start:end]
        return taken

    def passed(self) -> None:
        """An entry was locked by another session: it may be free again later."""
        self._has_passed = True

    def add(self, place: Place) -> None:
        """Put an entry in at its place."""
        name = entry_name(place)
        with self._mutex:
            if self._is_used and not self._holds(name):
                insort(self._names, name)

    def remove(self, place: Place) -> None:
        """An entry is not there any more."""
        name = entry_name(place)
        with self._mutex:
            if self._holds(name):
                del self._names[bisect_left(self._names, name)]

    def _holds(self, name: str) -> bool:
        index = bisect_left(self._names, name)
        return index < len(self._names) and self._names[index] == name
