"""How batches and ingest jobs move: pure functions over the tables in `states`."""

import math
from enum import StrEnum

from msgspec.structs import replace

from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.ingest.models import (
    HISTORY_MAX,
    PRIORITY_MAX,
    TEXT_CHARS_MAX,
    Batch,
    IngestJob,
    NewJob,
    Step,
)
from penstock.states import BATCH, INGEST_JOB, INGEST_STAGES, BatchState, IngestState

UNKNOWN_SIZE_PENALTY = 10
LARGE_BYTES = 10 * 1024**3
_NEXT = dict(zip(INGEST_STAGES, (*INGEST_STAGES[1:], IngestState.COMPLETED), strict=True))


class BatchSide(StrEnum):
    """How a batch sees one of its jobs; it is done when none is `batch-processing`."""

    PROCESSING = "batch-processing"
    FAILED = "batch-failed"
    COMPLETED = "batch-completed"


def side_of(status: IngestState) -> BatchSide:
    """How a job's batch sees it."""
    if status is IngestState.FAILED:
        return BatchSide.FAILED
    if status is IngestState.COMPLETED:
        return BatchSide.COMPLETED
    return BatchSide.PROCESSING


def new_job(job_id: str, new: NewJob, now: Micros) -> IngestJob:
    """A job as it begins, with a working folder of its own inside its batch's."""
    folder = f"{new.configuration.working_dir}/{job_id}"
    return IngestJob(
        id=job_id,
        configuration=replace(new.configuration, working_dir=folder),
        identifiers=new.identifiers,
        status=IngestState.PENDING,
        last_modified=now,
        priority=new.priority,
        history=(Step(IngestState.PENDING, now),),
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
    """The job in another state, if the table has that move."""
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
        priority=capped(priority),
        space_needed=job.space_needed if space_needed is None else space_needed,
        history=(*job.history, Step(to, now))[-HISTORY_MAX:],
        can_begin_again=can_begin_again and last is None,
    )


def resume_stage(job: IngestJob) -> IngestState:
    """The stage that a failed job goes on with."""
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
    """A failed job, back in the stage after the last one that succeeded, or at its beginning."""
    moved = move_job(job, resume_stage(job), now, by_hand=True)
    return replace(moved, retry_count=job.retry_count + 1)


def move_batch(
    batch: Batch,
    to: BatchState,
    now: Micros,
    *,
    message: str = "",
    report: str | None = None,
    by_hand: bool = False,
) -> Batch:
    """The batch in another state, if the table has that move."""
    BATCH.check(batch.status, to, batch.id, by_hand=by_hand)
    report = batch.report if report is None else report
    return replace(batch, status=to, last_modified=now, message=_cut(message), report=report)


def _cut(message: str) -> str:
    """A message that every queue can keep: one that it could not would hold up the whole stage."""
    return message if len(message) <= TEXT_CHARS_MAX else f"{message[: TEXT_CHARS_MAX - 1]}…"


def capped(priority: int) -> int:
    """A priority that the queue can hold."""
    return max(0, min(PRIORITY_MAX, priority))


def first_priority(jobs: int) -> int:
    """The priority of a batch's jobs: the larger the batch, the later they start."""
    return capped(round(10 * math.log(max(1, jobs))) + 5)


def size_penalty(size: int) -> int:
    """How much later a job is worked on for its size; 0 is a size that nobody knows."""
    if size == 0:
        return UNKNOWN_SIZE_PENALTY
    return UNKNOWN_SIZE_PENALTY // 2 if size > LARGE_BYTES else 0


def is_reported_since(before: Batch, after: Batch, found: Batch) -> bool:
    """Whether a batch that was to process has done so, and had no job left: it reports already."""
    return (
        after.status is BatchState.PROCESSING
        and found.status is BatchState.REPORTING
        and found.version == before.version + 2
    )
