"""Changes of batches and jobs as ZooKeeper transactions, guarded by a status node's version."""

from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.json import encode

from penstock.ingest.moves import BatchSide, side_of
from penstock.ingest.sql.commands.queue import key_hash
from penstock.ingest.values import (
    Batch,
    BatchChange,
    IngestJob,
    JobChange,
)
from penstock.ingest.zk.layout import (
    BATCHES,
    JOB_NODES,
    STATES,
    batch_path,
    batch_status_data,
    document,
    entry_path,
    job_path,
    job_status_data,
    report_data,
    side_path,
    submission_path,
)
from penstock.states import BatchState
from penstock.zk import Create, Delete, Op, Set

# Setting the parent tells everybody who remembers the states of batches that one has changed.
BATCHES_CHANGED: Final = Set(BATCHES, b"", -1)


class Lock(Enum):
    """What a change expects of the lock of what it changes."""

    OURS = "ours"  # taken by this session
    FREE = "free"  # taken by nobody
    ANY = "any"  # an administrator's change takes no notice


class Guarded(Struct, frozen=True, kw_only=True):
    """A transaction that holds only while a status node has a version.

    `data` is what the status node says afterwards; None if it is gone then. `proof` is a node that
    nobody else makes: where it is, this transaction was carried out.
    """

    kind: str
    id: str
    was: str
    node: str
    version: int
    data: bytes | None
    ops: list[Op]
    lock: Lock
    locked_by: str
    keep_lock: bool = False
    proof: str | None = None

    @property
    def status_path(self) -> str:
        """The node whose version is the guard."""
        return f"{self.node}/status"

    @property
    def lock_path(self) -> str:
        """The ephemeral node that is the lock."""
        return f"{self.node}/lock"


def job_change(change: JobChange) -> Guarded:
    """What moves, alters or deletes a job."""
    before, after = change.before, change.after
    return Guarded(
        kind="ingest job",
        id=before.id,
        was=before.status,
        node=job_path(before.id),
        version=before.version,
        data=None if after is None else job_status_data(after),
        ops=_job_gone(before) if after is None else _job_moved(before, after),
        lock=_lock(before.locked_by, change.by_hand),
        locked_by=before.locked_by,
        keep_lock=change.keep_lock and after is not None,
    )


def new_job_ops(job: IngestJob) -> list[Op]:
    """What makes a job below the empty node that gave it its id."""
    return [
        Create(job_path(job.id, "configuration"), document(job.configuration)),
        Create(job_path(job.id, "identifiers"), encode(job.identifiers)),
        Create(job_path(job.id, "priority"), encode(job.priority)),
        Create(job_path(job.id, "space_needed"), encode(job.space_needed)),
        Create(job_path(job.id, "status"), job_status_data(job)),
        Create(entry_path(job.status, job.place)),
        Create(side_path(job.batch_id, side_of(job.status), job.id)),
    ]


def new_batch_ops(batch: Batch) -> list[Op]:
    """What makes a batch below the empty node that gave it its id."""
    hashed = key_hash(batch.submission)
    key: list[Op] = [] if hashed is None else [Create(submission_path(hashed), batch.id.encode())]
    return [
        *key,
        Create(batch_path(batch.id, "submission"), document(batch.submission)),
        Create(batch_path(batch.id, "status"), batch_status_data(batch)),
        BATCHES_CHANGED,
    ]


def sides_ops(batch_id: str) -> list[Op]:
    """What gives a batch places for its jobs."""
    return [
        Create(batch_path(batch_id, STATES)),
        *(Create(side_path(batch_id, side)) for side in BatchSide),
    ]


def batch_grown(before: Batch, after: Batch, ops: list[Op], proof: str | None) -> Guarded:
    """What gives a batch more jobs."""
    data = batch_status_data(after)
    return Guarded(
        kind="batch",
        id=before.id,
        was=before.status,
        node=batch_path(before.id),
        version=before.version,
        data=data,
        ops=[Set(batch_path(before.id, "status"), data, before.version), *ops],
        lock=_lock(before.locked_by, by_hand=False),
        locked_by=before.locked_by,
        keep_lock=True,
        proof=proof,
    )


def batch_change(change: BatchChange, *, has_sides: bool) -> Guarded:
    """What moves or deletes a batch; places for jobs are made where it begins to process."""
    before, after = change.before, change.after
    if after is None:
        ops = _batch_gone(before, has_sides=has_sides)
    else:
        ops = _batch_moved(before, after)
        if after.status is BatchState.PROCESSING and not has_sides:
            ops += sides_ops(before.id)
    return Guarded(
        kind="batch",
        id=before.id,
        was=before.status,
        node=batch_path(before.id),
        version=before.version,
        data=None if after is None else batch_status_data(after),
        ops=[*ops, BATCHES_CHANGED],
        lock=_lock(before.locked_by, change.by_hand),
        locked_by=before.locked_by,
    )


def report_ops(before: Batch, after: Batch) -> list[Op]:
    """What moves a batch on whose last job has ended.

    Only an empty node can be deleted: a job that comes back at this moment makes it fail.
    """
    side = side_path(before.id, BatchSide.PROCESSING)
    return [*_batch_moved(before, after), Delete(side), Create(side), BATCHES_CHANGED]


def _lock(locked_by: str, by_hand: bool) -> Lock:
    if by_hand:
        return Lock.ANY
    return Lock.OURS if locked_by else Lock.FREE


def _job_moved(before: IngestJob, after: IngestJob) -> list[Op]:
    ops: list[Op] = [Set(job_path(before.id, "status"), job_status_data(after), before.version)]
    if (before.status, before.place) != (after.status, after.place):
        ops.append(Delete(entry_path(before.status, before.place)))
        ops.append(Create(entry_path(after.status, after.place)))
    old, new = side_of(before.status), side_of(after.status)
    if old is not new:
        ops.append(Delete(side_path(before.batch_id, old, before.id)))
        ops.append(Create(side_path(before.batch_id, new, before.id)))
    if before.priority != after.priority:
        ops.append(Set(job_path(before.id, "priority"), encode(after.priority), -1))
    if before.space_needed != after.space_needed:
        ops.append(Set(job_path(before.id, "space_needed"), encode(after.space_needed), -1))
    if before.identifiers != after.identifiers:
        ops.append(Set(job_path(before.id, "identifiers"), encode(after.identifiers), -1))
    return ops


def _job_gone(job: IngestJob) -> list[Op]:
    first, *others = JOB_NODES
    return [
        Delete(job_path(job.id, first), job.version),
        *(Delete(job_path(job.id, name)) for name in others),
        Delete(entry_path(job.status, job.place)),
        Delete(side_path(job.batch_id, side_of(job.status), job.id)),
    ]


def _batch_moved(before: Batch, after: Batch) -> list[Op]:
    ops: list[Op] = [Set(batch_path(before.id, "status"), batch_status_data(after), before.version)]
    if after.report is not None and after.report != before.report:
        path, data = batch_path(before.id, "status-report"), report_data(after.report)
        ops.append(Create(path, data) if before.report is None else Set(path, data, -1))
    return ops


def _batch_gone(batch: Batch, *, has_sides: bool) -> list[Op]:
    paths = [batch_path(batch.id, "submission")]
    if batch.report is not None:
        paths.append(batch_path(batch.id, "status-report"))
    if has_sides:
        paths += [side_path(batch.id, side) for side in BatchSide]
        paths.append(batch_path(batch.id, STATES))
    hashed = key_hash(batch.submission)
    if hashed is not None:
        paths.append(submission_path(hashed))
    guard: Op = Delete(batch_path(batch.id, "status"), batch.version)
    return [guard, *(Delete(path) for path in paths)]
