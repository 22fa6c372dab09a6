"""Which numbers this queue may give: no other queue on the same database gives them.

ZooKeeper counts by itself, and another ZooKeeper, or the database, may have come further before the
queue was moved here. So numbers are reserved in the database, many at once, before they are used;
where those that come next are another's, they are passed over.

A ZooKeeper that was put back from a backup counts again what it had counted. So what is given is
noted in the database: the first number of each process and session, and every so many after it.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from penstock.clock import Clock
from penstock.errors import PenstockError, Unavailable
from penstock.ingest.models import Batch, IngestJob, NewJob, Numbered, Numbers, Reserved, Submission
from penstock.ingest.queue.port import Submitted, key_hash
from penstock.ingest.queue.zookeeper.changes import (
    Writing,
    batch_grown,
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
from penstock.ingest.queue.zookeeper.reading import Reading
from penstock.ingest.transitions import new_job
from penstock.states import BatchState
from penstock.zookeeper import Create, Delete, ErrorKind, Op, Refused, Session, Set, Unknown

AT_ONCE: Final = 1_000  # in one transaction; ZooKeeper takes a megabyte
TELL_EVERY: Final = 50_000

# What a queue may give that wants to give these, and is put back or not, or nobody has looked.
Reserve = Callable[[str, Numbered, Numbers, bool | None], Reserved]

log = logging.getLogger(__name__)

_NAMES: Final = {BATCH_IDS: Numbered.BATCHES, JOB_IDS: Numbered.JOBS}
_NOTED_EVERY: Final = {BATCH_IDS: 10, JOB_IDS: 1_000}


class _Own(NamedTuple):
    """The numbers of a queue, up to which they were noted, and in which epoch of the session."""

    numbers: Numbers
    noted: int
    epoch: int


class QueueNumbers:
    """The numbers of one queue, as far as this process knows them; any thread may ask."""

    def __init__(self, session: Session, reserve: Reserve) -> None:
        self._session = session
        self._reserve = reserve
        self._own: dict[str, _Own] = {}

    def may_give(self, prefix: str, ids: list[str]) -> bool:
        """Whether these ids, which ZooKeeper has just made, are this queue's to give."""
        if not ids:
            return True
        numbers = Numbers(*sorted(int(each[-10:]) for each in (ids[0], ids[-1])))
        own = self._own.get(prefix)
        if (
            own is None
            or own.epoch != self._session.epoch
            or not own.numbers.covers(numbers)
            or numbers.last - own.noted > _NOTED_EVERY[prefix]
        ):
            epoch = self._session.epoch
            may = self._ask(prefix, numbers)
            # Those to which it has to count first are not noted yet.
            noted = numbers.last if may.covers(numbers) else -_NOTED_EVERY[prefix]
            own = self._own[prefix] = _Own(may, noted, epoch)
        return own.numbers.covers(numbers)

    def _ask(self, prefix: str, wanted: Numbers) -> Numbers:
        """What this queue may give; none that it gave before, though it counts from there again."""
        queue, name = self._session.identity(BATCHES), _NAMES[prefix]
        reserved = self._reserve(queue, name, wanted, None)
        if wanted.first <= reserved.given:
            # Another process may be ahead of this one. Then ZooKeeper has counted that far as well.
            self._session.sync()
            is_put_back = self._session.created(_parent(prefix)) <= reserved.given
            if is_put_back:
                log.warning(
                    "ZooKeeper counts %s again that were given before: it was put back", name
                )
            reserved = self._reserve(queue, name, wanted, is_put_back)
        return reserved.numbers

    def pass_over(self, prefix: str) -> None:
        """Let ZooKeeper count up to the first number that is this queue's.

        Only what is made counts, so one node is made and deleted again and again.
        """
        own = self._own[prefix].numbers
        nobody = f"{prefix}{0:010}"
        pair: list[Op] = [Create(nobody), Delete(nobody)]
        left = own.first - self._session.created(_parent(prefix))
        log.info(
            "%s: the numbers up to %d are another queue's or given", _NAMES[prefix], own.first - 1
        )
        while left > 0:
            some = min(left, AT_ONCE)
            [outcome] = self._session.multi_many([pair * some])
            if isinstance(outcome, PenstockError):
                raise outcome
            left -= some
            if left and left % TELL_EVERY < AT_ONCE:
                log.info("%s: %d more numbers are passed over", _NAMES[prefix], left)


def _parent(prefix: str) -> str:
    return prefix.rpartition("/")[0]


TRIES_MAX: Final = 5
PART_BYTES_MAX: Final = 900_000  # ZooKeeper takes a megabyte
OP_BYTES: Final = 80
_SOME_ID: Final = f"jid{0:010}"


class Entering:
    """Makes batches, and jobs in them.

    An id whose rest was never made, because a process died in between, is seen by nobody but the
    consistency check, which removes it.
    """

    def __init__(
        self,
        session: Session,
        writing: Writing,
        reading: Reading,
        numbers: QueueNumbers,
        clock: Clock,
    ) -> None:
        self._session = session
        self._numbers = numbers
        self._writing = writing
        self._reading = reading
        self._clock = clock

    def submit(self, submission: Submission) -> Submitted:
        """Make a batch, or find the one that was submitted under the same key."""
        now = self._clock()
        submission = replace(submission, submitted_at=now)
        for _ in range(TRIES_MAX):
            known = self._known(submission)
            if known is not None:
                return Submitted(known, is_new=False)
            [batch_id] = self._new_ids(BATCH_IDS, 1)
            batch = Batch(
                id=batch_id, submission=submission, status=BatchState.PENDING, last_modified=now
            )
            if self._make(batch):
                return Submitted(batch, is_new=True)
        raise Unavailable("ZooKeeper took none of several tries to submit this; try it again")

    def parts(self, jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
        """New jobs in parts that fit into a transaction each; one part, if there are none."""
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
        """Make these jobs of a batch that is still as it was read; the batch is so then."""
        now = self._clock()
        for _ in range(TRIES_MAX):
            ids = self._new_ids(JOB_IDS, len(new))
            jobs = [new_job(job_id, each, now) for job_id, each in zip(ids, new, strict=True)]
            grown = replace(batch, jobs=batch.jobs + len(jobs))
            ops = [op for job in jobs for op in new_job_ops(job)]
            if batch.jobs == 0 and not self._session.exists(batch_path(batch.id, STATES)):
                ops = [*sides_ops(batch.id), *ops]
            proof = job_path(ids[0], "status") if ids else None
            [made] = self._writing.carry_out([batch_grown(batch, grown, ops, proof)])
            if not isinstance(made, PenstockError):
                return replace(grown, version=made.version), jobs
            self._drop(job_path(job_id) for job_id in ids)
            if not (isinstance(made, Refused) and made.kind is ErrorKind.NO_NODE):
                raise made
            # Somebody took these ids for left over, and removed them: take others.
        raise Unavailable(f"the ids of new jobs of batch {batch.id} are removed; try it again")

    def _known(self, submission: Submission) -> Batch | None:
        hashed = key_hash(submission)
        named = None if hashed is None else self._session.get(submission_path(hashed))
        if named is None or not is_batch_id(batch_id := named[0].decode(errors="replace")):
            return None
        [batch] = self._reading.batches([batch_id])
        return batch if isinstance(batch, Batch) else None

    def _make(self, batch: Batch) -> bool:
        """False if it is not made: its key is taken, or its id was, or the connection broke."""
        try:
            self._session.multi(new_batch_ops(batch))
        except Refused:
            self._session.multi_many([[Delete(batch_path(batch.id))]])
            return False
        except Unknown:
            self._session.sync()
            return self._session.exists(batch_path(batch.id, "status"))
        return True

    def _new_ids(self, prefix: str, count: int) -> list[str]:
        """Ids that nobody has; those of which the answer was lost stay unused."""
        for _ in range(TRIES_MAX):
            with contextlib.suppress(Unknown):
                paths = self._session.create_sequences(prefix, count)
                ids = [path.rpartition("/")[2] for path in paths]
                if self._may_give(prefix, ids, paths):
                    return ids
                self._numbers.pass_over(prefix)
        raise Unavailable("ZooKeeper gave no number in several tries; try it again")

    def _may_give(self, prefix: str, ids: list[str], paths: list[str]) -> bool:
        """Whether these ids are ours; if they are another's, or nobody can tell, they go."""
        is_ours = False
        try:
            is_ours = self._numbers.may_give(prefix, ids)
        finally:
            if not is_ours:
                self._drop(paths)
        return is_ours

    def _drop(self, paths: Iterable[str]) -> None:
        """Remove ids that were not used; one that was has children, and stays."""
        self._session.multi_many([Delete(path)] for path in paths)

    def _size(self, ops: list[Op]) -> int:
        chroot = len(self._session.address.chroot.encode())
        datas = (op.data if isinstance(op, Create | Set) else b"" for op in ops)
        paths = (len(op.path.encode()) + chroot for op in ops)
        return sum(paths) + sum(map(len, datas)) + OP_BYTES * len(ops)
