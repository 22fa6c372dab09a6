"""How jobs, their versions and their edges follow from their runs."""

from collections.abc import Iterable

import msgspec

from penstock import ids
from penstock.catalog import known_facets
from penstock.catalog.facets import Facets, Stamp
from penstock.catalog.known_facets import DatasetName, ParentRun
from penstock.catalog.rows import (
    EdgeRow,
    JobRow,
    JobVersionRow,
    Role,
    RunRow,
    TagRow,
    replace,
)
from penstock.catalog.world import IoKey, World
from penstock.clock import Micros
from penstock.states import RunState

STREAM = "STREAM"
_decode_names = msgspec.json.Decoder(tuple[DatasetName, ...]).decode


def new_job(job_id: str, namespace: str, name: str, at: Micros) -> JobRow:
    """A job that is named for the first time."""
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


def new_run(run_id: str, job_id: str, external_id: str | None, at: Micros) -> RunRow:
    """A run of which nothing is known but that it is."""
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
        stamps="{}",
        created_at=at,
        updated_at=at,
    )


def describe_job(world: World, job: JobRow, facets: Facets, stamp: Stamp) -> JobRow:
    """Take from an event's job facets what belongs to the job as a whole; the newest wins."""
    text = known_facets.documentation(facets) if "documentation" in facets else None
    if text is not None and (stamp, text) > (job.description_stamp, job.description or ""):
        job = replace(job, description=text, description_stamp=stamp)
    url = known_facets.code_location(facets) if "sourceCodeLocation" in facets else None
    if url is not None and (stamp, url) > (job.location_stamp, job.location or ""):
        job = replace(job, location=url, location_stamp=stamp)
    kind = known_facets.job_type(facets) if "jobType" in facets else None
    if kind is not None and (stamp, kind) > (job.type_stamp, job.type):
        job = replace(job, type=kind, type_stamp=stamp)
    if "tags" in facets:
        job = tag_job(world, job, [mark.name for mark in known_facets.tags(facets)])
    return job


def tag_job(world: World, job: JobRow, names: Iterable[str]) -> JobRow:
    """Add tags to a job; tags nobody knew yet are made."""
    for name in names:
        if world.tags.get(name) is None:
            world.tags.put(name, TagRow(name, None))
    tags = set(msgspec.json.decode(job.tags)) | set(names)
    return replace(job, tags=msgspec.json.encode(sorted(tags)).decode())


def untag_job(job: JobRow, name: str) -> JobRow:
    """Take a tag off a job."""
    tags = [tag for tag in msgspec.json.decode(job.tags) if tag != name]
    return replace(job, tags=msgspec.json.encode(tags).decode())


def ensure_parent(world: World, parent: ParentRun, at: Micros) -> str:
    """A child's word is enough for its parent to exist; its state is the parent's own matter."""
    job_id = ids.job_id(parent.namespace, parent.name)
    if world.jobs.get(job_id) is None:
        world.jobs.put(job_id, new_job(job_id, parent.namespace, parent.name, at))
    if world.runs.get(parent.run_id) is None:
        run = new_run(parent.run_id, job_id, parent.external_id, at)
        world.runs.put(run.id, run)
        count_run(world, run)
    return job_id


def count_run(world: World, run: RunRow) -> None:
    """A new run belongs to its job's count, and may be its newest."""
    job = world.jobs.get(run.job_id)
    assert job is not None, "a run always has its job"
    world.jobs.put(job.id, follow_run(world, replace(job, run_count=job.run_count + 1), run, None))


def follow_run(world: World, job: JobRow, run: RunRow, before: RunRow | None) -> JobRow:
    """Keep the job's newest run, by when it began, and that run's state."""
    newest = run
    if job.latest_run_id == run.id:
        if before is not None and run.created_at < before.created_at:
            newest = world.newest_run(job.id) or run
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


def is_hearsay(world: World, run: RunRow) -> bool:
    """Whether a run is known only because a child named it as its parent."""
    unheard = run.state == RunState.NEW and run.stamps == "{}" and run.job_version_id is None
    return unheard and not world.io_of(run.id)


def move_run(world: World, run: RunRow, job_id: str) -> RunRow:
    """Give a run that was known by hearsay to the job that it says it belongs to."""
    wrong = world.jobs.get(run.job_id)
    assert wrong is not None, "a run always has its job"
    run = replace(run, job_id=job_id)
    world.runs.put(run.id, run)
    wrong = replace(wrong, run_count=wrong.run_count - 1)
    if wrong.latest_run_id == run.id:
        newest = world.newest_run(wrong.id)
        wrong = replace(
            wrong,
            latest_run_id=newest.id if newest else None,
            latest_run_at=newest.created_at if newest else None,
            latest_run_state=newest.state if newest else "",
        )
    world.jobs.put(wrong.id, wrong)
    return run


def version_names(text: str) -> tuple[DatasetName, ...]:
    """The datasets that a job version lists."""
    return _decode_names(text)


def put_job_version(
    world: World,
    job: JobRow,
    inputs: tuple[DatasetName, ...],
    outputs: tuple[DatasetName, ...],
    run: RunRow | None,
    at: Micros,
) -> tuple[JobRow, str]:
    """The job version with these inputs and outputs, made if nobody had it before."""
    version_id = ids.derived_id(
        "job version",
        job.id,
        *(f"<{n.namespace}\x01{n.name}" for n in inputs),
        *(f">{n.namespace}\x01{n.name}" for n in outputs),
        job.location or "",
    )
    version = world.job_versions.get(version_id)
    run_id = run.id if run else None
    if version is None:
        names = [msgspec.json.encode(side).decode() for side in (inputs, outputs)]
        version = JobVersionRow(version_id, job.id, job.location, names[0], names[1], run_id, at)
        world.job_versions.put(version_id, version)
        job = replace(job, version_count=job.version_count + 1)
        world.jobs.put(job.id, job)
    elif run_id is not None and version.latest_run_id != run_id and at >= job.version_at:
        world.job_versions.put(version_id, replace(version, latest_run_id=run_id))
    return job, version_id


def settle_version(world: World, run: RunRow) -> None:
    """Give a run that has ended, or streams, its job version; the latest end makes it current.

    A run that named nothing on one side keeps what the job had there: an event with empty
    inputs is silence, not news.
    """
    job = world.jobs.get(run.job_id)
    assert job is not None, "a run always has its job"
    current = world.job_versions.get(job.current_version_id) if job.current_version_id else None
    io = world.io_of(run.id)
    inputs = _names(world, io, Role.INPUT) or (version_names(current.inputs) if current else ())
    outputs = _names(world, io, Role.OUTPUT) or (version_names(current.outputs) if current else ())
    at = run.ended_at if run.ended_at is not None else run.created_at
    job, version_id = put_job_version(world, job, inputs, outputs, run, at)
    if run.job_version_id != version_id:
        outdated = run.job_version_id
        world.runs.put(run.id, replace(run, job_version_id=version_id))
        if job.current_version_id == outdated and outdated is not None:
            job = replace(job, current_version_id=version_id)
        job = _drop_unused(world, job, outdated, run.id)
    if at >= job.version_at:
        job = replace(job, current_version_id=version_id, version_at=at)
    if job != world.jobs.get(job.id):
        world.jobs.put(job.id, job)
    settle_edges(world, job, io, run.created_at)


def _names(world: World, io: Iterable[IoKey], role: Role) -> tuple[DatasetName, ...]:
    datasets = [world.datasets.get(dataset) for side, dataset in io if side == role]
    return tuple(sorted(DatasetName(d.namespace, d.name) for d in datasets if d is not None))


def _drop_unused(world: World, job: JobRow, version_id: str | None, run_id: str) -> JobRow:
    """Late events can show that a version never was: forget it if only this run had it."""
    version = world.job_versions.get(version_id) if version_id is not None else None
    if version is None or version.latest_run_id != run_id or job.current_version_id == version.id:
        return job
    if any(r.job_version_id == version.id and r.id != run_id for r in world.runs.changed()):
        return job
    used = world.tx.fetch_one(
        "another_run_of_job_version", job_id=job.id, version_id=version.id, run_id=run_id
    )
    if used is not None:
        return job
    world.job_versions.put(version.id, None)
    return replace(job, version_count=job.version_count - 1)


def mention_edge(world: World, job_id: str, key: IoKey, at: Micros) -> None:
    """A run that is going on shows what it reads and writes at once."""
    if key not in world.edges_of(job_id):
        world.put_edge(EdgeRow(job_id, Role(key[0]), key[1], 1, at))


def settle_edges(world: World, job: JobRow, io: Iterable[IoKey], at: Micros) -> None:
    """Current are the edges of the current version and of runs that are still going."""
    version = world.job_versions.get(job.current_version_id) if job.current_version_id else None
    wanted: set[IoKey] = set()
    if version is not None:
        for role, text in ((Role.INPUT, version.inputs), (Role.OUTPUT, version.outputs)):
            wanted |= {(role, ids.dataset_id(n.namespace, n.name)) for n in version_names(text)}
    held = world.edges_of(job.id)
    if held == wanted and all(key in wanted for key in io):
        return
    if not held <= wanted:
        wanted |= world.going_edges(job.id)
    for key, current in (
        *((key, 1) for key in wanted - held),
        *((key, 0) for key in held - wanted),
        *((key, 0) for key in set(io) - wanted - held),
    ):
        world.put_edge(EdgeRow(job.id, Role(key[0]), key[1], current, at))


def declare_version(
    world: World,
    job: JobRow,
    inputs: tuple[DatasetName, ...],
    outputs: tuple[DatasetName, ...],
    at: Micros,
) -> str:
    """Give a job a shape without a run; it is current unless a later end of a run says else."""
    current = world.job_versions.get(job.current_version_id) if job.current_version_id else None
    if current is not None:
        inputs = inputs or version_names(current.inputs)
        outputs = outputs or version_names(current.outputs)
    job, version_id = put_job_version(world, job, inputs, outputs, None, at)
    if at >= job.version_at:
        job = replace(job, current_version_id=version_id, version_at=at)
        world.jobs.put(job.id, job)
    settle_edges(world, job, (), at)
    return version_id
