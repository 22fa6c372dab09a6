"""Backfills and replays."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta, field
from msgspec.structs import replace

from penstock.access.keys import Key
from penstock.clock import parse_time
from penstock.errors import Invalid
from penstock.operations.backfills.lots import LISTED_MAX
from penstock.operations.backfills.service import Backfills
from penstock.operations.operation import MAX_RUNNING
from penstock.operations.replays.service import Replays
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.admin import KeyRole
from penstock.schema.lot_ids import Interval
from penstock.schema.operations import (
    Backfill,
    BackfillList,
    BadLots,
    Begun,
    Replay,
    ReplayList,
    ReplayPlan,
    ReplayStep,
    ReplaySteps,
    Scope,
)
from penstock.schema.texts import LotName
from penstock.server.content import Body, Query
from penstock.server.requests import RequestContext
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import ASYNC, BASE, Reach, Route
from penstock.states import StepState

_LISTED_MAX = 1000
_STEPS_MAX = 10_000

AtOnce = Annotated[int, Meta(ge=1, le=10_000, description="how many steps at a time")]


class PlanQuery(Query, BadLots, frozen=True):
    """The bad lots: one lot, the output of a job, a time range of either, or a batch.

    The current version of a lot is bad, or the one of `version`, or with `anyVersion` all.
    Times are when lots were published: [from, to).
    """

    at_once: AtOnce = MAX_RUNNING


class ReplayBody(Body, BadLots, frozen=True, kw_only=True):
    """The bad lots, as for a plan, with the reason and the limits of a replay.

    The job that made them runs first, unless `downstreamOnly` is set.
    """

    why: Annotated[str, Meta(min_length=1, max_length=2_000)]
    max_running: AtOnce = MAX_RUNNING


class ReplaysQuery(Query, frozen=True):
    """The number of replays to list."""

    limit: Annotated[int, Meta(ge=0, le=_LISTED_MAX)] = 100


class StepsQuery(Query, frozen=True):
    """The selection of steps: by state, from a number on."""

    state: StepState | None = None
    first: Annotated[int, Meta(ge=1, le=1 << 62)] = 1
    limit: Annotated[int, Meta(ge=0, le=_STEPS_MAX)] = 100


async def plan_replay(context: RequestContext, query: PlanQuery) -> ReplayPlan:
    """Plan a replay: its steps in order, and their cost by past durations.

    The plan has each lot of a job whose last good run read a bad lot, or anything made from it.
    """
    replays = _replays(context)
    asked: dict[str, Any] = {"at_once": query.at_once, "may": context.key.require_own}
    return await context.state.in_thread(lambda: replays.plan(_target(query), **asked))


async def start_replay(context: RequestContext, replay: str, body: ReplayBody) -> Replay:
    """Start a replay under an id that the caller chooses. The same request again changes nothing.

    Engines (`penstock arcs start`) run its steps, `maxRunning` at a time, each after the steps
    before it. Lots that do not depend on a bad lot are not touched.
    """
    replays, who = _replays(context), context.key.name
    how: dict[str, Any] = {"max_running": body.max_running, "may": context.key.require_own}
    found = await context.state.in_thread(
        lambda: replays.start(replay, who, body.why, _target(body), **how)
    )
    return _seen(found, context.key.namespace)


def _target(asked: BadLots) -> ReplayTarget:
    return ReplayTarget(
        namespace=asked.namespace,
        dataset=asked.dataset,
        lot=asked.lot,
        version=asked.version,
        any_version=asked.any_version,
        job=asked.job,
        job_version=asked.job_version,
        start=parse_time(asked.start) if asked.start is not None else None,
        end=parse_time(asked.end) if asked.end is not None else None,
        batch=asked.batch,
        downstream_only=asked.downstream_only,
    )


async def list_replays(context: RequestContext, query: ReplaysQuery) -> ReplayList:
    """List the last replays, newest first, with their progress."""
    own = context.key.namespace
    replays = await context.state.in_thread(_replays(context).last, query.limit, own or "")
    return ReplayList([_seen(each, own) for each in replays])


async def get_replay(context: RequestContext, replay: str) -> Replay:
    """Show a replay and its progress."""
    progress = await context.state.in_thread(_replays(context).status, replay)
    context.key.require_own(progress.namespace)
    return _seen(progress, context.key.namespace)


async def list_replay_steps(context: RequestContext, replay: str, query: StepsQuery) -> ReplaySteps:
    """List the steps of a replay in order. A key of one namespace sees no jobs of others."""
    await get_replay(context, replay)
    replays = _replays(context)
    which: dict[str, Any] = {"state": query.state, "first": query.first, "most": query.limit}
    steps = await context.state.in_thread(lambda: replays.steps(replay, **which))
    return ReplaySteps(_seen_steps(steps, context.key.namespace))


def _seen(progress: Replay, only: str | None) -> Replay:
    """Return a replay without the jobs that a key of one namespace may not see."""
    going, failed = _seen_steps(progress.under_way, only), _seen_steps(progress.failures, only)
    return replace(progress, under_way=going, failures=failed)


def _seen_steps(steps: Sequence[ReplayStep], only: str | None) -> list[ReplayStep]:
    return [
        step
        if only in (None, step.namespace)
        else replace(step, namespace="", job="", run_before=None, run=None, note="")
        for step in steps
    ]


async def pause_replay(context: RequestContext, replay: str, body: WhyBody) -> Replay:
    """Start no more steps of a replay until it is resumed."""
    return await _move(context, replay, _replays(context).pause, body.why)


async def resume_replay(context: RequestContext, replay: str, body: WhyBody) -> Replay:
    """Resume a paused replay."""
    return await _move(context, replay, _replays(context).resume, body.why)


async def cancel_replay(context: RequestContext, replay: str, body: WhyBody) -> Replay:
    """Stop a replay for good. The rule of its job decides about each step that was not begun."""
    return await _move(context, replay, _replays(context).cancel, body.why)


async def _move(
    context: RequestContext, replay: str, move: Callable[[str, str, str], Replay], why: str
) -> Replay:
    await get_replay(context, replay)
    moved = await context.state.in_thread(move, replay, context.key.name, why)
    return _seen(moved, context.key.namespace)


def _replays(context: RequestContext) -> Replays:
    plane = context.plane
    return Replays(plane.catalog, plane.clock)


_ALL = f"{BASE}/replays"
_ONE = f"{_ALL}/{{replay}}"


_BACKFILLS_MAX = 1000


class BackfillBody(Body, frozen=True):
    """The lots of an arc to repair, and how.

    They are the lots from one time or lot to another, or those that `lots` names. Lots with free
    ids have no range: without `lots`, all that failed or are missing are repaired, 10,000 at most.

    Only lots that failed or are missing are worked on, and `failedAndMissing` states the same.
    `stale` adds lots with newer inputs, and `all` adds good ones. A `dryRun` only shows what a
    backfill would do.
    """

    first: str | None = field(name="from", default=None)
    last: str | None = field(name="to", default=None)
    lots: Annotated[tuple[LotName, ...], Meta(max_length=LISTED_MAX)] = ()
    failed_and_missing: bool = False
    all: bool = False
    stale: bool = False
    newest_first: bool = False
    max_running: Annotated[int, Meta(ge=1, le=10_000)] = MAX_RUNNING
    interval: Interval | None = None
    dry_run: bool = False
    why: Annotated[str, Meta(max_length=2_000)] = ""

    @property
    def scope(self) -> Scope:
        """Return the lots that the backfill is for."""
        if self.failed_and_missing and (self.all or self.stale):
            raise Invalid(
                "only lots that failed or are missing, or also those that are stale, or all? Say "
                "one of the three"
            )
        if self.all:
            return Scope.ALL
        return Scope.NOT_GOOD if self.stale else Scope.FAILED_AND_MISSING


class BackfillsQuery(Query, frozen=True):
    """The number of backfills to list."""

    limit: Annotated[int, Meta(ge=0, le=_BACKFILLS_MAX)] = 100


async def start(context: RequestContext, namespace: str, arc: str, body: BackfillBody) -> Begun:
    """Start a backfill of an arc; a dry run returns the plan.

    Engines (`penstock arcs start`) run its lots, `maxRunning` at a time, after new lots.
    It touches good lots only with `all`.
    """
    backfills, who = _backfills(context), context.key.name
    bounds = namespace, arc, body.first, body.last
    how: dict[str, Any] = {
        "scope": body.scope,
        "newest_first": body.newest_first,
        "interval": body.interval,
        "lots": body.lots,
    }

    def work() -> Begun:
        if body.dry_run:
            return Begun(backfills.plan(*bounds, **how), None)
        most = body.max_running
        return Begun(None, backfills.start(who, body.why, *bounds, max_running=most, **how))

    return await context.state.in_thread(work)


async def list_backfills(context: RequestContext, query: BackfillsQuery) -> BackfillList:
    """List the last backfills, newest first, with their progress."""
    own = context.key.namespace or ""
    return BackfillList(await context.state.in_thread(_backfills(context).last, query.limit, own))


async def get_backfill(context: RequestContext, backfill: str) -> Backfill:
    """Show a backfill and its progress."""
    return await _own(context, backfill)


async def _own(context: RequestContext, backfill: str) -> Backfill:
    """Return a backfill that the key may see."""
    progress = await context.state.in_thread(_backfills(context).status, backfill)
    _require(context.key, progress)
    return progress


def _require(key: Key, progress: Backfill) -> None:
    key.require_own(progress.namespace)


async def pause_backfill(context: RequestContext, backfill: str, body: WhyBody) -> Backfill:
    """Start no more lots of a backfill until it is resumed."""
    return await _move_backfill(context, backfill, _backfills(context).pause, body.why)


async def resume_backfill(context: RequestContext, backfill: str, body: WhyBody) -> Backfill:
    """Resume a paused backfill."""
    return await _move_backfill(context, backfill, _backfills(context).resume, body.why)


async def cancel_backfill(context: RequestContext, backfill: str, body: WhyBody) -> Backfill:
    """Stop a backfill for good. Lots that are running still end."""
    return await _move_backfill(context, backfill, _backfills(context).cancel, body.why)


async def _move_backfill(
    context: RequestContext, backfill: str, move: Callable[[str, str, str], Backfill], why: str
) -> Backfill:
    await _own(context, backfill)
    return await context.state.in_thread(move, backfill, context.key.name, why)


def _backfills(context: RequestContext) -> Backfills:
    plane = context.plane
    return Backfills(plane.catalog, plane.clock)


_BACKFILLS = f"{BASE}/backfills"
_BACKFILL = f"{_BACKFILLS}/{{backfill}}"


ROUTES = (
    Route(ASYNC, "GET", f"{_ALL}/plan", plan_replay, Reach.OWN),
    Route(ASYNC, "GET", _ALL, list_replays, Reach.OWN),
    Route(ASYNC, "PUT", _ONE, start_replay, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "GET", _ONE, get_replay, Reach.OWN),
    Route(ASYNC, "GET", f"{_ONE}/steps", list_replay_steps, Reach.OWN),
    Route(ASYNC, "POST", f"{_ONE}/pause", pause_replay, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/resume", resume_replay, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/cancel", cancel_replay, Reach.OWN, KeyRole.ADMIN),
    Route(
        ASYNC,
        "POST",
        f"{BASE}/namespaces/{{namespace}}/arcs/{{arc}}/backfills",
        start,
        role=KeyRole.ADMIN,
    ),
    Route(ASYNC, "GET", _BACKFILLS, list_backfills, Reach.OWN),
    Route(ASYNC, "GET", _BACKFILL, get_backfill, Reach.OWN),
    Route(ASYNC, "POST", f"{_BACKFILL}/pause", pause_backfill, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_BACKFILL}/resume", resume_backfill, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_BACKFILL}/cancel", cancel_backfill, Reach.OWN, KeyRole.ADMIN),
)
