"""Backfills: lots of an arc, over a range of time or from a list, repaired a few at a time."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta, field

from penstock.access.keys import Key, Role
from penstock.catalog.shapes import Shape
from penstock.catalog.text_schemas import LotName
from penstock.errors import Invalid
from penstock.lots.ids import Interval
from penstock.operations.backfills.lots import LISTED_MAX
from penstock.operations.backfills.plan import BackfillPlan
from penstock.operations.backfills.rules import Scope
from penstock.operations.backfills.service import BackfillProgress, Backfills
from penstock.operations.operation import MAX_RUNNING
from penstock.server.content import Body
from penstock.server.parameters import Query
from penstock.server.requests import Call
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import BASE, Reach, Route

_LISTED_MAX = 1000


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
        """Which lots it is for."""
        if self.failed_and_missing and (self.all or self.stale):
            raise Invalid(
                "only lots that failed or are missing, or also those that are stale, or all? Say "
                "one of the three"
            )
        if self.all:
            return Scope.ALL
        return Scope.NOT_GOOD if self.stale else Scope.FAILED_AND_MISSING


class BackfillsQuery(Query, frozen=True):
    """How many backfills to show, newest first."""

    limit: Annotated[int, Meta(ge=0, le=_LISTED_MAX)] = 100


class Begun(Shape, frozen=True):
    """The backfill that was begun or, of a dry run, what one would do."""

    plan: BackfillPlan | None
    backfill: BackfillProgress | None


class BackfillList(Shape, frozen=True):
    """The last backfills, newest first."""

    backfills: Sequence[BackfillProgress]


async def start(call: Call, namespace: str, arc: str, body: BackfillBody) -> Begun:
    """Begin a backfill of an arc, or tell what one would do.

    Engines (`penstock arcs work`) set its lots going, `maxRunning` at a time, after fresh ones.
    It never touches a good lot unless told so.
    """
    backfills, who = _backfills(call), call.key.name
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

    return await call.door.in_thread(work)


async def list_backfills(call: Call, query: BackfillsQuery) -> BackfillList:
    """List the last backfills, newest first, with how far they are."""
    own = call.key.namespace or ""
    return BackfillList(await call.door.in_thread(_backfills(call).last, query.limit, own))


async def get_backfill(call: Call, backfill: str) -> BackfillProgress:
    """Show how far a backfill is."""
    return await _own(call, backfill)


async def _own(call: Call, backfill: str) -> BackfillProgress:
    """A backfill that the key may see."""
    found = await call.door.in_thread(_backfills(call).status, backfill)
    _require(call.key, found)
    return found


def _require(key: Key, found: BackfillProgress) -> None:
    key.require_own(found.namespace)


def _moving(summary: str, move: Callable[[Backfills], Callable[..., BackfillProgress]]) -> Any:
    """The handler that moves a backfill to another state."""

    async def act(call: Call, backfill: str, body: WhyBody) -> BackfillProgress:
        await _own(call, backfill)
        moved = move(_backfills(call))
        return await call.door.in_thread(moved, backfill, call.key.name, body.why)

    act.__doc__ = summary
    return act


def _backfills(call: Call) -> Backfills:
    plane = call.door.plane
    return Backfills(plane.catalog, plane.clock)


_ALL = f"{BASE}/backfills"
_ONE = f"{_ALL}/{{backfill}}"
_MOVES = {
    "pause": _moving(
        "Set no more lots of a backfill going, until it is resumed.", lambda b: b.pause
    ),
    "resume": _moving("Let a backfill that was paused go on.", lambda b: b.resume),
    "cancel": _moving("Stop a backfill for good; what was set going ends.", lambda b: b.cancel),
}

ROUTES = (
    Route(
        "POST",
        f"{BASE}/namespaces/{{namespace}}/arcs/{{arc}}/backfills",
        start,
        role=Role.ADMIN,
    ),
    Route("GET", _ALL, list_backfills, Reach.OWN),
    Route("GET", _ONE, get_backfill, Reach.OWN),
    *(
        Route("POST", f"{_ONE}/{action}", act, Reach.OWN, Role.ADMIN)
        for action, act in _MOVES.items()
    ),
)
