"""Ingest on the wire: domain objects as the types of the schema, without secrets."""

from collections.abc import Iterable

import msgspec

from penstock.clock import format_time
from penstock.errors import Conflict
from penstock.ingest.archive.register import StoredRow
from penstock.ingest.intake.places import redact_url
from penstock.ingest.models import Batch, IngestHold, IngestJob, Tally
from penstock.ingest.notifications.reports import BatchReport
from penstock.ingest.progress import DownloadProgress
from penstock.ingest.transitions import resume_stage
from penstock.schema.ingest import (
    Collection,
    Download,
    ReachedState,
    ShownBatch,
    ShownCollection,
    ShownIngestJob,
    ShownReport,
    StateTally,
    StoredObject,
)
from penstock.schema.lots import Held
from penstock.states import IngestState


def show_hold(hold: IngestHold | None) -> Held | None:
    """Return a hold as the API shows it."""
    return None if hold is None else Held(hold.who, hold.why, format_time(hold.since))


def show_collection(collection: Collection, hold: IngestHold | None) -> ShownCollection:
    """Return a collection with its secret masked."""
    return ShownCollection(**msgspec.structs.asdict(collection.masked), held=show_hold(hold))


def show_tally(tallies: Iterable[Tally]) -> dict[str, StateTally]:
    """Return the tallies by state."""
    return {str(tally.status): StateTally(tally.jobs, tally.bytes) for tally in tallies}


def show_batch(batch: Batch, tallies: Iterable[Tally] | None) -> ShownBatch:
    """Return a batch with the secrets of its URL masked."""
    submission = batch.submission
    return ShownBatch(
        id=batch.id,
        collection=batch.collection,
        status=batch.status,
        message=batch.message,
        submitter=submission.submitter,
        payload_url=redact_url(submission.payload_url),
        payload_name=submission.payload_name or "",
        payload_type=submission.type,
        mode=submission.submission_mode,
        key=None
        if submission.key == submission.payload_url
        else submission.key,  # an upload's key is its URL
        jobs=batch.jobs,
        tally=None if tallies is None else show_tally(tallies),
        last_modified=format_time(batch.last_modified),
        submitted_at=format_time(submission.submitted_at),
        locked_by=batch.locked_by or None,
    )


def show_job(job: IngestJob, progress: DownloadProgress | None = None) -> ShownIngestJob:
    """Return an ingest job with the secrets of its URL masked."""
    configuration = job.configuration
    return ShownIngestJob(
        id=job.id,
        batch=job.batch_id,
        collection=configuration.profile_name,
        status=job.status,
        last_successful_status=job.last_successful_status,
        resumes_at=_resumes_at(job),
        retry_count=job.retry_count,
        message=job.message,
        priority=job.priority,
        space_needed=job.space_needed,
        payload_url=redact_url(configuration.payload_url),
        payload_name=configuration.payload_name,
        payload_type=configuration.payload_type,
        mode=configuration.submission_mode,
        primary_id=job.identifiers.primary,
        local_ids=job.identifiers.local_id,
        title=configuration.erc_what,
        working_folder=configuration.working_dir,
        last_modified=format_time(job.last_modified),
        history=[ReachedState(step.status, format_time(step.at)) for step in job.history],
        locked_by=job.locked_by or None,
        download=_download(job, progress),
    )


def _download(job: IngestJob, progress: DownloadProgress | None) -> Download | None:
    if progress is None or job.status is not IngestState.DOWNLOADING:
        return None
    return Download(progress.bytes, progress.total or None, format_time(progress.at))


def _resumes_at(job: IngestJob) -> IngestState | None:
    try:
        return resume_stage(job)
    except Conflict:
        return None


def show_report(report: BatchReport, text: str) -> ShownReport:
    """Return a report with the text of its letter."""
    return ShownReport(
        number=report.number,
        kind=report.kind,
        batch=report.batch_id,
        collection=report.collection,
        submitter=report.submitter,
        payload_url=redact_url(report.payload_url),
        submitted_at=format_time(report.submitted_at),
        last_modified=format_time(report.last_modified),
        successful_jobs=report.successful_jobs,
        failed_jobs=report.failed_jobs,
        newly_successful=report.newly_successful,
        still_open=report.still_open,
        gone=report.gone,
        text=text,
    )


def show_object(row: StoredRow) -> StoredObject:
    """Return one version of an object."""
    return StoredObject(
        ark=row.ark,
        version=row.version,
        collection=row.collection,
        batch=row.batch_id,
        job=row.job_id,
        location=row.location,
        digest=row.digest,
        files=row.files,
        bytes=row.bytes,
        title=row.title,
        run_id=str(row.run_id),
        at=format_time(row.at),
    )
