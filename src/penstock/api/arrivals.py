"""Where the objects of datasets arrive, and how they become lots."""

from penstock.access.keys import Role
from penstock.api.answers import NOTHING, Empty
from penstock.api.arcs_shapes import ArrivalBody, RefusedObject, ShownArrival, shown_arrival
from penstock.api.calls import Call
from penstock.api.routing import BASE, Route
from penstock.arcs.arrival_commands import ApplyArrival, ForgetArrival
from penstock.arcs.arrival_rows import find_arrival, landings_of, refused_objects
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
    Route("GET", _ARRIVAL, get_arrival),
    Route("PUT", _ARRIVAL, put_arrival, role=Role.ADMIN),
    Route("DELETE", _ARRIVAL, delete_arrival, role=Role.ADMIN),
)
