"""Replays: what was made from bad lots, made again in order, as one operation."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from penstock.clock import parse_time
from penstock.replay.replays import MAX_RUNNING, Replays
from penstock.replay.target import Target
from penstock.schema.admin import KeyRole
from penstock.schema.operations import (
    BadLots,
    Replay,
    ReplayList,
    ReplayPlan,
    ReplayStep,
    ReplaySteps,
)
from penstock.server.content import Body
from penstock.server.parameters import Query
from penstock.server.requests import RequestContext
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import ASYNC, BASE, Reach, Route
from penstock.states import StepState

_LISTED_MAX = 1000
_STEPS_MAX = 10_000

AtOnce = Annotated[int, Meta(ge=1, le=10_000, description="how many steps at a time")]


class PlanQuery(Query, BadLots, frozen=True):
    """What is bad: a lot of a dataset, what a job made, some time of either, or a batch.

    A lot is bad in the version that it has, unless another is named, or `anyVersion` of it is.
    Times are when lots were published: [from, to).
    """

    at_once: AtOnce = MAX_RUNNING


class ReplayBody(Body, BadLots, frozen=True, kw_only=True):
    """What is bad, said as for a plan, and how to make it good.

    The job of ours that made it is run again first, unless it is `downstreamOnly`.
    """

    why: Annotated[str, Meta(min_length=1, max_length=2_000)]
    max_running: AtOnce = MAX_RUNNING


class ReplaysQuery(Query, frozen=True):
    """How many replays to show, newest first."""

    limit: Annotated[int, Meta(ge=0, le=_LISTED_MAX)] = 100


class StepsQuery(Query, frozen=True):
    """Which steps to show: from a number on, in order; those in a state, if it is named."""

    state: StepState | None = None
    first: Annotated[int, Meta(ge=1, le=1 << 62)] = 1
    limit: Annotated[int, Meta(ge=0, le=_STEPS_MAX)] = 100


async def plan_replay(context: RequestContext, query: PlanQuery) -> ReplayPlan:
    """Tell what a replay would do: its steps in order, and their cost by past durations.

    In it is each lot of a job whose last good run read what is bad, or anything made from it.
    """
    replays = _replays(context)
    asked: dict[str, Any] = {"at_once": query.at_once, "may": context.key.require_own}
    return await context.state.in_thread(lambda: replays.plan(_target(query), **asked))


async def start_replay(context: RequestContext, replay: str, body: ReplayBody) -> Replay:
    """Begin a replay under an id of the caller's choice; the same again changes nothing.

    Engines (`penstock arcs work`) set its steps going, `maxRunning` at a time, each when those
    before it are done. What does not stand on the bad lot is not touched.
    """
    replays, who = _replays(context), context.key.name
    how: dict[str, Any] = {"max_running": body.max_running, "may": context.key.require_own}
    found = await context.state.in_thread(
        lambda: replays.start(replay, who, body.why, _target(body), **how)
    )
    return _seen(found, context.key.namespace)


def _target(asked: BadLots) -> Target:
    return Target(
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
    """List the last replays, newest first, with how far they are."""
    own = context.key.namespace
    found = await context.state.in_thread(_replays(context).last, query.limit, own or "")
    return ReplayList([_seen(each, own) for each in found])


async def get_replay(context: RequestContext, replay: str) -> Replay:
    """Show how far a replay is."""
    found = await context.state.in_thread(_replays(context).status, replay)
    context.key.require_own(found.namespace)
    return _seen(found, context.key.namespace)


async def list_replay_steps(context: RequestContext, replay: str, query: StepsQuery) -> ReplaySteps:
    """List the steps of a replay, in order; a key for one namespace is told no jobs elsewhere."""
    await get_replay(context, replay)
    replays = _replays(context)
    which: dict[str, Any] = {"state": query.state, "first": query.first, "most": query.limit}
    found = await context.state.in_thread(lambda: replays.steps(replay, **which))
    return ReplaySteps(_seen_steps(found, context.key.namespace))


def _seen(found: Replay, only: str | None) -> Replay:
    """A replay, of whose steps a key for one namespace is told the jobs there."""
    going, failed = _seen_steps(found.under_way, only), _seen_steps(found.failures, only)
    return replace(found, under_way=going, failures=failed)


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

ROUTES = (
    Route(ASYNC, "GET", f"{_ALL}/plan", plan_replay, Reach.OWN),
    Route(ASYNC, "GET", _ALL, list_replays, Reach.OWN),
    Route(ASYNC, "PUT", _ONE, start_replay, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "GET", _ONE, get_replay, Reach.OWN),
    Route(ASYNC, "GET", f"{_ONE}/steps", list_replay_steps, Reach.OWN),
    Route(ASYNC, "POST", f"{_ONE}/pause", pause_replay, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/resume", resume_replay, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/cancel", cancel_replay, Reach.OWN, KeyRole.ADMIN),
)
