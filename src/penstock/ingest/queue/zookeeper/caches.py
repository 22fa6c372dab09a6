"""Caches of one process: the queues of stages, the states of batches, and their open jobs.

ZooKeeper has no query for the batches in a state. So the process reads the state of every batch
once. When the version of `/batches` shows a change, it reads the batches that are not completed
again. A claim without changes costs one read. Repeated reads take at most a 20th of the time. The
cache may be stale, so a claim reads a batch again after locking it.
"""

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Final

from penstock.errors import Invalid
from penstock.ingest.models import QueuePosition
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
from penstock.zookeeper import ZooKeeperSession

LISTING_SECONDS_MIN: Final = 1.0  # between two listings of a queue that still has entries
LISTING_SHARE: Final = 20  # listings take at most a 20th of the time,
LISTING_FREE: Final = 100  # unless they have at most this many entries

READING_SECONDS_MAX: Final = 10.0  # until everything is read again, also without a change
ENDING_SECONDS_MIN: Final = 1.0  # between two reads of a batch with open jobs
FEW: Final = 100  # open jobs of a batch that is watched; a watch lists them all


class Bell:
    """A signal that something may have changed; each thread sees each ring once."""

    def __init__(self) -> None:
        self._rings = 0
        self._rung = threading.Condition()
        self._heard = threading.local()

    def ring(self) -> None:
        """Wake all waiting threads."""
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait for the next ring; return at once after a ring since this thread's last wait."""
        heard = getattr(self._heard, "rings", 0)
        with self._rung:
            self._rung.wait_for(lambda: self._rings != heard, seconds)
            self._heard.rings = self._rings


class Listing:
    """The schedule of repeated listings: after a watch fires, and after a pause by their cost."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._listed_at = float("-inf")
        self._pause = 0.0
        self.is_stale = True

    def fire(self) -> None:
        """Note a change that a watch saw; runs in a thread of kazoo."""
        self.is_stale = True
        self._bell.ring()

    def is_due(self, seconds_min: float = LISTING_SECONDS_MIN) -> bool:
        """Whether enough time has passed since the last listing."""
        return time.monotonic() - self._listed_at >= max(seconds_min, self._pause)

    def make(self, read: Callable[[], list[str]]) -> list[str]:
        self.is_stale = False
        started = time.monotonic()
        listed: list[str] | None = None
        try:
            listed = read()
            return listed
        finally:
            self.is_stale |= listed is None
            self._listed_at = time.monotonic()
            is_free = listed is not None and len(listed) <= LISTING_FREE
            self._pause = 0 if is_free else LISTING_SHARE * (self._listed_at - started)


class StageQueue:
    """The entries of a state's queue in their order, listed once and then handed out.

    The queue is listed again when no entries are left; before that, at most once a second and for a
    20th of the time. Jobs that this process moves into the state are inserted at once.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        stage: IngestState,
        bell: Bell,
        is_ours: Callable[[str], bool],
    ) -> None:
        self._session = session
        self._path = stage_path(stage)
        self._is_ours = is_ours
        self._listing = Listing(bell)
        self._mutex = threading.Lock()
        self._names: list[str] = []
        self._is_used = False  # a queue that this process never claims from is not cached
        self._has_passed = False  # entries that another session had locked

    def refresh(self) -> None:
        """List the queue again if that is due."""
        with self._mutex:
            self._is_used = True
            listing = self._listing
            if listing.is_stale:
                is_due = not self._names or listing.is_due()
            else:
                # The release of a lock does not change the queue, so it fires no watch.
                is_due = self._has_passed and listing.is_due()
            if not is_due:
                return
            self._names = listing.make(
                lambda: sorted(self._session.children(self._path, listing.fire))
            )
            self._has_passed = False

    def take(self, most: int, after: QueuePosition | None) -> list[QueuePosition]:
        """Take the next entries that this process has not locked; no other thread gets them."""
        positions: list[QueuePosition] = []
        with self._mutex:
            start = 0 if after is None else bisect_right(self._names, entry_name(after))
            end = start
            while len(positions) < most and end < len(self._names):
                position = read_entry(self._names[end])
                if position is not None and not self._is_ours(position.id):
                    positions.append(position)
                end += 1
            del self._names[start:end]
        return positions

    def note_locked(self) -> None:
        """Note that another session had locked an entry, which may be released later."""
        self._has_passed = True

    def add(self, position: QueuePosition) -> None:
        """Insert an entry at its position."""
        name = entry_name(position)
        with self._mutex:
            if self._is_used and not self._holds(name):
                insort(self._names, name)

    def remove(self, position: QueuePosition) -> None:
        """Remove an entry."""
        name = entry_name(position)
        with self._mutex:
            if self._holds(name):
                del self._names[bisect_left(self._names, name)]

    def _holds(self, name: str) -> bool:
        index = bisect_left(self._names, name)
        return index < len(self._names) and self._names[index] == name


class BatchIndex:
    """The cached states of batches."""

    def __init__(self, session: ZooKeeperSession, bell: Bell) -> None:
        self._session = session
        self._mutex = threading.Lock()
        self._states: dict[str, BatchState] = {}
        self._names: set[str] = set()
        self._listing = Listing(bell)  # of names
        self._reading = Listing(bell)  # of states
        self._version = -1

    def ids(self, status: BatchState) -> list[str]:
        """Return batches that are in a state according to the cache, oldest first."""
        with self._mutex:
            self._refresh()
            return sorted(batch for batch, state in self._states.items() if state is status)

    def note(self, batch_id: str, status: BatchState | None) -> None:
        """Store the state of a batch; None if it is deleted."""
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
        for batch_id in self._states.keys() - self._names:
            del self._states[batch_id]
        return open_ids


class _Ending:
    """The schedule of reads of one batch's open jobs."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self.is_watched = False
        self.next_look = 0.0

    def fire(self) -> None:
        """Note a change of the open jobs; runs in a thread of kazoo."""
        self.is_watched = False
        self.next_look = 0.0
        self._bell.ring()


class BatchEndings:
    """Processing batches, watched for the end of their last job.

    The worker that ends the last job moves the batch on. This class covers a worker that dies
    before that, and wakes the workers that wait for a batch to report.
    """

    def __init__(self, session: ZooKeeperSession, bell: Bell) -> None:
        self._session = session
        self._bell = bell
        self._mutex = threading.Lock()
        self._endings: dict[str, _Ending] = {}
        self._read_seconds = 0.0

    def ended(self, processing: list[str]) -> list[str]:
        """Return the batches without open jobs; each batch costs one read a second."""
        with self._mutex:
            for batch_id in self._endings.keys() - set(processing):
                del self._endings[batch_id]
            now = time.monotonic()
            due = []
            for batch_id in processing:
                ending = self._endings.setdefault(batch_id, _Ending(self._bell))
                if ending.next_look <= now:
                    ending.next_look = now + max(
                        ENDING_SECONDS_MIN, LISTING_SHARE * self._read_seconds
                    )
                    due.append(batch_id)
            ended = [batch_id for batch_id in due if self._is_over(batch_id)]
            self._read_seconds = time.monotonic() - now
            return ended

    def _is_over(self, batch_id: str) -> bool:
        path = side_path(batch_id, BatchSide.PROCESSING)
        ending = self._endings[batch_id]
        open_jobs = self._session.children_count(path)
        if 0 < open_jobs <= FEW and not ending.is_watched:
            ending.is_watched = True
            open_jobs = len(self._session.children(path, ending.fire))
        return open_jobs == 0


def _state(batch_id: str, data: bytes) -> BatchState | None:
    try:
        return read_batch_status(batch_id, data).status
    except Invalid:
        return None
