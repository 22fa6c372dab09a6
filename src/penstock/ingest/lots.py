"""Reported batches as lots of their collection's dataset.

A batch is a lot of its own: announced while jobs are open, READY when all are completed. Or it is
part of the lot of the interval in which it completed; that lot is published when the interval is
over.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.catalog.commands.lookup import Write
from penstock.catalog.events.apply import declare_dataset
from penstock.catalog.events.facets import NO_FACETS
from penstock.catalog.events.parse import Mention
from penstock.catalog.rows import DatasetRow, Row, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import SECOND, Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.ingest.archive.ocfl.repository import Depository, StoredFile
from penstock.ingest.archive.register import StoredRow, stored_versions
from penstock.ingest.context import PRODUCER, IngestContext
from penstock.ingest.models import Batch, to_json
from penstock.ingest.notifications.reports import BatchReport
from penstock.ingest.telemetry import lot_published
from penstock.locks.commands.lots import announce, needs_registration, register, withdraw
from penstock.locks.tables import LockTables
from penstock.lots.manifest_files import put_manifest, show_manifest
from penstock.lots.manifests import DatasetRef, Item, Manifest, ManifestNote, decode
from penstock.lots.rows import LotDatasetRow, ManifestRow
from penstock.lots.tables import LotTables
from penstock.objects import Objects
from penstock.objects.uris import KeyForm, find_key_form
from penstock.schema.ingest import Collection
from penstock.schema.lot_ids import Interval, parse_interval
from penstock.states import ManifestState
from penstock.store.table_cache import TableCache
from penstock.store.unit_of_work import Changes
from penstock.telemetry import tracing

DEPOSITS = "ingest"  # the publisher of deposits in the lot log
LABEL = "1"  # the label of the partitioning by batches or intervals
_GRACE: Micros = 5 * SECOND  # for batches that complete just before an interval's end
_DEPOSITED = f"{PRODUCER}/"
_PAGE = 500


class BatchLotRow(Row, frozen=True):
    """The lot that a batch is, or is part of, and the batch's manifest."""

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
    at: Micros  # of the first report with this lot


class BatchLotTables:
    """The lots of batches in a unit of work."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self.lots: TableCache[BatchLotRow] = TableCache(self._fetch, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self.lots,)
        self.append_only: tuple[TableCache[Any], ...] = ()

    def changes(self) -> Changes:
        return [("put_batch_lots", self.lots.changed())]

    def of_lot(self, dataset_id: str, lot: str) -> list[BatchLotRow]:
        """Return the batches of a lot, oldest first."""
        stored = batches_of_lot(self._uow.tx, dataset_id, lot)
        fresh = [r for r in self.lots.unstored() if (r.dataset_id, r.lot) == (dataset_id, lot)]
        rows = {row.batch_id: row for row in (*stored, *fresh)}
        return [rows[batch_id] for batch_id in sorted(rows)]

    def _fetch(self, batch_ids: list[str]) -> dict[str, BatchLotRow]:
        rows = self._uow.tx.rows(BatchLotRow, "batch_lots_by_ids", ids=batch_ids)
        return {row.batch_id: row for row in rows}


class DepositedLot(Struct, frozen=True):
    """A reported batch and its manifest."""

    batch_id: str
    collection: str
    submitter: str
    namespace: str
    dataset: str
    report: int
    lot: str
    manifest: ManifestNote
    interval: Interval | None = None
    due_at: Micros = 0  # publication of the interval's lot; 0: the batch is a lot, now


class PublishBatch(Write, frozen=True):
    """Make a reported batch a lot; the same or an earlier report changes nothing."""

    deposited: DepositedLot

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """Return False if a later report of the batch is already a lot."""
        deposited, note = self.deposited, self.deposited.manifest
        room = uow.tables(BatchLotTables)
        row = room.lots.get(deposited.batch_id)
        if row is not None and row.report > deposited.report:
            return False
        if row is not None and (row.report, row.digest) == (deposited.report, note.digest):
            return True
        dataset = _dataset(uow, deposited, now)
        _cut(uow, dataset, deposited.interval, now)
        is_same = row is not None and (row.dataset_id, row.lot) == (dataset.id, deposited.lot)
        room.lots.put(
            deposited.batch_id,
            BatchLotRow(
                batch_id=deposited.batch_id,
                collection=deposited.collection,
                submitter=deposited.submitter,
                dataset_id=dataset.id,
                lot=deposited.lot,
                report=deposited.report,
                state=note.state,
                key=note.key,
                uris=note.uris,
                bytes=note.bytes,
                digest=note.digest,
                attempt=note.attempt,
                due_at=deposited.due_at,
                at=row.at if row is not None and is_same else now,
            ),
        )
        if deposited.due_at:
            # Raises if the lot is refused.
            needs_registration(uow.tables(LockTables), dataset, deposited.lot, renew=True)
            return True
        if note.state is ManifestState.PARTIAL:
            announce(uow, dataset, deposited.lot, DEPOSITS, now, note)
        else:
            notes = {deposited.lot: note}
            register(uow, dataset, [deposited.lot], DEPOSITS, now, renew=True, notes=notes)
        return True


class WithdrawBatch(Write, frozen=True):
    """Remove the announced lot of a batch that was deleted or moved to another lot.

    `manifests` has the `removed` manifest of each version. Stored objects stay.
    """

    batch_id: str
    who: str
    why: str
    manifests: tuple[tuple[str, ManifestNote], ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Do nothing if the lot was published or removed meanwhile."""
        row = uow.tables(BatchLotTables).lots.get(self.batch_id)
        dataset = uow.datasets.get(row.dataset_id) if row is not None else None
        if row is not None and dataset is not None:
            withdraw(uow, dataset, row.lot, self.who, self.why, now, dict(self.manifests))


class CloseLot(Write, frozen=True):
    """Publish the lot of an interval, with all batches that completed in it.

    Nothing happens if the lot has other batches than `batches`, which its manifest lists.
    """

    namespace: str
    dataset: str
    lot: str
    manifest: ManifestNote
    batches: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """Return False if nothing was published."""
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
    """The lot of an interval that is over, with batches that are not yet published."""

    dataset_id: str
    lot: str
    namespace: str
    dataset: str


def announced_lot(tx: Transaction, batch_id: str) -> BatchLotRow | None:
    """Return the lot of a batch if it is only announced."""
    rows = tx.rows(BatchLotRow, "batch_lots_by_ids", ids=[batch_id])
    return next((row for row in rows if row.state == ManifestState.PARTIAL), None)


def batches_of_lot(tx: Transaction, dataset_id: str, lot: str) -> Sequence[BatchLotRow]:
    """Return the batches of a lot, oldest first."""
    return tx.rows(BatchLotRow, "batch_lots_of_lot", dataset_id=dataset_id, lot=lot)


def due_lots(tx: Transaction, now: Micros, most: int) -> list[DueLot]:
    """Return lots to publish now."""
    return [DueLot(*row) for row in tx.fetch("due_batch_lots", now=now, most=most)]


def _dataset(uow: UnitOfWork, deposited: DepositedLot, now: Micros) -> DatasetRow:
    """Return the dataset of a collection; declare it if it does not exist yet."""
    dataset_id = ids.dataset_id(deposited.namespace, deposited.dataset)
    dataset = uow.datasets.get(uow.dataset_id(dataset_id))
    if dataset is None or dataset.hidden:
        mention = Mention(dataset_id, deposited.namespace, deposited.dataset, NO_FACETS, NO_FACETS)
        dataset = uow.datasets.get(declare_dataset(uow, mention, now))
    assert dataset is not None, "a declared dataset exists"
    return dataset


def _cut(uow: UnitOfWork, dataset: DatasetRow, interval: Interval | None, now: Micros) -> None:
    """Store the interval of a collection's lots."""
    room = uow.tables(LotTables)
    if interval is not None and room.datasets.get(dataset.id) is None:
        room.datasets.put(dataset.id, LotDatasetRow(dataset.id, interval, LABEL, 0, now))


def publish_batch(
    context: IngestContext, batch: Batch, report: BatchReport, keys: Iterable[str]
) -> None:
    """Publish a batch that is being reported as a lot; `keys` are its completed deposits."""
    collection = context.collections.get(batch.collection)
    is_whole = not report.still_open
    if collection.interval is not None and not is_whole:
        return  # it becomes part of a lot when it is complete
    # A repeated report after a crash writes the same manifest: its fields derive from the batch.
    reported_at = batch.last_modified
    lot, due_at = _lot(collection, batch, reported_at)
    ref = _dataset_ref(collection)
    _leave(context, batch, ref, lot)
    objects = context.storage.objects
    items = tuple(_items(context, objects, collection, keys))
    manifest = Manifest(
        state=_state(items, is_whole=is_whole),
        lot=lot,
        dataset=ref,
        uris=items,
        attempt=f"{batch.id}.{report.number}.{_mark(items)}",
        part=batch.id if due_at else "",
        created=format_time(reported_at),
    )
    _, note = put_manifest(objects, manifest)
    deposited = DepositedLot(
        batch_id=batch.id,
        collection=batch.collection,
        submitter=batch.submission.submitter,
        namespace=collection.namespace,
        dataset=collection.dataset,
        report=report.number,
        lot=lot,
        manifest=note,
        interval=collection.interval,
        due_at=due_at,
    )
    with tracing.span("lot.publish", lot=batch.id, dataset=f"{ref.namespace}/{ref.name}"):
        is_newest = context.write(PublishBatch(deposited))
    if is_newest and not due_at:
        lot_published(ref, lot, note.state)
        show_manifest(objects, lot, ref, note)


def withdraw_batch(context: IngestContext, batch: Batch, who: str) -> None:
    """Remove the lot of a batch that is being deleted, if it was only announced."""
    with context.catalog.read() as tx:
        lot = announced_lot(tx, batch.id)
    if lot is not None:
        _withdraw(context, lot, who, f"batch {batch.id} was deleted")


def _leave(context: IngestContext, batch: Batch, ref: DatasetRef, lot: str) -> None:
    """Remove the announced lot of a batch if the batch now belongs to another lot."""
    with context.catalog.read() as tx:
        before = announced_lot(tx, batch.id)
    if before is None:
        return
    announced = decode(context.storage.objects.get(before.key), before.key)
    if (announced.dataset, before.lot) != (ref, lot):
        why = f"batch {batch.id} is now in {ref.namespace}/{ref.name} {lot}"
        _withdraw(context, before, DEPOSITS, why)


def _withdraw(context: IngestContext, lot: BatchLotRow, who: str, why: str) -> None:
    with context.catalog.read() as tx:
        which = {"dataset_id": lot.dataset_id, "lot": lot.lot}
        rows = tx.rows(ManifestRow, "lot_manifests_of_lot", **which)
    objects = context.storage.objects
    removed = [_put_removed(objects, row, why) for row in rows]
    notes = zip((row.version_id for row in rows), (note for _, note in removed), strict=True)
    context.catalog.submit(WithdrawBatch(lot.batch_id, who, why, tuple(notes))).result()
    for manifest, note in removed[:1]:
        show_manifest(objects, lot.lot, manifest.dataset, note)


def _put_removed(objects: Objects, row: ManifestRow, why: str) -> tuple[Manifest, ManifestNote]:
    """Write a manifest with the state `removed`; a repeated call writes the same."""
    manifest = decode(objects.get(row.key), row.key)
    removed = msgspec.structs.replace(manifest, state=ManifestState.REMOVED, comment=why)
    return removed, put_manifest(objects, removed)[1]


def _lot(collection: Collection, batch: Batch, completed_at: Micros) -> tuple[str, Micros]:
    """Return the lot of a batch, and the time of its publication; 0 is now."""
    if collection.interval is None:
        return batch.id, 0
    lot = collection.interval.lot_at(completed_at)
    interval = parse_interval(lot)
    assert interval is not None, "the lot of an interval parses as one"
    return lot, interval.end + _GRACE


def _mark(items: Sequence[Item]) -> str:
    """Hash the files: two manifests of one report with other files need different names."""
    return hashlib.sha256(to_json(items).encode()).hexdigest()[:8]


def _dataset_ref(collection: Collection) -> DatasetRef:
    return DatasetRef(collection.namespace, collection.dataset, LABEL)


def _state(items: Sequence[Item], *, is_whole: bool) -> ManifestState:
    if not is_whole:
        return ManifestState.PARTIAL
    return ManifestState.COMPLETE if items else ManifestState.EMPTY


def _items(
    context: IngestContext, objects: Objects, collection: Collection, keys: Iterable[str]
) -> Iterator[Item]:
    """Yield every file that these deposits stored."""
    depository = context.storage.depository(collection)
    key_form = find_key_form(objects, depository.url)
    wanted = list(keys)
    for start in range(0, len(wanted), _PAGE):
        with context.catalog.read() as tx:
            rows = stored_versions(tx, wanted[start : start + _PAGE])
        for row in sorted(rows, key=lambda row: row.job_id):
            yield from _files(depository, row, key_form)


def _files(depository: Depository, row: StoredRow, key_form: KeyForm) -> Iterator[Item]:
    """Yield the depositor's files; the metadata files beside them are not data."""
    files = depository.files(row.ark, row.version)
    _check_sizes(depository, row, files)
    deposited = [f for f in files if f.name.startswith(_DEPOSITED)]
    for file in {file.key: file for file in deposited}.values():
        yield Item(key_form.uri(file.key), file.size, f"sha-512:{file.sha512}", ark=row.ark)


def _check_sizes(depository: Depository, row: StoredRow, files: Sequence[StoredFile]) -> None:
    """Raise Invalid if files were lost or truncated since they were stored."""
    lost = next((file.key for file in files if file.size is None), None)
    size = sum(file.size or 0 for file in files)
    if lost is None and size == row.bytes:
        return
    fault = f"{lost} is missing" if lost else f"it has {size:,} bytes instead of {row.bytes:,}"
    raise Invalid(
        f"version {row.version} of {row.ark} is damaged in {depository.url}: {fault}; restore it, "
        "or submit the object again"
    )
