"""Jobs, their versions and their tags."""

from collections.abc import Sequence
from typing import Any, Literal

from penstock import ids
from penstock.access.keys import Key
from penstock.catalog.commands import DeleteJob, PutJob, RestoreJob, TagJob, UntagJob
from penstock.catalog.events.child_jobs import find_child
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.queries import catalog
from penstock.db import Transaction
from penstock.schema.admin import KeyRole
from penstock.schema.catalog import Job, Jobs, JobVersion, JobVersions
from penstock.schema.texts import Name
from penstock.server.content import Body, Paging
from penstock.server.requests import RequestContext
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.states import RunState


class DatasetNameBody(Body, frozen=True):
    """A dataset that a job reads or writes."""

    namespace: Name
    name: Name


class JobBody(Body, frozen=True):
    """The description of a job. With a run's id it describes the datasets of that run.

    Old clients send `context`; it is ignored.
    """

    type: Literal["BATCH", "STREAM", "SERVICE"]
    inputs: tuple[DatasetNameBody, ...] | None = None
    outputs: tuple[DatasetNameBody, ...] | None = None
    location: str | None = None
    description: str | None = None
    run_id: str | None = None
    tags: tuple[Name, ...] | None = None
    context: Any = None


class JobsQuery(Paging, frozen=True):
    """The selection of jobs."""

    last_run_states: tuple[RunState, ...] = ()


async def put_job(context: RequestContext, namespace: str, job: str, body: JobBody) -> Job:
    """Declare a job with what it reads and writes."""
    for tag in body.tags or ():
        context.check_names(tags=tag)
    child = await context.read(find_child, namespace, job) if "." in job else None
    job = child.name if child is not None else job
    run = ids.run_id(body.run_id) if body.run_id else None
    await context.require_run(run)
    await context.submit(
        PutJob(
            namespace,
            job,
            body.type,
            _names(context, body.inputs),
            _names(context, body.outputs),
            body.location,
            body.description,
            run,
            body.tags or (),
            context.key.namespace,
        )
    )
    return await context.read(catalog.get_job, namespace, job)


def _names(
    context: RequestContext, given: Sequence[DatasetNameBody] | None
) -> tuple[DatasetName, ...]:
    for dataset in given or ():
        context.check_names(namespace=dataset.namespace, name=dataset.name)
    return tuple(DatasetName(dataset.namespace, dataset.name) for dataset in given or ())


def get_job(tx: Transaction, namespace: str, job: str) -> Job:
    """Show a job with its newest runs."""
    return catalog.get_job(tx, namespace, job)


def list_jobs(tx: Transaction, namespace: str, query: JobsQuery) -> Jobs:
    """List the jobs of a namespace, the last updated first."""
    states = query.last_run_states
    page = catalog.list_jobs(tx, namespace, states, query.limit, query.offset)
    return Jobs(page.items, page.total_count)


def list_all_jobs(tx: Transaction, key: Key, query: JobsQuery) -> Jobs:
    """List the jobs of all namespaces that the key may see, the last updated first."""
    states = query.last_run_states
    page = catalog.list_jobs(tx, key.namespace, states, query.limit, query.offset)
    return Jobs(page.items, page.total_count)


async def delete_job(context: RequestContext, namespace: str, job: str) -> Job:
    """Hide a job, until it is restored or runs again."""
    await context.submit(DeleteJob(namespace, job, context.key.name))
    return await context.read(catalog.get_job, namespace, job, include_deleted=True)


async def restore_job(context: RequestContext, namespace: str, job: str) -> Job:
    """Bring back a hidden job."""
    await context.submit(RestoreJob(namespace, job, context.key.name))
    return await context.read(catalog.get_job, namespace, job)


def list_job_versions(tx: Transaction, namespace: str, job: str, query: Paging) -> JobVersions:
    """List the versions of a job, newest first."""
    page = catalog.list_job_versions(tx, namespace, job, query.limit, query.offset)
    return JobVersions(page.items, page.total_count)


def get_job_version(tx: Transaction, namespace: str, job: str, version: str) -> JobVersion:
    """Show a version of a job."""
    return catalog.get_job_version(tx, namespace, job, version)


async def tag_job(context: RequestContext, namespace: str, job: str, tag: str) -> Job:
    """Put a tag on a job."""
    await context.submit(TagJob(namespace, job, tag))
    return await context.read(catalog.get_job, namespace, job)


async def untag_job(context: RequestContext, namespace: str, job: str, tag: str) -> Job:
    """Take a tag off a job."""
    await context.submit(UntagJob(namespace, job, tag))
    return await context.read(catalog.get_job, namespace, job)


_ALL = f"{BASE}/namespaces/{{namespace}}/jobs"
_ONE = f"{_ALL}/{{job}}"
_TAG = f"{_ONE}/tags/{{tag}}"

ROUTES = (
    Route(READ, "GET", f"{BASE}/jobs", list_all_jobs, Reach.OWN),
    Route(READ, "GET", _ALL, list_jobs),
    Route(READ, "GET", _ONE, get_job),
    Route(ASYNC, "PUT", _ONE, put_job, role=KeyRole.WRITER),
    Route(ASYNC, "DELETE", _ONE, delete_job, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/restore", restore_job, role=KeyRole.ADMIN),
    Route(READ, "GET", f"{_ONE}/versions", list_job_versions),
    Route(READ, "GET", f"{_ONE}/versions/{{version}}", get_job_version),
    Route(ASYNC, "POST", _TAG, tag_job, role=KeyRole.WRITER),
    Route(ASYNC, "DELETE", _TAG, untag_job, role=KeyRole.WRITER),
)
