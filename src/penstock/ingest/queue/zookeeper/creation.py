"""Creation of batches and jobs in ZooKeeper, with numbers that no other queue issues.

ZooKeeper counts by itself. Another ZooKeeper or the database may have counted further before the
queue moved here. So numbers are reserved in the database, many at once, before they are used, and
numbers of another queue are skipped.

A ZooKeeper that is restored from a backup repeats numbers. So issued numbers are noted in the
database: the first one of each process and session, and then one in every few.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from penstock.clock import Clock
from penstock.errors import PenstockError, Unavailable
from penstock.ingest.models import (
    Batch,
    IngestJob,
    NewJob,
    NumberRange,
    NumberSequence,
    Reservation,
    Submission,
)
from penstock.ingest.queue.port import Submitted, key_hash
from penstock.ingest.queue.zookeeper.changes import (
    ChangeWriter,
    grow_batch,
    new_batch_ops,
    new_job_ops,
    sides_ops,
)
from penstock.ingest.queue.zookeeper.layout import (
    BATCH_IDS,
    BATCHES,
    JOB_IDS,
    STATES,
    batch_path,
    is_batch_id,
    job_path,
    submission_path,
)
from penstock.ingest.queue.zookeeper.reader import QueueReader
from penstock.ingest.transitions import new_job
from penstock.states import BatchState
from penstock.zookeeper import (
    Create,
    Delete,
    ErrorKind,
    Op,
    OutcomeUnknown,
    Set,
    TransactionRefused,
    ZooKeeperSession,
)

AT_ONCE: Final = 1_000  # in one transaction; ZooKeeper limits it to a megabyte
LOG_EVERY: Final = 50_000

# Reserve(queue, sequence, wanted numbers, whether the queue was restored or None if unknown)
Reserve = Callable[[str, NumberSequence, NumberRange, bool | None], Reservation]

log = logging.getLogger(__name__)

_NAMES: Final = {BATCH_IDS: NumberSequence.BATCHES, JOB_IDS: NumberSequence.JOBS}
_NOTED_EVERY: Final = {BATCH_IDS: 10, JOB_IDS: 1_000}

TRIES_MAX: Final = 5
PART_BYTES_MAX: Final = 900_000  # ZooKeeper takes a megabyte
OP_BYTES: Final = 80
_SOME_ID: Final = f"jid{0:010}"


class _Own(NamedTuple):
    """The numbers of a queue, the last noted number, and the epoch of the session."""

    numbers: NumberRange
    noted: int
    epoch: int


class QueueNumbers:
    """The numbers of one queue that this process knows, for any thread."""

    def __init__(self, session: ZooKeeperSession, reserve: Reserve) -> None:
        self._session = session
        self._reserve = reserve
        self._own: dict[str, _Own] = {}

    def may_give(self, prefix: str, ids: list[str]) -> bool:
        """Whether this queue may issue these new ids of ZooKeeper."""
        if not ids:
            return True
        numbers = NumberRange(*sorted(int(each[-10:]) for each in (ids[0], ids[-1])))
        own = self._own.get(prefix)
        if (
            own is None
            or own.epoch != self._session.epoch
            or not own.numbers.covers(numbers)
            or numbers.last - own.noted > _NOTED_EVERY[prefix]
        ):
            epoch = self._session.epoch
            allowed = self._reserve_numbers(prefix, numbers)
            # Numbers that the queue has to skip to are not noted yet.
            noted = numbers.last if allowed.covers(numbers) else -_NOTED_EVERY[prefix]
            own = self._own[prefix] = _Own(allowed, noted, epoch)
        return own.numbers.covers(numbers)

    def _reserve_numbers(self, prefix: str, wanted: NumberRange) -> NumberRange:
        """Reserve numbers in the database; a restored queue gets numbers that it never issued."""
        queue, name = self._session.identity(BATCHES), _NAMES[prefix]
        reserved = self._reserve(queue, name, wanted, None)
        if wanted.first <= reserved.given:
            # Another process may be ahead of this one; then ZooKeeper has counted as far.
            self._session.sync()
            is_put_back = self._session.created(_parent(prefix)) <= reserved.given
            if is_put_back:
                log.warning("ZooKeeper repeats numbers of %s: it was restored from a backup", name)
            reserved = self._reserve(queue, name, wanted, is_put_back)
        return reserved.numbers

    def pass_over(self, prefix: str) -> None:
        """Make ZooKeeper count up to the first number of this queue.

        Only created nodes count, so one node is created and deleted repeatedly.
        """
        numbers = self._own[prefix].numbers
        unused_path = f"{prefix}{0:010}"
        pair: list[Op] = [Create(unused_path), Delete(unused_path)]
        count = numbers.first - self._session.created(_parent(prefix))
        log.info(
            "%s: skipping numbers up to %d, which are in use or of another queue",
            _NAMES[prefix],
            numbers.first - 1,
        )
        while count > 0:
            some = min(count, AT_ONCE)
            [outcome] = self._session.multi_many([pair * some])
            if isinstance(outcome, PenstockError):
                raise outcome
            count -= some
            if count and count % LOG_EVERY < AT_ONCE:
                log.info("%s: %d more numbers to skip", _NAMES[prefix], count)


def _parent(prefix: str) -> str:
    return prefix.rpartition("/")[0]


class ItemCreator:
    """A creator of batches and jobs.

    An id without further nodes, left by a process that died in between, is ignored by all but the
    consistency check, which removes it.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        writer: ChangeWriter,
        reader: QueueReader,
        numbers: QueueNumbers,
        clock: Clock,
    ) -> None:
        self._session = session
        self._numbers = numbers
        self._writer = writer
        self._reader = reader
        self._clock = clock

    def submit(self, submission: Submission) -> Submitted:
        """Create a batch, or find the batch that was submitted under the same key."""
        now = self._clock()
        submission = replace(submission, submitted_at=now)
        for _ in range(TRIES_MAX):
            batch = self._find_existing(submission)
            if batch is not None:
                return Submitted(batch, is_new=False)
            [batch_id] = self._new_ids(BATCH_IDS, 1)
            batch = Batch(
                id=batch_id, submission=submission, status=BatchState.PENDING, last_modified=now
            )
            if self._make(batch):
                return Submitted(batch, is_new=True)
        raise Unavailable("ZooKeeper took none of several tries to submit this; try it again")

    def parts(self, jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
        """Divide new jobs into parts that fit in a transaction; at least one part."""
        part: list[NewJob] = []
        size = 0
        for new in jobs:
            job_size = self._size(new_job_ops(new_job(_SOME_ID, new, 0)))
            if part and size + job_size > PART_BYTES_MAX:
                yield part
                part, size = [], 0
            part.append(new)
            size += job_size
        yield part

    def add(self, batch: Batch, new: list[NewJob]) -> tuple[Batch, list[IngestJob]]:
        """Create jobs in a batch that is unchanged since it was read; return the changed batch."""
        now = self._clock()
        for _ in range(TRIES_MAX):
            ids = self._new_ids(JOB_IDS, len(new))
            jobs = [new_job(job_id, each, now) for job_id, each in zip(ids, new, strict=True)]
            grown = replace(batch, jobs=batch.jobs + len(jobs))
            ops = [op for job in jobs for op in new_job_ops(job)]
            if batch.jobs == 0 and not self._session.exists(batch_path(batch.id, STATES)):
                ops = [*sides_ops(batch.id), *ops]
            proof = job_path(ids[0], "status") if ids else None
            [applied] = self._writer.carry_out([grow_batch(batch, grown, ops, proof)])
            if not isinstance(applied, PenstockError):
                return replace(grown, version=applied.version), jobs
            self._drop(job_path(job_id) for job_id in ids)
            if not (isinstance(applied, TransactionRefused) and applied.kind is ErrorKind.NO_NODE):
                raise applied
            # A check removed these ids as unused: take new ones.
        raise Unavailable(
            f"the ids of new jobs of batch {batch.id} were removed several times; try it again"
        )

    def _find_existing(self, submission: Submission) -> Batch | None:
        hashed = key_hash(submission)
        node = None if hashed is None else self._session.get(submission_path(hashed))
        if node is None or not is_batch_id(batch_id := node[0].decode(errors="replace")):
            return None
        [batch] = self._reader.batches([batch_id])
        return batch if isinstance(batch, Batch) else None

    def _make(self, batch: Batch) -> bool:
        """Create a batch; False if its key or id is taken, or the connection broke."""
        try:
            self._session.multi(new_batch_ops(batch))
        except TransactionRefused:
            self._session.multi_many([[Delete(batch_path(batch.id))]])
            return False
        except OutcomeUnknown:
            self._session.sync()
            return self._session.exists(batch_path(batch.id, "status"))
        return True

    def _new_ids(self, prefix: str, count: int) -> list[str]:
        """Create new ids; ids whose answer was lost stay unused."""
        for _ in range(TRIES_MAX):
            with contextlib.suppress(OutcomeUnknown):
                paths = self._session.create_sequences(prefix, count)
                ids = [path.rpartition("/")[2] for path in paths]
                if self._may_give(prefix, ids, paths):
                    return ids
                self._numbers.pass_over(prefix)
        raise Unavailable("ZooKeeper gave no number in several tries; try it again")

    def _may_give(self, prefix: str, ids: list[str], paths: list[str]) -> bool:
        """Whether the queue may issue these ids; remove them if not, or if that is unknown."""
        is_ours = False
        try:
            is_ours = self._numbers.may_give(prefix, ids)
        finally:
            if not is_ours:
                self._drop(paths)
        return is_ours

    def _drop(self, paths: Iterable[str]) -> None:
        """Remove unused ids; a used id has children and stays."""
        self._session.multi_many([Delete(path)] for path in paths)

    def _size(self, ops: list[Op]) -> int:
        chroot = len(self._session.address.chroot.encode())
        datas = (op.data if isinstance(op, Create | Set) else b"" for op in ops)
        paths = (len(op.path.encode()) + chroot for op in ops)
        return sum(paths) + sum(map(len, datas)) + OP_BYTES * len(ops)
