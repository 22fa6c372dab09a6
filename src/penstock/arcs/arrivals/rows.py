"""The rows of arrivals, their tables in a unit of work, and their queries."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from penstock.arcs.arrivals.arrival import Arrival, ArrivedRow, from_text
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.lots.rows import LandingRow
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes

REFUSED_LENGTH_MAX = 1000


class ArrivalRow(Row, frozen=True):
    """An arrival as it was declared, and its progress."""

    dataset_id: str
    namespace: str
    name: str
    declaration: str
    start: Micros
    open_from: Micros
    revision: int
    created_at: Micros
    updated_at: Micros

    @property
    def arrival(self) -> Arrival:
        """The declaration."""
        return from_text(self.declaration)


class _Gone(Struct, frozen=True):
    dataset_id: str


class GoneObject(Struct, frozen=True):
    """An object that a lot had and that is gone."""

    dataset_id: str
    uri: str


class ArrivalTables:
    """Arrivals by dataset. Objects are only written: the revision guards earlier reads."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self.arrivals: TableCache[ArrivalRow] = TableCache(self._fetch_arrivals, uow.undo)
        self.objects: TableCache[ArrivedRow] = TableCache(write_only, uow.undo)
        self.gone: TableCache[GoneObject] = TableCache(write_only, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self.arrivals,)
        self.append_only: tuple[TableCache[Any], ...] = (self.objects, self.gone)

    def changes(self) -> Changes:
        """Return the rows to write, by statement."""
        return [
            ("forget_arrivals", [_Gone(key) for key in self.arrivals.gone()]),
            ("put_arrivals", self.arrivals.changed()),
            ("forget_arrived_objects", self.gone.changed()),
            ("put_arrived_objects", self.objects.changed()),
        ]

    def _fetch_arrivals(self, keys: list[str]) -> dict[str, ArrivalRow]:
        rows = self._uow.tx.rows(ArrivalRow, "arrivals_by_ids", ids=keys)
        return {row.dataset_id: row for row in rows}


def missing_arrival(namespace: str, dataset: str) -> NotFound:
    """Return the error for a dataset without an arrival."""
    return NotFound(
        f"nothing is declared to arrive for dataset {namespace}/{dataset}; declare where its "
        "objects appear"
    )


def all_arrivals(tx: Transaction) -> list[ArrivalRow]:
    """Return every arrival, by name."""
    return tx.rows(ArrivalRow, "all_arrivals")


def find_arrival(tx: Transaction, namespace: str, dataset: str) -> ArrivalRow:
    """Return the arrival of a dataset, or raise NotFound."""
    rows = tx.rows(ArrivalRow, "arrival_by_name", namespace=namespace, name=dataset)
    if not rows:
        raise missing_arrival(namespace, dataset)
    return rows[0]


def landings_of(tx: Transaction, dataset_ids: Sequence[str]) -> dict[str, LandingRow]:
    """Return the last problems at the locations of datasets."""
    rows = tx.rows(LandingRow, "lot_landings_by_ids", ids=list(dataset_ids))
    return {row.dataset_id: row for row in rows}


def refused_objects(
    tx: Transaction, dataset_id: str, after: str = "", most: int = REFUSED_LENGTH_MAX
) -> list[ArrivedRow]:
    """Return a page of objects without a lot, or whose last change is in no lot."""
    return tx.rows(ArrivedRow, "refused_objects", dataset_id=dataset_id, after=after, most=most)
