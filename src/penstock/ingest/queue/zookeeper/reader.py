"""Reads of the queue in ZooKeeper: counts of jobs, batches, jobs and holds.

Jobs are counted by the names in queues and below batches, without reading the jobs. The bytes that
a job needs change only with its state, so they are read once for each state: a repeated count costs
one read for each job that moved.
"""

import threading
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from msgspec.structs import replace

from penstock.errors import Invalid, NotFound
from penstock.ingest.models import (
    Batch,
    IngestHold,
    IngestHoldKind,
    IngestJob,
    QueuePosition,
    Tally,
)
from penstock.ingest.queue.port import QUEUE, BatchFilter
from penstock.ingest.queue.zookeeper.layout import (
    BATCH_NODES,
    BATCHES,
    HOLDS,
    JOB_NODES,
    QUEUED,
    Data,
    batch_path,
    is_batch_id,
    is_job_id,
    job_path,
    read_batch,
    read_batch_status,
    read_entry,
    read_hold,
    read_job,
    read_job_status,
    read_number,
    side_path,
    stage_path,
)
from penstock.ingest.transitions import BatchSide, side_of
from penstock.states import BatchState, IngestState
from penstock.zookeeper import ZooKeeperSession

SIZES_MAX: Final = 200_000  # cached sizes; about twenty megabytes
LISTED_MAX: Final = 20_000  # jobs that are counted for a list of batches

_OPEN = tuple(state for state in QUEUED if side_of(state) is BatchSide.PROCESSING)
_ENDS = {IngestState.COMPLETED: BatchSide.COMPLETED, IngestState.FAILED: BatchSide.FAILED}

REMEMBERED_MAX: Final = 10_000
FAILED_LOOKED_AT: Final = 1000  # failed jobs that are read to find the latest
CHUNK: Final = 200  # batches or jobs in one read, where some may be filtered out
Node = tuple[bytes, int] | None


class TallyReader:
    """A reader of the number of jobs in each state, and the bytes they need."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._mutex = threading.Lock()
        self._sizes: dict[str, tuple[IngestState, int]] = {}

    def of_all(self) -> list[Tally]:
        """Count the jobs of all batches; bytes only of downloading jobs, which use up space."""
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
        """Count the jobs of one batch."""
        return self._of([batch_id])[batch_id] if is_batch_id(batch_id) else []

    def of_batches(self, batch_ids: Sequence[str]) -> dict[str, list[Tally]]:
        """Count the jobs of several batches, as long as they have at most LISTED_MAX together."""
        wanted = [batch_id for batch_id in batch_ids if is_batch_id(batch_id)]
        paths = [side_path(batch_id, side) for batch_id in wanted for side in BatchSide]
        counts = iter(self._session.children_counts(paths))
        jobs = accumulate(sum(next(counts) for _ in BatchSide) for _ in wanted)
        few = [batch_id for batch_id, n in zip(wanted, jobs, strict=True) if n <= LISTED_MAX]
        return self._of(few)

    def jobs_of(self, batch_id: str) -> int:
        """Return the number of a batch's jobs."""
        return sum(self._session.children_counts([side_path(batch_id, s) for s in BatchSide]))

    def _of(self, batch_ids: Sequence[str]) -> dict[str, list[Tally]]:
        states = self._states(batch_ids)
        sizes = self._sizes_of(
            {job: state for each in states.values() for job, state in each.items()}
        )
        return {batch_id: _tallies(each, sizes) for batch_id, each in states.items()}

    def _states(self, batch_ids: Sequence[str]) -> dict[str, dict[str, IngestState]]:
        """Return the state of each job of these batches."""
        paths = [side_path(batch_id, side) for batch_id in batch_ids for side in BatchSide]
        listed = iter(self._session.children_many(paths))
        states: dict[str, dict[str, IngestState]] = {}
        under_way: dict[str, str] = {}  # the batch of each job under way
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
        """Return the bytes that jobs in these states need."""
        with self._mutex:
            cached = {job: self._sizes.get(job, (None, 0)) for job in states}
        sizes = {job: size for job, (state, size) in cached.items() if state is states[job]}
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
    except Invalid:  # `check` reports it; one damaged node must not stop all counts
        return 0


def _job_id(entry: str) -> str:
    """Return the job id of a queue entry, which begins with a priority."""
    return entry.partition("-")[2]


class QueueReader:
    """A reader of batches, jobs and holds."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._mutex = threading.Lock()
        self._remembered: OrderedDict[str, IngestJob] = OrderedDict()

    def remember(self, job: IngestJob) -> None:
        """Cache a job at its version, so that its other nodes need not be read again."""
        with self._mutex:
            self._remembered[job.id] = job
            self._remembered.move_to_end(job.id)
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)

    def known(self, job_ids: Sequence[str]) -> dict[str, IngestJob]:
        """Return cached jobs; the caller has to compare their versions."""
        with self._mutex:
            pairs = ((job_id, self._remembered.get(job_id)) for job_id in job_ids)
            return {job_id: job for job_id, job in pairs if job is not None}

    def jobs(
        self, job_ids: Sequence[str], locked_by: str | None = None
    ) -> list[IngestJob | Invalid | None]:
        """Read jobs by id; an unreadable job gives its error.

        With `locked_by` the caller knows the lock, and it is not read.
        """
        cached = self.known(job_ids)
        first = JOB_NODES[0]
        paths = [job_path(job_id, first) for job_id in job_ids]
        for job_id in job_ids:
            names = () if job_id in cached else JOB_NODES[1:]
            paths += [job_path(job_id, name) for name in names]
            paths += [] if locked_by is not None else [job_path(job_id, "lock")]
        nodes = dict(zip(paths, self._session.get_many(paths), strict=True))
        changed = [
            job_id
            for job_id, job in cached.items()
            if (node := nodes[job_path(job_id, first)]) is not None and node[1] != job.version
        ]
        if changed:
            paths = [job_path(job_id, name) for job_id in changed for name in JOB_NODES]
            nodes |= dict(zip(paths, self._session.get_many(paths), strict=True))
        jobs = (self._job(job_id, nodes, cached.get(job_id), locked_by) for job_id in job_ids)
        return list(jobs)

    def batches(self, batch_ids: Sequence[str]) -> list[Batch | Invalid | None]:
        """Read batches by id; an unreadable batch gives its error."""
        names = (*BATCH_NODES, "lock")
        paths = [batch_path(batch_id, name) for batch_id in batch_ids for name in names]
        nodes = dict(zip(paths, self._session.get_many(paths), strict=True))
        return [_batch(batch_id, nodes) for batch_id in batch_ids]

    def batch(self, batch_id: str) -> Batch:
        batch = self.batches([batch_id])[0] if is_batch_id(batch_id) else None
        if batch is None:
            raise NotFound(f"there is no batch {batch_id!r}; `penstock ingest list` lists them")
        if isinstance(batch, Invalid):
            raise batch
        return batch

    def job(self, job_id: str) -> IngestJob:
        job = self.jobs([job_id])[0] if is_job_id(job_id) else None
        if job is None:
            raise NotFound(
                f"there is no ingest job {job_id!r}; `penstock ingest jobs BATCH` lists them"
            )
        if isinstance(job, Invalid):
            raise job
        return job

    def list_batches(self, which: BatchFilter, limit: int, before: str | None) -> list[Batch]:
        """List batches, newest first: list all ids, and read until there are enough."""
        names = sorted(filter(is_batch_id, self._session.children(BATCHES)), reverse=True)
        if before is not None:
            names = [name for name in names if name < before]
        batches: list[Batch] = []
        for chunk in _chunks(names, CHUNK):
            batches += [b for b in self.batches(chunk) if isinstance(b, Batch) and _fits(b, which)]
            if len(batches) >= limit:
                break
        return batches[:limit]

    def open_batch(self, collection: str) -> Batch | None:
        """Find an open batch of a collection; each completed batch costs one read."""
        names = sorted(filter(is_batch_id, self._session.children(BATCHES)), reverse=True)
        nodes = self._session.get_many([batch_path(name, "status") for name in names])
        not_over = [
            name
            for name, node in zip(names, nodes, strict=True)
            if node is not None and _status(name, node[0]) is not BatchState.COMPLETED
        ]
        for chunk in _chunks(not_over, CHUNK):
            for batch in self.batches(chunk):
                if isinstance(batch, Batch) and batch.collection == collection:
                    return batch
        return None

    def list_jobs(
        self, batch_id: str, limit: int, after: str | None, status: IngestState | None
    ) -> list[IngestJob]:
        """List jobs of a batch by id."""
        if not is_batch_id(batch_id):
            return []
        sides = BatchSide if status is None else (side_of(status),)
        names = {n for side in sides for n in self._session.children(side_path(batch_id, side))}
        if status is not None and side_of(status) is BatchSide.PROCESSING:
            names &= {position.id for position in self.positions(status)}
        ordered = sorted(filter(is_job_id, names))
        ordered = ordered[bisect_right(ordered, after or "") :]
        return self._first(ordered, limit, status)

    def waiting(
        self, status: IngestState, limit: int, after: QueuePosition | None
    ) -> list[IngestJob]:
        positions = self.positions(status)
        start = 0 if after is None else bisect_right(positions, after)
        return self._first([position.id for position in positions[start:]], limit, status)

    def failed(self, limit: int) -> list[IngestJob]:
        """List failed jobs, the latest failure first, among those with the highest ids."""
        ids = sorted((position.id for position in self.positions(IngestState.FAILED)), reverse=True)
        looked_at = ids[: max(limit, FAILED_LOOKED_AT)]
        nodes = self._session.get_many([job_path(job_id, "status") for job_id in looked_at])
        pairs = zip(looked_at, nodes, strict=True)
        changed = [(_changed(job_id, node[0]), job_id) for job_id, node in pairs if node]
        newest = [job_id for _, job_id in sorted(changed, reverse=True)]
        return self._first(newest, limit, IngestState.FAILED)

    def positions(self, status: IngestState) -> list[QueuePosition]:
        """Return the positions in the queue of a state."""
        names = sorted(self._session.children(stage_path(status)))
        return [position for name in names if (position := read_entry(name)) is not None]

    def holds(self) -> list[IngestHold]:
        holds: list[IngestHold] = []
        for kind in sorted(IngestHoldKind):
            names = sorted(self._session.children(HOLDS[kind]))
            if kind is IngestHoldKind.QUEUE:  # other programs have holds of their own queues here
                names = [name for name in names if name == QUEUE]
            paths = [f"{HOLDS[kind]}/{name}" for name in names]
            nodes, made_at = self._session.get_many(paths), self._session.made_at(paths)
            holds += [
                read_hold(kind, name, node[0], at or 0)
                for name, node, at in zip(names, nodes, made_at, strict=True)
                if node is not None
            ]
        return sorted(holds, key=lambda hold: (hold.kind, hold.name))

    def _first(self, job_ids: list[str], limit: int, status: IngestState | None) -> list[IngestJob]:
        matching: list[IngestJob] = []
        for chunk in _chunks(job_ids, min(limit, CHUNK)):
            jobs = (job for job in self.jobs(chunk) if isinstance(job, IngestJob))
            matching += [job for job in jobs if status in (None, job.status)]
            if len(matching) >= limit:
                break
        return matching[:limit]

    def _job(
        self, job_id: str, nodes: dict[str, Node], known: IngestJob | None, locked_by: str | None
    ) -> IngestJob | Invalid | None:
        status = nodes[job_path(job_id, "status")]
        if status is None:
            return None
        if locked_by is None:
            locked_by = _text(nodes[job_path(job_id, "lock")])
        if known is not None and known.version == status[1]:
            return replace(known, locked_by=locked_by)
        data = {name: _data(nodes.get(job_path(job_id, name))) for name in JOB_NODES}
        if None in data.values():  # deleted during the read; `check` finds any other reason
            return None
        try:
            job = read_job(job_id, status[1], data, locked_by)
        except Invalid as unreadable:
            return unreadable
        self.remember(job)
        return job


def _batch(batch_id: str, nodes: dict[str, Node]) -> Batch | Invalid | None:
    status = nodes[batch_path(batch_id, "status")]
    if status is None or nodes[batch_path(batch_id, "submission")] is None:
        return None
    data = {name: _data(nodes[batch_path(batch_id, name)]) for name in BATCH_NODES}
    try:
        return read_batch(batch_id, status[1], data, _text(nodes[batch_path(batch_id, "lock")]))
    except Invalid as unreadable:
        return unreadable


def _status(batch_id: str, data: bytes) -> BatchState | None:
    try:
        return read_batch_status(batch_id, data).status
    except Invalid:
        return None


def _changed(job_id: str, data: bytes) -> str:
    """Return the time of a job's last change; unreadable jobs sort last."""
    try:
        return read_job_status(job_id, data).last_modified
    except Invalid:
        return ""


def _data(node: Node) -> Data:
    return None if node is None else node[0]


def _text(node: Node) -> str:
    return "" if node is None else node[0].decode(errors="replace")


def _fits(batch: Batch, which: BatchFilter) -> bool:
    return which.status in (None, batch.status) and which.collection in (None, batch.collection)


def _chunks(names: list[str], size: int) -> Iterator[list[str]]:
    return (
        (names[start : start + size] for start in range(0, len(names), size)) if size else iter(())
    )
