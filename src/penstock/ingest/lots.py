"""Reported batches as lots of their collection's dataset.

A batch is a lot of its own, announced while jobs of it are open and READY when all are completed;
or it is part of the lot of the interval in which it completed, published when that is over.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from penstock import ids
from penstock.catalog.commands.lookup import Write
from penstock.catalog.events.apply import declare_dataset
from penstock.catalog.events.facets import NO_FACETS
from penstock.catalog.events.parse import Mention
from penstock.catalog.rows import DatasetRow, Row, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.commands.lots import announce, needs_registration, register, withdraw
from penstock.locks.tables import LockTables
from penstock.lots.manifests import ManifestNote
from penstock.lots.rows import LotDatasetRow
from penstock.lots.tables import LotTables
from penstock.schema.lot_ids import Interval
from penstock.states import ManifestState
from penstock.store.table_cache import TableCache
from penstock.store.unit_of_work import Changes

DEPOSITS = "ingest"  # who publishes what was deposited
LABEL = "1"  # of the way in which lots of batches are cut


class BatchLotRow(Row, frozen=True):
    """Which lot a batch is, or is part of, since when, and its manifest."""

    batch_id: str
    collection: str
    submitter: str
    dataset_id: str
    lot: str
    report: int
    state: ManifestState
    key: str
    uris: int
    bytes: int
    digest: str
    attempt: str
    due_at: Micros
    at: Micros  # when it first was (part of) this lot, whatever later reports say


class BatchLotTables:
    """Rows by batch."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self.lots: TableCache[BatchLotRow] = TableCache(self._fetch, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self.lots,)
        self.append_only: tuple[TableCache[Any], ...] = ()

    def changes(self) -> Changes:
        """Every change of the batch of writes."""
        return [("put_batch_lots", self.lots.changed())]

    def of_lot(self, dataset_id: str, lot: str) -> list[BatchLotRow]:
        """The batches that a lot consists of, oldest first."""
        stored = batches_of_lot(self._uow.tx, dataset_id, lot)
        fresh = [r for r in self.lots.unstored() if (r.dataset_id, r.lot) == (dataset_id, lot)]
        found = {row.batch_id: row for row in (*stored, *fresh)}
        return [found[batch_id] for batch_id in sorted(found)]

    def _fetch(self, batch_ids: list[str]) -> dict[str, BatchLotRow]:
        rows = self._uow.tx.rows(BatchLotRow, "batch_lots_by_ids", ids=batch_ids)
        return {row.batch_id: row for row in rows}


class DepositedLot(Struct, frozen=True):
    """A reported batch, and the manifest that was written for it."""

    batch_id: str
    collection: str
    submitter: str
    namespace: str
    dataset: str
    report: int
    lot: str
    manifest: ManifestNote
    interval: Interval | None = None
    due_at: Micros = 0  # when its interval's lot is published; 0: it is a lot of its own, now


class PublishBatch(Write, frozen=True):
    """Let a reported batch be a lot; what an earlier report said, or the same, changes nothing."""

    deposited: DepositedLot

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """Whether this is what the batch is now; False if a later report has told more."""
        told, note = self.deposited, self.deposited.manifest
        room = uow.tables(BatchLotTables)
        held = room.lots.get(told.batch_id)
        if held is not None and held.report > told.report:
            return False
        if held is not None and (held.report, held.digest) == (told.report, note.digest):
            return True
        dataset = _dataset(uow, told, now)
        _cut(uow, dataset, told.interval, now)
        is_same = held is not None and (held.dataset_id, held.lot) == (dataset.id, told.lot)
        room.lots.put(
            told.batch_id,
            BatchLotRow(
                batch_id=told.batch_id,
                collection=told.collection,
                submitter=told.submitter,
                dataset_id=dataset.id,
                lot=told.lot,
                report=told.report,
                state=note.state,
                key=note.key,
                uris=note.uris,
                bytes=note.bytes,
                digest=note.digest,
                attempt=note.attempt,
                due_at=told.due_at,
                at=held.at if held is not None and is_same else now,
            ),
        )
        if told.due_at:
            needs_registration(
                uow.tables(LockTables), dataset, told.lot, renew=True
            )  # or it is refused now
            return True
        if note.state is ManifestState.PARTIAL:
            announce(uow, dataset, told.lot, DEPOSITS, now, note)
        else:
            notes = {told.lot: note}
            register(uow, dataset, [told.lot], DEPOSITS, now, renew=True, notes=notes)
        return True


class WithdrawBatch(Write, frozen=True):
    """The lot of a batch of which not all has come, and will not come there, is removed.

    `manifests` say so of its versions, by version; what the batch has stored stays.
    """

    batch_id: str
    who: str
    why: str
    manifests: tuple[tuple[str, ManifestNote], ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Nothing, if the lot was published or removed meanwhile."""
        row = uow.tables(BatchLotTables).lots.get(self.batch_id)
        dataset = uow.datasets.get(row.dataset_id) if row is not None else None
        if row is not None and dataset is not None:
            withdraw(uow, dataset, row.lot, self.who, self.why, now, dict(self.manifests))


class CloseLot(Write, frozen=True):
    """Publish the lot of an interval: all batches that completed in it, whenever they are known.

    It is void if there are others than those that its manifest lists.
    """

    namespace: str
    dataset: str
    lot: str
    manifest: ManifestNote
    batches: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """The lot is READY, and its batches are published; False if it is void."""
        room = uow.tables(BatchLotTables)
        dataset_id = uow.dataset_id(ids.dataset_id(self.namespace, self.dataset))
        dataset = uow.datasets.get(dataset_id)
        rows = room.of_lot(dataset_id, self.lot)
        is_due = any(row.due_at for row in rows)
        if dataset is None or not is_due or tuple(row.batch_id for row in rows) != self.batches:
            return False
        notes = {self.lot: self.manifest}
        register(uow, dataset, [self.lot], DEPOSITS, now, renew=True, notes=notes)
        for row in rows:
            room.lots.put(row.batch_id, replace(row, due_at=0))
        return True


class DueLot(Struct, frozen=True):
    """A lot of an interval that is over, and has batches which are not published in it."""

    dataset_id: str
    lot: str
    namespace: str
    dataset: str


def announced_lot(tx: Transaction, batch_id: str) -> BatchLotRow | None:
    """The lot of a batch, if not all of that has come."""
    rows = tx.rows(BatchLotRow, "batch_lots_by_ids", ids=[batch_id])
    return next((row for row in rows if row.state == ManifestState.PARTIAL), None)


def batches_of_lot(tx: Transaction, dataset_id: str, lot: str) -> Sequence[BatchLotRow]:
    """The batches that a lot consists of, oldest first."""
    return tx.rows(BatchLotRow, "batch_lots_of_lot", dataset_id=dataset_id, lot=lot)


def due_lots(tx: Transaction, now: Micros, most: int) -> list[DueLot]:
    """Lots to be published."""
    return [DueLot(*row) for row in tx.fetch("due_batch_lots", now=now, most=most)]


def _dataset(uow: UnitOfWork, told: DepositedLot, now: Micros) -> DatasetRow:
    """The dataset of a collection, which nothing may have been recorded in yet."""
    named = ids.dataset_id(told.namespace, told.dataset)
    found = uow.datasets.get(uow.dataset_id(named))
    if found is None or found.hidden:
        mention = Mention(named, told.namespace, told.dataset, NO_FACETS, NO_FACETS)
        found = uow.datasets.get(declare_dataset(uow, mention, now))
    assert found is not None, "a dataset that was declared is there"
    return found


def _cut(uow: UnitOfWork, dataset: DatasetRow, interval: Interval | None, now: Micros) -> None:
    """Keep how the lots of a collection are cut."""
    room = uow.tables(LotTables)
    if interval is not None and room.datasets.get(dataset.id) is None:
        room.datasets.put(dataset.id, LotDatasetRow(dataset.id, interval, LABEL, 0, now))
