"""Changes that a received OpenLineage event makes.

Events of a run may arrive late, twice or in any order; the rows end up the same. See
docs/adr/0003-events-converge.md for the rules.
"""

from typing import Final

import msgspec

from penstock import ids
from penstock.catalog.entities import datasets, job_versions, jobs, runs
from penstock.catalog.entities import names as dataset_names
from penstock.catalog.entities.columns import column_set
from penstock.catalog.entities.runs import lot_facet
from penstock.catalog.events import known_facets
from penstock.catalog.events.child_jobs import known_child
from penstock.catalog.events.facets import (
    NO_FACETS,
    Facets,
    event_stamp,
    merge,
    read_run_stamps,
    run_stamp,
)
from penstock.catalog.events.known_facets import DatasetName, ReportedParent
from penstock.catalog.events.namespaced import Right, WriteScope, may_write
from penstock.catalog.events.parse import DATASET, JOB, Event, Mention
from penstock.catalog.events.schema import NO_SCHEMA, read_schema
from penstock.catalog.rows import (
    DatasetRow,
    EventRow,
    JobRow,
    Origin,
    RunRow,
    SightingRow,
    VersionRow,
    replace,
)
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.states import RunState

STATES_OF_EVENTS: Final = {
    "START": RunState.RUNNING,
    "RUNNING": RunState.RUNNING,
    "COMPLETE": RunState.COMPLETED,
    "FAIL": RunState.FAILED,
    "ABORT": RunState.ABORTED,
}
_NO_STAMPS: Final = "{}"
# Facets about a dataset as a whole or its location: only the owner's count.
_OF_THE_OWNER: Final = frozenset(
    {known_facets.LIFECYCLE, "dataSource", "documentation", "ownership", "symlinks", "tags"}
)


def receive(
    uow: UnitOfWork,
    event: Event,
    now: Micros,
    *,
    by_lot: bool = False,
    scope: WriteScope | None = None,
) -> None:
    """Store an event and apply it. Lots pinned the inputs that a run reads lot by lot.

    `scope` limits what a key for one namespace may write; other keys have no scope.
    """
    keep(uow, event, now)
    fold(uow, event, by_lot=by_lot, scope=scope)


def with_known_job(uow: UnitOfWork, event: Event) -> Event:
    """Return the event with the child job that Marquez's name `PARENT.CHILD` means."""
    if event.kind == DATASET:
        return event
    child = known_child(uow, event.job_namespace, event.job_name)
    if child is None:
        return event
    return msgspec.structs.replace(event, job_id=child.id, job_name=child.name)


def keep(uow: UnitOfWork, event: Event, now: Micros) -> None:
    """Append an event to the log of received events."""
    row = EventRow(
        event.at,
        now,
        event.kind,
        event.dataset.namespace if event.dataset is not None else event.job_namespace,
        event.event_type,
        event.run_id,
        event.payload,
    )
    uow.events.put(object(), row)


def fold(
    uow: UnitOfWork, event: Event, *, by_lot: bool = False, scope: WriteScope | None = None
) -> None:
    """Apply an event to the catalog."""
    if event.kind == DATASET:
        assert event.dataset is not None, "a dataset event was checked to have one"
        declare_dataset(uow, event.dataset, event.at)
    elif event.kind == JOB:
        _receive_job(uow, event, scope)
    else:
        _receive_run(uow, event, by_lot, scope)


def _receive_run(uow: UnitOfWork, event: Event, by_lot: bool, scope: WriteScope | None) -> None:
    assert event.run_id is not None, "a run event was checked to have one"
    parent = _parent_of(uow, event, scope)
    job = _job_of(uow, event)
    stamp = event_stamp(event.at, event.event_type)
    if parent is not None:
        job = _follow_parent(job, parent, stamp)
    before = uow.runs.get(event.run_id)
    goes_on = before is not None and before.ended_at is None and not by_lot
    run = before
    if run is None:
        run = jobs.new_run(event.run_id, job.id, event.external_id, event.at)
        job = replace(job, run_count=job.run_count + 1)
    elif run.job_id != job.id:
        if jobs.is_placeholder(uow, run):
            run, before = jobs.move_run(uow, run, job.id), None
        elif _names_its_job(uow, run, event):
            run, before = job_versions.rename_run(uow, run, job.id), None
        if run.job_id == job.id:
            job = replace(job, run_count=job.run_count + 1)
    last = event.at if jobs.is_placeholder(uow, run) else max(run.updated_at, event.at)
    run = jobs.has_spoken(replace(run, created_at=min(run.created_at, event.at), updated_at=last))
    state = STATES_OF_EVENTS.get(event.event_type)
    if state is not None:
        run = runs.mark(run, state, event.at)
    run = _fold_facets(run, event)
    if event.job_facets:
        job = jobs.describe_job(uow, job, event.job_facets, stamp)
    uow.runs.put(run.id, run)
    if run.job_id != job.id:
        uow.jobs.put(job.id, jobs.hide_if_empty(job))
        owner = uow.jobs.get(run.job_id)
        assert owner is not None, "a run always has its job"
        job = owner
    uow.jobs.put(job.id, jobs.follow_run(uow, job, run, before))
    run_order = run_stamp(event.at, event.event_type)
    for mention in event.inputs:
        if goes_on:
            runs.repin_input(uow, run, uow.dataset_id(mention.id))
        _receive_input(uow, run, mention, stamp, run_order, event.at, scope)
    for mention in event.outputs:
        _receive_output(uow, run, mention, stamp, run_order, event.at, scope)
    runs.settle(uow, run, before)


def _job_of(uow: UnitOfWork, event: Event) -> JobRow:
    job = uow.jobs.get(event.job_id)
    dataset_names.ensure_namespace(uow, event.job_namespace, event.at)
    if job is None:
        return jobs.new_job(event.job_id, event.job_namespace, event.job_name, event.at)
    return jobs.named_again(job, event.at)


def _names_its_job(uow: UnitOfWork, run: RunRow, event: Event) -> bool:
    """Return whether an event names the job of a run better than earlier events.

    Spark starts a run under the name "unknown". The last name counts, in any order of arrival. A
    run that holds lots belongs to the claimed job.
    """
    lots = lot_facet(run.facets)
    if lots is not None and lots.attempt is not None:
        raise _other_job(uow, run, event)
    owner = uow.jobs.get(run.job_id)
    assert owner is not None, "a run always has its job"
    return jobs.has_later_name(run, owner, event.at, event.job_id, event.job_name)


def _other_job(uow: UnitOfWork, run: RunRow, event: Event) -> Conflict:
    job = uow.jobs.get(run.job_id)
    named = f"{job.namespace}/{job.name}" if job else run.job_id
    return Conflict(
        f"run {run.id} belongs to job {named}, not to {event.job_namespace}/{event.job_name}; "
        "give each run an id of its own"
    )


def _fold_facets(run: RunRow, event: Event) -> RunRow:
    if not event.run_facets and not event.job_facets:
        return run
    order = run_stamp(event.at, event.event_type)
    held = read_run_stamps(run.stamps)
    of_run = merge(run.facets, held[0], event.run_facets, order)
    of_job = merge(run.job_facets, held[1], event.job_facets, order)
    if of_run is None and of_job is None:
        return run
    run = replace(
        run,
        facets=of_run.facets if of_run else run.facets,
        job_facets=of_job.facets if of_job else run.job_facets,
        stamps=(
            f'{{"run":{of_run.stamps if of_run else held[0]},'
            f'"job":{of_job.stamps if of_job else held[1]}}}'
        ),
    )
    if of_run is not None:
        run = runs.nominal(run, of_run.won)
        parent = known_facets.parent(of_run.won)
        if parent is not None and parent.run_id != run.id:
            run = replace(run, parent_run_id=parent.run_id)
    return run


def _parent_of(uow: UnitOfWork, event: Event, scope: WriteScope | None) -> ReportedParent | None:
    """Return the parent run that an event names; create it if it does not exist.

    A key for one namespace changes nothing else of an existing job elsewhere.
    """
    parent = known_facets.parent(event.run_facets) if event.run_facets else None
    if parent is None or parent.run_id == event.run_id:
        return None
    child = known_child(uow, parent.namespace, parent.name)
    if child is not None:
        parent = msgspec.structs.replace(parent, name=child.name)
    is_elsewhere = scope is not None and parent.namespace != scope.namespace
    if not is_elsewhere or uow.namespaces.get(parent.namespace) is None:
        dataset_names.ensure_namespace(uow, parent.namespace, event.at)
    earlier = jobs.ensure_parent(uow, parent, event.at, is_elsewhere=is_elsewhere)
    if earlier is not None:
        runs.settle(uow, *earlier)
    return parent


def _follow_parent(job: JobRow, parent: ReportedParent, stamp: int) -> JobRow:
    parent_id = ids.job_id(parent.namespace, parent.name)
    if parent_id == job.id or (stamp, parent_id) <= (job.parent_stamp, job.parent_job_id or ""):
        return job
    return replace(job, parent_job_id=parent_id, parent_stamp=stamp)


def _receive_input(
    uow: UnitOfWork,
    run: RunRow,
    mention: Mention,
    stamp: int,
    run_order: int,
    at: Micros,
    scope: WriteScope | None,
) -> None:
    dataset_id = uow.dataset_id(mention.id)
    if scope is not None and not scope.may_write(uow, dataset_names.home(uow, mention)):
        _ensure_elsewhere(uow, dataset_id, mention, at)
        runs.read_dataset(uow, run, dataset_id, mention, run_order, at)
        return
    read = runs.read_dataset(uow, run, dataset_id, mention, run_order, at)
    dataset = uow.datasets.get(dataset_id)
    assert dataset is not None, "a dataset that is read exists"
    changed = datasets.revive(uow, dataset, run.id, at) if dataset.hidden else dataset
    if read == dataset.implied_version_id:
        changed = _observe(uow, changed, mention.facets, stamp, at)
    elif "schema" in mention.facets and _lacks_schema(uow, read):
        changed = _keep_sighting(uow, changed, mention.facets, stamp)
    if at < changed.created_at:
        changed = _seen_from(uow, changed, at)
    if changed is not dataset:
        uow.datasets.put(dataset_id, changed)


def _ensure_elsewhere(uow: UnitOfWork, dataset_id: str, mention: Mention, at: Micros) -> DatasetRow:
    """Return a dataset of another namespace; create it if it does not exist."""
    return uow.datasets.get(dataset_id) or dataset_names.name_elsewhere(
        uow, dataset_id, mention.namespace, mention.name, at
    )


def _seen_from(uow: UnitOfWork, dataset: DatasetRow, at: Micros) -> DatasetRow:
    """Date a dataset, its namespace and its source back to their first mention."""
    if at >= dataset.created_at:
        return dataset
    dataset_names.ensure_namespace(uow, dataset.namespace, at)
    if uow.sources.get(dataset.namespace) is not None:
        dataset_names.ensure_source(uow, None, dataset.namespace, at)
    if _only_read(dataset):
        return replace(dataset, created_at=at, updated_at=at)
    return replace(dataset, created_at=at)


def _only_read(dataset: DatasetRow) -> bool:
    """Return whether the dataset was never written or declared; a read is no update."""
    return dataset.implied_version_id is not None and dataset.version_count == 1


def _observe(
    uow: UnitOfWork, dataset: DatasetRow, facets: Facets, stamp: int, at: Micros
) -> DatasetRow:
    """Apply facets that a reader reports of a dataset without a writer."""
    dataset = _keep_sighting(uow, dataset, facets, stamp)
    if facets:
        dataset = datasets.describe_dataset(uow, dataset, facets, NO_FACETS, stamp, at)
    implied = uow.versions.get(dataset.implied_version_id)
    if implied is not None and at < implied.created_at:
        uow.versions.put(implied.id, replace(implied, created_at=at))
    return dataset


def _keep_sighting(uow: UnitOfWork, dataset: DatasetRow, facets: Facets, stamp: int) -> DatasetRow:
    """Store a reader's facets; they are shown while no writer reports a schema."""
    sighting = uow.sightings.get(dataset.id)
    stamps = sighting.stamps if sighting is not None else _NO_STAMPS
    merged = merge(dataset.observed, stamps, facets, stamp)
    if merged is None:
        return dataset
    uow.sightings.put(dataset.id, SightingRow(dataset.id, merged.stamps))
    if merged.facets is dataset.observed:
        return dataset
    return replace(dataset, observed=merged.facets)


def _lacks_schema(uow: UnitOfWork, version_id: str | None) -> bool:
    version = uow.versions.get(version_id) if version_id is not None else None
    return version is not None and version.schema_id == NO_SCHEMA


def _receive_output(
    uow: UnitOfWork,
    run: RunRow,
    mention: Mention,
    stamp: int,
    run_order: int,
    at: Micros,
    scope: WriteScope | None,
) -> None:
    dataset_id = uow.dataset_id(mention.id)
    if scope is not None:
        right = scope.right(uow, dataset_id, dataset_names.home(uow, mention))
        if right != Right.OWN:
            _report_elsewhere(uow, run, mention, run_order, at, right)
            return
    dataset = uow.datasets.get(dataset_id)
    if dataset is None:
        dataset = datasets.named_dataset(uow, dataset_id, mention.namespace, mention.name, at)
    elif _only_read(dataset):
        dataset = replace(dataset, updated_at=at)
    dataset, version = runs.write_dataset(uow, run, dataset, None, at)
    version, won = datasets.describe_version(uow, version, mention.facets, run_order, at)
    if mention.io_facets:
        runs.report_output(uow, run.id, dataset_id, mention.io_facets, run_order)
    changed = datasets.revive(uow, dataset, run.id, at) if dataset.hidden else dataset
    if mention.facets:
        changed = datasets.describe_dataset(uow, changed, mention.facets, won, stamp, at)
    changed = replace(_seen_from(uow, changed, at), updated_at=max(changed.updated_at, at))
    uow.datasets.put(dataset_id, changed)


def _report_elsewhere(
    uow: UnitOfWork, run: RunRow, mention: Mention, run_order: int, at: Micros, right: Right
) -> None:
    """Record the version that a run reports of a dataset that its key may not describe.

    Only a job wired to write lots of the dataset makes versions that can become current.
    """
    dataset_id = uow.dataset_id(mention.id)
    dataset = _ensure_elsewhere(uow, dataset_id, mention, at)
    reported = right == Right.NONE
    _, version = runs.write_dataset(uow, run, dataset, None, at, unconfirmed=reported)
    if version.unconfirmed or not reported:
        facets = {
            name: facet for name, facet in mention.facets.items() if name not in _OF_THE_OWNER
        }
        datasets.describe_version(uow, version, facets, run_order, at)
    if mention.io_facets:
        runs.report_output(uow, run.id, dataset_id, mention.io_facets, run_order)


def declare_dataset(uow: UnitOfWork, mention: Mention, at: Micros) -> str:
    """Declare a dataset without a run; a changed schema makes a version."""
    dataset_id = uow.dataset_id(mention.id)
    dataset = uow.datasets.get(dataset_id)
    if dataset is None:
        dataset = datasets.named_dataset(uow, dataset_id, mention.namespace, mention.name, at)
    dataset = datasets.revive(uow, dataset, None, at)
    stamp, facets = event_stamp(at, ""), mention.facets
    won = facets if at >= dataset.updated_at else NO_FACETS
    dataset = datasets.describe_dataset(uow, dataset, facets, won, stamp, at)
    dataset = _keep_declared(uow, _seen_from(uow, dataset, at), facets, stamp)
    dataset = replace(dataset, updated_at=max(dataset.updated_at, at))
    uow.datasets.put(dataset.id, dataset)
    version = _declared_version(uow, dataset, mention, at)
    if version is not None:
        version, _ = datasets.describe_version(uow, version, facets, stamp, at)
        datasets.publish(uow, version, version.created_at, at)
    return dataset_id


def _keep_declared(uow: UnitOfWork, dataset: DatasetRow, facets: Facets, stamp: int) -> DatasetRow:
    """Store declared facets on the dataset, whichever version it shows.

    Only lifecycle changes belong to the version that the declaration makes.
    """
    lasting = {name: facet for name, facet in facets.items() if name != known_facets.LIFECYCLE}
    merged = merge(dataset.declared, dataset.declared_stamps, lasting, stamp)
    if merged is None:
        return dataset
    dataset = replace(dataset, declared=merged.facets, declared_stamps=merged.stamps)
    if known_facets.COLUMNS not in merged.won:
        return dataset
    columns = column_set(uow, dataset.id, merged.won)
    return replace(dataset, declared_column_set_id=columns)


def _declared_version(
    uow: UnitOfWork, dataset: DatasetRow, mention: Mention, at: Micros
) -> VersionRow | None:
    """Return the version that a declaration makes or describes, or None if it adds nothing.

    A late declaration is compared with the version that was current at its time.
    """
    before = datasets.shown_version(uow, dataset)
    if dataset.published_at is not None and at < dataset.published_at:
        before = uow.published_as_of(dataset.id, at) or before
    held = datasets.schema_of(before)
    stated = mention.facets.get("schema")
    fresh = read_schema(bytes(stated)) if stated is not None else held
    version_id = ids.derived_id("declared", dataset.id, fresh[1], str(at))
    known = uow.versions.get(version_id)
    if known is not None:
        return known
    stands = before is not None and before.published_at is not None and fresh[1] == held[1]
    if before is not None and stands and not _is_news(mention, before, at):
        describes = before.origin == Origin.DECLARED and before.created_at <= at
        return before if describes else None
    return datasets.add_version(uow, dataset, version_id, Origin.DECLARED, None, fresh, at)[1]


def _is_news(mention: Mention, before: VersionRow, at: Micros) -> bool:
    """Return whether a declaration counts although it changes no field.

    It counts if it reports a lifecycle change, or is the first declaration of a dataset known only
    to readers or dropped before.
    """
    if known_facets.LIFECYCLE in mention.facets:
        return True
    if before.lifecycle == datasets.DROPPED and (before.published_at or 0) < at:
        return True
    return before.origin == Origin.IMPLIED and "schema" in mention.facets


def _receive_job(uow: UnitOfWork, event: Event, scope: WriteScope | None) -> None:
    """Declare a job without a run; its version is current from the declared time."""
    job = _job_of(uow, event)
    stamp = event_stamp(event.at, "")
    merged = merge(job.facets, job.stamps, event.job_facets, stamp)
    if merged is not None:
        job = replace(job, facets=merged.facets, stamps=merged.stamps)
        job = jobs.describe_job(uow, job, event.job_facets, stamp)
    uow.jobs.put(job.id, job)
    inputs = _declared_names(uow, event.inputs, event.at, scope)
    outputs = _declared_names(uow, event.outputs, event.at, scope)
    location = known_facets.code_location(event.job_facets)
    job_versions.declare_version(uow, job, inputs, outputs, location, event.at)


def _declared_names(
    uow: UnitOfWork, mentions: tuple[Mention, ...], at: Micros, scope: WriteScope | None
) -> tuple[DatasetName, ...]:
    names = []
    for mention in mentions:
        if may_write(uow, scope, dataset_names.home(uow, mention)):
            dataset_id = declare_dataset(uow, mention, at)
        else:
            dataset_id = _name_in_job(uow, mention, at)
        dataset = uow.datasets.get(dataset_id)
        assert dataset is not None, "it was declared just now"
        names.append(DatasetName(dataset.namespace, dataset.name))
    return tuple(sorted(set(names)))


def _name_in_job(uow: UnitOfWork, mention: Mention, at: Micros) -> str:
    """Return a dataset of another namespace that a declared job reads or writes."""
    dataset_id = uow.dataset_id(mention.id)
    dataset = _ensure_elsewhere(uow, dataset_id, mention, at)
    if not dataset.version_count:
        datasets.imply_version(uow, dataset, at)
    return dataset_id
