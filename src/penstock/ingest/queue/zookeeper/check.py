"""The consistency check of the queue in ZooKeeper.

The check lists and reads everything once, in parts, while workers go on, so a job that seems wrong
may just have moved. Such a job is read again by itself; a fault counts only if its status has the
same version before and after. An id without a status, or a processing batch without open jobs, may
be a change in progress: it is read again after a pause. A killed process leaves an id with nothing
below it. That is no fault, and a repair removes it.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from penstock.errors import Invalid, PenstockError
from penstock.ingest.models import CheckProgress, IngestJob
from penstock.ingest.queue.zookeeper.layout import (
    BATCH_NODES,
    BATCHES,
    JOB_NODES,
    JOBS,
    QUEUED,
    STATES,
    SUBMISSIONS,
    batch_path,
    entry_path,
    is_batch_id,
    is_job_id,
    job_path,
    read_batch,
    read_batch_status,
    read_entry,
    read_job,
    side_path,
    stage_path,
    submission_path,
)
from penstock.ingest.transitions import BatchSide, side_of
from penstock.schema.ingest import Finding
from penstock.states import BatchState
from penstock.zookeeper import Create, Delete, Op, Set, ZooKeeperSession

LOOKS_MAX: Final = 5  # reads of a job that is being changed
CHUNK: Final = 500  # jobs read, or batches listed, at once
LOG_EVERY: Final = 100  # parts of CHUNK jobs
# A live process fills a new id within milliseconds.
NEW_ID_SECONDS: Final = 2.0

Node = tuple[bytes, int] | None

log = logging.getLogger(__name__)


class _Fault(Struct, frozen=True):
    """A fault of a job, and the operations that repair it; None if nothing does."""

    what: str
    ops: list[Op] | None


class QueueChecker:
    """One check of the whole queue."""

    def __init__(
        self, session: ZooKeeperSession, report: Callable[[str], bool], *, repair: bool
    ) -> None:
        self._session = session
        self._report = report
        self._repair = repair
        self._batches_with_status: set[str] = set()  # batches that have a status

    def steps(self) -> Iterator[Finding | CheckProgress]:
        """Yield each fault, repaired if asked, and the progress from time to time."""
        batches = self._below(BATCHES, is_batch_id)
        entries = self._list_entries(batches)
        statuses = self._statuses(batches)
        self._batches_with_status = set(statuses)
        yield from self._unreadable_batches(sorted(statuses))
        jobs = self._below(JOBS, is_job_id)
        without_status = yield from self._jobs(sorted({*jobs, *entries}), entries)
        unused_jobs = sorted(without_status.intersection(jobs))
        empty = [batch_path(b) for b in batches if b not in self._batches_with_status]
        empty += [job_path(job_id) for job_id in unused_jobs]
        stuck = self._stuck(statuses)
        keys = self._lost(self._session.children(SUBMISSIONS))
        if empty or stuck or keys:
            threading.Event().wait(NEW_ID_SECONDS)
        for path in empty:
            yield from self._unused_id(path)
        yield from (self._stuck_batch(b) for b in self._stuck(self._statuses(stuck)))
        yield from (self._lost_key(key) for key in self._lost(keys))

    def _unreadable_batches(self, batches: Sequence[str]) -> Iterator[Finding]:
        """Find batches with a missing or unreadable node."""
        for start in range(0, len(batches), CHUNK):
            chunk = batches[start : start + CHUNK]
            for batch_id, fault in zip(chunk, self._batch_faults(chunk), strict=True):
                # A batch that is being deleted has lost its nodes too: read it again.
                if fault and (again := self._batch_faults([batch_id])[0]):
                    yield Finding(again, f"batch {batch_id}", repairable=False)

    def _batch_faults(self, batches: Sequence[str]) -> list[str]:
        """Return why each batch is unreadable; empty if it is readable or does not exist."""
        nodes = iter(self._read(batch_path(b, name) for b in batches for name in BATCH_NODES))
        return [_batch_fault(b, {name: next(nodes) for name in BATCH_NODES}) for b in batches]

    def _statuses(self, batches: Sequence[str]) -> dict[str, bytes]:
        """Read the status nodes of batches, where they exist."""
        nodes = self._read(batch_path(batch_id, "status") for batch_id in batches)
        pairs = zip(batches, nodes, strict=True)
        return {batch_id: node[0] for batch_id, node in pairs if node is not None}

    def _list_entries(self, batches: list[str]) -> dict[str, list[str]]:
        """List the entries of each job in queues and below batches."""
        entries: dict[str, list[str]] = defaultdict(list)
        queues = [stage_path(state) for state in QUEUED]
        for path, names in zip(queues, self._session.children_many(queues), strict=True):
            for name in names:
                position = read_entry(name)
                job_id = name.rpartition("-")[2] if position is None else position.id
                entries[job_id].append(f"{path}/{name}")
        for start in range(0, len(batches), CHUNK):
            part = batches[start : start + CHUNK]
            sides = [side_path(batch_id, side) for batch_id in part for side in BatchSide]
            for path, names in zip(sides, self._session.children_many(sides), strict=True):
                for name in names:
                    entries[name].append(f"{path}/{name}")
        return entries

    def _jobs(
        self, job_ids: list[str], entries: dict[str, list[str]]
    ) -> Generator[Finding | CheckProgress, None, set[str]]:
        """Yield the faults of jobs; return the jobs that have no status."""
        without_status: set[str] = set()
        for start in range(0, len(job_ids), CHUNK):
            chunk = job_ids[start : start + CHUNK]
            nodes = iter(self._read(job_path(j, name) for j in chunk for name in JOB_NODES))
            for job_id in chunk:
                read = {name: next(nodes) for name in JOB_NODES}
                listed = set(entries.pop(job_id, ()))
                if read["status"] is None:
                    without_status.add(job_id)
                if self._faults(job_id, read, listed):
                    yield from self._look(job_id, listed)
            yield CheckProgress(start + len(chunk), len(job_ids))
            if (start // CHUNK + 1) % LOG_EVERY == 0:
                log.info("%d of %d ingest jobs are checked", start + len(chunk), len(job_ids))
        return without_status

    def _look(self, job_id: str, listed: set[str]) -> list[Finding]:
        """Read a job again and return its certain faults."""
        for _ in range(LOOKS_MAX):
            read = dict(
                zip(JOB_NODES, self._read(job_path(job_id, n) for n in JOB_NODES), strict=True)
            )
            paths = sorted(listed | _expected_entries(_value(job_id, read)))
            there = {p for p, node in zip(paths, self._read(paths), strict=True) if node}
            status = self._session.get(job_path(job_id, "status"))
            if status == read["status"]:
                faults = self._faults(job_id, read, there)
                is_repaired = self._repair and self._repair_job(job_id, status, faults)
                return [
                    Finding(
                        fault.what,
                        f"ingest job {job_id}",
                        repairable=fault.ops is not None,
                        repaired=is_repaired and fault.ops is not None,
                    )
                    for fault in faults
                ]
        return []

    def _faults(self, job_id: str, read: dict[str, Node], entries: set[str]) -> list[_Fault]:
        if read["status"] is None:
            return [
                _Fault(f"does not exist, but stands {_describe(path)}", [Delete(path)])
                for path in sorted(entries)
            ]
        job = _value(job_id, read)
        if not isinstance(job, IngestJob):
            return [_Fault(job, None)]
        if job.batch_id not in self._batches_with_status and not self._session.exists(
            batch_path(job.batch_id, "status")
        ):
            deletion: list[Op] = [Delete(path) for path in sorted(entries)]
            deletion += [Delete(job_path(job_id, name)) for name in JOB_NODES]
            deletion.append(Delete(job_path(job_id)))
            return [_Fault("belongs to a batch that does not exist", deletion)]
        expected = _expected_entries(job)
        return [
            *(
                _Fault(f"stands {_describe(path)}, where it does not belong", [Delete(path)])
                for path in sorted(entries - expected)
            ),
            *(
                _Fault(f"does not stand {_describe(path)}, where it belongs", [Create(path)])
                for path in sorted(expected - entries)
            ),
        ]

    def _repair_job(self, job_id: str, status: Node, faults: Sequence[_Fault]) -> bool:
        """Repair a job in one transaction, if it is unchanged."""
        ops: list[Op] = [op for fault in faults for op in fault.ops or ()]
        if status is not None:
            ops.insert(0, Set(job_path(job_id, "status"), *status))
        return self._do(ops)

    def _is_unused(self, path: str) -> bool:
        return self._session.exists(path) and not self._session.exists(f"{path}/status")

    def _unused_id(self, path: str) -> Iterator[Finding]:
        """Report an id without a status; remove one that a killed process left unused."""
        if not self._is_unused(path):
            return
        name = path.rpartition("/")[2]
        target = f"{'batch' if is_batch_id(name) else 'ingest job'} {name}"
        if self._session.children_count(path):
            yield Finding("has lost its status", target, repairable=False)
        elif self._repair and self._do([Delete(path)]):
            yield Finding("was numbered, but never created", target, repairable=True, repaired=True)

    def _stuck(self, statuses: Mapping[str, bytes]) -> list[str]:
        """Find processing batches without open jobs."""
        states = {batch_id: _state(batch_id, data) for batch_id, data in statuses.items()}
        processing = [b for b, state in states.items() if state is BatchState.PROCESSING]
        open_jobs = self._session.children_counts(
            [side_path(batch_id, BatchSide.PROCESSING) for batch_id in processing]
        )
        return [b for b, jobs in zip(processing, open_jobs, strict=True) if not jobs]

    def _stuck_batch(self, batch_id: str) -> Finding:
        what = "is processing, but no job of it is"
        repaired = self._repair and self._report(batch_id)
        return Finding(what, f"batch {batch_id}", repairable=True, repaired=repaired)

    def _lost(self, keys: Sequence[str]) -> list[str]:
        """Find keys that name a batch that does not exist."""
        nodes = self._read(submission_path(key) for key in keys)
        pairs = zip(keys, nodes, strict=True)
        batches = {key: node[0].decode(errors="replace") for key, node in pairs if node is not None}
        alive = self._statuses(sorted(set(filter(is_batch_id, batches.values()))))
        return [key for key, batch_id in batches.items() if batch_id not in alive]

    def _lost_key(self, key: str) -> Finding:
        repaired = self._repair and self._do([Delete(submission_path(key))])
        what = "names a batch that does not exist"
        return Finding(what, f"submission key {key}", repairable=True, repaired=repaired)

    def _below(self, path: str, is_id: Callable[[str], bool]) -> list[str]:
        return sorted(filter(is_id, self._session.children(path)))

    def _read(self, paths: Iterable[str]) -> list[Node]:
        return self._session.get_many(list(paths))

    def _do(self, ops: list[Op]) -> bool:
        try:
            self._session.multi(ops)
        except PenstockError:  # a worker was faster; the next check reports the rest
            return False
        return True


def _value(job_id: str, read: dict[str, Node]) -> IngestJob | str:
    """Return the job, or why it is unreadable."""
    version = 0 if (status := read["status"]) is None else status[1]
    data = {name: None if node is None else node[0] for name, node in read.items()}
    try:
        return read_job(job_id, version, data, "")
    except Invalid as unreadable:
        return str(unreadable)


def _batch_fault(batch_id: str, read: Mapping[str, Node]) -> str:
    if read["status"] is None:
        return ""
    data = {name: None if node is None else node[0] for name, node in read.items()}
    try:
        read_batch(batch_id, 0, data, "")
    except Invalid as unreadable:
        return str(unreadable)
    return ""


def _expected_entries(job: IngestJob | str) -> set[str]:
    if not isinstance(job, IngestJob):
        return set()
    return {
        entry_path(job.status, job.position),
        side_path(job.batch_id, side_of(job.status), job.id),
    }


def _describe(path: str) -> str:
    """Describe the path of an entry."""
    *_, folder, name = path.split("/")
    if path.startswith(f"{JOBS}/{STATES}/"):
        return f"in the queue of {folder} as {name}"
    return f"under {folder} of batch {path.split('/')[2]}"


def _state(batch_id: str, data: bytes) -> BatchState | None:
    try:
        return read_batch_status(batch_id, data).status
    except Invalid:
        return None
