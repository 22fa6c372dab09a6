"""Deposits that are given up: what a deleted job had begun to store goes with it.

The job is deleted first, so that nobody takes it up again. Until what it had begun is gone too, the
register still has it for the one that may write its object: there a check finds what a crash left.
"""

import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from penstock.errors import Invalid, NotFound, PenstockError
from penstock.ingest.archive.register import ForgetWriter, WriterRow, writers_from
from penstock.ingest.collections import all_collections
from penstock.ingest.context import PAYLOAD_SCHEME, IngestContext, upload_key
from penstock.ingest.intake.uploads import ForgetUpload
from penstock.ingest.lots import DEPOSITS, withdraw_batch
from penstock.ingest.models import Batch, BatchChange, Finding, IngestJob, JobChange
from penstock.states import IngestState

log = logging.getLogger(__name__)

_PAGE = 250


def give_up(context: IngestContext, job: IngestJob) -> None:
    """Remove what a job that was just deleted had begun to store; a check finds what is left."""
    ark, key = job.identifiers.primary, job.configuration.key
    if ark is None or job.last_successful_status is not IngestState.DOWNLOADING:
        return  # it stored nothing, or all
    try:
        context.storage.depository(context.collections.get(job.configuration.profile_name)).give_up(
            ark, key
        )
        context.catalog.submit(ForgetWriter(ark, key)).result()
    except PenstockError as error:
        log.warning(
            "%s is deleted, but what it had begun to store is not: %s; "
            "`penstock ingest check --repair` tries again",
            job.id,
            error,
        )


def give_up_if_gone(context: IngestContext, job: IngestJob, ark: str) -> None:
    """Remove what was stored for a job that somebody has deleted meanwhile."""
    with suppress(PenstockError):
        try:
            context.store.job(job.id)
        except NotFound:
            collection = context.collections.get(job.configuration.profile_name)
            context.storage.depository(collection).give_up(ark, job.configuration.key)


def job_of(context: IngestContext, writer: WriterRow) -> IngestJob | None:
    """The job that may write an object; None if it was deleted."""
    try:
        job = context.store.job(writer.job_id)
    except NotFound:
        return None
    return job if job.configuration.key == writer.key else None


def check(context: IngestContext, *, repair: bool) -> Iterator[Finding]:
    """Deleted jobs that may still write an object: what they had begun may be there."""
    after = ""
    while rows := _writers(context, after):
        for row in rows:
            if _is_deleted(context, row):
                what = f"is deleted, but what it had begun to store of {row.ark} may be there"
                repaired = repair and _is_given_up(context, row)
                yield Finding(what, f"ingest job {row.job_id}", repairable=True, repaired=repaired)
        after = rows[-1].ark


def _is_deleted(context: IngestContext, row: WriterRow) -> bool:
    try:
        return job_of(context, row) is None
    except Invalid:  # it is there, and cannot be read
        return False


def _writers(context: IngestContext, after: str) -> list[WriterRow]:
    with context.catalog.read() as tx:
        return writers_from(tx, after, _PAGE)


def _is_given_up(context: IngestContext, row: WriterRow) -> bool:
    """Look for it wherever collections keep their objects: nobody knows any more whose it was."""
    with context.catalog.read() as tx:
        places = {each.storage: each for each in all_collections(tx)}
    try:
        for collection in places.values():
            context.storage.depository(collection).give_up(row.ark, row.key)
        context.catalog.submit(ForgetWriter(row.ark, row.key)).result()
    except PenstockError as error:
        log.warning("what %s had begun to store is still there: %s", row.job_id, error)
        return False
    return True


_BATCH_ID = re.compile("bid[0-9]{10}")


def check_folders(context: IngestContext, *, repair: bool) -> Iterator[Finding]:
    """Folders here whose batch is not in the queue; whatever else lies there is left alone."""
    top = Path(context.runtime.settings.ingest_folder)
    found = sorted(top.iterdir()) if top.is_dir() else []
    for folder in found:
        if not _BATCH_ID.fullmatch(folder.name) or not _is_gone(context, folder.name):
            continue
        if repair:
            shutil.rmtree(folder, ignore_errors=True)
        yield Finding(
            "is the working folder of a batch that is not there",
            str(folder),
            repairable=True,
            repaired=repair and not folder.exists(),
        )


def _is_gone(context: IngestContext, batch_id: str) -> bool:
    try:
        context.store.batch(batch_id)
    except NotFound:
        return True
    except Invalid:  # it is there, and cannot be read
        return False
    return False


def delete_batch(context: IngestContext, batch: Batch, *, by: str = "") -> bool:
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
    """Delete a payload that was uploaded for this batch alone."""
    url = batch.submission.payload_url
    if url.startswith(f"{PAYLOAD_SCHEME}:"):
        delete_upload(context, url)


def delete_upload(context: IngestContext, url: str) -> None:
    """The file goes first: what a crash leaves is found and deleted again."""
    context.storage.objects.delete(upload_key(url))
    context.catalog.submit(ForgetUpload(url)).result()
