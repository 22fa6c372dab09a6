"""Arcs and arrivals that are declared together, as files have them."""

from collections.abc import Sequence

from penstock.access.keys import Role
from penstock.api.arcs import check_arc
from penstock.api.arcs_shapes import NamedArc, NamedArrival
from penstock.api.arrivals import check_arrivals
from penstock.api.bodies import Body
from penstock.api.calls import Call
from penstock.api.routing import BASE, Reach, Route
from penstock.arcs.declaring import Declare
from penstock.catalog.shapes import Shape


class DeclarationsBody(Body, frozen=True):
    """Arcs and arrivals to be declared together; a `dryRun` only tells what would change."""

    arcs: Sequence[NamedArc] = ()
    arrivals: Sequence[NamedArrival] = ()
    dry_run: bool = False


class Changed(Shape, frozen=True):
    """Which arcs and arrivals are other than before, or would be."""

    changed: Sequence[str]


async def declare(call: Call, body: DeclarationsBody) -> Changed:
    """Declare arcs and arrivals, or change them: all of them, or nothing.

    A dry run is refused for whatever the same call would be refused for.
    """
    arcs = tuple(each.whole() for each in body.arcs)
    for arc in arcs:
        call.key.require_namespace(arc.namespace)
        call.check_names(namespace=arc.namespace, job=arc.name)
        await check_arc(call, arc)
    arrivals = tuple(each.whole() for each in body.arrivals)
    for arrival in arrivals:
        call.check_names(namespace=arrival.namespace, dataset=arrival.dataset)
        check_arrivals(call)
    return Changed(await call.submit(Declare(call.key.name, arcs, arrivals, body.dry_run)))


ROUTES = (Route("POST", f"{BASE}/declarations", declare, Reach.OWN, Role.ADMIN),)
