"""Rules for jobs; their versions and edges are in `job_versions`."""

from collections.abc import Iterable

import msgspec

from penstock import ids
from penstock.catalog.entities.tags import use_tags
from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import Facets, Stamp, stamped_at
from penstock.catalog.events.known_facets import ReportedParent
from penstock.catalog.rows import JobRow, RunRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros, after
from penstock.states import RunState

STREAM = "STREAM"
UNKNOWN = "unknown"  # Spark's name for a run before it knows its job
NEVER_DELETED: Micros = -1
_UNHEARD = "{}"  # the stamps of a run without events of its own
_SPOKEN = '{"run":{},"job":{}}'


def new_job(job_id: str, namespace: str, name: str, at: Micros) -> JobRow:
    """Return a job on its first mention."""
    return JobRow(
        id=job_id,
        namespace=namespace,
        name=name,
        type="BATCH",
        type_stamp=0,
        description=None,
        description_stamp=0,
        location=None,
        location_stamp=0,
        parent_job_id=None,
        parent_stamp=0,
        current_version_id=None,
        version_at=0,
        latest_run_id=None,
        latest_run_at=None,
        latest_run_state="",
        run_count=0,
        version_count=0,
        tags="[]",
        labels="[]",
        facets="{}",
        stamps="{}",
        hidden=0,
        hidden_at=0,
        created_at=at,
        updated_at=at,
    )


def named_again(job: JobRow, at: Micros) -> JobRow:
    """Return a job with one more mention; a mention after its deletion restores it."""
    return replace(
        job,
        hidden=job.hidden if at <= job.hidden_at else 0,
        hidden_at=max(job.hidden_at, 0),
        created_at=min(job.created_at, at),
        updated_at=max(job.updated_at, at),
    )


def next_change(job: JobRow, now: Micros) -> Micros:
    """Return the time of a manual change now: after every earlier report on the job."""
    stamps = (job.type_stamp, job.description_stamp, job.location_stamp)
    return after(now, job.version_at, job.hidden_at, job.updated_at, *map(stamped_at, stamps))


def hide_if_empty(job: JobRow) -> JobRow:
    """Hide an undeclared job whose runs all moved to other jobs.

    It is not deleted: the next event that names it shows it again, whatever its time.
    """
    if job.hidden or job.run_count or job.version_count or len(job.facets) > len("{}"):
        return job
    return replace(job, hidden=1, hidden_at=job.hidden_at or NEVER_DELETED)


def new_run(run_id: str, job_id: str, external_id: str | None, at: Micros) -> RunRow:
    """Return a run without any report."""
    return RunRow(
        id=run_id,
        external_id=external_id,
        job_id=job_id,
        job_version_id=None,
        parent_run_id=None,
        state=RunState.NEW,
        nominal_start=None,
        nominal_end=None,
        args="{}",
        started_at=None,
        ended_at=None,
        facets="{}",
        job_facets="{}",
        stamps=_UNHEARD,
        created_at=at,
        updated_at=at,
    )


def describe_job(uow: UnitOfWork, job: JobRow, facets: Facets, stamp: Stamp) -> JobRow:
    """Apply the job facets that belong to the job as a whole; the newest wins."""
    text = known_facets.documentation(facets) if "documentation" in facets else None
    if text is not None and (stamp, text) > (job.description_stamp, job.description or ""):
        job = replace(job, description=text or None, description_stamp=stamp)
    url = known_facets.code_location(facets) if "sourceCodeLocation" in facets else None
    if url is not None and (stamp, url) > (job.location_stamp, job.location or ""):
        job = replace(job, location=url, location_stamp=stamp)
    kind = known_facets.job_type(facets) if "jobType" in facets else None
    if kind is not None and (stamp, kind) > (job.type_stamp, job.type):
        job = replace(job, type=kind, type_stamp=stamp)
    if "tags" in facets:
        job = tag_job(uow, job, [mark.name for mark in known_facets.tags(facets)])
    return job


def tag_job(uow: UnitOfWork, job: JobRow, names: Iterable[str]) -> JobRow:
    """Add tags to a job; create new tags."""
    carried, added = set(msgspec.json.decode(job.tags)), set(names)
    use_tags(uow, job.namespace, added - carried)
    return replace(job, tags=msgspec.json.encode(sorted(carried | added)).decode())


def untag_job(job: JobRow, name: str) -> JobRow:
    """Remove a tag from a job."""
    tags = [tag for tag in msgspec.json.decode(job.tags) if tag != name]
    return replace(job, tags=msgspec.json.encode(tags).decode())


def ensure_parent(
    uow: UnitOfWork, parent: ReportedParent, at: Micros, *, is_elsewhere: bool = False
) -> tuple[RunRow, RunRow] | None:
    """Return the parent run that a child names; create it if it does not exist.

    The state of the parent is its own, and so is its last change once it sent events; it may have
    begun earlier than it reported. If so, it is returned as it is now and as it was. A child whose
    key may not write the parent's namespace changes neither an existing job nor a run with events.
    """
    job_id = ids.job_id(parent.namespace, parent.name)
    former = uow.jobs.get(job_id)
    job = former or new_job(job_id, parent.namespace, parent.name, at)
    may_change = former is None or not is_elsewhere
    if may_change and (job.hidden or not job.created_at <= at <= job.updated_at):
        job = named_again(job, at)
    run = uow.runs.get(parent.run_id)
    if may_change and run is not None and run.job_id != job_id:
        job = hide_if_empty(job)
    if job != former:
        uow.jobs.put(job_id, job)
    if run is None:
        run = new_run(parent.run_id, job_id, parent.external_id, at)
        uow.runs.put(run.id, run)
        count_run(uow, run)
    elif is_elsewhere and not is_placeholder(uow, run):
        return None
    elif at < run.created_at or (at > run.updated_at and is_placeholder(uow, run)):
        first, last = min(run.created_at, at), max(run.updated_at, at)
        mentioned = replace(run, created_at=first, updated_at=last)
        uow.runs.put(run.id, mentioned)
        owner = uow.jobs.get(run.job_id)
        assert owner is not None, "a run always has its job"
        uow.jobs.put(owner.id, follow_run(uow, owner, mentioned, run))
        if first < run.created_at:
            return mentioned, run
    return None


def count_run(uow: UnitOfWork, run: RunRow) -> None:
    """Count a new run for its job; it may be the newest."""
    job = uow.jobs.get(run.job_id)
    assert job is not None, "a run always has its job"
    uow.jobs.put(job.id, follow_run(uow, replace(job, run_count=job.run_count + 1), run, None))


def follow_run(uow: UnitOfWork, job: JobRow, run: RunRow, before: RunRow | None) -> JobRow:
    """Update the newest run of a job, by start, and its state."""
    newest = run
    if job.latest_run_id == run.id:
        if before is not None and run.created_at < before.created_at:
            newest = uow.newest_run(job.id) or run
    elif job.latest_run_at is not None and (run.created_at, run.id) < (
        job.latest_run_at,
        job.latest_run_id or "",
    ):
        return job
    if (job.latest_run_id, job.latest_run_at, job.latest_run_state) == (
        newest.id,
        newest.created_at,
        newest.state,
    ):
        return job
    return replace(
        job,
        latest_run_id=newest.id,
        latest_run_at=newest.created_at,
        latest_run_state=newest.state,
    )


def has_spoken(run: RunRow) -> RunRow:
    """Mark a run as reported by its own events."""
    return replace(run, stamps=_SPOKEN) if run.stamps == _UNHEARD else run


def is_placeholder(uow: UnitOfWork, run: RunRow) -> bool:
    """Return whether only a child has named the run."""
    unheard = run.state == RunState.NEW and run.stamps == _UNHEARD and run.job_version_id is None
    return unheard and not uow.io_of(run.id)


def has_later_name(run: RunRow, job: JobRow, at: Micros, job_id: str, name: str) -> bool:
    """Return whether an event's job name is later than the name of the run's job.

    At equal times any name is later than "unknown"; otherwise the ids decide.
    """
    present = (run.updated_at, job.name != UNKNOWN, job.id)
    return (at, name != UNKNOWN, job_id) > present


def move_run(uow: UnitOfWork, run: RunRow, job_id: str) -> RunRow:
    """Move a run to another job, and update both counts."""
    wrong = uow.jobs.get(run.job_id)
    assert wrong is not None, "a run always has its job"
    run = replace(run, job_id=job_id)
    uow.runs.put(run.id, run)
    wrong = replace(wrong, run_count=wrong.run_count - 1)
    if wrong.latest_run_id == run.id:
        newest = uow.newest_run(wrong.id)
        wrong = replace(
            wrong,
            latest_run_id=newest.id if newest else None,
            latest_run_at=newest.created_at if newest else None,
            latest_run_state=newest.state if newest else "",
        )
    uow.jobs.put(wrong.id, hide_if_empty(wrong))
    return run
