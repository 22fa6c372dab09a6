"""Arcs and arrivals: declared, shown with their lots, cleaned and synced."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from penstock.access.keys import Key
from penstock.arcs.arrivals.arrival import Arrival
from penstock.arcs.arrivals.commands import ApplyArrival, DeleteArrival
from penstock.arcs.arrivals.rows import (
    ArrivalRow,
    all_arrivals,
    find_arrival,
    landings_of,
    refused_objects,
)
from penstock.arcs.commands import ApplyArc, DeleteArc
from penstock.arcs.declaring import Declare
from penstock.arcs.outputs.cleaning import clean_lot
from penstock.arcs.outputs.state_keys import LOTS_AT_ONCE, Sync
from penstock.arcs.overview import count_lots, get_arc_lot, list_arc_lots
from penstock.arcs.queries import all_arcs, find_arc, read_manifest
from penstock.arcs.rows import ArcRow
from penstock.arcs.spec import Arc
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import Forbidden, NotFound
from penstock.lots.rows import LandingRow
from penstock.objects import Objects
from penstock.schema.admin import KeyRole
from penstock.schema.arcs import (
    ArcBody,
    ArcCounts,
    ArcLotDetail,
    ArcLots,
    ArcPart,
    Arcs,
    ChangedDeclarations,
    NamedArc,
    PartState,
    ShownArc,
    ShownArcInput,
    ShownArcOutput,
    ShownArcParts,
    ShownArcRetry,
    ShownArcWorkload,
    Synced,
)
from penstock.schema.arrivals import (
    ArrivalBody,
    ArrivalFailure,
    Arrivals,
    NamedArrival,
    RefusedObject,
    ShownArrival,
    UntakenObjects,
)
from penstock.schema.shape import Empty
from penstock.server.content import Body, Limit, Query
from penstock.server.requests import RequestContext
from penstock.server.responses import NOTHING
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route
from penstock.states import ArcState


class ArcsQuery(Query, frozen=True):
    """The selection of arcs."""

    namespace: str | None = None


class ArcLotsQuery(Query, frozen=True):
    """The selection of an arc's lots: by state, and after a lot."""

    state: ArcState | None = None
    after: str = ""
    limit: Limit = 100


class SyncBody(Body, frozen=True):
    """The start of a step of a sync: the `next` of the previous answer."""

    after: str = ""
    lots: Annotated[int, Meta(ge=1, le=LOTS_AT_ONCE)] = LOTS_AT_ONCE


def list_arcs(tx: Transaction, key: Key, query: ArcsQuery) -> Arcs:
    """List arcs by name, with the number of their lots in each state."""
    spaces = {space for space in (key.namespace, query.namespace) if space is not None}
    rows = [row for row in all_arcs(tx) if spaces <= {row.namespace}]
    counts = count_lots(tx, rows)
    return Arcs([show_arc(row, counts[row.job_id]) for row in rows])


def get_arc(tx: Transaction, namespace: str, arc: str) -> ShownArc:
    """Show the declaration of an arc, and the number of its lots in each state."""
    row = find_arc(tx, namespace, arc)
    return show_arc(row, count_lots(tx, [row])[row.job_id])


async def put_arc(context: RequestContext, namespace: str, arc: str, body: ArcBody) -> ShownArc:
    """Declare an arc, or change it. It works on all lots of its inputs, also on earlier ones.

    Fields that are omitted have their default. The same declaration again changes nothing.
    """
    declared = read_arc(body, namespace=namespace, name=arc)
    await check_arc(context, declared)
    await context.submit(ApplyArc(context.key.name, declared))
    return await context.read(get_arc, namespace, arc)


async def check_arc(context: RequestContext, arc: Arc) -> None:
    """Refuse an arc that reads or writes datasets of other namespaces, by any of their names."""
    for name in (*arc.input_names, *arc.output_names):
        context.check_names(namespace=name.namespace, dataset=name.name)
        context.key.require_namespace(name.namespace)
        await context.require_dataset(name.namespace, name.name)


async def delete_arc(context: RequestContext, namespace: str, arc: str) -> Empty:
    """Delete an arc: engines no longer run it. Its job, its runs and its lots stay."""
    await context.submit(DeleteArc(context.key.name, namespace, arc))
    return NOTHING


def list_lots(tx: Transaction, namespace: str, arc: str, query: ArcLotsQuery) -> ArcLots:
    """List the lots of an arc by lot: all that it has worked on, or those in a state.

    GET …/jobs/{arc}/lots?state=WAITING lists the lots that only wait.
    """
    lots = list_arc_lots(tx, namespace, arc, query.state, query.after, query.limit)
    more = len(lots) == query.limit and len(lots) > 0
    return ArcLots(lots, lots[-1].lot if more else None)


async def get_lot(context: RequestContext, namespace: str, arc: str, lot: str) -> ArcLotDetail:
    """Show a lot of an arc: its parts, failed attempts and manifests."""
    detail = await context.read(get_arc_lot, namespace, arc, lot)
    return await context.state.in_thread(_with_parts, lambda: context.plane.objects, detail)


def _with_parts(objects: Callable[[], Objects], detail: ArcLotDetail) -> ArcLotDetail:
    """Return a lot with the parts that its root manifest lists, if it is published."""
    current = next((line for line in detail.manifests if line.is_current), None)
    if detail.parts or detail.state is not ArcState.COMPLETE or current is None or not current.uris:
        return detail
    try:
        root = read_manifest(objects(), current.key)
    except NotFound:  # the manifest file was removed by other means: show what the database has
        return detail
    parts = [
        ArcPart(line.part, PartState(line.state), None, None, None, line.uris, line.bytes)
        for line in root.parts
    ]
    return msgspec.structs.replace(detail, parts=parts)


async def clean(
    context: RequestContext, namespace: str, arc: str, lot: str, body: WhyBody
) -> ArcLotDetail:
    """Remove the output of failed attempts on a lot, including parts that were complete.

    A partial lot is missing afterwards. Published output is not touched.
    """
    plane, who = context.plane, context.key.name

    def work() -> None:
        clean_lot(plane.catalog, plane.objects, who, body.why, namespace, arc, lot)

    await context.state.in_thread(work)
    return await context.read(get_arc_lot, namespace, arc, lot)


async def sync(context: RequestContext, namespace: str, arc: str, body: SyncBody) -> Synced:
    """Write the state keys and well-known manifests of an arc again from the database.

    Each call handles some lots: call again with `after` set to the `next` of the answer.
    """
    plane = context.plane

    def work() -> Synced:
        return Sync(plane.catalog, plane.objects, namespace, arc).run(body.after, body.lots)

    return await context.state.in_thread(work)


_ARC = f"{BASE}/namespaces/{{namespace}}/arcs/{{arc}}"
_LOT = f"{_ARC}/lots/{{lot}}"


_REFUSED_MAX = 100


def get_arrival(tx: Transaction, namespace: str, dataset: str) -> ShownArrival:
    """Show the arrival of a dataset: its location, its progress and its errors."""
    row = find_arrival(tx, namespace, dataset)
    refused = [
        RefusedObject(each.uri, each.lot, each.size, format_time(each.at))
        for each in refused_objects(tx, row.dataset_id, most=_REFUSED_MAX)
    ]
    return show_arrival(row, refused, landings_of(tx, [row.dataset_id]).get(row.dataset_id))


class ArrivalsQuery(Query, frozen=True):
    """The namespace."""

    namespace: str | None = None


def list_arrivals(tx: Transaction, key: Key, query: ArrivalsQuery) -> Arrivals:
    """List arrivals, with their progress and errors."""
    spaces = {space for space in (key.namespace, query.namespace) if space is not None}
    rows = [row for row in all_arrivals(tx) if spaces <= {row.namespace}]
    met = landings_of(tx, [row.dataset_id for row in rows])
    return Arrivals([show_arrival(row, (), met.get(row.dataset_id)) for row in rows])


async def put_arrival(
    context: RequestContext, namespace: str, dataset: str, body: ArrivalBody
) -> ShownArrival:
    """Declare the arrival of a dataset, or change it. Lots that were cut already stay.

    Engines (`penstock arcs start`) scan the location. All readers of the dataset can see its
    objects, so this needs a key for every namespace.
    """
    check_arrivals(context)
    await context.submit(
        ApplyArrival(
            context.key.name, Arrival(**asdict(body), namespace=namespace, dataset=dataset)
        )
    )
    return await context.read(get_arrival, namespace, dataset)


def check_arrivals(context: RequestContext) -> None:
    """Refuse a key that may not declare arrivals."""
    if context.key.namespace is not None:
        raise Forbidden(
            f"key {context.key.name!r} is only for namespace {context.key.namespace!r}: "
            "where objects arrive is declared with a key for every namespace"
        )


async def delete_arrival(context: RequestContext, namespace: str, dataset: str) -> Empty:
    """Delete the arrival of a dataset. Its lots, and the objects in them, stay."""
    await context.submit(DeleteArrival(context.key.name, namespace, dataset))
    return NOTHING


_ARRIVAL = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}/arrival"


class DeclarationsBody(Body, frozen=True):
    """Arcs and arrivals to declare together. A `dryRun` only reports the changes."""

    arcs: Sequence[NamedArc] = ()
    arrivals: Sequence[NamedArrival] = ()
    dry_run: bool = False


async def declare(context: RequestContext, body: DeclarationsBody) -> ChangedDeclarations:
    """Declare arcs and arrivals, or change them: all of them, or nothing.

    A dry run makes the same checks as the change itself.
    """
    arcs = tuple(read_arc(each) for each in body.arcs)
    for arc in arcs:
        context.key.require_namespace(arc.namespace)
        context.check_names(namespace=arc.namespace, job=arc.name)
        await check_arc(context, arc)
    arrivals = tuple(Arrival(**asdict(each)) for each in body.arrivals)
    for arrival in arrivals:
        context.check_names(namespace=arrival.namespace, dataset=arrival.dataset)
        check_arrivals(context)
    return ChangedDeclarations(
        await context.submit(Declare(context.key.name, arcs, arrivals, body.dry_run))
    )


def show_arc(row: ArcRow, counts: ArcCounts) -> ShownArc:
    """Return an arc with the counts of its lots."""
    arc = row.arc
    return ShownArc(
        namespace=row.namespace,
        name=row.name,
        project=arc.project,
        version=arc.version,
        description=arc.description,
        inputs=[ShownArcInput(**asdict(each)) for each in arc.inputs],
        outputs=[ShownArcOutput(**asdict(each)) for each in arc.outputs],
        workload=ShownArcWorkload(**asdict(arc.workload)),
        parts=ShownArcParts(**asdict(arc.parts)) if arc.parts else None,
        retry=ShownArcRetry(**asdict(arc.retry)),
        running_max=arc.running_max,
        on_empty=arc.on_empty,
        stale=arc.stale,
        checks=arc.checks,
        newest_first=arc.newest_first,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        counts=counts,
    )


def show_arrival(
    row: ArrivalRow, refused: Sequence[RefusedObject], landing: LandingRow | None
) -> ShownArrival:
    """Return an arrival with the objects and errors that were met there."""
    failed = untaken = None
    if landing is not None and landing.error:
        failed = ArrivalFailure(format_time(landing.failed_at), landing.error)
    if landing is not None and landing.untaken:
        untaken = UntakenObjects(landing.untaken, landing.example, landing.reason)
    return ShownArrival(
        **asdict(row.arrival),
        open_from=format_time(row.open_from),
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        refused=refused,
        failed=failed,
        untaken=untaken,
    )


def read_arc(body: ArcBody, **names: str) -> Arc:
    """Return the arc that a body declares."""
    return msgspec.convert({**_plain(body), **names}, Arc)


def _plain(value: object) -> Any:
    """Return a declaration as plain values, under the names of the Python fields."""
    if isinstance(value, Struct):
        return {key: _plain(each) for key, each in asdict(value).items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


ROUTES = (
    Route(READ, "GET", f"{BASE}/arcs", list_arcs, Reach.OWN),
    Route(READ, "GET", _ARC, get_arc),
    # An arc's command runs on the engines, so its author gets the rights of an engine.
    Route(ASYNC, "PUT", _ARC, put_arc, role=KeyRole.ADMIN),
    Route(ASYNC, "DELETE", _ARC, delete_arc, role=KeyRole.ADMIN),
    Route(READ, "GET", f"{_ARC}/lots", list_lots),
    Route(ASYNC, "GET", _LOT, get_lot),
    Route(ASYNC, "POST", f"{_LOT}/clean", clean, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ARC}/sync", sync, role=KeyRole.ADMIN),
    Route(READ, "GET", f"{BASE}/arrivals", list_arrivals, Reach.OWN),
    Route(READ, "GET", _ARRIVAL, get_arrival),
    Route(ASYNC, "PUT", _ARRIVAL, put_arrival, role=KeyRole.ADMIN),
    Route(ASYNC, "DELETE", _ARRIVAL, delete_arrival, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{BASE}/declarations", declare, Reach.OWN, KeyRole.ADMIN),
)
