"""What one process remembers of batches: in which state each is, and which have no job left.

ZooKeeper cannot be asked which batches are in a state. So the state of every batch is read once,
and of those that are not completed again when some batch was changed, which the version of
`/batches` tells: a claim costs one read while nothing happens. Reading again takes a 20th of the
time at most. What is remembered may be old: a claim looks at the batch once it is locked.
"""

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Final

from penstock.errors import Invalid
from penstock.ingest.models import Place
from penstock.ingest.queue.zookeeper.layout import (
    BATCHES,
    batch_path,
    entry_name,
    is_batch_id,
    read_batch_status,
    read_entry,
    side_path,
    stage_path,
)
from penstock.ingest.transitions import BatchSide
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Session

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


READING_SECONDS_MAX: Final = 10.0  # until all is read again, though no change was heard of
ENDING_SECONDS_MIN: Final = 1.0  # between two looks at a batch whose jobs are under way
FEW: Final = 100  # jobs left of a batch that is watched: to watch is to list


class BatchIndex:
    """The states of batches."""

    def __init__(self, session: Session, bell: Bell) -> None:
        self._session = session
        self._mutex = threading.Lock()
        self._states: dict[str, BatchState] = {}
        self._names: set[str] = set()
        self._listing = Listing(bell)  # of names
        self._reading = Listing(bell)  # of states
        self._version = -1

    def ids(self, status: BatchState) -> list[str]:
        """Batches that seem to be in a state, oldest first."""
        with self._mutex:
            self._refresh()
            return sorted(batch for batch, state in self._states.items() if state is status)

    def note(self, batch_id: str, status: BatchState | None) -> None:
        """A batch is in this state now, or gone."""
        with self._mutex:
            if status is None:
                self._states.pop(batch_id, None)
                self._names.discard(batch_id)
            else:
                self._states[batch_id] = status
                self._names.add(batch_id)

    def _refresh(self) -> None:
        parent = self._session.get(BATCHES)
        version = -1 if parent is None else parent[1]
        is_changed = version != self._version or self._listing.is_stale
        if not (self._reading.is_due(0) if is_changed else self._is_old()):
            return
        self._reading.make(self._read)
        self._version = version

    def _is_old(self) -> bool:
        return self._reading.is_due(READING_SECONDS_MAX)

    def _read(self) -> list[str]:
        if self._listing.is_stale:
            listed = self._listing.make(lambda: self._session.children(BATCHES, self._listing.fire))
            self._names = set(filter(is_batch_id, listed))
        open_ids = [b for b in self._names if self._states.get(b) is not BatchState.COMPLETED]
        nodes = self._session.get_many([batch_path(batch_id, "status") for batch_id in open_ids])
        for batch_id, node in zip(open_ids, nodes, strict=True):
            self._states.pop(batch_id, None)
            if node is not None and (state := _state(batch_id, node[0])) is not None:
                self._states[batch_id] = state
        for gone in self._states.keys() - self._names:
            del self._states[gone]
        return open_ids


class _Ending:
    """When to look whether a batch has jobs left."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self.is_watched = False
        self.next_look = 0.0

    def fire(self) -> None:
        """A job came or went; runs in a thread of kazoo's."""
        self.is_watched = False
        self.next_look = 0.0
        self._bell.ring()


class Endings:
    """Batches that are processing, watched for the end of their last job.

    Whoever ends the last job moves its batch on. This is for the one who died just before that,
    and it wakes those who wait for a batch to report.
    """

    def __init__(self, session: Session, bell: Bell) -> None:
        self._session = session
        self._bell = bell
        self._mutex = threading.Lock()
        self._endings: dict[str, _Ending] = {}
        self._took = 0.0

    def ended(self, processing: list[str]) -> list[str]:
        """Those of these batches that have no job left; a batch costs one read a second."""
        with self._mutex:
            for gone in self._endings.keys() - set(processing):
                del self._endings[gone]
            now = time.monotonic()
            due = []
            for batch_id in processing:
                ending = self._endings.setdefault(batch_id, _Ending(self._bell))
                if ending.next_look <= now:
                    ending.next_look = now + max(ENDING_SECONDS_MIN, LISTING_SHARE * self._took)
                    due.append(batch_id)
            ended = [batch_id for batch_id in due if self._is_over(batch_id)]
            self._took = time.monotonic() - now
            return ended

    def _is_over(self, batch_id: str) -> bool:
        path = side_path(batch_id, BatchSide.PROCESSING)
        ending = self._endings[batch_id]
        left = self._session.children_count(path)
        if 0 < left <= FEW and not ending.is_watched:
            ending.is_watched = True
            left = len(self._session.children(path, ending.fire))
        return left == 0


def _state(batch_id: str, data: bytes) -> BatchState | None:
    try:
        return read_batch_status(batch_id, data).status
    except Invalid:
        return None
