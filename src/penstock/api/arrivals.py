"""Where the objects of datasets arrive, and how they become lots."""

from collections.abc import Sequence

from penstock.access.keys import Key, Role
from penstock.api.answers import NOTHING, Empty
from penstock.api.arcs_shapes import ArrivalBody, RefusedObject, ShownArrival, shown_arrival
from penstock.api.calls import Call
from penstock.api.parameters import Query
from penstock.api.routing import BASE, Reach, Route
from penstock.arcs.arrival_commands import ApplyArrival, ForgetArrival
from penstock.arcs.arrival_rows import all_arrivals, find_arrival, landings_of, refused_objects
from penstock.catalog.shapes import Shape
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import Forbidden

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
    await call.submit(ForgetArrival(call.key.name, namespace, dataset))
    return NOTHING


_ARRIVAL = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}/arrival"

ROUTES = (
    Route("GET", f"{BASE}/arrivals", list_arrivals, Reach.OWN),
    Route("GET", _ARRIVAL, get_arrival),
    Route("PUT", _ARRIVAL, put_arrival, role=Role.ADMIN),
    Route("DELETE", _ARRIVAL, delete_arrival, role=Role.ADMIN),
)
