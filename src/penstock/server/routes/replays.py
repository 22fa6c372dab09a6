"""Replays: what was made from bad lots, made again in order, as one operation."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from penstock.access.keys import Role
from penstock.catalog.shapes import Shape
from penstock.clock import parse_time
from penstock.operations.operation import MAX_RUNNING
from penstock.operations.replays.plan import ReplayPlan
from penstock.operations.replays.service import ReplayProgress, Replays, StepShown
from penstock.operations.replays.target import ReplayTarget
from penstock.server.content import Body
from penstock.server.parameters import Query, Time
from penstock.server.requests import Call
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import BASE, Reach, Route
from penstock.states import StepState

_LISTED_MAX = 1000
_STEPS_MAX = 10_000

AtOnce = Annotated[int, Meta(ge=1, le=10_000, description="how many steps at a time")]
Bad = Annotated[str, Meta(max_length=1_000)] | None


class BadLots(Struct, frozen=True, rename="camel"):
    """What is bad, as it is said to plan a replay and to begin one."""

    namespace: str = ""
    dataset: Bad = None
    lot: Bad = None
    version: Bad = None
    any_version: bool = False
    job: Bad = None
    job_version: Bad = None
    start: Time | None = field(name="from", default=None)
    end: Time | None = field(name="to", default=None)
    batch: Bad = None
    downstream_only: bool = False


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


class ReplayList(Shape, frozen=True):
    """The last replays, newest first."""

    replays: Sequence[ReplayProgress]


class StepList(Shape, frozen=True):
    """Steps of a replay, in order."""

    steps: Sequence[StepShown]


async def plan_replay(call: Call, query: PlanQuery) -> ReplayPlan:
    """Tell what a replay would do: its steps in order, and their cost by past durations.

    In it is each lot of a job whose last good run read what is bad, or anything made from it.
    """
    replays = _replays(call)
    asked: dict[str, Any] = {"at_once": query.at_once, "may": call.key.require_own}
    return await call.door.in_thread(lambda: replays.plan(_target(query), **asked))


async def start_replay(call: Call, replay: str, body: ReplayBody) -> ReplayProgress:
    """Begin a replay under an id of the caller's choice; the same again changes nothing.

    Engines (`penstock arcs work`) set its steps going, `maxRunning` at a time, each when those
    before it are done. What does not stand on the bad lot is not touched.
    """
    replays, who = _replays(call), call.key.name
    how: dict[str, Any] = {"max_running": body.max_running, "may": call.key.require_own}
    found = await call.door.in_thread(
        lambda: replays.start(replay, who, body.why, _target(body), **how)
    )
    return _seen(found, call.key.namespace)


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


async def list_replays(call: Call, query: ReplaysQuery) -> ReplayList:
    """List the last replays, newest first, with how far they are."""
    own = call.key.namespace
    found = await call.door.in_thread(_replays(call).last, query.limit, own or "")
    return ReplayList([_seen(each, own) for each in found])


async def get_replay(call: Call, replay: str) -> ReplayProgress:
    """Show how far a replay is."""
    found = await call.door.in_thread(_replays(call).status, replay)
    call.key.require_own(found.namespace)
    return _seen(found, call.key.namespace)


async def list_replay_steps(call: Call, replay: str, query: StepsQuery) -> StepList:
    """List the steps of a replay, in order; a key for one namespace is told no jobs elsewhere."""
    await get_replay(call, replay)
    replays = _replays(call)
    which: dict[str, Any] = {"state": query.state, "first": query.first, "most": query.limit}
    found = await call.door.in_thread(lambda: replays.steps(replay, **which))
    return StepList(_seen_steps(found, call.key.namespace))


def _seen(found: ReplayProgress, only: str | None) -> ReplayProgress:
    """A replay, of whose steps a key for one namespace is told the jobs there."""
    going, failed = _seen_steps(found.under_way, only), _seen_steps(found.failures, only)
    return replace(found, under_way=going, failures=failed)


def _seen_steps(steps: Sequence[StepShown], only: str | None) -> list[StepShown]:
    return [
        step
        if only in (None, step.namespace)
        else replace(step, namespace="", job="", run_before=None, run=None, note="")
        for step in steps
    ]


def _moving(summary: str, move: Callable[[Replays], Callable[..., ReplayProgress]]) -> Any:
    """The handler that moves a replay to another state."""

    async def act(call: Call, replay: str, body: WhyBody) -> ReplayProgress:
        await get_replay(call, replay)
        moved = move(_replays(call))
        found = await call.door.in_thread(moved, replay, call.key.name, body.why)
        return _seen(found, call.key.namespace)

    act.__doc__ = summary
    return act


def _replays(call: Call) -> Replays:
    plane = call.door.plane
    return Replays(plane.catalog, plane.clock)


_ALL = f"{BASE}/replays"
_ONE = f"{_ALL}/{{replay}}"
_MOVES = {
    "pause": _moving(
        "Set no more steps of a replay going, until it is resumed.", lambda r: r.pause
    ),
    "resume": _moving("Let a replay that was paused go on.", lambda r: r.resume),
    "cancel": _moving(
        "Stop a replay for good; what was not begun is left to its job's own rule.",
        lambda r: r.cancel,
    ),
}

ROUTES = (
    Route("GET", f"{_ALL}/plan", plan_replay, Reach.OWN),
    Route("GET", _ALL, list_replays, Reach.OWN),
    Route("PUT", _ONE, start_replay, Reach.OWN, Role.ADMIN),
    Route("GET", _ONE, get_replay, Reach.OWN),
    Route("GET", f"{_ONE}/steps", list_replay_steps, Reach.OWN),
    *(
        Route("POST", f"{_ONE}/{action}", act, Reach.OWN, Role.ADMIN)
        for action, act in _MOVES.items()
    ),
)
