"""Claims in ZooKeeper: the locks of a session, and the batches and jobs to lock next.

A lock is an ephemeral node whose data is the name of the claim.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from penstock import ids
from penstock.errors import PenstockError, Unavailable
from penstock.ingest.models import Batch, IngestHoldKind, IngestJob, QueuePosition
from penstock.ingest.queue.zookeeper.caches import (
    BatchEndings,
    BatchIndex,
    Bell,
    Listing,
    StageQueue,
)
from penstock.ingest.queue.zookeeper.layout import HOLDS, QUEUE_HOLD, batch_path, job_path
from penstock.ingest.queue.zookeeper.reader import QueueReader
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Check, Create, Delete, Op, TransactionRefused, ZooKeeperSession

AT_ONCE_MAX: Final = 500  # locks in one transaction

ROUNDS_MAX: Final = 2  # listings for one claim that finds no job


class NodeLock(Struct, frozen=True):
    """A lock on a node: its name, and the version of the node's status."""

    node: str
    name: str
    version: int


class LockedNodes(NamedTuple):
    """Locked nodes, the name of their locks, and whether their versions were checked."""

    name: str
    nodes: list[str]
    is_checked: bool


class NodeLocks:
    """The locks of this session, and the doubtful locks that it may have.

    A name belongs to one claim and to one epoch of the session: after the session is lost, changes
    under its old locks are refused.
    """

    def __init__(self, session: ZooKeeperSession, owner: str) -> None:
        self._session = session
        self._family = f"{owner}/{ids.new_id()[-8:]}"  # only the end of a new id is random
        self._numbers = itertools.count(1)
        self._mutex = threading.Lock()
        self._freeing = threading.Lock()
        self._held: dict[str, str] = {}  # by node, the name of the lock
        self._doubtful: set[tuple[str, str]] = set()  # pairs of node and name

    def has(self, node: str) -> bool:
        """Whether this session has locked a node."""
        return self._held.get(node, "").startswith(self._prefix)

    def holds(self, node: str, name: str) -> bool:
        """Whether a node is locked under this name."""
        return self._held.get(node) == name and name.startswith(self._prefix)

    def take(self, nodes: Sequence[str], versions: Mapping[str, int]) -> LockedNodes:
        """Lock these nodes, if possible in one transaction that checks their versions."""
        prefix = self._prefix
        name = f"{prefix}{next(self._numbers)}"
        try:
            made, is_checked = self._make(nodes, name.encode(), versions)
        except PenstockError:
            self.drop(nodes, name)
            raise
        if prefix != self._prefix:  # the session was lost meanwhile
            self.drop(nodes, name)
            return LockedNodes(name, [], is_checked)
        with self._mutex:
            self._held.update(dict.fromkeys(made, name))
        return LockedNodes(name, made, is_checked)

    def drop(self, nodes: Sequence[str], name: str) -> None:
        """Mark locks of this name as doubtful, to release them soon wherever they exist."""
        with self._mutex:
            self._doubtful.update((node, name) for node in nodes)
            for node in nodes:
                if self._held.get(node) == name:
                    del self._held[node]

    def forget(self, node: str, name: str) -> None:
        """Forget a lock that a change released or an administrator removed."""
        with self._mutex:
            if self._held.get(node) == name:
                del self._held[node]

    def free(self, items: Sequence[NodeLock]) -> None:
        """Release locks, now or, if the connection is broken, as soon as it is back.

        An administrator's change removes a lock, and another session may have it now. Then the
        status has another version, so the release is refused.
        """
        for start in range(0, len(items), AT_ONCE_MAX):
            part = items[start : start + AT_ONCE_MAX]
            [outcome] = self._session.multi_many(
                [[op for item in part for op in _release_ops(item)]]
            )
            for item in part:
                if isinstance(outcome, PenstockError):
                    self.drop([item.node], item.name)
                else:
                    self.forget(item.node, item.name)
        self.free_doubtful()

    def free_doubtful(self) -> None:
        """Release locks that no thread uses.

        One thread at a time: a second thread that read the lock before the first removed it could
        remove the lock of another session. An administrator's removal also changes the status, and
        its version is checked.
        """
        if not self._doubtful:
            return
        with self._freeing, contextlib.suppress(Unavailable):
            with self._mutex:
                doubtful = list(self._doubtful)
            states = self._session.get_many([_status(node) for node, _ in doubtful])
            lock_nodes = self._session.get_many([_lock(node) for node, _ in doubtful])
            versions = {
                one: state
                for one, state, lock in zip(doubtful, states, lock_nodes, strict=True)
                if lock and lock[0] == one[1].encode()
            }
            ours = list(versions)
            outcomes = self._session.multi_many(
                [*([Check(_status(one[0]), state[1])] if state else ()), Delete(_lock(one[0]))]
                for one, state in versions.items()
            )
            answers = zip(ours, outcomes, strict=True)
            refused = {one for one, outcome in answers if isinstance(outcome, PenstockError)}
            with self._mutex:
                self._doubtful -= set(doubtful) - refused

    def look_at(self, locks: Sequence[tuple[str, str]]) -> None:
        """Forget those of these locks that do not exist; their changes were refused."""
        lock_nodes = self._session.get_many([_lock(node) for node, _ in locks])
        for (node, name), lock in zip(locks, lock_nodes, strict=True):
            if lock is None or lock[0] != name.encode():
                self.forget(node, name)

    @property
    def _prefix(self) -> str:
        return f"{self._family}.{self._session.epoch}."

    def _make(
        self, nodes: Sequence[str], data: bytes, versions: Mapping[str, int]
    ) -> tuple[list[str], bool]:
        """Lock all nodes in one transaction or, if that is refused, one by one."""
        if nodes and len(nodes) <= AT_ONCE_MAX:
            checks = [Check(_status(n), versions[n]) for n in nodes if n in versions]
            locks = [Create(_lock(node), data, ephemeral=True) for node in nodes]
            with contextlib.suppress(TransactionRefused):
                self._session.multi([*checks, *locks])
                return list(nodes), True
        lock_nodes = self._session.get_many([_lock(node) for node in nodes])
        free = [node for node, lock in zip(nodes, lock_nodes, strict=True) if lock is None]
        created = self._session.create_ephemerals([_lock(node) for node in free], data)
        return [node for node, is_made in zip(free, created, strict=True) if is_made], False


def _lock(node: str) -> str:
    return f"{node}/lock"


def _status(node: str) -> str:
    return f"{node}/status"


def _release_ops(item: NodeLock) -> list[Op]:
    return [Check(_status(item.node), item.version), Delete(_lock(item.node))]


class WorkClaims:
    """The claims of one session."""

    def __init__(
        self,
        session: ZooKeeperSession,
        locks: NodeLocks,
        reader: QueueReader,
        bell: Bell,
        report: Callable[[str], bool],
    ) -> None:
        self._session = session
        self._locks = locks
        self._reader = reader
        self._report = report
        self._queues = {
            state: StageQueue(session, state, bell, lambda job: locks.has(job_path(job)))
            for state in IngestState
        }
        self._holds = Listing(bell)
        self._is_held = False
        self.batches = BatchIndex(session, bell)
        self.endings = BatchEndings(session, bell)

    def queue(self, state: IngestState) -> StageQueue:
        """Return the cached queue of a state."""
        return self._queues[state]

    def claim_jobs(
        self, stage: IngestState, most: int, after: QueuePosition | None
    ) -> list[IngestJob]:
        """Lock the next jobs of a stage."""
        if self._seems_held():
            return []
        self._locks.free_doubtful()
        queue = self._queues[stage]
        claimed: list[IngestJob] = []
        for _ in range(ROUNDS_MAX):
            queue.refresh()
            while len(claimed) < most:
                positions = queue.take(most - len(claimed), after)
                if not positions or self._is_held:
                    _put_back(queue, positions)
                    break
                try:
                    claimed += self._lock_jobs(stage, positions)
                except PenstockError:
                    if not claimed:
                        raise
                    break
            if claimed or self._is_held:
                break
        return claimed

    def claim_batches(self, status: BatchState, most: int, after: str) -> list[Batch]:
        """Lock the oldest batches in a state with ids after `after`."""
        if self._seems_held():
            return []
        self._locks.free_doubtful()
        if status is BatchState.REPORTING:
            for batch_id in self.endings.ended(self.batches.ids(BatchState.PROCESSING)):
                self._report(batch_id)
        waiting = [batch_id for batch_id in self.batches.ids(status) if batch_id > after]
        locks = self._session.get_many([batch_path(batch_id, "lock") for batch_id in waiting])
        free = [batch_id for batch_id, lock in zip(waiting, locks, strict=True) if lock is None]
        claimed: list[Batch] = []
        while free and len(claimed) < most:
            count = most - len(claimed)
            try:
                claimed += self._lock_batches(status, free[:count])
            except PenstockError:
                if not claimed:
                    raise
                break
            del free[:count]
        return claimed

    def hold_changed(self) -> None:
        """Note that this process placed or released a hold of the queue."""
        self._holds.is_stale = True

    def release(self, items: Sequence[IngestJob | Batch]) -> None:
        """Release locks; the jobs can be claimed again at once."""
        ours = [item for item in items if self._locks.holds(_node(item), item.locked_by)]
        self._locks.free([NodeLock(_node(item), item.locked_by, item.version) for item in ours])
        for item in ours:
            if isinstance(item, IngestJob):
                self._queues[item.status].add(item.position)

    def _lock_jobs(self, stage: IngestState, positions: list[QueuePosition]) -> list[IngestJob]:
        """Lock the entries that are free and still in the expected state."""
        queue = self._queues[stage]
        remembered_jobs = self._reader.known([position.id for position in positions])
        cached = {job_id: job for job_id, job in remembered_jobs.items() if job.status is stage}
        versions = {job_path(job_id): job.version for job_id, job in cached.items()}
        try:
            locked = self._locks.take([job_path(position.id) for position in positions], versions)
            mine = [
                position for position in positions if job_path(position.id) in set(locked.nodes)
            ]
            if len(mine) < len(positions):
                queue.note_locked()
            with self._releasing_others(locked) as kept:
                if not mine or self._is_held_now():
                    _put_back(queue, mine)
                    return []
                jobs = self._jobs(mine, locked.name, cached if locked.is_checked else {})
                good = [job for job in jobs if job.status is stage]
                kept.update(job_path(job.id) for job in good)
                return good
        except PenstockError:
            queue.note_locked()
            raise

    def _jobs(
        self, positions: list[QueuePosition], name: str, known: Mapping[str, IngestJob]
    ) -> list[IngestJob]:
        """Return locked jobs; read only those that are not cached with a checked version."""
        unknown = [position.id for position in positions if position.id not in known]
        read = (job for job in self._reader.jobs(unknown, name) if isinstance(job, IngestJob))
        jobs = {job.id: job for job in read}
        jobs |= {job.id: replace(job, locked_by=name) for job in known.values()}
        return [jobs[position.id] for position in positions if position.id in jobs]

    def _lock_batches(self, status: BatchState, batch_ids: list[str]) -> list[Batch]:
        """Lock the batches that are free and still in this state."""
        locked = self._locks.take([batch_path(batch_id) for batch_id in batch_ids], {})
        mine = [batch_id for batch_id in batch_ids if batch_path(batch_id) in locked.nodes]
        with self._releasing_others(locked) as kept:
            if not mine or self._is_held_now():
                return []
            batches = [b for b in self._reader.batches(mine) if isinstance(b, Batch)]
            for batch in batches:
                self.batches.note(batch.id, batch.status)
            good = [batch for batch in batches if batch.status is status]
            kept.update(batch_path(batch.id) for batch in good)
            return [replace(batch, locked_by=locked.name) for batch in good]

    @contextmanager
    def _releasing_others(self, locked: LockedNodes) -> Iterator[set[str]]:
        """Release the locks that the block does not keep, also if the block fails."""
        kept_nodes: set[str] = set()
        try:
            yield kept_nodes
        finally:
            self._locks.drop([node for node in locked.nodes if node not in kept_nodes], locked.name)
            self._locks.free_doubtful()

    def _seems_held(self) -> bool:
        """Whether the queue was on hold at the last check; a watch triggers the next check."""
        return self._is_held and (not self._holds.is_stale or self._is_held_now())

    def _is_held_now(self) -> bool:
        """Whether the queue is on hold; called after locking, to see every earlier hold."""
        self._is_held = self._session.exists(QUEUE_HOLD)
        if self._is_held and self._holds.is_stale:
            folder = HOLDS[IngestHoldKind.QUEUE]
            self._holds.make(lambda: self._session.children(folder, self._holds.fire))
        return self._is_held


def _put_back(queue: StageQueue, positions: list[QueuePosition]) -> None:
    for position in positions:
        queue.add(position)


def _node(item: IngestJob | Batch) -> str:
    return job_path(item.id) if isinstance(item, IngestJob) else batch_path(item.id)
