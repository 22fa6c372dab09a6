"""Provisioning: is there space?

Needs: `space_needed`. Does: lets a job go on when the working folder has room for it, for what is
being downloaded already, and for a reserve. A job that does not fit stays, and every waiting job is
looked at in each round, so that a large one does not hold up the small ones behind it. Never fails.
A job that stays says why. When only a person can make room, the log says so.
"""

import shutil

from msgspec.structs import replace

from penstock.errors import PenstockError
from penstock.ingest.context import IngestContext
from penstock.ingest.models import IngestJob, JobChange, Place
from penstock.ingest.telemetry import job_moved, job_waited
from penstock.ingest.transitions import move_job
from penstock.states import IngestState

_AT_ONCE = 500
_MB = 1024 * 1024
# Jobs that have files in the working folder, or will soon: they make room when they are done.
_AT_WORK = (
    IngestState.DOWNLOADING,
    IngestState.PROCESSING,
    IngestState.RECORDING,
    IngestState.NOTIFY,
)


def go_round(context: IngestContext) -> tuple[int, int]:
    """Look at every waiting job once: how many went on, and how many stayed."""
    went = stayed = 0
    after: Place | None = None
    while not context.runtime.is_stopping():
        jobs = context.store.claim_jobs(IngestState.PROVISIONING, _AT_ONCE, after)
        if not jobs:
            break
        try:
            fitting, waiting = _parted(jobs, _room(context))
            refused = _let_pass(context, fitting)
            unchanged = _explain(context, waiting)
        except PenstockError:
            context.store.let_go(jobs)
            raise
        context.store.let_go([*unchanged, *refused])
        went, stayed = went + len(fitting) - len(refused), stayed + len(waiting)
        after = jobs[-1].place
    _tell(context, 0 if went else stayed)
    return went, stayed


def _explain(context: IngestContext, waiting: list[IngestJob]) -> list[IngestJob]:
    """Write into each job why it waits; returns those that say so already.

    The words do not change from round to round, so that a job is written once.
    """
    folder, keeps = context.storage.working_folder(), context.runtime.settings.space_free_mb
    reserve = f"beside {keeps:,} MB in reserve (space_free_mb); it goes on when there is room"
    changes, unchanged = [], []
    for job in waiting:
        words = f"its size is unknown, and {folder} has no free space {reserve}"
        if job.space_needed:
            words = f"it needs {job.space_needed:,} bytes, and {folder} has not so many {reserve}"
        if job.message == words:
            unchanged.append(job)
        else:
            changes.append(JobChange(job, replace(job, message=words)))
    outcomes = context.store.change_jobs(changes) if changes else []
    pairs = zip(changes, outcomes, strict=True)
    return unchanged + [c.before for c, outcome in pairs if isinstance(outcome, PenstockError)]


def _tell(context: IngestContext, stayed: int) -> None:
    """Say once that jobs wait for space which no other job will make."""
    trouble = context.runtime.trouble("ingest jobs wait for space")
    tally = {line.status: line.jobs for line in context.store.tally()} if stayed else {}
    if not stayed or any(tally.get(status) for status in _AT_WORK):
        trouble.over()
    else:
        folder, keeps = context.storage.working_folder(), context.runtime.settings.space_free_mb
        trouble.met(f"free some in {folder}, of which {keeps} MB are kept (space_free_mb)")


def _let_pass(context: IngestContext, fitting: list[IngestJob]) -> list[IngestJob]:
    """Move jobs on; gives those that could not be."""
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


def _room(context: IngestContext) -> int:
    """The bytes that can be given away."""
    free = (
        shutil.disk_usage(context.storage.working_folder()).free
        - context.runtime.settings.space_free_mb * _MB
    )
    tally = {line.status: line.bytes for line in context.store.tally()}
    return free - tally.get(IngestState.DOWNLOADING, 0)


def _parted(jobs: list[IngestJob], room: int) -> tuple[list[IngestJob], list[IngestJob]]:
    """Those that fit, first come first served, and the rest; an unknown size only needs some."""
    fitting, waiting = [], []
    for job in jobs:
        if room > 0 and job.space_needed <= room:
            fitting.append(job)
            room -= job.space_needed
        else:
            waiting.append(job)
    return fitting, waiting
