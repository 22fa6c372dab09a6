"""Backfills: lots of an arc, over a range of time or from a list, repaired a few at a time."""

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, field

from penstock.access.keys import Key
from penstock.arcs.backfills.backfills import MAX_RUNNING, Backfills
from penstock.arcs.backfills.rules import LISTED_MAX
from penstock.errors import Invalid
from penstock.schema.admin import KeyRole
from penstock.schema.lot_ids import Interval
from penstock.schema.operations import Backfill, BackfillList, Begun, Scope
from penstock.schema.texts import LotName
from penstock.server.content import Body
from penstock.server.parameters import Query
from penstock.server.requests import RequestContext
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import ASYNC, BASE, Reach, Route

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


async def start(context: RequestContext, namespace: str, arc: str, body: BackfillBody) -> Begun:
    """Begin a backfill of an arc, or tell what one would do.

    Engines (`penstock arcs work`) set its lots going, `maxRunning` at a time, after fresh ones.
    It never touches a good lot unless told so.
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
    """List the last backfills, newest first, with how far they are."""
    own = context.key.namespace or ""
    return BackfillList(await context.state.in_thread(_backfills(context).last, query.limit, own))


async def get_backfill(context: RequestContext, backfill: str) -> Backfill:
    """Show how far a backfill is."""
    return await _own(context, backfill)


async def _own(context: RequestContext, backfill: str) -> Backfill:
    """A backfill that the key may see."""
    found = await context.state.in_thread(_backfills(context).status, backfill)
    _require(context.key, found)
    return found


def _require(key: Key, found: Backfill) -> None:
    key.require_own(found.namespace)


async def pause_backfill(context: RequestContext, backfill: str, body: WhyBody) -> Backfill:
    """Start no more lots of a backfill until it is resumed."""
    return await _move(context, backfill, _backfills(context).pause, body.why)


async def resume_backfill(context: RequestContext, backfill: str, body: WhyBody) -> Backfill:
    """Resume a paused backfill."""
    return await _move(context, backfill, _backfills(context).resume, body.why)


async def cancel_backfill(context: RequestContext, backfill: str, body: WhyBody) -> Backfill:
    """Stop a backfill for good. Lots that are running still end."""
    return await _move(context, backfill, _backfills(context).cancel, body.why)


async def _move(
    context: RequestContext, backfill: str, move: Callable[[str, str, str], Backfill], why: str
) -> Backfill:
    await _own(context, backfill)
    return await context.state.in_thread(move, backfill, context.key.name, why)


def _backfills(context: RequestContext) -> Backfills:
    plane = context.plane
    return Backfills(plane.catalog, plane.clock)


_ALL = f"{BASE}/backfills"
_ONE = f"{_ALL}/{{backfill}}"

ROUTES = (
    Route(
        ASYNC,
        "POST",
        f"{BASE}/namespaces/{{namespace}}/arcs/{{arc}}/backfills",
        start,
        role=KeyRole.ADMIN,
    ),
    Route(ASYNC, "GET", _ALL, list_backfills, Reach.OWN),
    Route(ASYNC, "GET", _ONE, get_backfill, Reach.OWN),
    Route(ASYNC, "POST", f"{_ONE}/pause", pause_backfill, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/resume", resume_backfill, Reach.OWN, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/cancel", cancel_backfill, Reach.OWN, KeyRole.ADMIN),
)
