"""How batches and jobs come into ZooKeeper: an id first, then everything else at once."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from penstock.clock import Clock
from penstock.errors import PenstockError, Unavailable
from penstock.ingest.moves import new_job
from penstock.ingest.sql.commands.queue import key_hash
from penstock.ingest.store import Submitted
from penstock.ingest.values import Batch, IngestJob, NewJob, Submission
from penstock.ingest.zk.changes import batch_grown, new_batch_ops, new_job_ops, sides_ops
from penstock.ingest.zk.layout import (
    BATCH_IDS,
    JOB_IDS,
    STATES,
    batch_path,
    is_batch_id,
    job_path,
    submission_path,
)
from penstock.ingest.zk.numbers import QueueNumbers
from penstock.ingest.zk.reading import Reading
from penstock.ingest.zk.writing import Writing
from penstock.states import BatchState
from penstock.zk import Create, Delete, ErrorKind, Op, Refused, Session, Set, Unknown

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
