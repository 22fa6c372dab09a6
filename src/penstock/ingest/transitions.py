"""State transitions of batches and ingest jobs: pure functions over the tables in `states`."""

import math
from enum import StrEnum

from msgspec.structs import replace

from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.ingest.models import HISTORY_MAX, TEXT_CHARS_MAX, Batch, IngestJob, NewJob, StageEntry
from penstock.schema.ingest import PRIORITY_MAX
from penstock.states import BATCH, INGEST_JOB, INGEST_STAGES, BatchState, IngestState

UNKNOWN_SIZE_PENALTY = 10
LARGE_BYTES = 10 * 1024**3
_NEXT = dict(zip(INGEST_STAGES, (*INGEST_STAGES[1:], IngestState.COMPLETED), strict=True))


class BatchSide(StrEnum):
    """A batch's view of one of its jobs; the batch is done when no job is `batch-processing`."""

    PROCESSING = "batch-processing"
    FAILED = "batch-failed"
    COMPLETED = "batch-completed"


def side_of(status: IngestState) -> BatchSide:
    """Return the batch's view of a job in this state."""
    if status is IngestState.FAILED:
        return BatchSide.FAILED
    if status is IngestState.COMPLETED:
        return BatchSide.COMPLETED
    return BatchSide.PROCESSING


def new_job(job_id: str, new: NewJob, now: Micros) -> IngestJob:
    """Build a pending job; its working folder is inside the folder of its batch."""
    folder = f"{new.configuration.working_dir}/{job_id}"
    return IngestJob(
        id=job_id,
        configuration=replace(new.configuration, working_dir=folder),
        identifiers=new.identifiers,
        status=IngestState.PENDING,
        last_modified=now,
        priority=new.priority,
        history=(StageEntry(IngestState.PENDING, now),),
    )


def move_job(
    job: IngestJob,
    to: IngestState,
    now: Micros,
    *,
    message: str = "",
    priority: int | None = None,
    space_needed: int | None = None,
    can_begin_again: bool = False,
    by_hand: bool = False,
) -> IngestJob:
    """Return the job in another state; Conflict if the table does not have the transition."""
    INGEST_JOB.check(job.status, to, job.id, by_hand=by_hand)
    succeeded = _NEXT.get(job.status) is to and job.status is not IngestState.PENDING
    last = job.status if succeeded else job.last_successful_status
    if priority is None or job.keeps_priority:
        priority = job.priority
    return replace(
        job,
        status=to,
        last_successful_status=last,
        last_modified=now,
        message=_cut(message),
        priority=clamp_priority(priority),
        space_needed=job.space_needed if space_needed is None else space_needed,
        history=(*job.history, StageEntry(to, now))[-HISTORY_MAX:],
        can_begin_again=can_begin_again and last is None,
    )


def resume_stage(job: IngestJob) -> IngestState:
    """Return the stage in which a failed job continues; Conflict if it cannot be resumed."""
    if job.status is not IngestState.FAILED:
        raise Conflict(f"ingest job {job.id} is {job.status}; only a failed job can be resumed")
    if job.last_successful_status is not None:
        return _NEXT[job.last_successful_status]
    if job.can_begin_again:
        return IngestState.PENDING
    raise Conflict(
        f"ingest job {job.id} failed before any stage succeeded and cannot be resumed; "
        "correct the payload and submit it again"
    )


def resume_job(job: IngestJob, now: Micros) -> IngestJob:
    """Return a failed job in the stage after its last successful one, or in its first stage."""
    resumed = move_job(job, resume_stage(job), now, by_hand=True)
    return replace(resumed, retry_count=job.retry_count + 1)


def move_batch(
    batch: Batch,
    to: BatchState,
    now: Micros,
    *,
    message: str = "",
    report: str | None = None,
    by_hand: bool = False,
) -> Batch:
    """Return the batch in another state; Conflict if the table does not have the transition."""
    BATCH.check(batch.status, to, batch.id, by_hand=by_hand)
    report = batch.report if report is None else report
    return replace(batch, status=to, last_modified=now, message=_cut(message), report=report)


def _cut(message: str) -> str:
    """Cut a message to the length that every queue stores; a longer one would block the stage."""
    return message if len(message) <= TEXT_CHARS_MAX else f"{message[: TEXT_CHARS_MAX - 1]}…"


def clamp_priority(priority: int) -> int:
    """Return the nearest priority that the queue can store."""
    return max(0, min(PRIORITY_MAX, priority))


def first_priority(jobs: int) -> int:
    """Return the priority of a batch's jobs: the larger the batch, the later they start."""
    return clamp_priority(round(10 * math.log(max(1, jobs))) + 5)


def size_penalty(size: int) -> int:
    """Return the number to add to a job's priority for its size; size 0 means unknown."""
    if size == 0:
        return UNKNOWN_SIZE_PENALTY
    return UNKNOWN_SIZE_PENALTY // 2 if size > LARGE_BYTES else 0


def is_reported_since(before: Batch, after: Batch, stored: Batch) -> bool:
    """Whether the stored batch made the transition to processing and at once went on to reporting.

    That happens to a batch without open jobs, so the transition is a repeated one and succeeded.
    """
    return (
        after.status is BatchState.PROCESSING
        and stored.status is BatchState.REPORTING
        and stored.version == before.version + 2
    )
