"""Lots: publish the lots of intervals that are over.

Needs: completed batches in collections whose lots are intervals. Does: writes a manifest over the
manifests of the interval's batches, and publishes the lot. A lot that a job of the catalog makes is
refused; the stage logs that and tries again.
"""

import logging
from collections.abc import Sequence

from penstock.clock import format_time
from penstock.errors import Conflict
from penstock.ingest.context import IngestContext
from penstock.ingest.lots import LABEL, BatchLotRow, CloseLot, DueLot, batches_of_lot, due_lots
from penstock.ingest.telemetry import lot_published
from penstock.lots.manifest_files import put_manifest, show_manifest
from penstock.lots.manifests import DatasetRef, Manifest, ManifestNote, PartLine
from penstock.objects import Objects
from penstock.states import ManifestState
from penstock.telemetry import tracing

log = logging.getLogger(__name__)

_CLOSED_AT_ONCE = 100


def go_round(context: IngestContext) -> int:
    """Publish the lots of intervals that are over; return their number."""
    with context.catalog.read() as tx:
        due = due_lots(tx, context.runtime.clock(), _CLOSED_AT_ONCE)
    closed = 0
    for lot in due:
        if context.runtime.is_stopping():
            break
        closed += _close(context, lot)
    return closed


def _close(context: IngestContext, due: DueLot) -> bool:
    with context.catalog.read() as tx:
        rows = batches_of_lot(tx, due.dataset_id, due.lot)
    ref = DatasetRef(due.namespace, due.dataset, LABEL)
    objects = context.storage.objects
    note = _put_root(objects, ref, due.lot, rows)
    batches = tuple(row.batch_id for row in rows)
    close = CloseLot(due.namespace, due.dataset, due.lot, note, batches)
    try:
        with tracing.span("lot.publish", lot=due.lot, dataset=f"{ref.namespace}/{ref.name}"):
            is_closed = context.catalog.submit(close).result()
            for batch_id in batches:  # link the traces of the batches to the trace of the lot
                tracing.note("lot.publish", lot=batch_id, began=context.runtime.clock())
    except Conflict as error:
        log.warning("lot %s of %s/%s is not published: %s", due.lot, ref.namespace, ref.name, error)
        return False
    if not is_closed:  # another batch completed meanwhile: the next round publishes the lot
        return False
    lot_published(ref, due.lot, note.state)
    show_manifest(objects, due.lot, ref, note)
    return True


def _put_root(
    objects: Objects, ref: DatasetRef, lot: str, rows: Sequence[BatchLotRow]
) -> ManifestNote:
    """Write a manifest over the manifests of the batches."""
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
