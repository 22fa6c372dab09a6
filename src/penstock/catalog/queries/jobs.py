"""Queries for jobs, their versions and their runs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import read_facets, read_run_stamps, shown, together
from penstock.catalog.queries.names import is_uuid
from penstock.catalog.queries.runs import load_runs
from penstock.catalog.rows import LATEST_RUN_STATES
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.errors import NotFound
from penstock.ids import job_id
from penstock.schema.catalog import DatasetRole, EntityId, Job, JobVersion, Run, VersionId
from penstock.schema.shape import Page, raw
from penstock.states import RunState

LATEST_RUNS_MAX = 10
_NO_LABELS = "[]"

Edges = dict[tuple[str, str], list[EntityId]]  # by job and role


class RunPlace(NamedTuple):
    """The position of a run in the list of all runs, newest first."""

    created_at: Micros
    run_id: str


FIRST_PLACE = RunPlace(2**62, "ffffffff-ffff-ffff-ffff-ffffffffffff")


class RunPage(NamedTuple):
    """A page of all runs; `last` is the position of its last run, if there are more."""

    runs: Sequence[Run]
    last: RunPlace | None


class _JobRow(Struct, frozen=True, gc=False):
    id: str
    namespace: str
    name: str
    type: str
    description: str | None
    location: str | None
    parent_job_id: str | None
    current_version_id: str | None
    tags: str
    labels: str
    facets: str
    created_at: Micros
    updated_at: Micros
    parent_name: str | None
    latest_facets: str | None
    stamps: str
    latest_stamps: str | None


class _JobVersionRow(Struct, frozen=True, gc=False):
    id: str
    job_id: str
    namespace: str
    name: str
    location: str | None
    inputs: str
    outputs: str
    latest_run_id: str | None
    created_at: Micros


class _Found(Struct, frozen=True):
    """A job and the lengths of its lists."""

    id: str
    hidden: int
    run_count: int
    version_count: int


def get_job(tx: Transaction, namespace: str, name: str, *, include_deleted: bool = False) -> Job:
    """Return a job."""
    found = _find(tx, namespace, name, include_deleted=include_deleted)
    return load_jobs(tx, [found.id])[0]


def list_jobs(
    tx: Transaction,
    namespace: str | None,
    last_run_states: Sequence[RunState],
    limit: int,
    offset: int,
) -> Page[Job]:
    """Return a page of jobs, last updated first, in all states by default."""
    states = sorted({str(state) for state in last_run_states})
    asks = [_which_jobs(namespace, states, limit, offset)]
    if namespace is None:
        asks.append(("read_tallies", {"kind": "JOB"}))
    else:
        asks.append(("read_tallies_of_namespace", {"kind": "JOB", "namespace": namespace}))
    ids, tallies = tx.fetch_many(asks)
    total = sum(count for state, count in tallies if not states or state in states)
    return Page(load_jobs(tx, [found for (found,) in ids]), total)


def list_job_versions(
    tx: Transaction, namespace: str, name: str, limit: int, offset: int
) -> Page[JobVersion]:
    """Return a page of the versions of a job, newest first."""
    job = _find(tx, namespace, name)
    ids = tx.fetch("read_job_version_ids", job_id=job.id, limit=limit, offset=offset)
    return Page(_load_job_versions(tx, job.id, [found for (found,) in ids]), job.version_count)


def get_job_version(tx: Transaction, namespace: str, name: str, version: str) -> JobVersion:
    """Return a version of a job by UUID."""
    job = _find(tx, namespace, name)
    found = _load_job_versions(tx, job.id, [version.lower()] if is_uuid(version) else [])
    if not found:
        raise NotFound(
            f"job {name!r} in namespace {namespace!r} has no version {version!r}; "
            "list its versions, and name one by its UUID"
        )
    return found[0]


def list_runs(tx: Transaction, namespace: str, name: str, limit: int, offset: int) -> Page[Run]:
    """Return a page of the runs of a job, newest first."""
    job = _find(tx, namespace, name)
    ids = [
        found for (found,) in tx.fetch("read_run_ids", job_id=job.id, limit=limit, offset=offset)
    ]
    runs = load_runs(tx, ids)
    return Page([runs[found] for found in ids], job.run_count)


def list_all_runs(
    tx: Transaction,
    namespace: str | None,
    states: Sequence[RunState],
    limit: int,
    after: RunPlace | None = None,
) -> RunPage:
    """Return a page of runs of a namespace or of all, by state, newest first."""
    place = after or FIRST_PLACE
    page = {
        "states": list(dict.fromkeys(states)) or list(RunState),
        "before": place.created_at,
        "before_id": place.run_id,
        "limit": limit + 1,
    }
    if namespace is None:
        rows = tx.fetch("read_run_ids_by_state", **page)
    else:
        rows = tx.fetch("read_run_ids_of_namespace_by_state", namespace=namespace, **page)
    ids = [run_id for run_id, _ in rows[:limit]]
    runs = load_runs(tx, ids)
    is_last = len(rows) <= limit or not ids
    last = None if is_last else RunPlace(rows[limit - 1][1], ids[-1])
    return RunPage([runs[run_id] for run_id in ids], last)


def load_jobs(tx: Transaction, ids: Sequence[str]) -> list[Job]:
    """Return jobs in the order of their ids; missing ones are left out."""
    if not ids:
        return []
    wanted = {"ids": list(ids)}
    jobs, edges, latest = tx.fetch_many(
        [
            ("read_jobs", wanted),
            ("read_job_edges", wanted),
            ("read_latest_run_ids", {**wanted, "most": LATEST_RUNS_MAX}),
        ]
    )
    runs = load_runs(tx, [run_id for _, run_id in latest])
    runs_of: dict[str, list[Run]] = defaultdict(list)
    for job, run_id in latest:
        runs_of[job].append(runs[run_id])
    ends: Edges = defaultdict(list)
    for job, role, namespace, name in edges:
        ends[job, role].append(EntityId(namespace, name))
    rows = {row[0]: _JobRow(*row) for row in jobs}
    return [_job(rows[found], ends, runs_of.get(found, [])) for found in ids if found in rows]


def _which_jobs(namespace: str | None, states: Sequence[str], limit: int, offset: int) -> Ask:
    page = {"limit": limit, "offset": offset, "states": states or LATEST_RUN_STATES}
    if namespace is None:
        return "read_job_ids_by_state", page
    return "read_job_ids_of_namespace_by_state", {**page, "namespace": namespace}


def _find(tx: Transaction, namespace: str, name: str, *, include_deleted: bool = False) -> _Found:
    found = tx.rows(_Found, "read_job_by_id", id=job_id(namespace, name))
    if not found:
        raise NotFound(
            f"there is no job {name!r} in namespace {namespace!r}; "
            "list the namespace's jobs, or search for a part of the name"
        )
    if found[0].hidden and not include_deleted:
        raise NotFound(
            f"job {name!r} in namespace {namespace!r} is deleted; "
            "writing it or naming it in an event brings it back"
        )
    return found[0]


def _job(row: _JobRow, edges: Edges, runs: Sequence[Run]) -> Job:
    _, latest_stamps = read_run_stamps(row.latest_stamps or "{}")
    facets = together(row.facets, row.stamps, row.latest_facets or "{}", latest_stamps)
    return Job(
        id=EntityId(row.namespace, row.name),
        type=row.type,
        name=row.name,
        simple_name=_simple_name(row.name, row.parent_name),
        parent_job_name=row.parent_name,
        parent_job_uuid=row.parent_job_id,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        namespace=row.namespace,
        inputs=edges.get((row.id, DatasetRole.INPUT), ()),
        outputs=edges.get((row.id, DatasetRole.OUTPUT), ()),
        location=row.location,
        description=row.description,
        latest_run=runs[0] if runs else None,
        latest_runs=runs or None,
        facets=raw(shown(facets)),
        current_version=row.current_version_id,
        labels=raw(_labels(row.labels, facets)),
        tags=raw(row.tags),
    )


def _labels(stated: str, facets: str) -> str:
    if stated != _NO_LABELS or '"jobType"' not in facets:
        return stated
    return msgspec.json.encode(known_facets.job_labels(read_facets(facets))).decode()


def _simple_name(name: str, parent: str | None) -> str:
    """Return the name without its parent's: `dag.task` under `dag` is `task`."""
    if parent is None:
        return name
    return name.removeprefix(f"{parent}.") or name


def _load_job_versions(tx: Transaction, job: str, ids: Sequence[str]) -> list[JobVersion]:
    if not ids:
        return []
    found = tx.rows(_JobVersionRow, "read_job_versions", ids=list(ids))
    rows = {row.id: row for row in found if row.job_id == job}
    runs = load_runs(tx, [row.latest_run_id for row in rows.values() if row.latest_run_id])
    return [_job_version(rows[version], runs) for version in ids if version in rows]


def _job_version(row: _JobVersionRow, runs: dict[str, Run]) -> JobVersion:
    return JobVersion(
        id=VersionId(row.namespace, row.name, row.id),
        name=row.name,
        created_at=format_time(row.created_at),
        version=row.id,
        namespace=row.namespace,
        location=row.location,
        inputs=raw(row.inputs),
        outputs=raw(row.outputs),
        latest_run=runs.get(row.latest_run_id) if row.latest_run_id else None,
    )
