"""What checks said about lots, accepting lots that failed them, and work that has become stale."""

from penstock.access.keys import Role
from penstock.api.calls import Call
from penstock.api.lots import WhyBody
from penstock.api.parameters import Paging
from penstock.api.routing import BASE, Reach, Route
from penstock.db import Transaction
from penstock.locks import reading_lots
from penstock.locks.accepting import accept
from penstock.locks.shapes import Lot, LotChecks, WorkPage


class StaleQuery(Paging, frozen=True):
    """Of which job, or of the jobs of which namespace."""

    namespace: str | None = None
    job: str | None = None


def get_checks(tx: Transaction, namespace: str, dataset: str, lot: str) -> LotChecks:
    """Show what checks said about a lot, the newest first."""
    return reading_lots.lot_checks(tx, namespace, dataset, lot)


async def accept_lot(call: Call, namespace: str, dataset: str, lot: str, body: WhyBody) -> Lot:
    """Let a lot be read although checks of it failed."""
    await call.require_dataset(namespace, dataset)
    plane, who = call.door.plane, call.key.name

    def work() -> None:
        accept(plane.catalog, plane.objects, namespace, dataset, lot, who=who, why=body.why)

    await call.door.in_thread(work)
    return await call.read(reading_lots.show_lot, namespace, dataset, lot)


async def list_stale(call: Call, query: StaleQuery) -> WorkPage:
    """List lots that were made with inputs of which there are newer versions."""
    only = call.key.namespace or query.namespace
    return await call.read(reading_lots.list_stale, only, query.job, query.limit, query.offset)


_LOT = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}/lots/{{lot}}"

ROUTES = (
    Route("GET", f"{_LOT}/checks", get_checks),
    Route("POST", f"{_LOT}/accept", accept_lot, role=Role.ADMIN),
    Route("GET", f"{BASE}/stale", list_stale, Reach.OWN),
)
