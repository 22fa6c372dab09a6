"""Clean-up: delete old batches and unused uploads.

Needs: completed batches. Does: deletes batches that are older than their collection's `keep_days`,
with their jobs, working folders and uploaded payloads; deletes uploads that no batch used within a
day. Stored and recorded objects stay; a lot that never became complete is removed.
"""

from penstock.clock import DAY
from penstock.errors import NotFound
from penstock.ingest.context import IngestContext
from penstock.ingest.deletion import delete_batch, delete_upload
from penstock.ingest.intake.uploads import SpendUpload, find_batches, stale_uploads
from penstock.ingest.models import Batch
from penstock.ingest.progress import DeleteOldProgress
from penstock.ingest.queue.port import BatchFilter
from penstock.states import BatchState

_PAGE = 250


def go_round(context: IngestContext) -> int:
    """Check every completed batch once; return the number of deleted batches."""
    deleted = 0
    before: str | None = None
    while not context.runtime.is_stopping():
        batches = context.store.batches(BatchFilter(BatchState.COMPLETED), _PAGE, before)
        if not batches:
            break
        deleted += sum(
            _is_over(context, batch) and delete_batch(context, batch) for batch in batches
        )
        before = batches[-1].id
    _forget_stale_uploads(context)
    context.catalog.submit(DeleteOldProgress()).result()
    return deleted


def _forget_stale_uploads(context: IngestContext) -> None:
    with context.catalog.read() as tx:
        stale = stale_uploads(tx, context.runtime.clock(), _PAGE)
    batches = find_batches(context.store, {url for url, holder in stale if holder})
    for url, _ in stale:
        if url in batches:
            context.catalog.submit(SpendUpload(url, batches[url])).result()
        else:
            delete_upload(context, url)


def _is_over(context: IngestContext, batch: Batch) -> bool:
    try:
        keep_days = context.collections.get(batch.collection).keep_days
    except NotFound:
        keep_days = 0
    return batch.last_modified + keep_days * DAY <= context.runtime.clock()
