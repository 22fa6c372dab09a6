"""Clean-up: what is done is forgotten after a time.

Needs: completed batches. Does: deletes those that completed longer ago than their collection keeps
them, with their jobs, working folders and uploaded payloads; and payloads that are no batch's
after a day. What was stored and recorded stays; a lot that never became complete is removed.
"""

import shutil

from penstock.clock import DAY
from penstock.errors import NotFound, PenstockError
from penstock.ingest.context import PAYLOAD_SCHEME, IngestContext, upload_key
from penstock.ingest.intake.uploads import ForgetUpload, SpendUpload, batches_of, stale_uploads
from penstock.ingest.lots import DEPOSITS
from penstock.ingest.models import Batch, BatchChange, JobChange
from penstock.ingest.progress import ForgetOldProgress
from penstock.ingest.queue.port import BatchFilter
from penstock.ingest.stages import lots
from penstock.ingest.workers.abandoned import give_up
from penstock.states import BatchState

_PAGE = 250


def go_round(context: IngestContext) -> int:
    """Look at completed batches once: how many were deleted."""
    deleted = 0
    before: str | None = None
    while not context.stop():
        batches = context.store.batches(BatchFilter(BatchState.COMPLETED), _PAGE, before)
        if not batches:
            break
        deleted += sum(_is_over(context, batch) and delete(context, batch) for batch in batches)
        before = batches[-1].id
    _forget_stale_uploads(context)
    context.catalog.submit(ForgetOldProgress()).result()
    return deleted


def delete(context: IngestContext, batch: Batch, *, by: str = "") -> bool:
    """Delete a batch and all that is left of it; False if somebody else was first.

    `by` is who does it by hand. The batch itself goes last, so that what is left by a crash is
    found and deleted again.
    """
    by_hand = bool(by)
    while jobs := context.store.jobs(batch.id, _PAGE):
        gone = context.store.change_jobs([JobChange(job, None, by_hand=by_hand) for job in jobs])
        for job, outcome in zip(jobs, gone, strict=True):
            if isinstance(outcome, PenstockError) and not isinstance(outcome, NotFound):
                raise outcome
            give_up(context, job)
            context.forget_folder(job)
    lots.withdraw(context, batch, by or DEPOSITS)
    forget_payload(context, batch)
    shutil.rmtree(context.batch_folder(batch.id), ignore_errors=True)
    try:
        batch = context.store.batch(batch.id)
        context.store.change_batch(BatchChange(batch, None, by_hand=by_hand))
    except NotFound:
        return False
    return True


def forget_payload(context: IngestContext, batch: Batch) -> None:
    """Delete a payload that was uploaded for this batch alone."""
    url = batch.submission.payload_url
    if url.startswith(f"{PAYLOAD_SCHEME}:"):
        _forget_upload(context, url)


def _forget_stale_uploads(context: IngestContext) -> None:
    with context.catalog.read() as tx:
        stale = stale_uploads(tx, context.clock(), _PAGE)
    batches = batches_of(context.store, {url for url, holder in stale if holder})
    for url, _ in stale:
        if url in batches:
            context.catalog.submit(SpendUpload(url, batches[url])).result()
        else:
            _forget_upload(context, url)


def _forget_upload(context: IngestContext, url: str) -> None:
    """The file goes first: what a crash leaves is found and deleted again."""
    context.objects.delete(upload_key(url))
    context.catalog.submit(ForgetUpload(url)).result()


def _is_over(context: IngestContext, batch: Batch) -> bool:
    try:
        keep_days = context.collection(batch.collection).keep_days
    except NotFound:
        keep_days = 0
    return batch.last_modified + keep_days * DAY <= context.clock()
