"""Reported batches as lots of their collection's dataset.

A batch is a lot of its own, announced while jobs of it are open and READY when all are completed;
or it is part of the lot of the interval in which it completed, published when that is over.
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
from penstock.catalog.unit_of_work import Changes, UnitOfWork
from penstock.clock import SECOND, Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.ingest.archive.ocfl.repository import Depository, StoredFile
from penstock.ingest.archive.register import StoredRow, stored_by
from penstock.ingest.collections import Collection
from penstock.ingest.context import PRODUCER, IngestContext
from penstock.ingest.models import Batch, to_json
from penstock.ingest.notifications.reports import Report
from penstock.ingest.telemetry import lot_published
from penstock.locks.commands.lots import announce, is_news, register, withdraw
from penstock.locks.tables import LockTables
from penstock.lots.ids import Interval, parse_interval
from penstock.lots.manifest_files import put_manifest, show_manifest
from penstock.lots.manifests import DatasetRef, Item, Manifest, ManifestNote, decode
from penstock.lots.rows import LotDatasetRow, ManifestRow
from penstock.lots.tables import LotTables
from penstock.objects import Objects
from penstock.objects.uris import Place, find_place
from penstock.states import ManifestState
from penstock.store.table_cache import TableCache
from penstock.telemetry import tracing

DEPOSITS = "ingest"  # who publishes what was deposited
LABEL = "1"  # of the way in which lots of batches are cut
_GRACE: Micros = 5 * SECOND  # for batches that complete just before an interval's end
_DEPOSITED = f"{PRODUCER}/"
_PAGE = 500


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
        self.lasting: tuple[TableCache[Any], ...] = (self.lots,)
        self.passing: tuple[TableCache[Any], ...] = ()

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
            is_news(uow.tables(LockTables), dataset, told.lot, renew=True)  # or it is refused now
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


def publish_batch(
    context: IngestContext, batch: Batch, report: Report, keys: Iterable[str]
) -> None:
    """Let a batch that is being reported be a lot; `keys` are the deposits that have completed."""
    collection = context.collections.get(batch.collection)
    is_whole = not report.still_open
    if collection.interval is not None and not is_whole:
        return  # it is part of a lot when it has completed
    # Whoever reports again after a crash writes the same: all but the files is the batch's own.
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
    """Remove the lot as which a batch was announced, if it is not the one that it comes to."""
    with context.catalog.read() as tx:
        before = announced_lot(tx, batch.id)
    if before is None:
        return
    announced = decode(context.storage.objects.get(before.key), before.key)
    if (announced.dataset, before.lot) != (ref, lot):
        why = f"batch {batch.id} is now in {ref.namespace}/{ref.name} {lot}"
        _withdraw(context, before, DEPOSITS, why)


def _withdraw(context: IngestContext, lot: BatchLotRow, who: str, why: str) -> None:
    """Remove a lot that was only announced."""
    with context.catalog.read() as tx:
        which = {"dataset_id": lot.dataset_id, "lot": lot.lot}
        rows = tx.rows(ManifestRow, "lot_manifests_of_lot", **which)
    objects = context.storage.objects
    gone = [_put_removed(objects, row, why) for row in rows]
    notes = zip((row.version_id for row in rows), (note for _, note in gone), strict=True)
    context.catalog.submit(WithdrawBatch(lot.batch_id, who, why, tuple(notes))).result()
    for manifest, note in gone[:1]:
        show_manifest(objects, lot.lot, manifest.dataset, note)


def _put_removed(objects: Objects, row: ManifestRow, why: str) -> tuple[Manifest, ManifestNote]:
    """The manifest that lists what is not to be read; written again, it says the same."""
    manifest = decode(objects.get(row.key), row.key)
    removed = msgspec.structs.replace(manifest, state=ManifestState.REMOVED, comment=why)
    return removed, put_manifest(objects, removed)[1]


def _lot(collection: Collection, batch: Batch, completed_at: Micros) -> tuple[str, Micros]:
    """The lot that a batch is, or is part of, and when that is published; 0 is now."""
    if collection.interval is None:
        return batch.id, 0
    lot = collection.interval.lot_at(completed_at)
    interval = parse_interval(lot)
    assert interval is not None, "the lot of an interval is one"
    return lot, interval.end + _GRACE


def _mark(items: Sequence[Item]) -> str:
    """What tells a manifest from one with other files that the same report may have written."""
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
    """Every file of what these deposits have stored."""
    depository = context.storage.depository(collection)
    place = find_place(objects, depository.url)
    wanted = list(keys)
    for start in range(0, len(wanted), _PAGE):
        with context.catalog.read() as tx:
            rows = stored_by(tx, wanted[start : start + _PAGE])
        for row in sorted(rows, key=lambda row: row.job_id):
            yield from _files(depository, row, place)


def _files(depository: Depository, row: StoredRow, place: Place) -> Iterator[Item]:
    """What the depositor gave; the metadata that was written beside it is not data."""
    files = depository.files(row.ark, row.version)
    _check_sizes(depository, row, files)
    given = [f for f in files if f.name.startswith(_DEPOSITED)]
    for file in {file.key: file for file in given}.values():
        yield Item(place.uri(file.key), file.size, f"sha-512:{file.sha512}", ark=row.ark)


def _check_sizes(depository: Depository, row: StoredRow, files: Sequence[StoredFile]) -> None:
    """Refuse to list files that were lost or cut off since they were stored."""
    lost = next((file.key for file in files if file.size is None), None)
    size = sum(file.size or 0 for file in files)
    if lost is None and size == row.bytes:
        return
    fault = f"{lost} is missing" if lost else f"it has {size:,} bytes instead of {row.bytes:,}"
    raise Invalid(
        f"version {row.version} of {row.ark} is damaged in {depository.url}: {fault}; restore it, "
        "or submit the object again"
    )
