"""The ingest service: depositors submit batches, and administrators act on batches and jobs.

Every administrator's action is written to the audit log before it runs. A refused action gets a
second line with the refusal.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from penstock.access import audit
from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, PenstockError
from penstock.ingest import deletion
from penstock.ingest.archive import lost_files
from penstock.ingest.collections import DeleteCollection
from penstock.ingest.context import IngestContext
from penstock.ingest.intake.deposits import DepositRequest, submit
from penstock.ingest.models import (
    ANOTHER_PROGRAM,
    Batch,
    BatchChange,
    CheckProgress,
    IngestHold,
    IngestHoldKind,
    IngestJob,
    JobChange,
)
from penstock.ingest.queue.port import QUEUE, BatchFilter, Outcome, Submitted
from penstock.ingest.transitions import (
    BatchSide,
    clamp_priority,
    move_batch,
    move_job,
    resume_job,
    side_of,
)
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState

_PAGE = 250
_TRIES = 5
_SHOWN_MAX = 3
_UNDER_WAY = BatchSide.PROCESSING


class AdminAction(NamedTuple):
    """The person who acts, and the reason."""

    who: str
    why: str = ""


class ResumeResult(NamedTuple):
    """The stage in which a failed job continues, or the reason why it cannot."""

    job_id: str
    stage: IngestState | None
    refused: str = ""


class AuditAction(Write, frozen=True):
    """Write an action to the audit log."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    act: AdminAction
    action: str
    target: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        audit.append(uow.tx, now, self.act.who, self.action, self.target, self.act.why)


class IngestService:
    """The operations of depositors and administrators."""

    def __init__(self, context: IngestContext) -> None:
        self._context = context
        self._store = context.store

    def submit(self, deposit: DepositRequest) -> Submitted:
        """Submit a deposit; return its batch."""
        return submit(self._context, deposit)

    def delete_collection(self, act: AdminAction, name: str) -> None:
        """Delete a collection without open batches, and its hold in the queue.

        A batch that is submitted at the same moment fails with a message.
        """
        batch = self._store.open_batch(name)
        if batch is not None:
            raise Conflict(
                f"batch {batch.id} of collection {name} is {batch.status}; "
                "wait for it, or delete it"
            )
        self._context.catalog.submit(DeleteCollection(act.who, name)).result()
        self._store.release_hold(IngestHoldKind.COLLECTION, name)

    def hold(self, act: AdminAction, kind: IngestHoldKind, name: str = QUEUE) -> IngestHold:
        """Hold a collection or the whole queue."""
        if kind is IngestHoldKind.COLLECTION:
            self._context.collections.get(name)
        hold = IngestHold(kind, name, act.who, act.why, self._context.runtime.clock())
        with self._audited(act, f"hold {kind}", name):
            self._store.hold(hold)
        return hold

    def release(self, act: AdminAction, kind: IngestHoldKind, name: str = QUEUE) -> None:
        """Release the hold of a collection or of the whole queue; jobs that it held stay held."""
        with self._audited(act, f"release {kind}", name):
            if not self._store.release_hold(kind, name):
                raise Conflict(f"{kind} {name} is not held{self._other_holds(name)}")

    def hold_batch(self, act: AdminAction, batch_id: str) -> Batch:
        """Hold a pending batch, or the pending jobs of a batch that is processing."""
        with self._audited(act, "hold batch", batch_id):
            batch = self._store.batch(batch_id)
            if batch.status not in (BatchState.PENDING, BatchState.PROCESSING):
                raise Conflict(
                    f"batch {batch_id} is {batch.status}; only a pending or processing batch "
                    "can be held"
                )
            if batch.status is BatchState.PENDING:
                batch = self._move_batch(batch, BatchState.HELD, act.why)
            held = self._move_all(batch_id, IngestState.PENDING, IngestState.HELD, act.why)
            if not held and batch.status is BatchState.PROCESSING:
                begun, held = self._open_jobs(batch_id)
                raise Conflict(
                    f"no job of batch {batch_id} is pending: {_are(begun, 'has', 'have')} begun "
                    f"and cannot be held, {_are(held)} held already; to stop everything, hold the "
                    "queue"
                )
            return self._store.batch(batch_id)

    def release_batch(self, act: AdminAction, batch_id: str) -> Batch:
        """Release a held batch and its held jobs."""
        with self._audited(act, "release batch", batch_id):
            batch = self._store.batch(batch_id)
            self._require_open(batch.collection)
            is_held = batch.status is BatchState.HELD
            released = self._move_all(batch_id, IngestState.HELD, IngestState.PENDING)
            if is_held:
                batch = self._move_batch(batch, BatchState.PENDING)
            elif not released:
                raise Conflict(
                    f"batch {batch_id} is {batch.status}, and none of its jobs is held"
                    f"{self._other_holds(batch.collection)}"
                )
            return batch

    def hold_job(self, act: AdminAction, job_id: str) -> IngestJob:
        """Hold a pending job."""
        with self._audited(act, "hold ingest job", job_id):
            return self._move_job(self._store.job(job_id), IngestState.HELD, act.why)

    def release_job(self, act: AdminAction, job_id: str) -> IngestJob:
        """Release a held job."""
        with self._audited(act, "release ingest job", job_id):
            job = self._store.job(job_id)
            if job.status is not IngestState.HELD:
                raise Conflict(
                    f"ingest job {job_id} is {job.status}; only a held one is released"
                    f"{self._other_holds(job.configuration.profile_name)}"
                )
            self._require_open(job.configuration.profile_name)
            return self._move_job(job, IngestState.PENDING)

    def release_all(self, act: AdminAction, collection: str | None = None) -> int:
        """Release every held batch and job of one collection, or of all that are not on hold."""
        with self._audited(act, "release all held", collection or "every collection"):
            if collection is not None:
                self._require_open(collection)
            return self._release_batches(collection) + self._release_jobs(collection)

    def resume_job(self, act: AdminAction, job_id: str) -> IngestJob:
        """Resume a failed job after its last successful stage."""
        with self._audited(act, "resume ingest job", job_id):
            job = self._store.job(job_id)
            return self._changed(job, resume_job(job, self._context.runtime.clock()))

    def resume_batch(self, act: AdminAction, batch_id: str) -> list[ResumeResult]:
        """Resume every failed job of a batch; return the stage of each.

        A batch whose payload could not be read becomes pending and is read again.
        """
        resumed = []
        with self._audited(act, "resume batch", batch_id):
            batch = self._store.batch(batch_id)
            if batch.is_unread:
                self._move_batch(batch, BatchState.PENDING)
            for job in self._each(batch_id, IngestState.FAILED):
                try:
                    after = self._changed(job, resume_job(job, self._context.runtime.clock()))
                except PenstockError as refusal:
                    resumed.append(ResumeResult(job.id, None, str(refusal)))
                else:
                    resumed.append(ResumeResult(job.id, after.status))
        return resumed

    def fail_job(self, act: AdminAction, job_id: str) -> IngestJob:
        """Force a job to failed, even while a worker has it locked."""
        with self._audited(act, "fail ingest job", job_id):
            job = self._store.job(job_id)
            message = f"stopped by {act.who}: {act.why}" if act.why else f"stopped by {act.who}"
            now = self._context.runtime.clock()
            failed = move_job(
                job, IngestState.FAILED, now, message=message, can_begin_again=True, by_hand=True
            )
            return self._changed(job, failed)

    def prioritize_job(self, act: AdminAction, job_id: str, priority: int) -> IngestJob:
        """Set a job's priority; low runs first."""
        with self._audited(act, f"priority {priority}", job_id):
            job = self._store.job(job_id)
            if job.status is IngestState.COMPLETED:
                raise Conflict(f"ingest job {job_id} is completed, so it has no priority any more")
            return self._prioritized(job, _priority(priority))

    def prioritize_batch(self, act: AdminAction, batch_id: str, priority: int) -> int:
        """Set the priority of a batch's open jobs; return their number."""
        changed = 0
        with self._audited(act, f"priority {priority}", batch_id):
            batch = self._store.batch(batch_id)
            for job in self._each(batch_id, None):
                if job.status not in (IngestState.COMPLETED, IngestState.FAILED):
                    self._prioritized(job, _priority(priority))
                    changed += 1
            if not changed:
                why = "has no jobs yet" if not batch.jobs else "none of its jobs is open"
                raise Conflict(f"batch {batch_id} is {batch.status}, and {why}")
        return changed

    def _prioritized(self, job: IngestJob, priority: int) -> IngestJob:
        """Change a priority and keep the worker's lock; retry if the worker changed the job."""
        for _ in range(_TRIES):
            after = replace(job, priority=priority, keeps_priority=True)
            change = JobChange(job, after, keep_lock=True, by_hand=True)
            [outcome] = self._store.change_jobs([change])
            if not isinstance(outcome, Conflict):
                break
            job = self._store.job(job.id)
        return _settled(outcome)

    def update_report(self, act: AdminAction, batch_id: str) -> Batch:
        """Request another report of a failed batch."""
        with self._audited(act, "update report", batch_id):
            batch = self._store.batch(batch_id)
            if batch.is_unread:
                raise Conflict(
                    f"batch {batch_id} failed before its jobs were made: {batch.message}; there is "
                    "nothing to report: resume it once its payload can be read, or submit it again"
                )
            return self._move_batch(batch, BatchState.UPDATE_REPORTING)

    def delete_job(self, act: AdminAction, job_id: str, *, confirmed: bool) -> None:
        """Delete a failed or held job and its working folder."""
        with self._audited(act, "delete ingest job", job_id):
            job = self._store.job(job_id)
            move_job(job, IngestState.DELETED, self._context.runtime.clock(), by_hand=True)
            batch = self._store.batch(job.batch_id)
            if batch.status is not BatchState.COMPLETED and not confirmed:
                raise Conflict(
                    f"batch {batch.id} is {batch.status}: once ingest job {job_id} is deleted, "
                    "its depositor is not notified; confirm it to delete it anyway"
                )
            [outcome] = self._store.change_jobs([JobChange(job, None, by_hand=True)])
            if isinstance(outcome, PenstockError):
                raise outcome
            deletion.abandon_deposit(self._context, job)
            self._context.storage.remove_job_folder(job)

    def delete_batch(self, act: AdminAction, batch_id: str, *, confirmed: bool) -> None:
        """Delete a failed or held batch with its jobs, working folders and lot.

        A batch whose open jobs are all held fails first, so that no worker reports it meanwhile.
        """
        with self._audited(act, "delete batch", batch_id):
            batch = self._store.batch(batch_id)
            begun, held = self._open_jobs(batch_id)
            is_given_up = batch.status is BatchState.PROCESSING and held > 0
            if is_given_up and begun:
                raise Conflict(
                    f"batch {batch_id} is processing, and {begun} of its jobs "
                    f"{'is' if begun == 1 else 'are'} under way; wait for them, or fail them"
                )
            if not is_given_up:
                move_batch(batch, BatchState.DELETED, self._context.runtime.clock(), by_hand=True)
            if not confirmed:
                raise Conflict(
                    f"batch {batch_id} and its {batch.jobs} jobs cannot be brought back, and its "
                    "depositor is not notified; confirm it to delete it anyway"
                )
            if is_given_up:
                message = f"given up by {act.who}: {act.why}"
                batch = self._move_batch(batch, BatchState.FAILED, message)
            deletion.delete_batch(self._context, batch, by=act.who)

    def check(self, act: AdminAction, *, repair: bool) -> Iterator[Finding | CheckProgress]:
        """Check the queue, deposits, folders and stored objects; repair what can be repaired."""
        context = self._context
        with self._audited(act, "repair", QUEUE) if repair else nullcontext():
            yield from self._store.iter_check(repair=repair)
            yield from self._foreign_holds()
            yield from deletion.check_abandoned(self._context, repair=repair)
            yield from deletion.check_orphaned_folders(self._context, repair=repair)
            yield from lost_files.check(
                context.collections,
                context.storage,
                context.catalog,
                context.runtime.is_stopping,
            )

    def _foreign_holds(self) -> Iterator[Finding]:
        """Find holds that another program placed, which name no person."""
        for hold in self._store.holds():
            if hold.who == ANOTHER_PROGRAM:
                is_queue = hold.kind is IngestHoldKind.QUEUE
                target = "queue" if is_queue else f"collection {hold.name}"
                yield Finding(
                    f"is held by {hold.who} ({hold.why}), and nothing of it goes on; to let it: "
                    f"penstock ingest release {target}",
                    target,
                    repairable=False,
                )

    def _require_open(self, collection: str) -> None:
        if self._is_held(collection):
            raise Conflict(
                f"collection {collection} is held; release it first: "
                f"`penstock ingest release collection {shlex.quote(collection)} --why REASON`"
            )

    def _other_holds(self, name: str) -> str:
        """Describe the holds of the queue and a collection, with the commands that release them."""
        holds = [h for h in self._store.holds() if name in (QUEUE, h.name) or h.name == QUEUE]
        return "".join(
            f"; {'the queue' if hold.name == QUEUE else f'collection {hold.name}'} is held by "
            f"{hold.who}: `{_release(hold)}`"
            for hold in holds[:_SHOWN_MAX]
        )

    def _is_held(self, collection: str) -> bool:
        holds = self._store.holds()
        return any(h.kind is IngestHoldKind.COLLECTION and h.name == collection for h in holds)

    def _release_batches(self, collection: str | None) -> int:
        released = 0
        before: str | None = None
        which = BatchFilter(BatchState.HELD, collection)
        while batches := self._store.batches(which, _PAGE, before):
            for batch in batches:
                if not self._is_held(batch.collection):
                    self._move_batch(batch, BatchState.PENDING)
                    released += 1
            before = batches[-1].id
        return released

    def _release_jobs(self, collection: str | None) -> int:
        released = 0
        after = None
        while jobs := self._store.waiting(IngestState.HELD, _PAGE, after):
            wanted = [
                job
                for job in jobs
                if collection in (None, job.configuration.profile_name)
                and not self._is_held(job.configuration.profile_name)
            ]
            now = self._context.runtime.clock()
            moved = [move_job(job, IngestState.PENDING, now, by_hand=True) for job in wanted]
            changes = [JobChange(a, b, by_hand=True) for a, b in zip(wanted, moved, strict=True)]
            outcomes = self._store.change_jobs(changes)
            released += sum(isinstance(outcome, IngestJob) for outcome in outcomes)
            after = jobs[-1].position
        return released

    def _open_jobs(self, batch_id: str) -> tuple[int, int]:
        """Count the jobs of a batch that are under way, and those that are held."""
        open_jobs = [
            line for line in self._store.tally(batch_id) if side_of(line.status) is _UNDER_WAY
        ]
        held = sum(line.jobs for line in open_jobs if line.status is IngestState.HELD)
        return sum(line.jobs for line in open_jobs) - held, held

    def _move_all(
        self, batch_id: str, status: IngestState, to: IngestState, message: str = ""
    ) -> int:
        moved = 0
        for job in self._each(batch_id, status):
            after = move_job(job, to, self._context.runtime.clock(), message=message, by_hand=True)
            [outcome] = self._store.change_jobs([JobChange(job, after, by_hand=True)])
            moved += isinstance(outcome, IngestJob)
        return moved

    def _each(self, batch_id: str, status: IngestState | None) -> Iterator[IngestJob]:
        after: str | None = None
        while jobs := self._store.jobs(batch_id, _PAGE, after, status=status):
            yield from jobs
            after = jobs[-1].id

    def _move_job(self, job: IngestJob, to: IngestState, message: str = "") -> IngestJob:
        after = move_job(job, to, self._context.runtime.clock(), message=message, by_hand=True)
        return self._changed(job, after)

    def _changed(self, job: IngestJob, after: IngestJob) -> IngestJob:
        [outcome] = self._store.change_jobs([JobChange(job, after, by_hand=True)])
        return _settled(outcome)

    def _move_batch(self, batch: Batch, to: BatchState, message: str = "") -> Batch:
        after = move_batch(batch, to, self._context.runtime.clock(), message=message, by_hand=True)
        changed = self._store.change_batch(BatchChange(batch, after, by_hand=True))
        assert changed is not None, "the change deletes nothing"
        return changed

    @contextmanager
    def _audited(self, act: AdminAction, action: str, target: str) -> Iterator[None]:
        catalog = self._context.catalog
        catalog.submit(AuditAction(act, action, target)).result()
        try:
            yield
        except PenstockError as refusal:
            refused = AdminAction(act.who, str(refusal))
            catalog.submit(AuditAction(refused, f"{action}: refused", target)).result()
            raise


def _release(hold: IngestHold) -> str:
    what = ["queue"] if hold.kind is IngestHoldKind.QUEUE else ["collection", hold.name]
    return f"{shlex.join(['penstock', 'ingest', 'release', *what])} --why REASON"


def _settled(outcome: Outcome) -> IngestJob:
    if isinstance(outcome, PenstockError):
        raise outcome
    assert outcome is not None, "the change deletes nothing"
    return outcome


def _are(number: int, one: str = "is", many: str = "are") -> str:
    return f"{number:,} {one if number == 1 else many}"


def _priority(priority: int) -> int:
    if priority != clamp_priority(priority):
        raise Invalid(f"a priority is a number from 0 to 99, not {priority}")
    return priority
