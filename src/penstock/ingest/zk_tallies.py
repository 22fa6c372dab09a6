"""Counting jobs in ZooKeeper by the names in queues and under batches; no job is read for it.

The bytes that a job needs are read once for each state that it is seen in, since nothing else
changes them: from one count to the next this costs as many reads as jobs have moved.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

from penstock.errors import Invalid
from penstock.ingest.moves import BatchSide, side_of
from penstock.ingest.values import Tally
from penstock.ingest.zk_layout import (
    QUEUED,
    is_batch_id,
    job_path,
    read_number,
    side_path,
    stage_path,
)
from penstock.states import IngestState
from penstock.zk import Session

SIZES_MAX: Final = 200_000  # remembered; some twenty megabytes

_OPEN = tuple(state for state in QUEUED if side_of(state) is BatchSide.PROCESSING)
_ENDS = {IngestState.COMPLETED: BatchSide.COMPLETED, IngestState.FAILED: BatchSide.FAILED}

States = Mapping[str, IngestState]


class Tallies:
    """How many jobs are in each state, and what they need."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._mutex = threading.Lock()
        self._sizes: dict[str, tuple[IngestState, int]] = {}

    def of_all(self) -> list[Tally]:
        """Jobs of all batches; bytes only of those downloading, which is what takes up space."""
        counts = self._session.children_counts([stage_path(state) for state in QUEUED])
        downloading = IngestState.DOWNLOADING
        names = self._session.children(stage_path(downloading))
        sizes = self._needed({_job_id(name): downloading for name in names})
        return [Tally(state, n, sizes[state]) for state, n in zip(QUEUED, counts, strict=True) if n]

    def of_batch(self, batch_id: str) -> list[Tally]:
        """Jobs of one batch."""
        if not is_batch_id(batch_id):
            return []
        states = self._states(batch_id)
        counts, sizes = Counter(states.values()), self._needed(states)
        return [Tally(state, counts[state], sizes[state]) for state in QUEUED if counts[state]]

    def jobs_of(self, batch_id: str) -> int:
        """How many jobs a batch has."""
        return sum(self._session.children_counts([side_path(batch_id, s) for s in BatchSide]))

    def _states(self, batch_id: str) -> dict[str, IngestState]:
        """In which state each job of a batch is."""
        sides = dict(
            zip(
                BatchSide,
                self._session.children_many([side_path(batch_id, side) for side in BatchSide]),
                strict=True,
            )
        )
        states = {name: state for state, side in _ENDS.items() for name in sides[side]}
        under_way = set(sides[BatchSide.PROCESSING])
        if under_way:
            queues = self._session.children_many([stage_path(state) for state in _OPEN])
            for state, names in zip(_OPEN, queues, strict=True):
                states |= dict.fromkeys(under_way.intersection(map(_job_id, names)), state)
        return states

    def _needed(self, states: States) -> Counter[IngestState]:
        """The bytes that jobs need, by the state they are in."""
        with self._mutex:
            known = {job: self._sizes.get(job, (None, 0)) for job in states}
        sizes = {job: size for job, (state, size) in known.items() if state is states[job]}
        unread = [job for job in states if job not in sizes]
        paths = [job_path(job_id, "space_needed") for job_id in unread]
        nodes = self._session.get_many(paths)
        for job, path, node in zip(unread, paths, nodes, strict=True):
            sizes[job] = 0 if node is None else _size(node[0], path)
        with self._mutex:
            if len(self._sizes) + len(unread) > SIZES_MAX:
                self._sizes.clear()
            self._sizes.update((job, (states[job], sizes[job])) for job in unread[:SIZES_MAX])
        needed: Counter[IngestState] = Counter()
        for job, size in sizes.items():
            needed[states[job]] += size
        return needed


def _size(data: bytes, path: str) -> int:
    try:
        return read_number(data, path)
    except Invalid:  # `check` tells; one damaged node must not stop all that count
        return 0


def _job_id(entry: str) -> str:
    """The job of an entry in a queue, which begins with its priority."""
    return entry.partition("-")[2]
