"""Clean-up: what is done is forgotten after a time.

Needs: completed batches. Does: deletes those that completed longer ago than their collection keeps
them, with their jobs, working folders and uploaded payloads; and payloads that are no batch's
after a day. What was stored and recorded stays; a lot that never became complete is removed.
"""

from penstock.clock import DAY
from penstock.errors import NotFound
from penstock.ingest.context import IngestContext
from penstock.ingest.deletion import delete_batch, delete_upload
from penstock.ingest.intake.uploads import SpendUpload, batches_of, stale_uploads
from penstock.ingest.models import Batch
from penstock.ingest.progress import ForgetOldProgress
from penstock.ingest.queue.port import BatchFilter
from penstock.states import BatchState

_PAGE = 250


def go_round(context: IngestContext) -> int:
    """Look at completed batches once: how many were deleted."""
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
    context.catalog.submit(ForgetOldProgress()).result()
    return deleted


def _forget_stale_uploads(context: IngestContext) -> None:
    with context.catalog.read() as tx:
        stale = stale_uploads(tx, context.runtime.clock(), _PAGE)
    batches = batches_of(context.store, {url for url, holder in stale if holder})
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
