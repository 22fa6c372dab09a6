"""Acts of administrators on the ingest queue. Each goes into the audit log."""

import threading
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from penstock.clock import format_time
from penstock.errors import PenstockError
from penstock.ingest.models import CheckProgress, IngestHoldKind
from penstock.ingest.service import AdminAction
from penstock.schema.admin import KeyRole
from penstock.schema.ingest import (
    ChangedJobs,
    CheckStep,
    CheckStepKind,
    Finding,
    HeldCollection,
    Priority,
    Queue,
    Released,
    ResumedJob,
    ResumedJobs,
    ShownBatch,
    ShownIngestJob,
)
from penstock.schema.shape import Empty
from penstock.server.content import OwnBody, Query
from penstock.server.ingest_shapes import show_hold, show_job, show_tally
from penstock.server.requests import IngestRequest, RequestContext
from penstock.server.responses import NDJSON, NOTHING, Flow, lines
from penstock.server.routes.ingest import batch_with_tally
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import ASYNC, BASE, INGEST, Reach, Route


class QueuePriorityBody(WhyBody, frozen=True):
    """A new queue priority, low first, and the reason."""

    priority: Priority


class ReleaseHeldBody(WhyBody, frozen=True):
    """The collection whose held batches and jobs to release, or all; and the reason."""

    collection: str | None = None


class CheckBody(OwnBody, frozen=True):
    """Whether to repair findings."""

    repair: bool = False


class DeletionQuery(Query, frozen=True):
    """The confirmation and the reason of a deletion."""

    confirmed: bool = False
    why: Annotated[str, Meta(max_length=2_000)] = ""


def hold_batch(request: IngestRequest, batch: str, body: WhyBody) -> ShownBatch:
    """Hold a batch, or its jobs that have not begun."""
    request.batch(batch)
    return batch_with_tally(request, request.desk.hold_batch(request.act(body.why), batch))


def release_batch(request: IngestRequest, batch: str, body: WhyBody) -> ShownBatch:
    """Release a held batch and all its held jobs."""
    request.batch(batch)
    return batch_with_tally(request, request.desk.release_batch(request.act(body.why), batch))


def update_batch_report(request: IngestRequest, batch: str, body: WhyBody) -> ShownBatch:
    """Send the report of a failed batch again."""
    request.batch(batch)
    return batch_with_tally(request, request.desk.update_report(request.act(body.why), batch))


def resume_batch(request: IngestRequest, batch: str, body: WhyBody) -> ResumedJobs:
    """Resume every failed job of a batch, and show the stage of each.

    If the payload could not be read, it is read again.
    """
    request.batch(batch)
    resumed = request.desk.resume_batch(request.act(body.why), batch)
    jobs = [ResumedJob(each.job_id, each.stage, each.refused or None) for each in resumed]
    return ResumedJobs(jobs, request.batch(batch).status)


def prioritize_batch(request: IngestRequest, batch: str, body: QueuePriorityBody) -> ChangedJobs:
    """Set the queue priority of a batch's open jobs; low comes first."""
    request.batch(batch)
    return ChangedJobs(request.desk.prioritize_batch(request.act(body.why), batch, body.priority))


def delete_batch(request: IngestRequest, batch: str, query: DeletionQuery) -> Empty:
    """Delete a failed or held batch with its jobs. Without `confirmed`, only warn."""
    request.batch(batch)
    request.desk.delete_batch(request.act(query.why), batch, confirmed=query.confirmed)
    return NOTHING


def hold_ingest_job(request: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Hold a job that has not begun."""
    request.job(ingest_job)
    return show_job(request.desk.hold_job(request.act(body.why), ingest_job))


def release_ingest_job(request: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Release a held job."""
    request.job(ingest_job)
    return show_job(request.desk.release_job(request.act(body.why), ingest_job))


def resume_ingest_job(request: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Resume a failed job after its last successful stage."""
    request.job(ingest_job)
    return show_job(request.desk.resume_job(request.act(body.why), ingest_job))


def fail_ingest_job(request: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Force a job to failed, also while a worker runs it."""
    request.job(ingest_job)
    return show_job(request.desk.fail_job(request.act(body.why), ingest_job))


def prioritize_ingest_job(
    request: IngestRequest, ingest_job: str, body: QueuePriorityBody
) -> ShownIngestJob:
    """Set the queue priority of a job; low comes first."""
    request.job(ingest_job)
    return show_job(request.desk.prioritize_job(request.act(body.why), ingest_job, body.priority))


def delete_ingest_job(request: IngestRequest, ingest_job: str, query: DeletionQuery) -> Empty:
    """Delete a failed or held job. While its batch is open, this must be `confirmed`."""
    request.job(ingest_job)
    request.desk.delete_job(request.act(query.why), ingest_job, confirmed=query.confirmed)
    return NOTHING


def get_queue(request: IngestRequest) -> Queue:
    """Show the number of jobs in each state, and the holds of the queue."""
    names = request.narrowed(None)
    holds = request.store.holds()
    whole = next((hold for hold in holds if hold.kind is IngestHoldKind.QUEUE), None)
    collections = [
        HeldCollection(hold.name, hold.who, hold.why, format_time(hold.since))
        for hold in holds
        if hold.kind is IngestHoldKind.COLLECTION and (names is None or hold.name in names)
    ]
    tally = show_tally(request.store.tally()) if names is None else None
    return Queue(tally, show_hold(whole), collections)


def hold_queue(request: IngestRequest, body: WhyBody) -> Queue:
    """IngestHold the queue: workers take no batch and no job."""
    request.desk.hold(request.act(body.why), IngestHoldKind.QUEUE)
    return get_queue(request)


def release_queue(request: IngestRequest, body: WhyBody) -> Queue:
    """Release the hold of the queue."""
    request.desk.release(request.act(body.why), IngestHoldKind.QUEUE)
    return get_queue(request)


def release_held(request: IngestRequest, body: ReleaseHeldBody) -> Released:
    """Release all held batches and jobs, of one collection or of all that are not held."""
    if body.collection is None:
        request.key.require_every_namespace()
    else:
        request.collection(body.collection)
    return Released(request.desk.release_all(request.act(body.why), body.collection))


async def check_queue(context: RequestContext, body: CheckBody) -> Flow:
    """Check the queue for faults that a crash left, line by line; with `repair`, repair them.

    Each line is a JSON document: a `finding`, the `progress`, or the `end`; without an
    `end` the check was cut off.
    """
    steps = context.plane.desk.check(AdminAction(context.key.name), repair=body.repair)
    return lines(_check_steps(steps), threading.Event())


def _check_steps(steps: Iterator[Finding | CheckProgress]) -> Iterator[CheckStep]:
    jobs, total, error = 0, 0, None
    try:
        for step in steps:
            if isinstance(step, CheckProgress):
                jobs, total = step.jobs, step.total
                yield CheckStep(CheckStepKind.PROGRESS, jobs, total)
            else:
                yield CheckStep(CheckStepKind.FINDING, jobs, total, step)
    except PenstockError as refusal:
        error = str(refusal)
    yield CheckStep(CheckStepKind.END, jobs, total, error=error)


_BATCH = f"{BASE}/ingest/batches/{{batch}}"
_JOB = f"{BASE}/ingest/jobs/{{ingest_job}}"
_QUEUE = f"{BASE}/ingest/queue"

ROUTES = (
    Route(INGEST, "POST", f"{_BATCH}/hold", hold_batch, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_BATCH}/release", release_batch, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_BATCH}/update-report", update_batch_report, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_BATCH}/resume", resume_batch, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_BATCH}/priority", prioritize_batch, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "DELETE", _BATCH, delete_batch, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_JOB}/hold", hold_ingest_job, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_JOB}/release", release_ingest_job, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_JOB}/resume", resume_ingest_job, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_JOB}/fail", fail_ingest_job, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_JOB}/priority", prioritize_ingest_job, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "DELETE", _JOB, delete_ingest_job, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "GET", _QUEUE, get_queue, Reach.OWN),
    Route(INGEST, "POST", f"{_QUEUE}/hold", hold_queue, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_QUEUE}/release", release_queue, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_QUEUE}/release-held", release_held, Reach.OWN, KeyRole.ADMIN),
    Route(
        ASYNC,
        "POST",
        f"{BASE}/ingest/check",
        check_queue,
        Reach.EVERYTHING,
        KeyRole.ADMIN,
        media=NDJSON,
    ),
)
