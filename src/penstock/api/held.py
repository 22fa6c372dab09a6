"""Which lots are held, wherever they are."""

from penstock.access.keys import Key
from penstock.api.parameters import Paging
from penstock.api.routing import BASE, Reach, Route
from penstock.db import Transaction
from penstock.locks import reading_held, sight
from penstock.locks.reading_held import HeldLots


class HeldQuery(Paging, frozen=True):
    """Of which namespace, and whether only those whose checks failed."""

    namespace: str | None = None
    for_checks: bool = False


def list_held_lots(tx: Transaction, key: Key, query: HeldQuery) -> HeldLots:
    """List the lots that are held, the last held first: by whom, why, and what made them."""
    page = reading_held.list_held_lots(
        tx,
        key.namespace or query.namespace,
        for_checks=query.for_checks,
        limit=query.limit,
        offset=query.offset,
    )
    return HeldLots([sight.held(found, key.namespace) for found in page.items], page.total_count)


ROUTES = (Route("GET", f"{BASE}/held-lots", list_held_lots, Reach.OWN),)
