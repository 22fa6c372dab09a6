"""How a run moves through its states, and what it reads and writes on the way."""

from penstock import ids
from penstock.catalog import dataset_rules, job_rules, job_versions, known_facets
from penstock.catalog.facets import (
    Facets,
    Stamp,
    merge,
)
from penstock.catalog.openlineage import Mention
from penstock.catalog.rows import (
    DatasetRow,
    JobRow,
    Origin,
    Role,
    RunDatasetRow,
    RunRow,
    VersionRow,
    replace,
)
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.states import RunState


def mark(run: RunRow, state: RunState, at: Micros) -> RunRow:
    """Fold a report of a state into a run, whenever it comes.

    A run never moves back and never leaves a terminal state. It began at the earliest report
    and ended at the earliest report of its end.
    """
    started_at = at if run.started_at is None else min(run.started_at, at)
    if state == RunState.RUNNING:
        now = RunState.RUNNING if run.state == RunState.NEW else run.state
        return replace(run, state=now, started_at=started_at)
    if run.ended_at is None:
        return replace(run, state=state, started_at=started_at, ended_at=at)
    if run.state == state:
        return replace(run, started_at=started_at, ended_at=min(run.ended_at, at))
    return run


def read_dataset(
    world: World, run: RunRow, dataset_id: str, stated: Mention | None, stamp: Stamp, at: Micros
) -> str | None:
    """Pin what a run reads, once; what is pinned never changes. The version, if there is one."""
    row = world.io_of(run.id).get((Role.INPUT, dataset_id))
    if row is None:
        dataset = world.datasets.get(dataset_id)
        if dataset is None:
            if stated is None:
                return None
            dataset = dataset_rules.named_dataset(
                world, dataset_id, stated.namespace, stated.name, at
            )
        version_id = dataset_rules.version_to_read(world, dataset, run.id)
        if version_id is None:
            dataset = dataset_rules.imply_version(world, dataset, at)
            version_id = dataset.implied_version_id or ""
        row = RunDatasetRow(run.id, Role.INPUT, dataset_id, version_id, "{}", "{}")
        world.put_io(row)
    told = known_facets.of_reading(stated.facets, stated.io_facets) if stated is not None else None
    if told:
        _report(world, row, told, stamp)
    return row.version_id


def pin_again(world: World, run: RunRow, dataset_id: str) -> None:
    """What was published before a run began is what it reads, though it is told of only later.

    Some clients tell of many runs at once, of all first that they began: dbt's does.
    """
    row = world.io_of(run.id).get((Role.INPUT, dataset_id))
    dataset = world.datasets.get(dataset_id)
    if row is None or dataset is None or row.version_id == dataset.current_version_id:
        return
    if dataset.published_at is None or dataset.published_at > run.created_at:
        return
    current = world.versions.get(dataset.current_version_id)
    if current is None or current.run_id == run.id:
        return
    pinned = world.versions.get(row.version_id)
    was_published = pinned.published_at if pinned is not None else None
    if was_published is None or was_published < dataset.published_at:
        world.put_io(replace(row, version_id=current.id))


def write_dataset(
    world: World,
    run: RunRow,
    dataset: DatasetRow,
    schema: tuple[str, str] | None,
    at: Micros,
    *,
    unconfirmed: bool = False,
) -> tuple[DatasetRow, VersionRow]:
    """The version that a run makes of a dataset: one for a run, made when it is first named.

    An unconfirmed version is only reported: the caller may not write the dataset. The first caller
    who may confirms it.
    """
    row = world.io_of(run.id).get((Role.OUTPUT, dataset.id))
    if row is not None:
        version = world.versions.get(row.version_id)
        assert version is not None, "what a run wrote is never deleted before the run"
        if version.unconfirmed and not unconfirmed:
            return dataset_rules.confirm_version(world, dataset, version)
        return dataset, version
    version_id = ids.run_version_id(dataset.id, run.id)
    dataset, version = dataset_rules.add_version(
        world,
        dataset,
        version_id,
        Origin.RUN,
        run.id,
        schema or dataset_rules.schema_of(dataset_rules.shown_version(world, dataset)),
        at,
        unconfirmed=unconfirmed,
    )
    world.put_io(RunDatasetRow(run.id, Role.OUTPUT, dataset.id, version_id, "{}", "{}"))
    return dataset, version


def report_output(world: World, run_id: str, dataset_id: str, facets: Facets, stamp: Stamp) -> None:
    """Keep what an event says of this run's writing of a dataset."""
    row = world.io_of(run_id).get((Role.OUTPUT, dataset_id))
    if row is not None:
        _report(world, row, facets, stamp)


def _report(world: World, row: RunDatasetRow, facets: Facets, stamp: Stamp) -> None:
    merged = merge(row.facets, row.stamps, facets, stamp)
    if merged is not None:
        world.put_io(replace(row, facets=merged.facets, stamps=merged.stamps))


def publish_outputs(world: World, run: RunRow, job: JobRow) -> None:
    """What a completed run wrote becomes current at its end; what a stream writes, at once."""
    streams = job.type == job_rules.STREAM
    if not streams and run.state != RunState.COMPLETED:
        return
    for (role, _), row in world.io_of(run.id).items():
        if role == Role.OUTPUT:
            version = world.versions.get(row.version_id)
            assert version is not None, "what a run wrote is never deleted before the run"
            at = version.created_at if streams or run.ended_at is None else run.ended_at
            dataset_rules.publish(world, version, at, run.updated_at)


def settle(world: World, run: RunRow, before: RunRow | None) -> None:
    """Bring versions, the job's version and its edges in line with where the run stands now."""
    job = world.jobs.get(run.job_id)
    assert job is not None, "a run always has its job"
    publish_outputs(world, run, job)
    if run.ended_at is not None or job.type == job_rules.STREAM:
        job_versions.settle_version(world, run, before)
    else:
        job_versions.mention_edges(world, job.id, world.io_of(run.id), run.created_at)
        job_versions.note_beginning(world, run.job_version_id, run.created_at)


def nominal(run: RunRow, won: Facets) -> RunRow:
    """Take over the interval that a run is meant for."""
    if "nominalTime" not in won:
        return run
    start, end = known_facets.nominal_times(won) or (None, None)
    return replace(run, nominal_start=start, nominal_end=end)
