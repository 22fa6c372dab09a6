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
from penstock.ingest.queue.zookeeper.claims import NodeLocks
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
from penstock.ingest.transitions import BatchSide, side_of
from penstock.states import BatchState
from penstock.zookeeper import (
    Check,
    Create,
    Delete,
    Op,
    OutcomeUnknown,
    Result,
    Set,
    TransactionRefused,
    ZooKeeperSession,
)

# The version of the parent tells every process with cached batch states that a batch changed.
BATCHES_CHANGED: Final = Set(BATCHES, b"", -1)

TRIES_MAX: Final = 6  # of a change whose answer is lost or whose lock keeps changing
Node = tuple[bytes, int] | None


class LockExpectation(Enum):
    """A change's expectation of the lock on its batch or job."""

    OURS = "ours"  # this session has the lock
    FREE = "free"  # there is no lock
    ANY = "any"  # an administrator's change ignores locks


class GuardedChange(Struct, frozen=True, kw_only=True):
    """A transaction that applies only while a status node has a version.

    `data` is the new content of the status node; None if the change deletes it. `proof` is a node
    that no other transaction creates: if it exists, this transaction was applied.
    """

    kind: str
    id: str
    was: str
    node: str
    version: int
    data: bytes | None
    ops: list[Op]
    lock: LockExpectation
    locked_by: str
    keep_lock: bool = False
    proof: str | None = None

    @property
    def status_path(self) -> str:
        """The node whose version guards the change."""
        return f"{self.node}/status"

    @property
    def lock_path(self) -> str:
        """The ephemeral node that is the lock."""
        return f"{self.node}/lock"


def job_change(change: JobChange) -> GuardedChange:
    """Build the transaction that changes or deletes a job."""
    before, after = change.before, change.after
    return GuardedChange(
        kind="ingest job",
        id=before.id,
        was=before.status,
        node=job_path(before.id),
        version=before.version,
        data=None if after is None else job_status_data(after),
        ops=_delete_job_ops(before) if after is None else _move_job_ops(before, after),
        lock=_lock(before.locked_by, change.by_hand),
        locked_by=before.locked_by,
        keep_lock=change.keep_lock and after is not None,
    )


def new_job_ops(job: IngestJob) -> list[Op]:
    """Return the operations that create a job below the empty node of its id."""
    return [
        Create(job_path(job.id, "configuration"), document(job.configuration)),
        Create(job_path(job.id, "identifiers"), encode(job.identifiers)),
        Create(job_path(job.id, "priority"), encode(job.priority)),
        Create(job_path(job.id, "space_needed"), encode(job.space_needed)),
        Create(job_path(job.id, "status"), job_status_data(job)),
        Create(entry_path(job.status, job.position)),
        Create(side_path(job.batch_id, side_of(job.status), job.id)),
    ]


def new_batch_ops(batch: Batch) -> list[Op]:
    """Return the operations that create a batch below the empty node of its id."""
    hashed = key_hash(batch.submission)
    key: list[Op] = [] if hashed is None else [Create(submission_path(hashed), batch.id.encode())]
    return [
        *key,
        Create(batch_path(batch.id, "submission"), document(batch.submission)),
        Create(batch_path(batch.id, "status"), batch_status_data(batch)),
        BATCHES_CHANGED,
    ]


def sides_ops(batch_id: str) -> list[Op]:
    """Return the operations that create a batch's folders for its jobs."""
    return [
        Create(batch_path(batch_id, STATES)),
        *(Create(side_path(batch_id, side)) for side in BatchSide),
    ]


def grow_batch(before: Batch, after: Batch, ops: list[Op], proof: str | None) -> GuardedChange:
    """Build the transaction that adds jobs to a batch."""
    data = batch_status_data(after)
    return GuardedChange(
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


def batch_change(change: BatchChange, *, has_sides: bool) -> GuardedChange:
    """Build the transaction that changes or deletes a batch."""
    before, after = change.before, change.after
    if after is None:
        ops = _delete_batch_ops(before, has_sides=has_sides)
    else:
        ops = _move_batch_ops(before, after)
        if after.status is BatchState.PROCESSING and not has_sides:
            ops += sides_ops(before.id)
    return GuardedChange(
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
    """Return the operations that move a batch without open jobs to reporting.

    Only an empty node can be deleted, so a job that is resumed at this moment makes it fail.
    """
    side = side_path(before.id, BatchSide.PROCESSING)
    return [*_move_batch_ops(before, after), Delete(side), Create(side), BATCHES_CHANGED]


def _lock(locked_by: str, by_hand: bool) -> LockExpectation:
    if by_hand:
        return LockExpectation.ANY
    return LockExpectation.OURS if locked_by else LockExpectation.FREE


def _move_job_ops(before: IngestJob, after: IngestJob) -> list[Op]:
    ops: list[Op] = [Set(job_path(before.id, "status"), job_status_data(after), before.version)]
    if (before.status, before.position) != (after.status, after.position):
        ops.append(Delete(entry_path(before.status, before.position)))
        ops.append(Create(entry_path(after.status, after.position)))
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


def _delete_job_ops(job: IngestJob) -> list[Op]:
    first, *others = JOB_NODES
    return [
        Delete(job_path(job.id, first), job.version),
        *(Delete(job_path(job.id, name)) for name in others),
        Delete(entry_path(job.status, job.position)),
        Delete(side_path(job.batch_id, side_of(job.status), job.id)),
    ]


def _move_batch_ops(before: Batch, after: Batch) -> list[Op]:
    ops: list[Op] = [Set(batch_path(before.id, "status"), batch_status_data(after), before.version)]
    if after.report is not None and after.report != before.report:
        path, data = batch_path(before.id, "status-report"), report_data(after.report)
        ops.append(Create(path, data) if before.report is None else Set(path, data, -1))
    return ops


def _delete_batch_ops(batch: Batch, *, has_sides: bool) -> list[Op]:
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


class AppliedChange(NamedTuple):
    """An applied change. `is_certain` is False if another session may have made the same change."""

    version: int
    is_certain: bool


class _Status(msgspec.Struct):
    status: str


# A module global: msgspec can crash if two threads decode a class for the first time at once.
_decode_status = msgspec.json.Decoder(_Status).decode


class _Try:
    """A change in progress."""

    def __init__(self, change: GuardedChange, is_locked: bool) -> None:
        self.change = change
        self.is_locked = is_locked
        self.is_unknown = False  # an earlier try may have been carried out
        self.outcome: AppliedChange | PenstockError | None = None

    @property
    def is_open(self) -> bool:
        """Whether the change has to be tried, for the first time or again."""
        return self.outcome is None or isinstance(self.outcome, Unavailable)


class ChangeWriter:
    """A sender of transactions; it reads the nodes when an answer is lost or a refusal."""

    def __init__(self, session: ZooKeeperSession, locks: NodeLocks) -> None:
        self._session = session
        self._locks = locks

    def carry_out(self, changes: Sequence[GuardedChange]) -> list[AppliedChange | PenstockError]:
        """Apply each change; return its result or the refusal."""
        tries = [_Try(change, change.lock is LockExpectation.OURS) for change in changes]
        self._look_at_locks([one for one in tries if one.change.lock is LockExpectation.ANY])
        for _ in range(TRIES_MAX):
            open_tries = [one for one in tries if one.is_open]
            if not open_tries or not self._try(open_tries):
                break
        self._look_at_refused([one for one in tries if isinstance(one.outcome, PenstockError)])
        return [self._finish(one) for one in tries]

    def _look_at_locks(self, by_hand: list[_Try]) -> None:
        lock_nodes = self._session.get_many([one.change.lock_path for one in by_hand])
        for one, lock in zip(by_hand, lock_nodes, strict=True):
            one.is_locked = lock is not None

    def _look_at_refused(self, tries: list[_Try]) -> None:
        """Update our locks after refusals: an administrator may have removed some."""
        ours = [
            (one.change.node, one.change.locked_by)
            for one in tries
            if one.change.lock is LockExpectation.OURS and not isinstance(one.outcome, Unavailable)
        ]
        with contextlib.suppress(Unavailable):
            self._locks.look_at(ours)

    def _try(self, tries: list[_Try]) -> bool:
        """Try each change once; False if ZooKeeper cannot be read afterwards."""
        sendable = [one for one in tries if not self._is_lost(one)]
        outcomes = self._session.multi_many(_ops(one) for one in sendable)
        for one, outcome in zip(sendable, outcomes, strict=True):
            one.outcome = _done(outcome) if isinstance(outcome, list) else outcome
            one.is_unknown |= isinstance(outcome, OutcomeUnknown)
        failed = [one for one in tries if not isinstance(one.outcome, AppliedChange)]
        try:
            if any(isinstance(one.outcome, Unavailable) for one in failed):
                self._session.sync()
            nodes = self._session.get_many([one.change.status_path for one in failed])
            for one, node in zip(failed, nodes, strict=True):
                self._decide(one, node)
        except Unavailable as error:
            for one in failed:
                one.outcome = one.outcome or error
            return False
        return True

    def _is_lost(self, one: _Try) -> bool:
        """Whether the change needs a lock that is lost, as all locks of an earlier epoch are."""
        change = one.change
        return change.lock is LockExpectation.OURS and not self._locks.holds(
            change.node, change.locked_by
        )

    def _decide(self, one: _Try, node: Node) -> None:
        """Decide the outcome from the current status node."""
        change = one.change
        if node is None:
            not_found = NotFound(f"{change.kind} {change.id} no longer exists")
            is_done = change.data is None and one.is_unknown
            one.outcome = AppliedChange(change.version, True) if is_done else not_found
        elif node[1] == change.version + 1 and node[0] == change.data and self._is_proved(change):
            one.outcome = AppliedChange(node[1], one.is_unknown or change.proof is not None)
        elif node[1] != change.version:
            one.outcome = Conflict(
                f"{change.kind} {change.id} was {change.was} when it was read and is "
                f"{_status(node[0])} now; look at it again"
            )
        elif isinstance(one.outcome, TransactionRefused):
            self._decide_refusal(one, one.outcome)
        elif self._is_lost(one):
            one.outcome = self._lost_lock(change)

    def _decide_refusal(self, one: _Try, refusal: TransactionRefused) -> None:
        """Decide the outcome of a refusal whose status node is unchanged."""
        change = one.change
        if refusal.op.path == change.lock_path:
            if change.lock is LockExpectation.ANY:
                one.is_locked = not one.is_locked
                one.outcome = None
            else:
                one.outcome = self._lost_lock(change)

    def _lost_lock(self, change: GuardedChange) -> Conflict:
        lock = self._session.get(change.lock_path)
        owner = "" if lock is None else lock[0].decode(errors="replace")
        return lost_lock(change.kind, change.id, owner)

    def _is_proved(self, change: GuardedChange) -> bool:
        return change.proof is None or self._session.exists(change.proof)

    def _finish(self, one: _Try) -> AppliedChange | PenstockError:
        change, outcome = one.change, one.outcome
        if isinstance(outcome, AppliedChange):
            if not change.keep_lock:
                self._locks.forget(change.node, change.locked_by)
            return outcome
        return outcome or Conflict(
            f"the lock on {change.kind} {change.id} keeps changing; nothing was changed, try again"
        )


def _ops(one: _Try) -> list[Op]:
    """Return the whole transaction: the change, its lock, and last the empty node."""
    change = one.change
    deletion: list[Op] = [Delete(change.node)] if change.data is None else []
    return [*change.ops, *_lock_ops(one), *deletion]


def _lock_ops(one: _Try) -> list[Op]:
    change, path = one.change, one.change.lock_path
    if change.keep_lock and change.lock is LockExpectation.ANY:
        return []
    if one.is_locked:
        return [Check(path, -1) if change.keep_lock else Delete(path)]
    # ZooKeeper cannot check that a node is missing, but only a missing node can be created.
    return [Create(path), Delete(path)]


def _done(results: list[Result]) -> AppliedChange:
    version = results[0]
    return AppliedChange(version if isinstance(version, int) else 0, True)


def _status(data: bytes) -> str:
    try:
        return _decode_status(data).status
    except msgspec.DecodeError:
        return "unreadable"
