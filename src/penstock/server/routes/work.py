"""Work of jobs on lots, and wiring: shown, explained, and changed by administrators."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from penstock.access.keys import Key
from penstock.catalog.commands import DatasetName
from penstock.catalog.queries import catalog as catalog_reading
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.commands import HoldJob, HoldWork, PrioritizeWork, ResubmitLots, WireJob
from penstock.locks.commands.admin import EndClaim
from penstock.locks.explain import why
from penstock.locks.queries import claims
from penstock.locks.queries import lots as reading_lots
from penstock.schema.admin import KeyRole
from penstock.schema.locks import LEASE_SECONDS_MAX, ReleasedJob, Stale, Why, Wiring, Work, WorkList
from penstock.schema.lots import Log
from penstock.schema.texts import LotName
from penstock.server import requests as activity_log
from penstock.server.content import Body, Paging
from penstock.server.requests import RequestContext
from penstock.server.routes.jobs import DatasetNameBody
from penstock.server.routes.lots import LotIds, Priority, WhyBody
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.states import WorkState


class ResubmitBody(WhyBody, frozen=True):
    """The lots to resubmit, and the reason."""

    lots: LotIds


class PriorityBody(WhyBody, frozen=True):
    """A priority of work, high first."""

    priority: Priority


class WorkQuery(Paging, frozen=True):
    """The selection of a job's lots, by state."""

    state: WorkState | None = None


class LogQuery(Paging, frozen=True):
    """A page of a job's log; with a lot, only of that lot."""

    lot: LotName | None = None


def list_work(tx: Transaction, namespace: str, job: str, query: WorkQuery) -> WorkList:
    """List the work of a job: in one state and in the order of work, or all of it by lot."""
    page = reading_lots.list_work(tx, namespace, job, query.state, query.limit, query.offset)
    return WorkList(page.items, page.total_count)


def get_work(tx: Transaction, namespace: str, job: str, lot: str) -> Work:
    """Show the work of a job on a lot."""
    return reading_lots.get_work(tx, namespace, job, lot)


def explain(tx: Transaction, key: Key, now: Micros, namespace: str, job: str, lot: str) -> Why:
    """Explain why a job does not work on a lot, in words and as data, down to the root cause."""
    return why.explain_work(tx, namespace, job, lot, now, only=key.namespace)


def list_job_log(tx: Transaction, namespace: str, job: str, query: LogQuery) -> Log:
    """List the log of a job's lots, newest first."""
    page = query.limit, query.offset
    return Log(reading_lots.list_log_of_job(tx, namespace, job, query.lot, *page))


def list_run_log(tx: Transaction, key: Key, run: str, query: Paging) -> Log:
    """List the log of the claim of a run, newest first."""
    run_row = catalog_reading.get_run(tx, run)
    key.require_own(run_row.job.namespace)
    return Log(reading_lots.list_log_of_run(tx, run_row.id, query.limit, query.offset))


async def resubmit_lots(
    context: RequestContext, namespace: str, job: str, body: ResubmitBody
) -> WorkList:
    """Resubmit lots of a job, all of them or none. Their inputs are released."""
    lots = body.lots
    await context.submit(ResubmitLots(context.key.name, body.why, namespace, job, lots))
    activity_log.changed(context, f"{len(lots)} lots are resubmitted", job=f"{namespace}/{job}")
    works = await context.read(reading_lots.load_work, namespace, job, lots)
    return WorkList(works, len(works))


async def prioritize(
    context: RequestContext, namespace: str, job: str, lot: str, body: PriorityBody
) -> Work:
    """Set the priority of a job's work on a lot."""
    who, priority = context.key.name, body.priority
    await context.submit(PrioritizeWork(who, body.why, namespace, job, (lot,), priority))
    return await context.read(reading_lots.get_work, namespace, job, lot)


async def hold_job(context: RequestContext, namespace: str, job: str, body: WhyBody) -> Wiring:
    """Hold a job: none of its lots is claimed until the hold is released."""
    await context.read(claims.get_lot_job, namespace, job)
    await context.submit(HoldJob(context.key.name, body.why, namespace, job))
    activity_log.changed(context, f"a job is held ({body.why})", job=f"{namespace}/{job}")
    return await context.read(claims.get_wiring, namespace, job)


async def release_job(
    context: RequestContext, namespace: str, job: str, body: WhyBody
) -> ReleasedJob:
    """Release the hold of a job; the answer names the holds that still stop it.

    If the job itself is not held, the answer is a conflict that names what stops it instead.
    """
    await context.read(claims.get_lot_job, namespace, job)
    await context.submit(HoldJob(context.key.name, body.why, namespace, job, hold=False))
    activity_log.changed(context, f"a job is let go ({body.why})", job=f"{namespace}/{job}")
    return await context.read(claims.get_released_job, namespace, job)


async def hold_work(
    context: RequestContext, namespace: str, job: str, lot: str, body: WhyBody
) -> Work:
    """Keep a job from a lot until the hold is released."""
    who = context.key.name
    return await _change_work(context, HoldWork(who, body.why, namespace, job, lot), body.why)


async def release_work(
    context: RequestContext, namespace: str, job: str, lot: str, body: WhyBody
) -> Work:
    """Release the hold of a job's work on a lot, with all its tries.

    If nothing holds this work, the answer is a conflict that names what stops it instead.
    """
    who, only = context.key.name, context.key.namespace
    release = HoldWork(who, body.why, namespace, job, lot, hold=False, only=only)
    return await _change_work(context, release, body.why)


async def resubmit_work(
    context: RequestContext, namespace: str, job: str, lot: str, body: WhyBody
) -> Work:
    """Resubmit a lot of a job. Its inputs are released."""
    who = context.key.name
    await context.submit(ResubmitLots(who, body.why, namespace, job, (lot,)))
    return await _show_changed_work(context, "ResubmitLots", namespace, job, lot, body.why)


async def end_claim(
    context: RequestContext, namespace: str, job: str, lot: str, body: WhyBody
) -> Work:
    """End another worker's claim on a lot; that worker can no longer publish."""
    who = context.key.name
    return await _change_work(context, EndClaim(who, body.why, namespace, job, lot), body.why)


async def _change_work(context: RequestContext, command: HoldWork | EndClaim, why: str) -> Work:
    await context.submit(command)
    name = type(command).__name__
    return await _show_changed_work(context, name, command.namespace, command.job, command.lot, why)


async def _show_changed_work(
    context: RequestContext, change: str, namespace: str, job: str, lot: str, why: str
) -> Work:
    activity_log.changed(context, f"{change} ({why})", job=f"{namespace}/{job}", lot=lot)
    return await context.read(reading_lots.get_work, namespace, job, lot)


_JOB = f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}"
_LOT = f"{_JOB}/lots/{{lot}}"


LeaseSeconds = Annotated[int, Meta(ge=1, le=LEASE_SECONDS_MAX)]


class WiringBody(Body, frozen=True):
    """The wiring of a job. Omitted fields stay as they are."""

    inputs: tuple[DatasetNameBody, ...] | None = None
    outputs: tuple[DatasetNameBody, ...] | None = None
    lease_seconds: LeaseSeconds | None = None
    tries_max: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    back_off_seconds: Annotated[int, Meta(ge=0, le=LEASE_SECONDS_MAX)] | None = None
    enforced: bool | None = None
    stale: Stale | None = None


async def put_wiring(context: RequestContext, namespace: str, job: str, body: WiringBody) -> Wiring:
    """Wire a job: set the datasets that it reads and writes lot by lot, and its retry policy."""
    await context.submit(
        WireJob(
            namespace,
            job,
            dataset_names(context, body.inputs),
            dataset_names(context, body.outputs),
            body.lease_seconds,
            body.tries_max,
            body.back_off_seconds,
            body.enforced,
            body.stale,
            context.key.namespace,
        )
    )
    return await context.read(claims.get_wiring, namespace, job)


def get_wiring(tx: Transaction, namespace: str, job: str) -> Wiring:
    """Show the wiring of a job."""
    return claims.get_wiring(tx, namespace, job)


def dataset_names(
    context: RequestContext, given: Sequence[DatasetNameBody] | None
) -> tuple[DatasetName, ...] | None:
    """Return the datasets that a body names."""
    if given is None:
        return None
    for dataset in given:
        context.check_names(namespace=dataset.namespace, name=dataset.name)
    return tuple(DatasetName(dataset.namespace, dataset.name) for dataset in given)


_WIRING = f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}/wiring"


ROUTES = (
    Route(READ, "GET", f"{_JOB}/lots", list_work),
    Route(READ, "GET", _LOT, get_work),
    Route(READ, "GET", f"{_LOT}/why", explain),
    Route(READ, "GET", f"{_JOB}/log", list_job_log),
    Route(READ, "GET", f"{BASE}/jobs/runs/{{run}}/log", list_run_log, Reach.OWN),
    Route(ASYNC, "POST", f"{_JOB}/resubmit", resubmit_lots, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_JOB}/hold", hold_job, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_JOB}/release", release_job, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_LOT}/priority", prioritize, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_LOT}/resubmit", resubmit_work, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_LOT}/hold", hold_work, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_LOT}/release", release_work, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_LOT}/end-claim", end_claim, role=KeyRole.ADMIN),
    Route(READ, "GET", _WIRING, get_wiring),
    Route(ASYNC, "PUT", _WIRING, put_wiring, role=KeyRole.WRITER),
)
