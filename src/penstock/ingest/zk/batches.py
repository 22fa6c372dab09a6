"""What one process remembers of batches: in which state each is, and which have no job left.

ZooKeeper cannot be asked which batches are in a state. So the state of every batch is read once,
and of those that are not completed again when some batch was changed, which the version of
`/batches` tells: a claim costs one read while nothing happens. Reading again takes a 20th of the
time at most. What is remembered may be old: a claim looks at the batch once it is locked.
"""

import threading
import time
from typing import Final

from penstock.errors import Invalid
from penstock.ingest.moves import BatchSide
from penstock.ingest.zk.layout import (
    BATCHES,
    batch_path,
    is_batch_id,
    read_batch_status,
    side_path,
)
from penstock.ingest.zk.queue import LISTING_SHARE, Bell, Listing
from penstock.states import BatchState
from penstock.zk import Session

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
