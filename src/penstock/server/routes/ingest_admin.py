"""What administrators do to the ingest queue; the desk puts each of it into the audit log."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from penstock.access.keys import Role
from penstock.catalog.shapes import Shape
from penstock.clock import format_time
from penstock.errors import PenstockError
from penstock.ingest.collections import Priority
from penstock.ingest.models import CheckProgress, Finding, IngestHoldKind
from penstock.ingest.service import AdminAction
from penstock.locks.shapes import Held
from penstock.server.content import OwnBody
from penstock.server.ingest_shapes import (
    ShownBatch,
    ShownIngestJob,
    StateTally,
    shown_hold,
    shown_job,
    shown_tally,
)
from penstock.server.parameters import Query
from penstock.server.requests import Call, IngestRequest
from penstock.server.responses import NDJSON, NOTHING, Empty, Flow, lines
from penstock.server.routes.ingest import batch_with_tally
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import BASE, Reach, Route
from penstock.states import BatchState, IngestState


class PriorityBody(WhyBody, frozen=True):
    """When the turn is, low first, and why."""

    priority: Priority


class ReleaseHeldBody(WhyBody, frozen=True):
    """What is held of which collection, or of all; and why it goes on."""

    collection: str | None = None


class CheckBody(OwnBody, frozen=True):
    """Whether to put right what is found."""

    repair: bool = False


class DeletionQuery(Query, frozen=True):
    """Whether the warning was understood, and why something is deleted."""

    confirmed: bool = False
    why: Annotated[str, Meta(max_length=2_000)] = ""


class ResumedJob(Shape, frozen=True):
    """A failed job, and the stage it goes on with, or why it cannot."""

    job: str
    stage: IngestState | None
    refused: str | None


class ResumedJobs(Shape, frozen=True):
    """What became of each failed job of a batch, and how the batch itself stands now.

    One whose payload could not be read is `pending` again.
    """

    resumed: Sequence[ResumedJob]
    status: BatchState


class Changed(Shape, frozen=True):
    """How many jobs were changed."""

    changed: int


class Released(Shape, frozen=True):
    """How many batches and jobs were let go on."""

    released: int


class HeldCollection(Shape, frozen=True):
    """A collection that an administrator has stopped."""

    name: str
    who: str
    why: str
    since: str


class Queue(Shape, frozen=True):
    """How many jobs are in each state, and what is stopped.

    A key that is for one namespace gets no tally: the jobs of all are counted together.
    """

    tally: Mapping[str, StateTally] | None
    held: Held | None
    collections_held: Sequence[HeldCollection]


class CheckStepKind(StrEnum):
    """What a step of a check tells."""

    PROGRESS = "progress"
    FINDING = "finding"
    END = "end"


class CheckStep(Shape, frozen=True):
    """How many ingest jobs, of how many, were looked at and, if it is a finding, what is wrong.

    At the `end`, `error` says why the check could not be finished.
    """

    kind: CheckStepKind
    jobs: int
    total: int
    finding: Finding | None = None
    error: str | None = None


def hold_batch(visit: IngestRequest, batch: str, body: WhyBody) -> ShownBatch:
    """Hold a batch: itself, or those of its jobs that have not begun."""
    visit.batch(batch)
    return batch_with_tally(visit, visit.desk.hold_batch(visit.act(body.why), batch))


def release_batch(visit: IngestRequest, batch: str, body: WhyBody) -> ShownBatch:
    """Let a held batch, and every held job of it, go on."""
    visit.batch(batch)
    return batch_with_tally(visit, visit.desk.release_batch(visit.act(body.why), batch))


def update_batch_report(visit: IngestRequest, batch: str, body: WhyBody) -> ShownBatch:
    """Have a failed batch reported anew."""
    visit.batch(batch)
    return batch_with_tally(visit, visit.desk.update_report(visit.act(body.why), batch))


def resume_batch(visit: IngestRequest, batch: str, body: WhyBody) -> ResumedJobs:
    """Let every failed job of a batch go on, and say where each goes.

    A batch whose payload could not be read has it read again.
    """
    visit.batch(batch)
    resumed = visit.desk.resume_batch(visit.act(body.why), batch)
    jobs = [ResumedJob(each.job_id, each.stage, each.refused or None) for each in resumed]
    return ResumedJobs(jobs, visit.batch(batch).status)


def prioritize_batch(visit: IngestRequest, batch: str, body: PriorityBody) -> Changed:
    """Change when the turn of a batch's open jobs is; low comes first."""
    visit.batch(batch)
    return Changed(visit.desk.prioritize_batch(visit.act(body.why), batch, body.priority))


def delete_batch(visit: IngestRequest, batch: str, query: DeletionQuery) -> Empty:
    """Delete a failed or held batch with its jobs; unless `confirmed`, it is only a warning."""
    visit.batch(batch)
    visit.desk.delete_batch(visit.act(query.why), batch, confirmed=query.confirmed)
    return NOTHING


def hold_ingest_job(visit: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Hold a job that has not begun."""
    visit.job(ingest_job)
    return shown_job(visit.desk.hold_job(visit.act(body.why), ingest_job))


def release_ingest_job(visit: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Let a held job go on."""
    visit.job(ingest_job)
    return shown_job(visit.desk.release_job(visit.act(body.why), ingest_job))


def resume_ingest_job(visit: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Let a failed job go on after the last stage that succeeded."""
    visit.job(ingest_job)
    return shown_job(visit.desk.resume_job(visit.act(body.why), ingest_job))


def fail_ingest_job(visit: IngestRequest, ingest_job: str, body: WhyBody) -> ShownIngestJob:
    """Force a job to failed, whoever is working on it."""
    visit.job(ingest_job)
    return shown_job(visit.desk.fail_job(visit.act(body.why), ingest_job))


def prioritize_ingest_job(
    visit: IngestRequest, ingest_job: str, body: PriorityBody
) -> ShownIngestJob:
    """Change when a job's turn is; low comes first."""
    visit.job(ingest_job)
    return shown_job(visit.desk.prioritize_job(visit.act(body.why), ingest_job, body.priority))


def delete_ingest_job(visit: IngestRequest, ingest_job: str, query: DeletionQuery) -> Empty:
    """Delete a failed or held job; while its batch is open, it must be `confirmed`."""
    visit.job(ingest_job)
    visit.desk.delete_job(visit.act(query.why), ingest_job, confirmed=query.confirmed)
    return NOTHING


def get_queue(visit: IngestRequest) -> Queue:
    """Show how many jobs are in each state, and what is stopped."""
    names = visit.narrowed(None)
    holds = visit.store.holds()
    whole = next((hold for hold in holds if hold.kind is IngestHoldKind.QUEUE), None)
    collections = [
        HeldCollection(hold.name, hold.who, hold.why, format_time(hold.since))
        for hold in holds
        if hold.kind is IngestHoldKind.COLLECTION and (names is None or hold.name in names)
    ]
    tally = shown_tally(visit.store.tally()) if names is None else None
    return Queue(tally, shown_hold(whole), collections)


def hold_queue(visit: IngestRequest, body: WhyBody) -> Queue:
    """Stop everything: no batch and no job is taken up."""
    visit.desk.hold(visit.act(body.why), IngestHoldKind.QUEUE)
    return get_queue(visit)


def release_queue(visit: IngestRequest, body: WhyBody) -> Queue:
    """Let the queue go on."""
    visit.desk.release(visit.act(body.why), IngestHoldKind.QUEUE)
    return get_queue(visit)


def release_held(visit: IngestRequest, body: ReleaseHeldBody) -> Released:
    """Let every held batch and job go on, of one collection or of all that are not held."""
    if body.collection is None:
        visit.key.require_every_namespace()
    else:
        visit.collection(body.collection)
    return Released(visit.desk.release_all(visit.act(body.why), body.collection))


async def check_queue(call: Call, body: CheckBody) -> Flow:
    """Look for what no crash should have left, line by line; with `repair`, put right what can be.

    Each line is a JSON document: a `finding`, how far it is (`progress`), or the `end`; without an
    `end` it was broken off.
    """
    steps = call.door.plane.desk.check(AdminAction(call.key.name), repair=body.repair)
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
    Route("POST", f"{_BATCH}/hold", hold_batch, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_BATCH}/release", release_batch, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_BATCH}/update-report", update_batch_report, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_BATCH}/resume", resume_batch, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_BATCH}/priority", prioritize_batch, Reach.OWN, Role.ADMIN),
    Route("DELETE", _BATCH, delete_batch, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_JOB}/hold", hold_ingest_job, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_JOB}/release", release_ingest_job, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_JOB}/resume", resume_ingest_job, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_JOB}/fail", fail_ingest_job, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_JOB}/priority", prioritize_ingest_job, Reach.OWN, Role.ADMIN),
    Route("DELETE", _JOB, delete_ingest_job, Reach.OWN, Role.ADMIN),
    Route("GET", _QUEUE, get_queue, Reach.OWN),
    Route("POST", f"{_QUEUE}/hold", hold_queue, Reach.EVERYTHING, Role.ADMIN),
    Route("POST", f"{_QUEUE}/release", release_queue, Reach.EVERYTHING, Role.ADMIN),
    Route("POST", f"{_QUEUE}/release-held", release_held, Reach.OWN, Role.ADMIN),
    Route("POST", f"{BASE}/ingest/check", check_queue, Reach.EVERYTHING, Role.ADMIN, media=NDJSON),
)
