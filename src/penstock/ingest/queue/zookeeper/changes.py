"""Changes of batches and jobs as ZooKeeper transactions, guarded by a status node's version."""

import contextlib
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.json import encode

from penstock.errors import Conflict, NotFound, PenstockError, Unavailable
from penstock.ingest.models import Batch, BatchChange, IngestJob, JobChange
from penstock.ingest.queue.port import key_hash, lost_lock
from penstock.ingest.queue.zookeeper.layout import (
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
from penstock.ingest.queue.zookeeper.locks import Locks
from penstock.ingest.transitions import BatchSide, side_of
from penstock.states import BatchState
from penstock.zookeeper import Check, Create, Delete, Op, Refused, Result, Session, Set, Unknown

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


TRIES_MAX: Final = 6  # of a change whose answer is lost, or whose lock comes and goes

Node = tuple[bytes, int] | None


class Done(NamedTuple):
    """A change was carried out. `is_certain` is False if somebody else may have made the same."""

    version: int
    is_certain: bool


class _Status(msgspec.Struct):
    status: str


# Decoders are made here because two threads that both decode a class first can crash msgspec.
_decode_status = msgspec.json.Decoder(_Status).decode


class _Try:
    """One change under way."""

    def __init__(self, change: Guarded, is_locked: bool) -> None:
        self.change = change
        self.is_locked = is_locked
        self.is_unknown = False  # an earlier try may have been carried out
        self.outcome: Done | PenstockError | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is to be tried, for the first time or again."""
        return self.outcome is None or isinstance(self.outcome, Unavailable)


class Writing:
    """Sends transactions, and looks where an answer is missing or is no."""

    def __init__(self, session: Session, locks: Locks) -> None:
        self._session = session
        self._locks = locks

    def carry_out(self, changes: Sequence[Guarded]) -> list[Done | PenstockError]:
        """What became of each change."""
        tries = [_Try(change, change.lock is Lock.OURS) for change in changes]
        self._look_at_locks([one for one in tries if one.change.lock is Lock.ANY])
        for _ in range(TRIES_MAX):
            left = [one for one in tries if one.is_open]
            if not left or not self._try(left):
                break
        self._look_at_refused([one for one in tries if isinstance(one.outcome, PenstockError)])
        return [self._ended(one) for one in tries]

    def _look_at_locks(self, by_hand: list[_Try]) -> None:
        found = self._session.get_many([one.change.lock_path for one in by_hand])
        for one, lock in zip(by_hand, found, strict=True):
            one.is_locked = lock is not None

    def _look_at_refused(self, tries: list[_Try]) -> None:
        """Keep track of our locks: an administrator may have taken some of them away."""
        ours = [
            (one.change.node, one.change.locked_by)
            for one in tries
            if one.change.lock is Lock.OURS and not isinstance(one.outcome, Unavailable)
        ]
        with contextlib.suppress(Unavailable):
            self._locks.look_at(ours)

    def _try(self, tries: list[_Try]) -> bool:
        """Try each once; False if ZooKeeper cannot be asked what became of them."""
        sendable = [one for one in tries if not self._is_lost(one)]
        outcomes = self._session.multi_many(_ops(one) for one in sendable)
        for one, outcome in zip(sendable, outcomes, strict=True):
            one.outcome = _done(outcome) if isinstance(outcome, list) else outcome
            one.is_unknown |= isinstance(outcome, Unknown)
        failed = [one for one in tries if not isinstance(one.outcome, Done)]
        try:
            if any(isinstance(one.outcome, Unavailable) for one in failed):
                self._session.sync()
            nodes = self._session.get_many([one.change.status_path for one in failed])
            for one, node in zip(failed, nodes, strict=True):
                self._settle(one, node)
        except Unavailable as error:
            for one in failed:
                one.outcome = one.outcome or error
            return False
        return True

    def _is_lost(self, one: _Try) -> bool:
        """Whether the lock that it relies on is gone, as all of an earlier epoch are."""
        change = one.change
        return change.lock is Lock.OURS and not self._locks.holds(change.node, change.locked_by)

    def _settle(self, one: _Try, node: Node) -> None:
        """Decide by what is there now."""
        change = one.change
        if node is None:
            gone = NotFound(f"{change.kind} {change.id} is not there any more")
            is_done = change.data is None and one.is_unknown
            one.outcome = Done(change.version, True) if is_done else gone
        elif node[1] == change.version + 1 and node[0] == change.data and self._is_proved(change):
            one.outcome = Done(node[1], one.is_unknown or change.proof is not None)
        elif node[1] != change.version:
            one.outcome = Conflict(
                f"{change.kind} {change.id} was {change.was} when it was read and is "
                f"{_status(node[0])} now; look at it again"
            )
        elif isinstance(one.outcome, Refused):
            self._settle_refusal(one, one.outcome)
        elif self._is_lost(one):
            one.outcome = self._lost_lock(change)

    def _settle_refusal(self, one: _Try, refusal: Refused) -> None:
        """The status is as it was read: something else was not."""
        change = one.change
        if refusal.op.path == change.lock_path:
            if change.lock is Lock.ANY:
                one.is_locked = not one.is_locked
                one.outcome = None
            else:
                one.outcome = self._lost_lock(change)

    def _lost_lock(self, change: Guarded) -> Conflict:
        lock = self._session.get(change.lock_path)
        owner = "" if lock is None else lock[0].decode(errors="replace")
        return lost_lock(change.kind, change.id, owner)

    def _is_proved(self, change: Guarded) -> bool:
        return change.proof is None or self._session.exists(change.proof)

    def _ended(self, one: _Try) -> Done | PenstockError:
        change, outcome = one.change, one.outcome
        if isinstance(outcome, Done):
            if not change.keep_lock:
                self._locks.forget(change.node, change.locked_by)
            return outcome
        return outcome or Conflict(
            f"the lock on {change.kind} {change.id} comes and goes; nothing was changed, try again"
        )


def _ops(one: _Try) -> list[Op]:
    """The whole transaction: the change, its lock, and last the node that only then is empty."""
    change = one.change
    gone: list[Op] = [Delete(change.node)] if change.data is None else []
    return [*change.ops, *_lock_ops(one), *gone]


def _lock_ops(one: _Try) -> list[Op]:
    change, path = one.change, one.change.lock_path
    if change.keep_lock and change.lock is Lock.ANY:
        return []
    if one.is_locked:
        return [Check(path, -1) if change.keep_lock else Delete(path)]
    # There is no check for what is not there, but only such a node can be made.
    return [Create(path), Delete(path)]


def _done(results: list[Result]) -> Done:
    version = results[0]
    return Done(version if isinstance(version, int) else 0, True)


def _status(data: bytes) -> str:
    try:
        return _decode_status(data).status
    except msgspec.DecodeError:
        return "unreadable"
