"""How a run moves through its states, and what it reads and writes on the way."""

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
    uow: UnitOfWork, run: RunRow, dataset_id: str, stated: Mention | None, stamp: Stamp, at: Micros
) -> str | None:
    """Pin what a run reads, once; what is pinned never changes. The version, if there is one."""
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
    told = known_facets.of_reading(stated.facets, stated.io_facets) if stated is not None else None
    if told:
        _report(uow, row, told, stamp)
    return row.version_id


def repin_input(uow: UnitOfWork, run: RunRow, dataset_id: str) -> None:
    """What was published before a run began is what it reads, though it is told of only later.

    Some clients tell of many runs at once, of all first that they began: dbt's does.
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
    """The version that a run makes of a dataset: one for a run, made when it is first named.

    An unconfirmed version is only reported: the caller may not write the dataset. The first caller
    who may confirms it.
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
    """Keep what an event says of this run's writing of a dataset."""
    row = uow.io_of(run_id).get((DatasetRole.OUTPUT, dataset_id))
    if row is not None:
        _report(uow, row, facets, stamp)


def _report(uow: UnitOfWork, row: RunDatasetRow, facets: Facets, stamp: Stamp) -> None:
    merged = merge(row.facets, row.stamps, facets, stamp)
    if merged is not None:
        uow.put_io(replace(row, facets=merged.facets, stamps=merged.stamps))


def publish_outputs(uow: UnitOfWork, run: RunRow, job: JobRow) -> None:
    """What a completed run wrote becomes current at its end; what a stream writes, at once."""
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
    """Bring versions, the job's version and its edges in line with where the run stands now."""
    job = uow.jobs.get(run.job_id)
    assert job is not None, "a run always has its job"
    publish_outputs(uow, run, job)
    if run.ended_at is not None or job.type == jobs.STREAM:
        job_versions.settle_version(uow, run, before)
    else:
        job_versions.mention_edges(uow, job.id, uow.io_of(run.id), run.created_at)
        job_versions.note_beginning(uow, run.job_version_id, run.created_at)


def nominal(run: RunRow, won: Facets) -> RunRow:
    """Take over the interval that a run is meant for."""
    if "nominalTime" not in won:
        return run
    start, end = known_facets.nominal_times(won) or (None, None)
    return replace(run, nominal_start=start, nominal_end=end)


_LAST_STAMP = 1 << 62
# Whatever else somebody sends in such a facet, what is looked up can be looked up.
_LotText = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00]*$")]


class NewRun(Struct, frozen=True, gc=False):
    """A run to begin: its lot, which try it is, and the version of each input."""

    id: str
    lot: str
    attempt: int
    inputs: Mapping[str, str]


class LotFacet(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The lots that a run works on; whoever reports events may send a facet of this name."""

    lot: _LotText
    attempt: int | None = None  # which try it is; 0 if it was kept out, None if we did not say it
    lots: tuple[_LotText, ...] = ()  # where there are several
    of_all: bool = False  # whatever dataset the run reads or writes, it is these lots of it
    reported: bool = False  # its events took the locks; nobody was given a claim
    lost: tuple[_LotText, ...] = ()  # of several, those that were taken from it as it went on

    @property
    def all_lots(self) -> tuple[str, ...]:
        """Every lot it names."""
        return self.lots or (self.lot,)


# Made here, not at the first use: two threads that use a type first at once would crash msgspec.
_decode_lot = msgspec.json.Decoder(LotFacet).decode
_decode_facets = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def lot_facet(facets: str) -> LotFacet | None:
    """What the facets of a run, as they are stored, say of its lots; None if that is no sense."""
    if f'"{LOT_FACET}"' not in facets:
        return None
    facet = _decode_facets(facets).get(LOT_FACET)
    try:
        return _decode_lot(facet) if facet is not None else None
    except msgspec.DecodeError:
        return None


def lot_of(run: RunRow) -> str | None:
    """The lot that a run was begun for."""
    facet = lot_facet(run.facets)
    return facet.lot if facet is not None else None


def lot_facets(lot: str, attempt: int | None = None) -> str:
    """The facets, as they are stored, of what belongs to a lot."""
    facet = msgspec.json.encode(LotFacet(lot, attempt)).decode()
    return f'{{"{LOT_FACET}":{facet}}}'


def put_lot_facet(uow: UnitOfWork, run: RunRow, facet: LotFacet) -> None:
    """Write into a run which lots it works on; no event says it better."""
    stamps = msgspec.json.decode(run.stamps, type=dict[str, dict[str, int]])
    stamps.setdefault("run", {})[LOT_FACET] = _LAST_STAMP
    facets = {**read_facets(run.facets), LOT_FACET: msgspec.Raw(msgspec.json.encode(facet))}
    stamped = msgspec.json.encode(stamps).decode()
    uow.runs.put(run.id, replace(run, facets=write_facets(facets), stamps=stamped))


def lose_lot(uow: UnitOfWork, run_id: str, lot: str) -> None:
    """A run that goes on with others has lost a lot for good, whatever its events say."""
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
    """Write runs in state RUNNING, with their inputs pinned; each a microsecond after the other.

    `shape` is what the job reads and writes, lot by lot.
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
    """End runs well; what each wrote, a version of every output, is returned by dataset."""
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
    """The shape of a run that has ended is its job's, unless a later one is."""
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
    """End runs that made nothing: FAILED or ABORTED; those that have ended stay as they are."""
    for number, run_id in enumerate(run_ids):
        if state == RunState.FAILED and why:
            _put_cause(uow, run_id, why, now + number)
        _end(uow, run_id, state, now + number, {})
    _follow(uow, job.id, run_ids, now + len(run_ids) - 1)


def _put_cause(uow: UnitOfWork, run_id: str, why: str, at: Micros) -> None:
    """Write into a run why it failed, unless its events say why."""
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
    if run.job_version_id is None:  # events began it: what it reads and writes they told
        job_versions.settle_version(uow, ended, run)
    for (role, dataset), row in io.items() if state == RunState.COMPLETED else ():
        if role == DatasetRole.OUTPUT and dataset not in written:
            version = uow.versions.get(row.version_id)
            assert version is not None, "what a run wrote is never deleted before the run"
            dataset_rules.publish(uow, version, at, at)


def _follow(uow: UnitOfWork, job_id: str, run_ids: Sequence[str], at: Micros) -> None:
    """Keep the state of the job's newest run, and the edges of what is current or going on."""
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
    """One published version for each run; the last of them is current.

    A run that has reported events made its version already.
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
