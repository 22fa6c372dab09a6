"""What jobs have to do, lot by lot: shown, explained, and changed by administrators."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta

from penstock.access.keys import Key
from penstock.catalog.commands import DatasetName
from penstock.catalog.queries import catalog as catalog_reading
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.commands import (
    HoldJob,
    HoldWork,
    PrioritizeWork,
    ReleaseLock,
    ResubmitLots,
    WireJob,
)
from penstock.locks.explain import why
from penstock.locks.queries import claims
from penstock.locks.queries import lots as reading_lots
from penstock.schema.admin import KeyRole
from penstock.schema.locks import LEASE_SECONDS_MAX, ReleasedJob, Stale, Why, Wiring, Work, WorkList
from penstock.schema.lots import Log
from penstock.schema.texts import LotName
from penstock.server import activity_log
from penstock.server.content import Body
from penstock.server.parameters import Paging
from penstock.server.requests import Call
from penstock.server.routes.jobs import DatasetNameBody
from penstock.server.routes.lots import LotIds, Priority, WhyBody
from penstock.server.routing import BASE, Reach, Route
from penstock.states import WorkState
from penstock.store.write_queue import Command


class ResubmitBody(WhyBody, frozen=True):
    """Which lots to work on again, and why."""

    lots: LotIds


class PriorityBody(WhyBody, frozen=True):
    """What comes first: the higher priority."""

    priority: Priority


class WorkQuery(Paging, frozen=True):
    """Which of a job's lots."""

    state: WorkState | None = None


class LogQuery(Paging, frozen=True):
    """Which part of a job's log; with a lot, of that lot alone."""

    lot: LotName | None = None


def list_work(tx: Transaction, namespace: str, job: str, query: WorkQuery) -> WorkList:
    """List what a job has to do: in one state and in the order of work, or all of it by lot."""
    page = reading_lots.list_work(tx, namespace, job, query.state, query.limit, query.offset)
    return WorkList(page.items, page.total_count)


def get_work(tx: Transaction, namespace: str, job: str, lot: str) -> Work:
    """Show what a job has to do with a lot."""
    return reading_lots.get_work(tx, namespace, job, lot)


def explain(tx: Transaction, key: Key, now: Micros, namespace: str, job: str, lot: str) -> Why:
    """Say why a job does not work on a lot, in words and as data, down to the root cause."""
    return why.why(tx, namespace, job, lot, now, only=key.namespace)


def list_job_log(tx: Transaction, namespace: str, job: str, query: LogQuery) -> Log:
    """List what happened to a job's lots, newest first."""
    page = query.limit, query.offset
    return Log(reading_lots.list_log_of_job(tx, namespace, job, query.lot, *page))


def list_run_log(tx: Transaction, key: Key, run: str, query: Paging) -> Log:
    """List what happened to the claim that a run is, newest first."""
    found = catalog_reading.get_run(tx, run)
    key.require_own(found.job.namespace)
    return Log(reading_lots.list_log_of_run(tx, found.id, query.limit, query.offset))


async def resubmit_lots(call: Call, namespace: str, job: str, body: ResubmitBody) -> WorkList:
    """Have a job work on lots again, all of them or none; their inputs are released."""
    lots = body.lots
    await call.submit(ResubmitLots(call.key.name, body.why, namespace, job, lots))
    activity_log.changed(call, f"{len(lots)} lots are resubmitted", job=f"{namespace}/{job}")
    found = await call.read(reading_lots.load_work, namespace, job, lots)
    return WorkList(found, len(found))


async def prioritize(call: Call, namespace: str, job: str, lot: str, body: PriorityBody) -> Work:
    """Have a lot of a job worked on before or after others."""
    who, priority = call.key.name, body.priority
    await call.submit(PrioritizeWork(who, body.why, namespace, job, (lot,), priority))
    return await call.read(reading_lots.get_work, namespace, job, lot)


async def hold_job(call: Call, namespace: str, job: str, body: WhyBody) -> Wiring:
    """Stop a job: none of its lots is claimed until it is let go."""
    await call.read(claims.get_lot_job, namespace, job)
    await call.submit(HoldJob(call.key.name, body.why, namespace, job))
    activity_log.changed(call, f"a job is held ({body.why})", job=f"{namespace}/{job}")
    return await call.read(claims.get_wiring, namespace, job)


async def unhold_job(call: Call, namespace: str, job: str, body: WhyBody) -> ReleasedJob:
    """Release the hold of a job; the answer names the holds that still stop it.

    A job that is not held for itself is a conflict that names what stops it instead.
    """
    await call.read(claims.get_lot_job, namespace, job)
    await call.submit(HoldJob(call.key.name, body.why, namespace, job, hold=False))
    activity_log.changed(call, f"a job is let go ({body.why})", job=f"{namespace}/{job}")
    return await call.read(claims.get_released_job, namespace, job)


async def unhold_work(call: Call, namespace: str, job: str, lot: str, body: WhyBody) -> Work:
    """Let a job work on a lot that was held, with all its tries.

    A lot that the job is not kept from is a conflict that names what stops it instead.
    """
    who, only = call.key.name, call.key.namespace
    await call.submit(HoldWork(who, body.why, namespace, job, lot, hold=False, only=only))
    activity_log.changed(call, f"HoldWork ({body.why})", job=f"{namespace}/{job}", lot=lot)
    return await call.read(reading_lots.get_work, namespace, job, lot)


def _of_lot(
    summary: str, command: Callable[[str, str, str, str, str], Command[None]]
) -> Callable[..., Any]:
    """The handler of an action on a lot of a job; the command is made from who, why and what."""

    async def act(call: Call, namespace: str, job: str, lot: str, body: WhyBody) -> Work:
        done = command(call.key.name, body.why, namespace, job, lot)
        await call.submit(done)
        what = f"{type(done).__name__} ({body.why})"
        activity_log.changed(call, what, job=f"{namespace}/{job}", lot=lot)
        return await call.read(reading_lots.get_work, namespace, job, lot)

    act.__doc__ = summary
    return act


_resubmit = _of_lot(
    "Have a job work on a lot again; its inputs are released.",
    lambda who, why, namespace, job, lot: ResubmitLots(who, why, namespace, job, (lot,)),
)
_LOT_ACTIONS = {
    "resubmit": _resubmit,
    "rerun": _resubmit,
    "hold": _of_lot("Keep a job from a lot until it is let go.", HoldWork),
    "unhold": unhold_work,
    "release": _of_lot(
        "End somebody's claim on a lot; its holder can no longer publish.", ReleaseLock
    ),
}
_JOB = f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}"
_LOT = f"{_JOB}/lots/{{lot}}"

ROUTES = (
    Route("GET", f"{_JOB}/lots", list_work),
    Route("GET", _LOT, get_work),
    Route("GET", f"{_LOT}/why", explain),
    Route("GET", f"{_JOB}/log", list_job_log),
    Route("GET", f"{BASE}/jobs/runs/{{run}}/log", list_run_log, Reach.OWN),
    Route("POST", f"{_JOB}/resubmit", resubmit_lots, role=KeyRole.ADMIN),
    Route("POST", f"{_JOB}/hold", hold_job, role=KeyRole.ADMIN),
    Route("POST", f"{_JOB}/unhold", unhold_job, role=KeyRole.ADMIN),
    Route("POST", f"{_LOT}/priority", prioritize, role=KeyRole.ADMIN),
    *(
        Route("POST", f"{_LOT}/{action}", act, role=KeyRole.ADMIN)
        for action, act in _LOT_ACTIONS.items()
    ),
)


LeaseSeconds = Annotated[int, Meta(ge=1, le=LEASE_SECONDS_MAX)]


class WiringBody(Body, frozen=True):
    """Which datasets a job reads and writes lot by lot; what is left out stays as it is."""

    inputs: tuple[DatasetNameBody, ...] | None = None
    outputs: tuple[DatasetNameBody, ...] | None = None
    lease_seconds: LeaseSeconds | None = None
    tries_max: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    back_off_seconds: Annotated[int, Meta(ge=0, le=LEASE_SECONDS_MAX)] | None = None
    enforced: bool | None = None
    stale: Stale | None = None


async def put_wiring(call: Call, namespace: str, job: str, body: WiringBody) -> Wiring:
    """State which datasets a job reads and writes lot by lot, and how its lots are worked on."""
    await call.submit(
        WireJob(
            namespace,
            job,
            dataset_names(call, body.inputs),
            dataset_names(call, body.outputs),
            body.lease_seconds,
            body.tries_max,
            body.back_off_seconds,
            body.enforced,
            body.stale,
            call.key.namespace,
        )
    )
    return await call.read(claims.get_wiring, namespace, job)


def get_wiring(tx: Transaction, namespace: str, job: str) -> Wiring:
    """Show which datasets a job reads and writes lot by lot."""
    return claims.get_wiring(tx, namespace, job)


def dataset_names(
    call: Call, given: Sequence[DatasetNameBody] | None
) -> tuple[DatasetName, ...] | None:
    """The datasets that a body names."""
    if given is None:
        return None
    for dataset in given:
        call.check_names(namespace=dataset.namespace, name=dataset.name)
    return tuple(DatasetName(dataset.namespace, dataset.name) for dataset in given)


_WIRING = f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}/wiring"

WIRING_ROUTES = (
    Route("GET", _WIRING, get_wiring),
    Route("PUT", _WIRING, put_wiring, role=KeyRole.WRITER),
)
