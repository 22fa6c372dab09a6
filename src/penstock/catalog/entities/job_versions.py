"""Versions of jobs: which one is current, and the edges that follow."""

from collections.abc import Collection, Iterable
from functools import lru_cache

import msgspec

from penstock import ids
from penstock.catalog.entities import jobs
from penstock.catalog.entities.jobs import STREAM
from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import REMEMBERED_MAX, read_facets
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.rows import EdgeRow, JobRow, JobVersionRow, RunRow, replace
from penstock.catalog.unit_of_work import IoKey, UnitOfWork
from penstock.clock import Micros
from penstock.schema.catalog import DatasetRole

_decode_names = msgspec.json.Decoder(tuple[DatasetName, ...]).decode


def version_names(text: str) -> tuple[DatasetName, ...]:
    """Return the datasets that a job version lists."""
    return _decode_names(text)


def put_job_version(
    uow: UnitOfWork,
    job: JobRow,
    inputs: tuple[DatasetName, ...],
    outputs: tuple[DatasetName, ...],
    location: str | None,
    at: Micros,
) -> tuple[JobRow, JobVersionRow]:
    """Return the job version with these inputs, outputs and code location; create it if new."""
    version_id = ids.derived_id(
        "job version",
        job.id,
        *(f"<{n.namespace}\x01{n.name}" for n in inputs),
        *(f">{n.namespace}\x01{n.name}" for n in outputs),
        location or "",
    )
    version = uow.job_versions.get(version_id)
    if version is None:
        names = [msgspec.json.encode(side).decode() for side in (inputs, outputs)]
        version = JobVersionRow(
            version_id, job.id, location, names[0], names[1], None, at, declared_at=None
        )
        uow.job_versions.put(version_id, version)
        job = replace(job, version_count=job.version_count + 1)
        uow.jobs.put(job.id, job)
    return job, version


def name_in_version(name: DatasetName) -> str:
    """Return a dataset as it is stored among the inputs and outputs of a job version."""
    return msgspec.json.encode(name).decode()


def settle_version(uow: UnitOfWork, run: RunRow, before: RunRow | None) -> None:
    """Assign a job version to a run that ended or streams; the latest end makes it current.

    An empty side keeps the datasets that the job had there: an event with empty inputs reports
    nothing. The same holds for the code location.
    """
    job = uow.jobs.get(run.job_id)
    assert job is not None, "a run always has its job"
    outdated = run.job_version_id
    known_id = outdated or job.current_version_id
    known = uow.job_versions.get(known_id) if known_id is not None else None
    io = uow.io_of(run.id)
    kept = known.location if known is not None and outdated is not None else job.location
    location = _stated_location(run) or kept
    if known is not None and location == known.location and io.keys() == _edges_of(known):
        version = known
    else:
        inputs = _names(uow, io, DatasetRole.INPUT) or (
            version_names(known.inputs) if known else ()
        )
        outputs = _names(uow, io, DatasetRole.OUTPUT) or (
            version_names(known.outputs) if known else ()
        )
        job, version = put_job_version(uow, job, inputs, outputs, location, run.created_at)
    if version.id != outdated:
        run = replace(run, job_version_id=version.id)
        uow.runs.put(run.id, run)
    at = _settled_at(run)
    if (at, version.id) >= (job.version_at, job.current_version_id or ""):
        job = replace(job, current_version_id=version.id, version_at=at)
    elif outdated == job.current_version_id and _has_moved(run, before):
        job = _choose_version(uow, job, run)
    _join(uow, job, version, run)
    if outdated is not None and outdated != version.id:
        job = _leave(uow, job, outdated, run.id)
    if job != uow.jobs.get(job.id):
        uow.jobs.put(job.id, job)
    settle_edges(uow, job, io, run.created_at)
    if run.ended_at is None:
        mention_edges(uow, job.id, io, run.created_at)


def _stated_location(run: RunRow) -> str | None:
    if '"sourceCodeLocation"' not in run.job_facets:
        return None
    return known_facets.code_location(read_facets(run.job_facets))


def _has_moved(run: RunRow, before: RunRow | None) -> bool:
    """Return whether this run may have made the version current and no longer does."""
    return before is not None and (_settled_at(before), before.job_version_id) != (
        _settled_at(run),
        run.job_version_id,
    )


def _settled_at(run: RunRow) -> Micros:
    return run.ended_at if run.ended_at is not None else run.created_at


def _choose_version(uow: UnitOfWork, job: JobRow, run: RunRow | None) -> JobRow:
    """Choose the current version again: late events can change the order or shape of runs."""
    runs = uow.settled_runs(job.id, streams=job.type == STREAM)
    if run is not None:
        runs.append(run)
    shapes = [(_settled_at(r), r.job_version_id or "") for r in runs]
    declared = uow.newest_declared(job.id)
    if declared is not None and declared.declared_at is not None:
        shapes.append((declared.declared_at, declared.id))
    if not shapes:
        return replace(job, current_version_id=None, version_at=0)
    at, version_id = max(shapes)
    return replace(job, current_version_id=version_id, version_at=at)


def choose_newest(uow: UnitOfWork, job_id: str) -> None:
    """Choose the newest run and current version of a job again after times changed."""
    job = uow.jobs.get(job_id)
    if job is None:
        return
    newest = uow.newest_run(job_id)
    if newest is not None:
        job = replace(
            job,
            latest_run_id=newest.id,
            latest_run_at=newest.created_at,
            latest_run_state=newest.state,
        )
    if job.current_version_id is not None:
        job = _choose_version(uow, job, None)
    uow.jobs.put(job_id, job)
    for version in uow.shapes_of(job_id):
        latest = uow.newest_run_of(version)
        if latest is not None and version.latest_run_id != latest.id:
            uow.job_versions.put(version.id, replace(version, latest_run_id=latest.id))
    settle_edges(uow, job, (), job.version_at)


def _names(uow: UnitOfWork, io: Iterable[IoKey], role: DatasetRole) -> tuple[DatasetName, ...]:
    datasets = [uow.datasets.get(dataset) for side, dataset in io if side == role]
    return tuple(sorted(DatasetName(d.namespace, d.name) for d in datasets if d is not None))


def _join(uow: UnitOfWork, job: JobRow, version: JobVersionRow, run: RunRow) -> None:
    """Count a run for its job version: the first creates it, the newest represents it."""
    changed = _begun_by(version, run.created_at)
    if job.latest_run_id == run.id:
        changed = replace(changed, latest_run_id=run.id)
    elif version.latest_run_id == run.id:  # late events may date it back
        newest = uow.newest_run_of(changed) or run
        changed = replace(changed, latest_run_id=newest.id)
    else:
        latest = uow.runs.get(version.latest_run_id) if version.latest_run_id else None
        if latest is None or (run.created_at, run.id) > (latest.created_at, latest.id):
            changed = replace(changed, latest_run_id=run.id)
    if changed != version:
        uow.job_versions.put(version.id, changed)


def note_beginning(uow: UnitOfWork, version_id: str | None, at: Micros) -> None:
    """Date a job version back to the start of a run that has it."""
    version = uow.job_versions.get(version_id) if version_id is not None else None
    if version is not None and (begun := _begun_by(version, at)) != version:
        uow.job_versions.put(version.id, begun)


def _begun_by(version: JobVersionRow, at: Micros) -> JobVersionRow:
    """Return when a version began: at its first run, unless it was declared."""
    if version.declared_at is None and at < version.created_at:
        return replace(version, created_at=at)
    return version


def _leave(uow: UnitOfWork, job: JobRow, version_id: str, run_id: str) -> JobRow:
    """Remove a run from a job version that it turns out not to have."""
    version = uow.job_versions.get(version_id)
    if version is None:
        return job
    newest = uow.newest_run_of(version)
    if newest is None and version.declared_at is None:
        uow.job_versions.put(version_id, None)
        return replace(job, version_count=job.version_count - 1)
    changed = version
    if version.latest_run_id == run_id:
        changed = replace(changed, latest_run_id=newest.id if newest else None)
    first = uow.first_run_of(version)
    if version.declared_at is None and first is not None:
        changed = replace(changed, created_at=first.created_at)
    if changed != version:
        uow.job_versions.put(version_id, changed)
    return job


def rename_run(uow: UnitOfWork, run: RunRow, job_id: str) -> RunRow:
    """Move a run to the job that its last event names; undo its effect on the other job."""
    other_id, version_id = run.job_id, run.job_version_id
    run = replace(run, job_version_id=None)
    uow.runs.put(run.id, run)
    run = jobs.move_run(uow, run, job_id)
    other = uow.jobs.get(other_id)
    assert other is not None, "a run always has its job"
    if version_id is not None:
        other = _leave(uow, other, version_id, run.id)
        if other.current_version_id == version_id:
            other = _choose_version(uow, other, None)
    uow.jobs.put(other.id, other)
    settle_edges(uow, other, (), run.created_at)
    for edge in uow.io_of(run.id):
        _forget_edge(uow, other, run, edge)
    uow.jobs.put(other.id, jobs.hide_if_empty(other))
    return run


def _forget_edge(uow: UnitOfWork, job: JobRow, run: RunRow, edge: IoKey) -> None:
    """Delete an edge that a run gave to a job, unless another run or a declaration has it."""
    role, dataset_id = DatasetRole(edge[0]), edge[1]
    current = edge in uow.edges_of(job.id)
    first = uow.first_run_with(job.id, role, dataset_id) if job.run_count else None
    times = [first.created_at] if first is not None else []
    times += [
        version.created_at
        for version in uow.shapes_of(job.id)
        if version.declared_at is not None and edge in _edges_of(version)
    ]
    if times and min(times) <= run.created_at:
        return
    uow.forget_edge(job.id, role, dataset_id)
    if times:
        uow.put_edge(EdgeRow(job.id, role, dataset_id, int(current), min(times)))


def give_version(uow: UnitOfWork, run: RunRow, version_id: str) -> RunRow:
    """Assign the declared job version to a run."""
    outdated = run.job_version_id
    run = replace(run, job_version_id=version_id)
    uow.runs.put(run.id, run)
    if outdated is not None and outdated != version_id:
        job = uow.jobs.get(run.job_id)
        assert job is not None, "a run always has its job"
        left = _leave(uow, job, outdated, run.id)
        if left != job:
            uow.jobs.put(job.id, left)
    return run


def mention_edges(uow: UnitOfWork, job_id: str, io: Iterable[IoKey], at: Micros) -> None:
    """Show the edges of a run that is still running."""
    edges = uow.edges_of(job_id)
    for key in io:
        if edges.get(key, at + 1) > at:
            uow.put_edge(EdgeRow(job_id, DatasetRole(key[0]), key[1], 1, at))


def settle_edges(uow: UnitOfWork, job: JobRow, io: Collection[IoKey], at: Micros) -> None:
    """Update the current edges: those of the current version and of unfinished runs.

    Edges of the current run are at least as old as the run. Other edges keep their age when they
    become current again.
    """
    version = uow.job_versions.get(job.current_version_id) if job.current_version_id else None
    wanted = _edges_of(version) if version is not None else frozenset[IoKey]()
    held = uow.edges_of(job.id)
    if held.keys() == wanted and all(held.get(key, at + 1) <= at for key in io):
        return
    if not held.keys() <= wanted:
        wanted |= uow.going_edges(job.id)
    older = {key for key in io if key in wanted and held.get(key, at) > at}
    for key in (wanted ^ held.keys()) | (set(io) - wanted) | older:
        seen_at = at if not io or key in io else max(at, job.version_at)
        uow.put_edge(EdgeRow(job.id, DatasetRole(key[0]), key[1], int(key in wanted), seen_at))


def _edges_of(version: JobVersionRow) -> frozenset[IoKey]:
    """Return the edges of a job with this version."""
    inputs, outputs = version.inputs, version.outputs
    if len(inputs) + len(outputs) <= REMEMBERED_MAX:
        return _remembered_edges(inputs, outputs)
    return _read_edges(inputs, outputs)


def _read_edges(inputs: str, outputs: str) -> frozenset[IoKey]:
    return frozenset(
        (role, ids.dataset_id(name.namespace, name.name))
        for role, text in ((DatasetRole.INPUT, inputs), (DatasetRole.OUTPUT, outputs))
        for name in version_names(text)
    )


_remembered_edges = lru_cache(maxsize=4096)(_read_edges)


def declare_version(
    uow: UnitOfWork,
    job: JobRow,
    inputs: tuple[DatasetName, ...],
    outputs: tuple[DatasetName, ...],
    location: str | None,
    at: Micros,
) -> str:
    """Declare a job version without a run; a later end of a run overrides it.

    Fields left out keep their values. A late declaration that leaves fields out has no effect.
    """
    current = uow.job_versions.get(job.current_version_id) if job.current_version_id else None
    if current is not None:
        if at < job.version_at and not (inputs and outputs and location):
            return current.id
        inputs = inputs or version_names(current.inputs)
        outputs = outputs or version_names(current.outputs)
        location = location or current.location
    job, version = put_job_version(uow, job, inputs, outputs, location, at)
    if version.declared_at is None or at > version.declared_at:
        uow.job_versions.put(version.id, replace(version, declared_at=at))
    if (at, version.id) >= (job.version_at, job.current_version_id or ""):
        job = replace(job, current_version_id=version.id, version_at=at)
        uow.jobs.put(job.id, job)
    settle_edges(uow, job, (), at)
    return version.id
