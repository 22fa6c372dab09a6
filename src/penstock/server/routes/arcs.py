"""Arcs: declared, shown with their lots, cleaned and synced."""

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.access.keys import Key, Role
from penstock.arcs.arrivals.commands import ApplyArrival, DeleteArrival
from penstock.arcs.arrivals.rows import all_arrivals, find_arrival, landings_of, refused_objects
from penstock.arcs.commands import ApplyArc, DeleteArc
from penstock.arcs.declaring import Declare
from penstock.arcs.outputs.cleaning import clean_lot
from penstock.arcs.outputs.state_keys import LOTS_AT_ONCE, Sync, Synced
from penstock.arcs.overview import (
    ArcLot,
    ArcLotDetail,
    ArcPart,
    count_lots,
    get_arc_lot,
    list_arc_lots,
)
from penstock.arcs.queries import all_arcs, find_arc, read_manifest
from penstock.arcs.rows import PartState
from penstock.arcs.spec import Arc
from penstock.catalog.shapes import Shape
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import Forbidden, NotFound
from penstock.objects import Objects
from penstock.server.arcs_shapes import (
    ArcBody,
    ArrivalBody,
    NamedArc,
    NamedArrival,
    RefusedObject,
    ShownArc,
    ShownArrival,
    shown_arc,
    shown_arrival,
)
from penstock.server.content import Body
from penstock.server.parameters import Limit, Query
from penstock.server.requests import Call
from penstock.server.responses import NOTHING, Empty
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import BASE, Reach, Route
from penstock.states import ArcState


class ArcsQuery(Query, frozen=True):
    """Which arcs."""

    namespace: str | None = None


class ArcLotsQuery(Query, frozen=True):
    """Which lots of an arc: in this state, and after this one."""

    state: ArcState | None = None
    after: str = ""
    limit: Limit = 100


class SyncBody(Body, frozen=True):
    """Where a sync goes on: the `next` of the answer before."""

    after: str = ""
    lots: Annotated[int, Meta(ge=1, le=LOTS_AT_ONCE)] = LOTS_AT_ONCE


class Arcs(Shape, frozen=True):
    """The arcs, by name."""

    arcs: Sequence[ShownArc]


class ArcLots(Shape, frozen=True):
    """A part of an arc's lots, by lot; `next` is the lot to go on after, null at the end."""

    lots: Sequence[ArcLot]
    next: str | None


def list_arcs(tx: Transaction, key: Key, query: ArcsQuery) -> Arcs:
    """List arcs by name, with how many of their lots stand where."""
    spaces = {space for space in (key.namespace, query.namespace) if space is not None}
    rows = [row for row in all_arcs(tx) if spaces <= {row.namespace}]
    counts = count_lots(tx, rows)
    return Arcs([shown_arc(row, counts[row.job_id]) for row in rows])


def get_arc(tx: Transaction, namespace: str, arc: str) -> ShownArc:
    """Show an arc as it was declared, and how many of its lots stand where."""
    row = find_arc(tx, namespace, arc)
    return shown_arc(row, count_lots(tx, [row])[row.job_id])


async def put_arc(call: Call, namespace: str, arc: str, body: ArcBody) -> ShownArc:
    """Declare an arc, or change it; it finds the lots of its inputs that are there.

    What is left out has its default. Saying the same again changes nothing.
    """
    declared = body.declared(namespace, arc)
    await check_arc(call, declared)
    await call.submit(ApplyArc(call.key.name, declared))
    return await call.read(get_arc, namespace, arc)


async def check_arc(call: Call, arc: Arc) -> None:
    """Refuse an arc that reads or writes what is not the key's, by whatever name."""
    for name in (*arc.input_names, *arc.output_names):
        call.check_names(namespace=name.namespace, dataset=name.name)
        call.key.require_namespace(name.namespace)
        await call.require_dataset(name.namespace, name.name)


async def delete_arc(call: Call, namespace: str, arc: str) -> Empty:
    """Forget an arc: no engine runs it any more; its job, its runs and its lots stay."""
    await call.submit(DeleteArc(call.key.name, namespace, arc))
    return NOTHING


def list_lots(tx: Transaction, namespace: str, arc: str, query: ArcLotsQuery) -> ArcLots:
    """List the lots of an arc by lot: all that it has met, or those in a state.

    Those that only wait are listed by GET …/jobs/{arc}/lots?state=WAITING.
    """
    lots = list_arc_lots(tx, namespace, arc, query.state, query.after, query.limit)
    more = len(lots) == query.limit and len(lots) > 0
    return ArcLots(lots, lots[-1].lot if more else None)


async def get_lot(call: Call, namespace: str, arc: str, lot: str) -> ArcLotDetail:
    """Show where an arc stands with a lot: parts, failed attempts, manifests."""
    found = await call.read(get_arc_lot, namespace, arc, lot)
    return await call.door.in_thread(_with_parts, lambda: call.door.plane.objects, found)


def _with_parts(objects: Callable[[], Objects], found: ArcLotDetail) -> ArcLotDetail:
    """A lot with the parts that its root manifest lists, if it is published."""
    current = next((line for line in found.manifests if line.is_current), None)
    if found.parts or found.state is not ArcState.COMPLETE or current is None or not current.uris:
        return found
    try:
        root = read_manifest(objects(), current.key)
    except NotFound:  # somebody has tidied up by hand: what the database knows is still told
        return found
    parts = [
        ArcPart(line.part, PartState(line.state), None, None, None, line.uris, line.bytes)
        for line in root.parts
    ]
    return msgspec.structs.replace(found, parts=parts)


async def clean(call: Call, namespace: str, arc: str, lot: str, body: WhyBody) -> ArcLotDetail:
    """Remove what failed attempts on a lot left behind, parts that were good included.

    A lot that was partial is missing afterwards. What was published is not touched.
    """
    plane, who = call.door.plane, call.key.name

    def work() -> None:
        clean_lot(plane.catalog, plane.objects, who, body.why, namespace, arc, lot)

    await call.door.in_thread(work)
    return await call.read(get_arc_lot, namespace, arc, lot)


async def sync(call: Call, namespace: str, arc: str, body: SyncBody) -> Synced:
    """Make the state keys and well-known manifests of an arc anew from the database.

    It goes over some lots at a time: call it again with `after` set to the answer's `next`.
    """
    plane = call.door.plane

    def work() -> Synced:
        return Sync(plane.catalog, plane.objects, namespace, arc).run(body.after, body.lots)

    return await call.door.in_thread(work)


_ARC = f"{BASE}/namespaces/{{namespace}}/arcs/{{arc}}"
_LOT = f"{_ARC}/lots/{{lot}}"

ROUTES = (
    Route("GET", f"{BASE}/arcs", list_arcs, Reach.OWN),
    Route("GET", _ARC, get_arc),
    # An arc's command runs on the engines: whoever declares one can do what they can.
    Route("PUT", _ARC, put_arc, role=Role.ADMIN),
    Route("DELETE", _ARC, delete_arc, role=Role.ADMIN),
    Route("GET", f"{_ARC}/lots", list_lots),
    Route("GET", _LOT, get_lot),
    Route("POST", f"{_LOT}/clean", clean, role=Role.ADMIN),
    Route("POST", f"{_ARC}/sync", sync, role=Role.ADMIN),
)


_REFUSED_MAX = 100


def get_arrival(tx: Transaction, namespace: str, dataset: str) -> ShownArrival:
    """Show where the objects of a dataset arrive, how far it has come, and what is amiss."""
    row = find_arrival(tx, namespace, dataset)
    refused = [
        RefusedObject(each.uri, each.lot, each.size, format_time(each.at))
        for each in refused_objects(tx, row.dataset_id, most=_REFUSED_MAX)
    ]
    return shown_arrival(row, refused, landings_of(tx, [row.dataset_id]).get(row.dataset_id))


class ArrivalsQuery(Query, frozen=True):
    """Of which namespace."""

    namespace: str | None = None


class Arrivals(Shape, frozen=True):
    """Where datasets arrive, by name; what was refused is shown with each alone."""

    arrivals: Sequence[ShownArrival]


def list_arrivals(tx: Transaction, key: Key, query: ArrivalsQuery) -> Arrivals:
    """List where the objects of datasets arrive, how far each has come, and what was met there."""
    spaces = {space for space in (key.namespace, query.namespace) if space is not None}
    rows = [row for row in all_arrivals(tx) if spaces <= {row.namespace}]
    met = landings_of(tx, [row.dataset_id for row in rows])
    return Arrivals([shown_arrival(row, (), met.get(row.dataset_id)) for row in rows])


async def put_arrival(call: Call, namespace: str, dataset: str, body: ArrivalBody) -> ShownArrival:
    """Declare where the objects of a dataset arrive, or change it; what was decided stays so.

    Engines (`penstock arcs work`) look there. It opens a place to whoever reads the dataset, so
    it takes a key that is for every namespace.
    """
    check_arrivals(call)
    await call.submit(ApplyArrival(call.key.name, body.declared(namespace, dataset)))
    return await call.read(get_arrival, namespace, dataset)


def check_arrivals(call: Call) -> None:
    """Refuse a key that may not say where objects arrive."""
    if call.key.namespace is not None:
        raise Forbidden(
            f"key {call.key.name!r} is only for namespace {call.key.namespace!r}: where objects "
            "arrive is declared with a key for every namespace"
        )


async def delete_arrival(call: Call, namespace: str, dataset: str) -> Empty:
    """Watch a location no more; the lots stay, and so does which object is in which."""
    await call.submit(DeleteArrival(call.key.name, namespace, dataset))
    return NOTHING


_ARRIVAL = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}/arrival"

ARRIVAL_ROUTES = (
    Route("GET", f"{BASE}/arrivals", list_arrivals, Reach.OWN),
    Route("GET", _ARRIVAL, get_arrival),
    Route("PUT", _ARRIVAL, put_arrival, role=Role.ADMIN),
    Route("DELETE", _ARRIVAL, delete_arrival, role=Role.ADMIN),
)


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


DECLARING_ROUTES = (Route("POST", f"{BASE}/declarations", declare, Reach.OWN, Role.ADMIN),)
