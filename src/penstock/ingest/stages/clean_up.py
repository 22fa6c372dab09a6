"""Clean-up: what is done is forgotten after a time.

Needs: completed batches. Does: deletes those that completed longer ago than their collection keeps
them, with their jobs, working folders and uploaded payloads; and payloads that are no batch's
after a day. What was stored and recorded stays; a lot that never became complete is removed.
"""

import shutil

from penstock.clock import DAY
from penstock.errors import NotFound, PenstockError
from penstock.ingest.context import PAYLOAD_SCHEME, Workshop, upload_key
from penstock.ingest.intake.uploads import ForgetUpload, SpendUpload, batches_of, stale_uploads
from penstock.ingest.lots import DEPOSITS
from penstock.ingest.models import Batch, BatchChange, JobChange
from penstock.ingest.progress import ForgetOldProgress
from penstock.ingest.queue.port import BatchFilter
from penstock.ingest.stages import lots
from penstock.ingest.workers.abandoned import give_up
from penstock.states import BatchState

_PAGE = 250


def go_round(shop: Workshop) -> int:
    """Look at completed batches once: how many were deleted."""
    deleted = 0
    before: str | None = None
    while not shop.stop():
        batches = shop.store.batches(BatchFilter(BatchState.COMPLETED), _PAGE, before)
        if not batches:
            break
        deleted += sum(_is_over(shop, batch) and delete(shop, batch) for batch in batches)
        before = batches[-1].id
    _forget_stale_uploads(shop)
    shop.catalog.submit(ForgetOldProgress()).result()
    return deleted


def delete(shop: Workshop, batch: Batch, *, by: str = "") -> bool:
    """Delete a batch and all that is left of it; False if somebody else was first.

    `by` is who does it by hand. The batch itself goes last, so that what is left by a crash is
    found and deleted again.
    """
    by_hand = bool(by)
    while jobs := shop.store.jobs(batch.id, _PAGE):
        gone = shop.store.change_jobs([JobChange(job, None, by_hand=by_hand) for job in jobs])
        for job, outcome in zip(jobs, gone, strict=True):
            if isinstance(outcome, PenstockError) and not isinstance(outcome, NotFound):
                raise outcome
            give_up(shop, job)
            shop.forget_folder(job)
    lots.withdraw(shop, batch, by or DEPOSITS)
    forget_payload(shop, batch)
    shutil.rmtree(shop.batch_folder(batch.id), ignore_errors=True)
    try:
        batch = shop.store.batch(batch.id)
        shop.store.change_batch(BatchChange(batch, None, by_hand=by_hand))
    except NotFound:
        return False
    return True


def forget_payload(shop: Workshop, batch: Batch) -> None:
    """Delete a payload that was uploaded for this batch alone."""
    url = batch.submission.payload_url
    if url.startswith(f"{PAYLOAD_SCHEME}:"):
        _forget_upload(shop, url)


def _forget_stale_uploads(shop: Workshop) -> None:
    with shop.catalog.read() as tx:
        stale = stale_uploads(tx, shop.clock(), _PAGE)
    batches = batches_of(shop.store, {url for url, holder in stale if holder})
    for url, _ in stale:
        if url in batches:
            shop.catalog.submit(SpendUpload(url, batches[url])).result()
        else:
            _forget_upload(shop, url)


def _forget_upload(shop: Workshop, url: str) -> None:
    """The file goes first: what a crash leaves is found and deleted again."""
    shop.objects.delete(upload_key(url))
    shop.catalog.submit(ForgetUpload(url)).result()


def _is_over(shop: Workshop, batch: Batch) -> bool:
    try:
        keep_days = shop.collection(batch.collection).keep_days
    except NotFound:
        keep_days = 0
    return batch.last_modified + keep_days * DAY <= shop.clock()
