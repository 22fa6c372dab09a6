"""Runs: created, marked, listed. Each mark has two paths."""

import re
from typing import Annotated, Literal
from urllib.parse import quote

from msgspec import Meta, Raw

from penstock.access.keys import Key
from penstock.catalog.commands import CreateRun, MarkRun
from penstock.catalog.queries import catalog
from penstock.catalog.queries.jobs import RunPlace
from penstock.catalog.queries.names import is_uuid
from penstock.clock import Micros, parse_time
from penstock.db import Transaction
from penstock.errors import Malformed, NotFound
from penstock.locks.commands import MarkUnclaimedRun
from penstock.schema.admin import KeyRole
from penstock.schema.catalog import AllRuns, Events, Run, RunFacets, Runs
from penstock.schema.texts import Name, Time
from penstock.server.content import Body, Limit, Paging, Query, json_text, moment
from penstock.server.requests import RequestContext
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.states import RunState


class RunBody(Body, frozen=True):
    """The description of a new run."""

    id: Name | None = None
    nominal_start_time: Time | None = None
    nominal_end_time: Time | None = None
    args: dict[str, Raw] | None = None


class RunsQuery(Query, frozen=True):
    """The selection of runs."""

    state: Annotated[
        tuple[RunState, ...], Meta(description="only runs in these states; repeatable")
    ] = ()
    namespace: Annotated[
        str | None, Meta(description="only runs of the jobs of this namespace")
    ] = None
    limit: Limit = 100
    after: Annotated[
        str | None, Meta(description="go on after a page: its `next`, as it was returned")
    ] = None


class MarkQuery(Query, frozen=True):
    """The time of a mark."""

    at: Time | None = None


class FacetsQuery(Query, frozen=True):
    """The owner of the facets: the run or its job."""

    type: Literal["run", "job"] = "run"


async def create_run(context: RequestContext, namespace: str, job: str, body: RunBody) -> Run:
    """Create a run of a job in state NEW. An id that is not a UUID is mapped to one."""
    context.check_names(id=body.id)
    start, end = body.nominal_start_time, body.nominal_end_time
    run = await context.submit(
        CreateRun(
            namespace,
            job,
            body.id,
            parse_time(start) if start else None,
            parse_time(end) if end else None,
            json_text(body.args or {}),
        )
    )
    context.headers.append((b"location", f"{BASE}/jobs/runs/{quote(run)}".encode()))
    return await context.read(catalog.get_run, run)


def list_runs(tx: Transaction, namespace: str, job: str, query: Paging) -> Runs:
    """List the runs of a job, newest first."""
    page = catalog.list_runs(tx, namespace, job, query.limit, query.offset)
    return Runs(page.items, page.total_count)


def list_all_runs(tx: Transaction, key: Key, query: RunsQuery) -> AllRuns:
    """List runs by state, newest first, page by page.

    A key of one namespace sees the runs of that namespace.
    """
    if query.namespace is not None:
        key.require_namespace(query.namespace)
    namespace = query.namespace or key.namespace
    after = _place(query.after) if query.after else None
    page = catalog.list_all_runs(tx, namespace, query.state, query.limit, after)
    last = page.last
    return AllRuns(page.runs, None if last is None else f"{last.created_at}.{last.run_id}")


def _place(text: str) -> RunPlace:
    created_at, _, run_id = text.partition(".")
    if not _WHOLE.fullmatch(created_at) or not is_uuid(run_id):
        raise Malformed(f"after: {text[:64]!r} is no place in the list; send `next` of a page")
    return RunPlace(int(created_at), run_id.lower())


def get_run(tx: Transaction, key: Key, run: str) -> Run:
    """Show a run."""
    found = catalog.get_run(tx, run)
    key.require_own(found.job.namespace)
    return found


def get_job_run(tx: Transaction, key: Key, namespace: str, job: str, run: str) -> Run:
    """Show a run of a job."""
    found = get_run(tx, key, run)
    if (found.job.namespace, found.job.name) != (namespace, job):
        raise NotFound(
            f"run {run} belongs to job {found.job.name!r} in namespace "
            f"{found.job.namespace!r}; ask for it there"
        )
    return found


def get_run_facets(tx: Transaction, key: Key, run: str, query: FacetsQuery) -> RunFacets:
    """Show the facets of a run, or of its job as the run reported them."""
    found = get_run(tx, key, run)
    return catalog.get_run_facets(tx, found.id, of_job=query.type == "job")


def list_run_events(tx: Transaction, key: Key, run: str, query: Paging) -> Events:
    """List the events received about a run, newest first, word for word."""
    found = get_run(tx, key, run)
    page = catalog.list_events(
        tx, None, None, limit=query.limit, offset=query.offset, run_id=found.id
    )
    return Events(page.items, page.total_count)


def _stated(context: RequestContext, query: MarkQuery) -> Micros | None:
    at = moment(query.at, "at")
    return context.not_ahead(at) if at is not None else None


async def _mark(context: RequestContext, run: str, state: RunState, query: MarkQuery) -> Run:
    await context.require_run(run)
    at = _stated(context, query)
    await context.submit(MarkUnclaimedRun(MarkRun(run, state, at, within=context.key.namespace)))
    return await context.read(catalog.get_run, run)


async def _mark_of_job(
    context: RequestContext,
    namespace: str,
    job: str,
    run: str,
    state: RunState,
    query: MarkQuery,
) -> Run:
    at = _stated(context, query)
    mark = MarkRun(run, state, at, namespace, job, context.key.namespace)
    await context.submit(MarkUnclaimedRun(mark))
    return await context.read(catalog.get_run, run)


async def start_run(context: RequestContext, run: str, query: MarkQuery) -> Run:
    """Mark a run as started."""
    return await _mark(context, run, RunState.RUNNING, query)


async def start_job_run(
    context: RequestContext, namespace: str, job: str, run: str, query: MarkQuery
) -> Run:
    """Mark a run as started."""
    return await _mark_of_job(context, namespace, job, run, RunState.RUNNING, query)


async def complete_run(context: RequestContext, run: str, query: MarkQuery) -> Run:
    """Mark a run as completed; the versions it made become current."""
    return await _mark(context, run, RunState.COMPLETED, query)


async def complete_job_run(
    context: RequestContext, namespace: str, job: str, run: str, query: MarkQuery
) -> Run:
    """Mark a run as completed; the versions it made become current."""
    return await _mark_of_job(context, namespace, job, run, RunState.COMPLETED, query)


async def fail_run(context: RequestContext, run: str, query: MarkQuery) -> Run:
    """Mark a run as failed; the current versions stay current."""
    return await _mark(context, run, RunState.FAILED, query)


async def fail_job_run(
    context: RequestContext, namespace: str, job: str, run: str, query: MarkQuery
) -> Run:
    """Mark a run as failed; the current versions stay current."""
    return await _mark_of_job(context, namespace, job, run, RunState.FAILED, query)


async def abort_run(context: RequestContext, run: str, query: MarkQuery) -> Run:
    """Mark a run as aborted; the current versions stay current."""
    return await _mark(context, run, RunState.ABORTED, query)


async def abort_job_run(
    context: RequestContext, namespace: str, job: str, run: str, query: MarkQuery
) -> Run:
    """Mark a run as aborted; the current versions stay current."""
    return await _mark_of_job(context, namespace, job, run, RunState.ABORTED, query)


_WHOLE = re.compile(r"-?[0-9]{1,18}")
_OF_JOB = f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}/runs"
_ONE = f"{BASE}/jobs/runs/{{run}}"

ROUTES = (
    Route(READ, "GET", f"{BASE}/runs", list_all_runs, Reach.OWN),
    Route(READ, "GET", _OF_JOB, list_runs),
    Route(ASYNC, "POST", _OF_JOB, create_run, role=KeyRole.WRITER, status=201),
    Route(READ, "GET", f"{_OF_JOB}/{{run}}", get_job_run),
    Route(READ, "GET", _ONE, get_run, Reach.OWN),
    Route(READ, "GET", f"{_ONE}/facets", get_run_facets, Reach.OWN),
    Route(READ, "GET", f"{_ONE}/events", list_run_events, Reach.OWN),
    Route(ASYNC, "POST", f"{_ONE}/start", start_run, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_ONE}/complete", complete_run, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_ONE}/fail", fail_run, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_ONE}/abort", abort_run, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_OF_JOB}/{{run}}/start", start_job_run, role=KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_OF_JOB}/{{run}}/complete", complete_job_run, role=KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_OF_JOB}/{{run}}/fail", fail_job_run, role=KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_OF_JOB}/{{run}}/abort", abort_job_run, role=KeyRole.WRITER),
)
