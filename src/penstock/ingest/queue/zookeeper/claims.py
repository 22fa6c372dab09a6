"""Taking work from ZooKeeper: which batches and jobs a session locks next, and giving them up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from penstock.errors import PenstockError
from penstock.ingest.models import Batch, HoldKind, IngestJob, Place
from penstock.ingest.queue.zookeeper.caches import BatchIndex, Bell, Endings, Listing, StageQueue
from penstock.ingest.queue.zookeeper.layout import HOLDS, QUEUE_HOLD, batch_path, job_path
from penstock.ingest.queue.zookeeper.locks import Held, Locks, Taken
from penstock.ingest.queue.zookeeper.reading import Reading
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Session

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
                if not places or self._is_held:
                    _put_back(queue, places)
                    break
                try:
                    claimed += self._lock_jobs(stage, places)
                except PenstockError:
                    if not claimed:
                        raise
                    break
            if claimed or self._is_held:
                break
        return claimed

    def claim_batches(self, status: BatchState, most: int, after: str) -> list[Batch]:
        """Lock the oldest batches in a state, of those that are younger than one."""
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
        """This process has held or released the queue."""
        self._holds.is_stale = True

    def let_go(self, items: Sequence[IngestJob | Batch]) -> None:
        """Give up locks; a job can be claimed again at once."""
        ours = [item for item in items if self._locks.holds(_node(item), item.locked_by)]
        self._locks.free([Held(_node(item), item.locked_by, item.version) for item in ours])
        for item in ours:
            if isinstance(item, IngestJob):
                self._queues[item.status].add(item.place)

    def _lock_jobs(self, stage: IngestState, places: list[Place]) -> list[IngestJob]:
        """Those of these entries that nobody else has, and that are what they seem to be."""
        queue = self._queues[stage]
        remembered = self._reading.known([place.id for place in places])
        known = {job_id: job for job_id, job in remembered.items() if job.status is stage}
        versions = {job_path(job_id): job.version for job_id, job in known.items()}
        try:
            taken = self._locks.take([job_path(place.id) for place in places], versions)
            mine = [place for place in places if job_path(place.id) in set(taken.nodes)]
            if len(mine) < len(places):
                queue.passed()
            with self._giving_back(taken) as kept:
                if not mine or self._is_held_now():
                    _put_back(queue, mine)
                    return []
                jobs = self._jobs(mine, taken.name, known if taken.is_checked else {})
                good = [job for job in jobs if job.status is stage]
                kept.update(job_path(job.id) for job in good)
                return good
        except PenstockError:
            queue.passed()
            raise

    def _jobs(
        self, places: list[Place], name: str, known: Mapping[str, IngestJob]
    ) -> list[IngestJob]:
        """Locked jobs; those that were known, and were found to be unchanged, are not read."""
        unknown = [place.id for place in places if place.id not in known]
        read = (job for job in self._reading.jobs(unknown, name) if isinstance(job, IngestJob))
        jobs = {job.id: job for job in read}
        jobs |= {job.id: replace(job, locked_by=name) for job in known.values()}
        return [jobs[place.id] for place in places if place.id in jobs]

    def _lock_batches(self, status: BatchState, batch_ids: list[str]) -> list[Batch]:
        """Those of these batches that nobody else has, and that are in this state."""
        taken = self._locks.take([batch_path(batch_id) for batch_id in batch_ids], {})
        mine = [batch_id for batch_id in batch_ids if batch_path(batch_id) in taken.nodes]
        with self._giving_back(taken) as kept:
            if not mine or self._is_held_now():
                return []
            batches = [b for b in self._reading.batches(mine) if isinstance(b, Batch)]
            for batch in batches:
                self.batches.note(batch.id, batch.status)
            good = [batch for batch in batches if batch.status is status]
            kept.update(batch_path(batch.id) for batch in good)
            return [replace(batch, locked_by=taken.name) for batch in good]

    @contextmanager
    def _giving_back(self, taken: Taken) -> Iterator[set[str]]:
        """Unlock again what is not kept, also if looking at it fails."""
        kept: set[str] = set()
        try:
            yield kept
        finally:
            self._locks.drop([node for node in taken.nodes if node not in kept], taken.name)
            self._locks.free_doubtful()

    def _seems_held(self) -> bool:
        """Whether the queue was held when last looked at; a watch tells when that may be over."""
        return self._is_held and (not self._holds.is_stale or self._is_held_now())

    def _is_held_now(self) -> bool:
        """Whether the queue is held: asked after locking, so that no earlier hold is missed."""
        self._is_held = self._session.exists(QUEUE_HOLD)
        if self._is_held and self._holds.is_stale:
            folder = HOLDS[HoldKind.QUEUE]
            self._holds.make(lambda: self._session.children(folder, self._holds.fire))
        return self._is_held


def _put_back(queue: StageQueue, places: list[Place]) -> None:
    for place in places:
        queue.add(place)


def _node(item: IngestJob | Batch) -> str:
    return job_path(item.id) if isinstance(item, IngestJob) else batch_path(item.id)
