"""Lots by their ids, in whichever dataset they are."""

from msgspec import Struct

from penstock.catalog.shapes import EntityId
from penstock.db import Transaction
from penstock.locks.table import Status

LOOKED_AT_MAX = 1000
_LAST_CHARACTER = "\U0010ffff"


class LotMatch(Struct, frozen=True):
    """A lot whose id is, or begins with, the text that was looked for."""

    dataset: EntityId
    lot: str
    status: Status


def find_lots(tx: Transaction, text: str, namespace: str | None, limit: int) -> list[LotMatch]:
    """The lots whose ids are, or begin with, a text; in one namespace or in all."""
    if not text:
        return []
    rows = tx.fetch(
        "find_lots",
        first=text,
        last=text + _LAST_CHARACTER,
        namespace=namespace,
        most=limit if namespace is None else LOOKED_AT_MAX,
        limit=limit,
    )
    return [
        LotMatch(EntityId(namespace=owner, name=name), lot, Status(status))
        for owner, name, lot, status in rows
    ]
