"""Rules for runs: their states, inputs and outputs."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from penstock import ids
from penstock.catalog.entities import datasets, job_versions, jobs
from penstock.catalog.entities import datasets as dataset_rules
from penstock.catalog.entities.inheritance import inherit
from penstock.catalog.entities.jobs import new_run
from penstock.catalog.events import known_facets
from penstock.catalog.events.causes import ERROR, cause_of, error_facet
from penstock.catalog.events.facets import (
    Facets,
    Stamp,
    event_stamp,
    merge,
    read_facets,
    read_run_stamps,
    write_facets,
)
from penstock.catalog.events.known_facets import LOT_FACET, DatasetName
from penstock.catalog.events.parse import Mention
from penstock.catalog.rows import (
    DatasetRow,
    JobRow,
    Origin,
    RunDatasetRow,
    RunRow,
    VersionRow,
    replace,
)
from penstock.catalog.unit_of_work import IoKey, UnitOfWork
from penstock.clock import Micros, after
from penstock.schema.catalog import DatasetRole
from penstock.states import RunState


def mark(run: RunRow, state: RunState, at: Micros) -> RunRow:
    """Apply a reported state to a run, in any order of reports.

    A run never moves back and never leaves a terminal state. It began at the earliest report and
    ended at the earliest report of its end.
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
    uow: UnitOfWork, run: RunRow, dataset_id: str, stated: Mention | None, stamp: Stamp, at: Micros
) -> str | None:
    """Pin the version that a run reads, once; return it, or None if there is none."""
    row = uow.io_of(run.id).get((DatasetRole.INPUT, dataset_id))
    if row is None:
        dataset = uow.datasets.get(dataset_id)
        if dataset is None:
            if stated is None:
                return None
            dataset = datasets.named_dataset(uow, dataset_id, stated.namespace, stated.name, at)
        version_id = datasets.version_to_read(uow, dataset, run.id)
        if version_id is None:
            dataset = datasets.imply_version(uow, dataset, at)
            version_id = dataset.implied_version_id or ""
        row = RunDatasetRow(run.id, DatasetRole.INPUT, dataset_id, version_id, "{}", "{}")
        uow.put_io(row)
    reported = (
        known_facets.of_reading(stated.facets, stated.io_facets) if stated is not None else None
    )
    if reported:
        _report(uow, row, reported, stamp)
    return row.version_id


def repin_input(uow: UnitOfWork, run: RunRow, dataset_id: str) -> None:
    """Repin an input to the version that was published before the run began.

    Some clients, such as dbt's, first report the starts of many runs at once.
    """
    row = uow.io_of(run.id).get((DatasetRole.INPUT, dataset_id))
    dataset = uow.datasets.get(dataset_id)
    if row is None or dataset is None or row.version_id == dataset.current_version_id:
        return
    if dataset.published_at is None or dataset.published_at > run.created_at:
        return
    current = uow.versions.get(dataset.current_version_id)
    if current is None or current.run_id == run.id:
        return
    pinned = uow.versions.get(row.version_id)
    was_published = pinned.published_at if pinned is not None else None
    if was_published is None or was_published < dataset.published_at:
        uow.put_io(replace(row, version_id=current.id))


def write_dataset(
    uow: UnitOfWork,
    run: RunRow,
    dataset: DatasetRow,
    schema: tuple[str, str] | None,
    at: Micros,
    *,
    unconfirmed: bool = False,
) -> tuple[DatasetRow, VersionRow]:
    """Return the version that a run writes of a dataset; create it on its first mention.

    An unconfirmed version is only reported: the caller may not write the dataset. The first
    authorized caller confirms it.
    """
    row = uow.io_of(run.id).get((DatasetRole.OUTPUT, dataset.id))
    if row is not None:
        version = uow.versions.get(row.version_id)
        assert version is not None, "what a run wrote is never deleted before the run"
        if version.unconfirmed and not unconfirmed:
            return datasets.confirm_version(uow, dataset, version)
        return dataset, version
    version_id = ids.run_version_id(dataset.id, run.id)
    dataset, version = datasets.add_version(
        uow,
        dataset,
        version_id,
        Origin.RUN,
        run.id,
        schema or datasets.schema_of(datasets.shown_version(uow, dataset)),
        at,
        unconfirmed=unconfirmed,
    )
    uow.put_io(RunDatasetRow(run.id, DatasetRole.OUTPUT, dataset.id, version_id, "{}", "{}"))
    return dataset, version


def report_output(
    uow: UnitOfWork, run_id: str, dataset_id: str, facets: Facets, stamp: Stamp
) -> None:
    """Store an event's report on an output of its run."""
    row = uow.io_of(run_id).get((DatasetRole.OUTPUT, dataset_id))
    if row is not None:
        _report(uow, row, facets, stamp)


def _report(uow: UnitOfWork, row: RunDatasetRow, facets: Facets, stamp: Stamp) -> None:
    merged = merge(row.facets, row.stamps, facets, stamp)
    if merged is not None:
        uow.put_io(replace(row, facets=merged.facets, stamps=merged.stamps))


def publish_outputs(uow: UnitOfWork, run: RunRow, job: JobRow) -> None:
    """Publish what a run wrote: at its completion, or at once for a stream."""
    streams = job.type == jobs.STREAM
    if not streams and run.state != RunState.COMPLETED:
        return
    for (role, _), row in uow.io_of(run.id).items():
        if role == DatasetRole.OUTPUT:
            version = uow.versions.get(row.version_id)
            assert version is not None, "what a run wrote is never deleted before the run"
            at = version.created_at if streams or run.ended_at is None else run.ended_at
            datasets.publish(uow, version, at, run.updated_at)


def settle(uow: UnitOfWork, run: RunRow, before: RunRow | None) -> None:
    """Update versions, the job version and its edges after a change of the run."""
    job = uow.jobs.get(run.job_id)
    assert job is not None, "a run always has its job"
    publish_outputs(uow, run, job)
    if run.ended_at is not None or job.type == jobs.STREAM:
        job_versions.settle_version(uow, run, before)
    else:
        job_versions.mention_edges(uow, job.id, uow.io_of(run.id), run.created_at)
        job_versions.note_beginning(uow, run.job_version_id, run.created_at)


def nominal(run: RunRow, won: Facets) -> RunRow:
    """Set the nominal interval of a run."""
    if "nominalTime" not in won:
        return run
    start, end = known_facets.nominal_times(won) or (None, None)
    return replace(run, nominal_start=start, nominal_end=end)


_LAST_STAMP = 1 << 62
# Clients may send other fields in such a facet; the indexed ones must be valid.
_LotText = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00]*$")]


class NewRun(Struct, frozen=True, gc=False):
    """A run to begin: its lot, its attempt, and the version of each input."""

    id: str
    lot: str
    attempt: int
    inputs: Mapping[str, str]


class LotFacet(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The lots that a run works on; clients may send a facet of this name."""

    lot: _LotText
    attempt: int | None = None  # the attempt; 0 if it was refused, None if not ours
    lots: tuple[_LotText, ...] = ()  # if there are several
    of_all: bool = False  # the lots of every dataset that the run reads or writes
    reported: bool = False  # its events took the locks; it has no claim
    lost: tuple[_LotText, ...] = ()  # lots of several that it lost while it ran

    @property
    def all_lots(self) -> tuple[str, ...]:
        """All lots that the facet names."""
        return self.lots or (self.lot,)


# Create decoders here, not at first use: msgspec crashes if two threads first use a type at once.
_decode_lot = msgspec.json.Decoder(LotFacet).decode
_decode_facets = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def lot_facet(facets: str) -> LotFacet | None:
    """Return the lots in the stored facets of a run, or None if the facet is invalid."""
    if f'"{LOT_FACET}"' not in facets:
        return None
    facet = _decode_facets(facets).get(LOT_FACET)
    try:
        return _decode_lot(facet) if facet is not None else None
    except msgspec.DecodeError:
        return None


def lot_of(run: RunRow) -> str | None:
    """Return the lot that a run was begun for."""
    facet = lot_facet(run.facets)
    return facet.lot if facet is not None else None


def lot_facets(lot: str, attempt: int | None = None) -> str:
    """Return the stored facets of a run that belongs to a lot."""
    facet = msgspec.json.encode(LotFacet(lot, attempt)).decode()
    return f'{{"{LOT_FACET}":{facet}}}'


def put_lot_facet(uow: UnitOfWork, run: RunRow, facet: LotFacet) -> None:
    """Store the lots of a run; no event overrides them."""
    stamps = msgspec.json.decode(run.stamps, type=dict[str, dict[str, int]])
    stamps.setdefault("run", {})[LOT_FACET] = _LAST_STAMP
    facets = {**read_facets(run.facets), LOT_FACET: msgspec.Raw(msgspec.json.encode(facet))}
    stamped = msgspec.json.encode(stamps).decode()
    uow.runs.put(run.id, replace(run, facets=write_facets(facets), stamps=stamped))


def lose_lot(uow: UnitOfWork, run_id: str, lot: str) -> None:
    """Mark a lot as lost for a run that continues with its other lots."""
    run = uow.runs.get(run_id)
    facet = lot_facet(run.facets) if run is not None else None
    if run is not None and facet is not None and run.ended_at is None:
        put_lot_facet(uow, run, replace(facet, lost=(*facet.lost, lot)))


def begin_runs(
    uow: UnitOfWork,
    job: JobRow,
    shape: tuple[tuple[DatasetName, ...], tuple[DatasetName, ...]],
    runs: Sequence[NewRun],
    now: Micros,
) -> None:
    """Write runs in state RUNNING with pinned inputs, each a microsecond after the other.

    `shape` lists what the job reads and writes lot by lot.
    """
    job, version = job_versions.put_job_version(uow, job, *shape, job.location, now)
    stamps = f'{{"run":{{"{LOT_FACET}":{event_stamp(now, "START")}}},"job":{{}}}}'
    for number, new in enumerate(runs):
        at = now + number
        uow.runs.put(
            new.id,
            replace(
                new_run(new.id, job.id, None, at),
                job_version_id=version.id,
                state=RunState.RUNNING,
                started_at=at,
                facets=lot_facets(new.lot, new.attempt),
                stamps=stamps,
            ),
        )
        io: dict[IoKey, RunDatasetRow] = {
            (DatasetRole.INPUT, dataset): RunDatasetRow(
                new.id, DatasetRole.INPUT, dataset, version, "{}", "{}"
            )
            for dataset, version in new.inputs.items()
        }
        uow.io.put(new.id, io)
        for row in io.values():
            uow.run_datasets.put((row.run_id, row.role, row.dataset_id), row)
    at = now + len(runs) - 1
    job_versions.note_beginning(uow, version.id, now)
    job_versions.mention_edges(uow, job.id, uow.io_of(runs[0].id), now)
    job = replace(job, run_count=job.run_count + len(runs), updated_at=max(job.updated_at, at))
    if (at, runs[-1].id) > (job.latest_run_at or 0, job.latest_run_id or ""):
        job = replace(
            job, latest_run_id=runs[-1].id, latest_run_at=at, latest_run_state=RunState.RUNNING
        )
    uow.jobs.put(job.id, job)


def complete_runs(
    uow: UnitOfWork, job: JobRow, run_ids: Sequence[str], outputs: Sequence[str], now: Micros
) -> list[dict[str, str]]:
    """Complete runs; return the version of every output, by dataset."""
    written: list[dict[str, str]] = [{} for _ in run_ids]
    datasets = [row for row in map(uow.datasets.get, outputs) if row is not None]
    now = after(now, job.version_at, *(row.published_at for row in datasets))
    for dataset in datasets:
        dataset_id = dataset.id
        versions = _publish(uow, dataset, run_ids, now)
        for made, version in zip(written, versions, strict=True):
            made[dataset_id] = version
    for number, run_id in enumerate(run_ids):
        _end(uow, run_id, RunState.COMPLETED, now + number, written[number])
    at = now + len(run_ids) - 1
    _settle_version(uow, job.id, run_ids[-1], at)
    _follow(uow, job.id, run_ids, at)
    return written


def _settle_version(uow: UnitOfWork, job_id: str, run_id: str, at: Micros) -> None:
    """Give a job the version of a run that ended, unless a later run has ended."""
    job, run = uow.jobs.get(job_id), uow.runs.get(run_id)
    version_id = run.job_version_id if run is not None else None
    version = uow.job_versions.get(version_id) if version_id is not None else None
    if job is None or version is None or at < job.version_at:
        return
    uow.job_versions.put(version.id, replace(version, latest_run_id=run_id))
    settled = replace(job, current_version_id=version.id, version_at=at)
    uow.jobs.put(job.id, settled)


def stop_runs(
    uow: UnitOfWork, job: JobRow, run_ids: Sequence[str], state: RunState, why: str, now: Micros
) -> None:
    """End runs without outputs as FAILED or ABORTED; ended runs do not change."""
    for number, run_id in enumerate(run_ids):
        if state == RunState.FAILED and why:
            _put_cause(uow, run_id, why, now + number)
        _end(uow, run_id, state, now + number, {})
    _follow(uow, job.id, run_ids, now + len(run_ids) - 1)


def _put_cause(uow: UnitOfWork, run_id: str, why: str, at: Micros) -> None:
    """Store the cause of a failed run, unless its events report one."""
    run = uow.runs.get(run_id)
    if run is None or run.ended_at is not None or cause_of(read_facets(run.facets)):
        return
    of_run, of_job = read_run_stamps(run.stamps)
    merged = merge(run.facets, of_run, {ERROR: error_facet(why)}, event_stamp(at, "FAIL"))
    if merged is not None:
        stamps = f'{{"run":{merged.stamps},"job":{of_job}}}'
        uow.runs.put(run_id, replace(run, facets=merged.facets, stamps=stamps))


def _end(
    uow: UnitOfWork, run_id: str, state: RunState, at: Micros, written: Mapping[str, str]
) -> None:
    run = uow.runs.get(run_id)
    assert run is not None, "a claim's run exists"
    io = uow.io_of(run_id)
    fresh = [
        RunDatasetRow(run_id, DatasetRole.OUTPUT, dataset, version, "{}", "{}")
        for dataset, version in written.items()
        if (DatasetRole.OUTPUT, dataset) not in io
    ]
    if fresh:
        uow.io.put(run_id, {**io, **{(DatasetRole.OUTPUT, row.dataset_id): row for row in fresh}})
        for row in fresh:
            uow.run_datasets.put((run_id, DatasetRole.OUTPUT, row.dataset_id), row)
    if run.ended_at is not None:
        return
    ended = replace(run, state=state, ended_at=at, updated_at=max(run.updated_at, at))
    uow.runs.put(run_id, ended)
    if run.job_version_id is None:  # events began it and report its inputs and outputs
        job_versions.settle_version(uow, ended, run)
    for (role, dataset), row in io.items() if state == RunState.COMPLETED else ():
        if role == DatasetRole.OUTPUT and dataset not in written:
            version = uow.versions.get(row.version_id)
            assert version is not None, "what a run wrote is never deleted before the run"
            dataset_rules.publish(uow, version, at, at)


def _follow(uow: UnitOfWork, job_id: str, run_ids: Sequence[str], at: Micros) -> None:
    """Update the state of the job's newest run, and its edges."""
    job = uow.jobs.get(job_id)
    assert job is not None, "a run always has its job"
    latest = uow.runs.get(job.latest_run_id) if job.latest_run_id in run_ids else None
    job = replace(job, updated_at=max(job.updated_at, at))
    if latest is not None:
        job = replace(job, latest_run_state=latest.state)
    uow.jobs.put(job.id, job)
    job_versions.settle_edges(uow, job, (), at)


def _publish(
    uow: UnitOfWork, dataset: DatasetRow, run_ids: Sequence[str], now: Micros
) -> list[str]:
    """Publish one version for each run; the last one is current.

    A run that sent events has its version already.
    """
    shown = dataset_rules.shown_version(uow, dataset)
    schema = dataset_rules.schema_of(shown)
    before = shown if shown is not None and shown.published_at is not None else None
    versions: list[str] = []
    added = 0
    for number, run_id in enumerate(run_ids):
        reported = uow.io_of(run_id).get((DatasetRole.OUTPUT, dataset.id))
        if reported is not None and (made := uow.versions.get(reported.version_id)) is not None:
            version = replace(made, unconfirmed=0)
        else:
            added += 1
            version = dataset_rules.new_version(
                dataset,
                ids.run_version_id(dataset.id, run_id),
                dataset.latest_number + added,
                Origin.RUN,
                run_id,
                schema,
                now + number,
            )
        before = inherit(uow, replace(version, published_at=now + number), before)
        uow.versions.put(before.id, before)
        versions.append(before.id)
    dataset_rules.follow_versions(uow, dataset, versions[-1], added, now + len(versions) - 1)
    return versions
