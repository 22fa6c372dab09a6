"""What checks said about lots, accepting lots that failed them, and work that has become stale."""

from penstock.access.keys import Role
from penstock.api.calls import Call
from penstock.api.lots import WhyBody
from penstock.api.parameters import Paging
from penstock.api.routing import BASE, Reach, Route
from penstock.arcs.syncing import follow_maker
from penstock.db import Transaction
from penstock.locks import reading_lots, sight
from penstock.locks.accepting import accept
from penstock.locks.shapes import DatasetChecks, Lot, LotChecks, WorkPage


class StaleQuery(Paging, frozen=True):
    """Of which job, or of the jobs of which namespace."""

    namespace: str | None = None
    job: str | None = None


class ChecksQuery(Paging, frozen=True):
    """Which part, and whether only what failed."""

    failed: bool = False


def list_checks(tx: Transaction, namespace: str, dataset: str, query: ChecksQuery) -> DatasetChecks:
    """List what checks said about the lots of a dataset, the newest first."""
    page = query.limit, query.offset
    return reading_lots.dataset_checks(tx, namespace, dataset, *page, failed=query.failed)


def get_checks(tx: Transaction, namespace: str, dataset: str, lot: str) -> LotChecks:
    """Show what checks said about a lot, the newest first."""
    return reading_lots.lot_checks(tx, namespace, dataset, lot)


async def accept_lot(call: Call, namespace: str, dataset: str, lot: str, body: WhyBody) -> Lot:
    """Let a lot be read although checks of it failed."""
    await call.require_dataset(namespace, dataset)
    plane, who = call.door.plane, call.key.name

    def work() -> None:
        accept(plane.catalog, plane.objects, namespace, dataset, lot, who=who, why=body.why)
        follow_maker(plane.catalog, plane.objects, namespace, dataset, lot)

    await call.door.in_thread(work)
    found = await call.read(reading_lots.show_lot, namespace, dataset, lot)
    return sight.lot(found, call.key.namespace)


async def list_stale(call: Call, query: StaleQuery) -> WorkPage:
    """List lots that were made with inputs of which there are newer versions."""
    only = call.key.namespace or query.namespace
    return await call.read(reading_lots.list_stale, only, query.job, query.limit, query.offset)


_DATASET = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}"
_LOT = f"{_DATASET}/lots/{{lot}}"

ROUTES = (
    Route("GET", f"{_DATASET}/checks", list_checks),
    Route("GET", f"{_LOT}/checks", get_checks),
    Route("POST", f"{_LOT}/accept", accept_lot, role=Role.ADMIN),
    Route("GET", f"{BASE}/stale", list_stale, Reach.OWN),
)
