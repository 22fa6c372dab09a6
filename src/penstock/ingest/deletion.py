"""Deletion of batches, and of the content that deleted jobs began to store.

The job is deleted first, so that no worker claims it again. Until its content is deleted too, the
register keeps the job as the writer of its object: a check finds there what a crash left.
"""

import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from penstock.errors import Invalid, NotFound, PenstockError
from penstock.ingest.archive.register import DeleteWriter, WriterRow, list_writers
from penstock.ingest.collections import all_collections
from penstock.ingest.context import PAYLOAD_SCHEME, IngestContext, upload_key
from penstock.ingest.intake.uploads import DeleteUpload
from penstock.ingest.lots import DEPOSITS, withdraw_batch
from penstock.ingest.models import Batch, BatchChange, IngestJob, JobChange
from penstock.schema.ingest import Finding
from penstock.states import IngestState

log = logging.getLogger(__name__)

_PAGE = 250

_BATCH_ID = re.compile("bid[0-9]{10}")


def abandon_deposit(context: IngestContext, job: IngestJob) -> None:
    """Remove the content that a deleted job began to store; a check finds it if that fails."""
    ark, key = job.identifiers.primary, job.configuration.key
    if ark is None or job.last_successful_status is not IngestState.DOWNLOADING:
        return  # it stored nothing, or a whole version
    try:
        context.storage.depository(context.collections.get(job.configuration.profile_name)).abandon(
            ark, key
        )
        context.catalog.submit(DeleteWriter(ark, key)).result()
    except PenstockError as error:
        log.warning(
            "%s is deleted, but the content that it began to store is not: %s; "
            "`penstock ingest check --repair` tries again",
            job.id,
            error,
        )


def abandon_if_deleted(context: IngestContext, job: IngestJob, ark: str) -> None:
    """Remove the content stored for a job that was deleted meanwhile."""
    with suppress(PenstockError):
        try:
            context.store.job(job.id)
        except NotFound:
            collection = context.collections.get(job.configuration.profile_name)
            context.storage.depository(collection).abandon(ark, job.configuration.key)


def writer_job(context: IngestContext, writer: WriterRow) -> IngestJob | None:
    """Return the job that may write an object; None if it was deleted."""
    try:
        job = context.store.job(writer.job_id)
    except NotFound:
        return None
    return job if job.configuration.key == writer.key else None


def check_abandoned(context: IngestContext, *, repair: bool) -> Iterator[Finding]:
    """Find deleted jobs that are still registered as writers: their content may be in the store."""
    after = ""
    while rows := _writers(context, after):
        for row in rows:
            if _is_deleted(context, row):
                what = f"is deleted, but content of {row.ark} that it began to store may be there"
                repaired = repair and _is_abandoned(context, row)
                yield Finding(what, f"ingest job {row.job_id}", repairable=True, repaired=repaired)
        after = rows[-1].ark


def _is_deleted(context: IngestContext, row: WriterRow) -> bool:
    try:
        return writer_job(context, row) is None
    except Invalid:  # it exists, but is unreadable
        return False


def _writers(context: IngestContext, after: str) -> list[WriterRow]:
    with context.catalog.read() as tx:
        return list_writers(tx, after, _PAGE)


def _is_abandoned(context: IngestContext, row: WriterRow) -> bool:
    """Abandon the deposit in every storage: its collection is no longer known."""
    with context.catalog.read() as tx:
        places = {each.storage: each for each in all_collections(tx)}
    try:
        for collection in places.values():
            context.storage.depository(collection).abandon(row.ark, row.key)
        context.catalog.submit(DeleteWriter(row.ark, row.key)).result()
    except PenstockError as error:
        log.warning("the content that %s began to store is still there: %s", row.job_id, error)
        return False
    return True


def check_orphaned_folders(context: IngestContext, *, repair: bool) -> Iterator[Finding]:
    """Find working folders whose batch is not in the queue; other folders are left alone."""
    top = Path(context.runtime.settings.ingest_folder)
    folders = sorted(top.iterdir()) if top.is_dir() else []
    for folder in folders:
        if not _BATCH_ID.fullmatch(folder.name) or not _is_gone(context, folder.name):
            continue
        if repair:
            shutil.rmtree(folder, ignore_errors=True)
        yield Finding(
            "is the working folder of a batch that does not exist",
            str(folder),
            repairable=True,
            repaired=repair and not folder.exists(),
        )


def _is_gone(context: IngestContext, batch_id: str) -> bool:
    try:
        context.store.batch(batch_id)
    except NotFound:
        return True
    except Invalid:  # it exists, but is unreadable
        return False
    return False


def delete_batch(context: IngestContext, batch: Batch, *, by: str = "") -> bool:
    """Delete a batch, its jobs, folders and payload; False if it is already deleted.

    `by` names the administrator, if one deletes it. The batch itself goes last: after a crash the
    batch is still there, and is deleted again.
    """
    by_hand = bool(by)
    while jobs := context.store.jobs(batch.id, _PAGE):
        outcomes = context.store.change_jobs(
            [JobChange(job, None, by_hand=by_hand) for job in jobs]
        )
        for job, outcome in zip(jobs, outcomes, strict=True):
            if isinstance(outcome, PenstockError) and not isinstance(outcome, NotFound):
                raise outcome
            abandon_deposit(context, job)
            context.storage.remove_job_folder(job)
    withdraw_batch(context, batch, by or DEPOSITS)
    _delete_payload(context, batch)
    shutil.rmtree(context.storage.batch_folder(batch.id), ignore_errors=True)
    try:
        batch = context.store.batch(batch.id)
        context.store.change_batch(BatchChange(batch, None, by_hand=by_hand))
    except NotFound:
        return False
    return True


def _delete_payload(context: IngestContext, batch: Batch) -> None:
    """Delete the payload if it was uploaded for this batch."""
    url = batch.submission.payload_url
    if url.startswith(f"{PAYLOAD_SCHEME}:"):
        delete_upload(context, url)


def delete_upload(context: IngestContext, url: str) -> None:
    """Delete an upload: first its file, then its row, so that a crash leaves the row to retry."""
    context.storage.objects.delete(upload_key(url))
    context.catalog.submit(DeleteUpload(url)).result()
