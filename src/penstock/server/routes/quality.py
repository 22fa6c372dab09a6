"""What checks said about lots, accepting lots that failed them, and work that has become stale."""

from penstock.access.keys import Key
from penstock.arcs.outputs.state_keys import follow_maker
from penstock.db import Transaction
from penstock.locks.acceptance import accept
from penstock.locks.queries import holds, lots, visibility
from penstock.schema.admin import KeyRole
from penstock.schema.locks import WorkPage
from penstock.schema.lots import DatasetChecks, HeldLots, Lot, LotChecks
from penstock.server.parameters import Paging
from penstock.server.requests import RequestContext
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route


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
    return lots.dataset_checks(tx, namespace, dataset, *page, failed=query.failed)


def get_checks(tx: Transaction, namespace: str, dataset: str, lot: str) -> LotChecks:
    """Show what checks said about a lot, the newest first."""
    return lots.lot_checks(tx, namespace, dataset, lot)


async def accept_lot(
    context: RequestContext, namespace: str, dataset: str, lot: str, body: WhyBody
) -> Lot:
    """Let a lot be read although checks of it failed."""
    await context.require_dataset(namespace, dataset)
    plane, who = context.plane, context.key.name

    def work() -> None:
        accept(plane.catalog, plane.objects, namespace, dataset, lot, who=who, why=body.why)
        follow_maker(plane.catalog, plane.objects, namespace, dataset, lot)

    await context.state.in_thread(work)
    found = await context.read(lots.show_lot, namespace, dataset, lot)
    return visibility.lot(found, context.key.namespace)


async def list_stale(context: RequestContext, query: StaleQuery) -> WorkPage:
    """List lots that were made with inputs of which there are newer versions."""
    only = context.key.namespace or query.namespace
    return await context.read(lots.list_stale, only, query.job, query.limit, query.offset)


_DATASET = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}"
_LOT = f"{_DATASET}/lots/{{lot}}"

ROUTES = (
    Route(READ, "GET", f"{_DATASET}/checks", list_checks),
    Route(READ, "GET", f"{_LOT}/checks", get_checks),
    Route(ASYNC, "POST", f"{_LOT}/accept", accept_lot, role=KeyRole.ADMIN),
    Route(ASYNC, "GET", f"{BASE}/stale", list_stale, Reach.OWN),
)


class HeldQuery(Paging, frozen=True):
    """Of which namespace, and whether only those whose checks failed."""

    namespace: str | None = None
    for_checks: bool = False


def list_held_lots(tx: Transaction, key: Key, query: HeldQuery) -> HeldLots:
    """List the lots that are held, the last held first: by whom, why, and what made them."""
    page = holds.list_held_lots(
        tx,
        key.namespace or query.namespace,
        for_checks=query.for_checks,
        limit=query.limit,
        offset=query.offset,
    )
    return HeldLots(
        [visibility.held(found, key.namespace) for found in page.items], page.total_count
    )


HELD_ROUTES = (Route(READ, "GET", f"{BASE}/held-lots", list_held_lots, Reach.OWN),)
