"""Lots: what was deposited is published for whoever works on it next.

Needs: a batch that is being reported, or intervals that are over. Does: writes the manifest of a
batch, with the size, digest and ARK of every file, and makes it a lot of the collection's dataset:
partial while jobs are open, complete when all have completed. Where a collection's lots are
intervals, completed batches wait for the end of theirs. Fails when a job of ours makes that lot.
A lot that is partial goes with a batch that is deleted, or that comes elsewhere because its
collection was changed.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from penstock.clock import SECOND, Micros, format_time
from penstock.errors import Conflict, Invalid
from penstock.ingest.archive.ocfl.repository import Depository, StoredFile
from penstock.ingest.archive.register import StoredRow, stored_by
from penstock.ingest.context import PRODUCER, IngestContext
from penstock.ingest.lots import (
    DEPOSITS,
    LABEL,
    BatchLotRow,
    CloseLot,
    DepositedLot,
    DueLot,
    PublishBatch,
    WithdrawBatch,
    announced_lot,
    batches_of_lot,
    due_lots,
)
from penstock.ingest.models import Batch, to_json
from penstock.ingest.notifications.reports import Report
from penstock.ingest.telemetry import lot_published
from penstock.lots.manifest_files import put_manifest, show_manifest
from penstock.lots.manifests import DatasetRef, Item, Manifest, ManifestNote, PartLine, decode
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.objects.uris import KeyForm, find_key_form
from penstock.schema.ingest import Collection
from penstock.schema.lot_ids import parse_interval
from penstock.states import ManifestState
from penstock.telemetry import tracing

log = logging.getLogger(__name__)

_GRACE: Micros = 5 * SECOND  # for batches that complete just before an interval's end
_GIVEN = f"{PRODUCER}/"
_PAGE = 500
_CLOSED_AT_ONCE = 100


def publish(context: IngestContext, batch: Batch, report: Report, keys: Iterable[str]) -> None:
    """Let a batch that is being reported be a lot; `keys` are the deposits that have completed."""
    collection = context.collection(batch.collection)
    is_whole = not report.still_open
    if collection.interval is not None and not is_whole:
        return  # it is part of a lot when it has completed
    # Whoever reports again after a crash writes the same: all but the files is the batch's own.
    reported_at = batch.last_modified
    lot, due_at = _lot(collection, batch, reported_at)
    ref = _ref(collection)
    _leave(context, batch, ref, lot)
    objects = context.objects
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


def withdraw(context: IngestContext, batch: Batch, who: str) -> None:
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
    announced = decode(context.objects.get(before.key), before.key)
    if (announced.dataset, before.lot) != (ref, lot):
        why = f"batch {batch.id} is now in {ref.namespace}/{ref.name} {lot}"
        _withdraw(context, before, DEPOSITS, why)


def _withdraw(context: IngestContext, lot: BatchLotRow, who: str, why: str) -> None:
    """Remove a lot that was only announced."""
    with context.catalog.read() as tx:
        which = {"dataset_id": lot.dataset_id, "lot": lot.lot}
        rows = tx.rows(ManifestRow, "lot_manifests_of_lot", **which)
    objects = context.objects
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


def go_round(context: IngestContext) -> int:
    """Publish the lots of intervals that are over: how many those are."""
    with context.catalog.read() as tx:
        due = due_lots(tx, context.clock(), _CLOSED_AT_ONCE)
    closed = 0
    for lot in due:
        if context.stop():
            break
        closed += _close(context, lot)
    return closed


def _close(context: IngestContext, due: DueLot) -> bool:
    with context.catalog.read() as tx:
        rows = batches_of_lot(tx, due.dataset_id, due.lot)
    ref = DatasetRef(due.namespace, due.dataset, LABEL)
    objects = context.objects
    note = _put_root(objects, ref, due.lot, rows)
    batches = tuple(row.batch_id for row in rows)
    close = CloseLot(due.namespace, due.dataset, due.lot, note, batches)
    try:
        with tracing.span("lot.publish", lot=due.lot, dataset=f"{ref.namespace}/{ref.name}"):
            is_closed = context.catalog.submit(close).result()
            for batch_id in batches:  # their traces go on in the lot's own, which this names
                tracing.note("lot.publish", lot=batch_id, began=context.clock())
    except Conflict as error:
        log.warning("lot %s of %s/%s is not published: %s", due.lot, ref.namespace, ref.name, error)
        return False
    if not is_closed:  # another batch came meanwhile: the next round tells
        return False
    lot_published(ref, due.lot, note.state)
    show_manifest(objects, due.lot, ref, note)
    return True


def _put_root(
    objects: Objects, ref: DatasetRef, lot: str, rows: Sequence[BatchLotRow]
) -> ManifestNote:
    """A manifest over those of the batches."""
    parts = tuple(PartLine(r.batch_id, r.key, r.state, r.uris, r.bytes) for r in rows)
    has_data = any(row.uris for row in rows)
    manifest = Manifest(
        state=ManifestState.COMPLETE if has_data else ManifestState.EMPTY,
        lot=lot,
        dataset=ref,
        parts=parts if has_data else (),
        attempt=f"{rows[-1].batch_id}.{len(rows)}",
        created=format_time(max(row.at for row in rows)),
    )
    return put_manifest(objects, manifest)[1]


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


def _ref(collection: Collection) -> DatasetRef:
    return DatasetRef(collection.namespace, collection.dataset, LABEL)


def _state(items: Sequence[Item], *, is_whole: bool) -> ManifestState:
    if not is_whole:
        return ManifestState.PARTIAL
    return ManifestState.COMPLETE if items else ManifestState.EMPTY


def _items(
    context: IngestContext, objects: Objects, collection: Collection, keys: Iterable[str]
) -> Iterator[Item]:
    """Every file of what these deposits have stored."""
    depository = context.depository(collection)
    place = find_key_form(objects, depository.url)
    wanted = list(keys)
    for start in range(0, len(wanted), _PAGE):
        with context.catalog.read() as tx:
            rows = stored_by(tx, wanted[start : start + _PAGE])
        for row in sorted(rows, key=lambda row: row.job_id):
            yield from _files(depository, row, place)


def _files(depository: Depository, row: StoredRow, place: KeyForm) -> Iterator[Item]:
    """What the depositor gave; the metadata that was written beside it is not data."""
    files = depository.files(row.ark, row.version)
    _check_sizes(depository, row, files)
    given = [f for f in files if f.name.startswith(_GIVEN)]
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
