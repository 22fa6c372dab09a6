"""Counting jobs in ZooKeeper by the names in queues and under batches; no job is read for it.

The bytes that a job needs are read once for each state that it is seen in, since nothing else
changes them: from one count to the next this costs as many reads as jobs have moved.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from penstock.errors import Invalid
from penstock.ingest.moves import BatchSide, side_of
from penstock.ingest.values import Tally
from penstock.ingest.zk.layout import (
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
LISTED_MAX: Final = 20_000  # jobs that are looked at for a list of batches

_OPEN = tuple(state for state in QUEUED if side_of(state) is BatchSide.PROCESSING)
_ENDS = {IngestState.COMPLETED: BatchSide.COMPLETED, IngestState.FAILED: BatchSide.FAILED}


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
        needed = sum(self._sizes_of({_job_id(name): downloading for name in names}).values())
        return [
            Tally(state, jobs, needed if state is downloading else 0)
            for state, jobs in zip(QUEUED, counts, strict=True)
            if jobs
        ]

    def of_batch(self, batch_id: str) -> list[Tally]:
        """Jobs of one batch."""
        return self._of([batch_id])[batch_id] if is_batch_id(batch_id) else []

    def of_batches(self, batch_ids: Sequence[str]) -> dict[str, list[Tally]]:
        """Jobs of several batches, the first ones that have no more than so many together."""
        wanted = [batch_id for batch_id in batch_ids if is_batch_id(batch_id)]
        paths = [side_path(batch_id, side) for batch_id in wanted for side in BatchSide]
        counts = iter(self._session.children_counts(paths))
        jobs = accumulate(sum(next(counts) for _ in BatchSide) for _ in wanted)
        few = [batch_id for batch_id, n in zip(wanted, jobs, strict=True) if n <= LISTED_MAX]
        return self._of(few)

    def jobs_of(self, batch_id: str) -> int:
        """How many jobs a batch has."""
        return sum(self._session.children_counts([side_path(batch_id, s) for s in BatchSide]))

    def _of(self, batch_ids: Sequence[str]) -> dict[str, list[Tally]]:
        states = self._states(batch_ids)
        sizes = self._sizes_of(
            {job: state for each in states.values() for job, state in each.items()}
        )
        return {batch_id: _tallies(each, sizes) for batch_id, each in states.items()}

    def _states(self, batch_ids: Sequence[str]) -> dict[str, dict[str, IngestState]]:
        """In which state each job of these batches is."""
        paths = [side_path(batch_id, side) for batch_id in batch_ids for side in BatchSide]
        listed = iter(self._session.children_many(paths))
        states: dict[str, dict[str, IngestState]] = {}
        under_way: dict[str, str] = {}  # the batch of each such job
        for batch_id in batch_ids:
            sides = {side: next(listed) for side in BatchSide}
            states[batch_id] = {n: state for state, side in _ENDS.items() for n in sides[side]}
            under_way |= dict.fromkeys(sides[BatchSide.PROCESSING], batch_id)
        if under_way:
            queues = self._session.children_many([stage_path(state) for state in _OPEN])
            for state, names in zip(_OPEN, queues, strict=True):
                for job in under_way.keys() & set(map(_job_id, names)):
                    states[under_way[job]][job] = state
        return states

    def _sizes_of(self, states: Mapping[str, IngestState]) -> dict[str, int]:
        """The bytes that jobs in these states need."""
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
        return sizes


def _tallies(states: Mapping[str, IngestState], sizes: Mapping[str, int]) -> list[Tally]:
    jobs: Counter[IngestState] = Counter(states.values())
    needed: Counter[IngestState] = Counter()
    for job, state in states.items():
        needed[state] += sizes[job]
    return [Tally(state, jobs[state], needed[state]) for state in QUEUED if jobs[state]]


def _size(data: bytes, path: str) -> int:
    try:
        return read_number(data, path)
    except Invalid:  # `check` tells; one damaged node must not stop all that count
        return 0


def _job_id(entry: str) -> str:
    """The job of an entry in a queue, which begins with its priority."""
    return entry.partition("-")[2]
