"""Provisioning: wait for space.

Needs: `space_needed`. Does: moves a job on when the working folder has space for it, for the
current downloads and for a reserve. A job that does not fit stays. Each round checks every waiting
job, so that a large job does not block the small ones behind it. Never fails. A waiting job has the
reason in its message, and the log reports when only a person can free space.
"""

import shutil

from msgspec.structs import replace

from penstock.errors import PenstockError
from penstock.ingest.context import IngestContext
from penstock.ingest.models import IngestJob, JobChange, QueuePosition
from penstock.ingest.telemetry import job_moved, job_waited
from penstock.ingest.transitions import move_job
from penstock.states import IngestState

_AT_ONCE = 500
_MB = 1024 * 1024
# Jobs in these states have files in the working folder, or will soon; they free space at their end.
_AT_WORK = (
    IngestState.DOWNLOADING,
    IngestState.PROCESSING,
    IngestState.RECORDING,
    IngestState.NOTIFY,
)


def go_round(context: IngestContext) -> tuple[int, int]:
    """Check every waiting job once; return how many moved on and how many stayed."""
    moved = stayed = 0
    after: QueuePosition | None = None
    while not context.runtime.is_stopping():
        jobs = context.store.claim_jobs(IngestState.PROVISIONING, _AT_ONCE, after)
        if not jobs:
            break
        try:
            fitting, waiting = _divide(jobs, _free_bytes(context))
            refused = _move_on(context, fitting)
            unchanged = _explain(context, waiting)
        except PenstockError:
            context.store.release(jobs)
            raise
        context.store.release([*unchanged, *refused])
        moved, stayed = moved + len(fitting) - len(refused), stayed + len(waiting)
        after = jobs[-1].position
    _log_shortage(context, 0 if moved else stayed)
    return moved, stayed


def _explain(context: IngestContext, waiting: list[IngestJob]) -> list[IngestJob]:
    """Write into each job why it waits; return the jobs that were not changed.

    The text is the same in every round, so that a job is written once.
    """
    folder, keeps = context.storage.working_folder(), context.runtime.settings.space_free_mb
    advice = f"beside {keeps:,} MB in reserve (space_free_mb); it goes on when there is space"
    changes, unchanged = [], []
    for job in waiting:
        words = f"its size is unknown, and {folder} has no free space {advice}"
        if job.space_needed:
            words = f"it needs {job.space_needed:,} bytes, and {folder} has fewer free {advice}"
        if job.message == words:
            unchanged.append(job)
        else:
            changes.append(JobChange(job, replace(job, message=words)))
    outcomes = context.store.change_jobs(changes) if changes else []
    pairs = zip(changes, outcomes, strict=True)
    return unchanged + [c.before for c, outcome in pairs if isinstance(outcome, PenstockError)]


def _log_shortage(context: IngestContext, stayed: int) -> None:
    """Log once that jobs wait for space that no other job will free."""
    trouble = context.runtime.trouble("ingest jobs wait for space")
    tally = {line.status: line.jobs for line in context.store.tally()} if stayed else {}
    if not stayed or any(tally.get(status) for status in _AT_WORK):
        trouble.over()
    else:
        folder, keeps = context.storage.working_folder(), context.runtime.settings.space_free_mb
        trouble.met(f"free some in {folder}, of which {keeps} MB are kept (space_free_mb)")


def _move_on(context: IngestContext, fitting: list[IngestJob]) -> list[IngestJob]:
    """Move jobs to downloading; return the jobs whose change was refused."""
    now = context.runtime.clock()
    changes = [JobChange(job, move_job(job, IngestState.DOWNLOADING, now)) for job in fitting]
    outcomes = context.store.change_jobs(changes)
    refused = []
    for job, outcome in zip(fitting, outcomes, strict=True):
        if isinstance(outcome, PenstockError):
            refused.append(job)
        elif outcome is not None:
            job_waited(context.collections, job)
            job_moved(context.collections, job, outcome)
    return refused


def _free_bytes(context: IngestContext) -> int:
    """Compute the bytes that jobs may still use."""
    free = (
        shutil.disk_usage(context.storage.working_folder()).free
        - context.runtime.settings.space_free_mb * _MB
    )
    tally = {line.status: line.bytes for line in context.store.tally()}
    return free - tally.get(IngestState.DOWNLOADING, 0)


def _divide(jobs: list[IngestJob], free_bytes: int) -> tuple[list[IngestJob], list[IngestJob]]:
    """Divide jobs, in their order, into those that fit and the rest.

    A job of unknown size fits if any space is free.
    """
    fitting, waiting = [], []
    for job in jobs:
        if free_bytes > 0 and job.space_needed <= free_bytes:
            fitting.append(job)
            free_bytes -= job.space_needed
        else:
            waiting.append(job)
    return fitting, waiting
