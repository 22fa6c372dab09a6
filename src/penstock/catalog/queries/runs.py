"""Queries for runs."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from penstock.catalog.events import known_facets
from penstock.catalog.events.causes import cause_of
from penstock.catalog.events.facets import read_facets
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.ids import run_id as id_of_run
from penstock.schema.catalog import (
    DatasetRole,
    EntityId,
    ParentRun,
    Run,
    RunDatasetVersion,
    RunFacets,
    VersionId,
)
from penstock.schema.shape import raw, stored_json, time_or_none
from penstock.states import RunState

Touched = dict[tuple[str, str], list[RunDatasetVersion]]  # by run and role


class _RunRow(Struct, frozen=True, gc=False):
    id: str
    namespace: str
    name: str
    job_version_id: str | None
    state: RunState
    nominal_start: Micros | None
    nominal_end: Micros | None
    args: str
    started_at: Micros | None
    ended_at: Micros | None
    facets: str
    created_at: Micros
    updated_at: Micros
    parent_id: str | None
    parent_namespace: str
    parent_name: str


def get_run(tx: Transaction, run_id: str) -> Run:
    """Return a run by the id that its producer assigned."""
    found = load_runs(tx, [id_of_run(run_id)])
    if not found:
        raise _no_run(run_id)
    return next(iter(found.values()))


def get_run_facets(tx: Transaction, run_id: str, *, of_job: bool = False) -> RunFacets:
    """Return the facets of a run, or of its job as the run reported them."""
    row = tx.fetch_one("read_run_facets", id=id_of_run(run_id))
    if row is None:
        raise _no_run(run_id)
    found, facets, job_facets = row
    return RunFacets(run_id=found, facets=raw(job_facets if of_job else facets))


def load_runs(tx: Transaction, run_ids: Sequence[str]) -> dict[str, Run]:
    """Return the runs that exist, by id."""
    if not run_ids:
        return {}
    ids = {"ids": list(run_ids)}
    runs, touched = tx.fetch_many([("read_runs", ids), ("read_run_datasets", ids)])
    versions: Touched = defaultdict(list)
    for run_id, role, namespace, name, version_id, number, facets in touched:
        version = VersionId(namespace, name, version_id)
        versions[run_id, role].append(RunDatasetVersion(version, number, raw(facets)))
    return {row[0]: _run(_RunRow(*row), versions) for row in runs}


def _run(row: _RunRow, touched: Touched) -> Run:
    job_version = row.job_version_id
    return Run(
        id=row.id,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        nominal_start_time=time_or_none(row.nominal_start),
        nominal_end_time=time_or_none(row.nominal_end),
        state=row.state,
        started_at=time_or_none(began(row.state, row.started_at, row.created_at)),
        ended_at=time_or_none(row.ended_at),
        duration_ms=_duration_ms(row),
        args=raw(_args(row)),
        job=EntityId(row.namespace, row.name),
        job_version=VersionId(row.namespace, row.name, job_version) if job_version else None,
        parent=_parent(row),
        cause=_cause(row, touched),
        input_dataset_versions=touched.get((row.id, DatasetRole.INPUT), ()),
        output_dataset_versions=touched.get((row.id, DatasetRole.OUTPUT), ()),
        facets=raw(row.facets),
    )


def began(state: str, started_at: Micros | None, created_at: Micros) -> Micros | None:
    """Return the start of a run; without events of its own, when a child first named it."""
    return created_at if state == RunState.RUNNING and started_at is None else started_at


def _cause(row: _RunRow, touched: Touched) -> str | None:
    """Return the reported cause of a failed or aborted run."""
    if row.state not in (RunState.FAILED, RunState.ABORTED):
        return None
    read = touched.get((row.id, DatasetRole.INPUT), ())
    checked = (read_facets(stored_json(version.facets).decode()) for version in read)
    return cause_of(read_facets(row.facets), checked)


def _duration_ms(row: _RunRow) -> int | None:
    if row.started_at is None or row.ended_at is None:
        return None
    return (row.ended_at - row.started_at) // 1000


def _args(row: _RunRow) -> str:
    """Return the arguments of a run: declared ones, and those that Marquez reads from facets."""
    if '"nominalTime"' not in row.facets and '"parent' not in row.facets:
        return row.args
    facets = read_facets(row.facets)
    args: dict[str, object] = {}
    if "nominalTime" in facets and row.nominal_start is not None:
        args["nominal_start_time"] = format_time(row.nominal_start)
        if row.nominal_end is not None:
            args["nominal_end_time"] = format_time(row.nominal_end)
    parent = known_facets.parent(facets)
    if parent is not None:
        run_id = parent.external_id or parent.run_id
        args |= {"run_id": run_id, "name": parent.name, "namespace": parent.namespace}
    stated = msgspec.json.decode(row.args, type=dict[str, Raw])
    return msgspec.json.encode({**args, **stated}).decode()


def _parent(row: _RunRow) -> ParentRun | None:
    if row.parent_id is None:
        return None
    return ParentRun(row.parent_namespace, row.parent_name, row.parent_id)


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"there is no run {run_id!r}; list the runs of its job to see those that are")
