"""Taking work from ZooKeeper: which batches and jobs a session locks next, and giving them up."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from penstock.errors import PenstockError
from penstock.ingest.values import Batch, HoldKind, IngestJob, Place
from penstock.ingest.zk_batches import BatchIndex, Endings
from penstock.ingest.zk_layout import HOLDS, QUEUE_HOLD, batch_path, job_path
from penstock.ingest.zk_locks import Held, Locks
from penstock.ingest.zk_queue import Bell, Listing, StageQueue
from penstock.ingest.zk_reading import Reading
from penstock.states import BatchState, IngestState
from penstock.zk import Session

ROUNDS_MAX: Final = 2  # listings of a queue for one claim that finds nothing


class Claims:
    """Claims of one session."""

    def __init__(
        self,
        session: Session,
        locks: Locks,
        reading: Reading,
        bell: Bell,
        report: Callable[[str], bool],
    ) -> None:
        self._session = session
        self._locks = locks
        self._reading = reading
        self._report = report
        self._queues = {
            state: StageQueue(session, state, bell, lambda job: locks.has(job_path(job)))
            for state in IngestState
        }
        self._holds = Listing(bell)
        self._is_held = False
        self.batches = BatchIndex(session, bell)
        self.endings = Endings(session, bell)

    def queue(self, state: IngestState) -> StageQueue:
        """What is remembered of the queue of a state."""
        return self._queues[state]

    def claim_jobs(self, stage: IngestState, most: int, after: Place | None) -> list[IngestJob]:
        """Lock the next jobs of a stage."""
        if self._seems_held():
            return []
        self._locks.free_doubtful()
        queue = self._queues[stage]
        claimed: list[IngestJob] = []
        for _ in range(ROUNDS_MAX):
            queue.refresh()
            while len(claimed) < most:
                places = queue.take(most - len(claimed), after)
                if not places:
                    break
                claimed += self._lock_jobs(stage, places)
            if claimed:
                break
        return sorted(claimed, key=lambda job: job.place)

    def claim_batches(self, status: BatchState, most: int) -> list[Batch]:
        """Lock the oldest batches in a state."""
        if self._seems_held():
            return []
        self._locks.free_doubtful()
        if status is BatchState.REPORTING:
            for batch_id in self.endings.ended(self.batches.ids(BatchState.PROCESSING)):
                self._report(batch_id)
        waiting = self.batches.ids(status)
        locks = self._session.get_many([batch_path(batch_id, "lock") for batch_id in waiting])
        free = [batch_id for batch_id, lock in zip(waiting, locks, strict=True) if lock is None]
        claimed: list[Batch] = []
        while free and len(claimed) < most:
            count = most - len(claimed)
            claimed += self._lock_batches(status, free[:count])
            del free[:count]
        return claimed

    def let_go(self, items: Sequence[IngestJob | Batch]) -> None:
        """Give up locks; a job can be claimed again at once."""
        ours = [item for item in items if self._locks.has(_node(item))]
        self._locks.free([Held(_node(item), item.version) for item in ours])
        for item in ours:
            if isinstance(item, IngestJob):
                self._queues[item.status].add(item.place)

    def _lock_jobs(self, stage: IngestState, places: list[Place]) -> list[IngestJob]:
        nodes = [job_path(place.id) for place in places]
        taken = self._take(nodes)
        queue = self._queues[stage]
        if not all(taken):
            queue.passed()
        ids = [place.id for place, is_ours in zip(places, taken, strict=True) if is_ours]
        try:
            jobs = self._reading.jobs(ids, self._locks.name)
            self._look_at_hold()
        except PenstockError:
            self._give_back(ids, job_path)
            raise
        pairs = list(zip(ids, jobs, strict=True))
        good = [job for _, job in pairs if isinstance(job, IngestJob) and job.status is stage]
        if self._is_held:
            for place in places:
                queue.add(place)
            good = []
        kept = {job.id for job in good}
        self._give_back([job_id for job_id in ids if job_id not in kept], job_path)
        return good

    def _lock_batches(self, status: BatchState, batch_ids: list[str]) -> list[Batch]:
        taken = self._take([batch_path(batch_id) for batch_id in batch_ids])
        ids = [batch_id for batch_id, is_ours in zip(batch_ids, taken, strict=True) if is_ours]
        try:
            batches = self._reading.batches(ids)
            self._look_at_hold()
        except PenstockError:
            self._give_back(ids, batch_path)
            raise
        read = [batch for batch in batches if isinstance(batch, Batch)]
        for batch in read:
            self.batches.note(batch.id, batch.status)
        good = [] if self._is_held else [b for b in read if b.status is status]
        kept = {batch.id for batch in good}
        self._give_back([batch_id for batch_id in ids if batch_id not in kept], batch_path)
        return [replace(batch, locked_by=self._locks.name) for batch in good]

    def _take(self, nodes: list[str]) -> list[bool]:
        return self._locks.take(nodes)

    def _give_back(self, ids: list[str], path: Callable[[str], str]) -> None:
        """Unlock what turned out not to be what was wanted."""
        self._locks.drop([path(name) for name in ids])

    def _seems_held(self) -> bool:
        """Whether the queue was held when last looked at; a watch tells when that may be over."""
        if self._is_held and self._holds.is_stale:
            self._look_at_hold()
        return self._is_held

    def _look_at_hold(self) -> None:
        """Look whether the queue is held: after locking, so that no hold is missed."""
        self._is_held = self._session.exists(QUEUE_HOLD)
        if self._is_held:
            folder = HOLDS[HoldKind.QUEUE]
            self._holds.make(lambda: self._session.children(folder, self._holds.fire))
            self._is_held = self._session.exists(QUEUE_HOLD)


def _node(item: IngestJob | Batch) -> str:
    return job_path(item.id) if isinstance(item, IngestJob) else batch_path(item.id)
