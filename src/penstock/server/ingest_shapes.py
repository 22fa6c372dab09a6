"""What the API shows of ingest."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from penstock.catalog.shapes import Shape
from penstock.clock import format_time
from penstock.errors import Conflict
from penstock.ingest.archive.register import StoredRow
from penstock.ingest.collections import Collection
from penstock.ingest.intake.places import redact_url
from penstock.ingest.models import Batch, IngestHold, IngestJob, PayloadType, SubmissionMode, Tally
from penstock.ingest.notifications.reports import BatchReport
from penstock.ingest.progress import DownloadProgress
from penstock.ingest.transitions import resume_stage
from penstock.locks.shapes import Held
from penstock.states import BatchState, IngestState


class ShownCollection(Collection, frozen=True, kw_only=True):
    """A collection, and who has stopped it; its secret is covered."""

    held: Held | None


class StateTally(Shape, frozen=True):
    """How many jobs are in a state, and the bytes they need."""

    jobs: int
    bytes: int


class ShownBatch(Shape, frozen=True):
    """A batch and how far it is; where the queue is in ZooKeeper, lists have no tally."""

    id: str
    collection: str
    status: BatchState
    message: str
    submitter: str
    payload_url: str
    payload_name: str
    payload_type: PayloadType
    mode: SubmissionMode
    key: str | None
    jobs: int
    tally: Mapping[str, StateTally] | None
    last_modified: str
    submitted_at: str
    locked_by: str | None


class ReachedState(Shape, frozen=True):
    """When a job came to a state."""

    status: IngestState
    at: str


class Download(Shape, frozen=True):
    """The bytes of a long download that have arrived; `total` is null if it is unknown."""

    bytes: int
    total: int | None
    at: str


class ShownIngestJob(Shape, frozen=True):
    """One object of a batch and how far it is; `resumesAt` is the stage a resume goes to.

    `download` is there while files come that take more than some seconds.
    """

    id: str
    batch: str
    collection: str
    status: IngestState
    last_successful_status: IngestState | None
    resumes_at: IngestState | None
    retry_count: int
    message: str
    priority: int
    space_needed: int
    payload_url: str
    payload_name: str
    payload_type: PayloadType
    mode: SubmissionMode
    primary_id: str | None
    local_ids: Sequence[str]
    title: str | None
    working_folder: str
    last_modified: str
    history: Sequence[ReachedState]
    locked_by: str | None
    download: Download | None


class ShownReport(Shape, frozen=True):
    """What a depositor was told about a batch; jobs are named by their ids."""

    number: int
    kind: Literal["status", "update"]
    batch: str
    collection: str
    submitter: str
    payload_url: str
    submitted_at: str
    last_modified: str
    successful_jobs: Sequence[str]
    failed_jobs: Sequence[str]
    newly_successful: Sequence[str]
    still_open: Sequence[str]
    gone: Sequence[str]
    text: str


class StoredObject(Shape, frozen=True):
    """One version of an object, and the deposit that made it."""

    ark: str
    version: int
    collection: str
    batch: str
    job: str
    location: str
    digest: str
    files: int
    bytes: int
    title: str
    run_id: str
    at: str


def shown_hold(hold: IngestHold | None) -> Held | None:
    """Who has stopped something, if anybody."""
    return None if hold is None else Held(hold.who, hold.why, format_time(hold.since))


def shown_collection(collection: Collection, hold: IngestHold | None) -> ShownCollection:
    """A collection as anybody may see it."""
    return ShownCollection(**msgspec.structs.asdict(collection.masked), held=shown_hold(hold))


def shown_tally(tallies: Iterable[Tally]) -> dict[str, StateTally]:
    """How jobs stand, state by state."""
    return {str(tally.status): StateTally(tally.jobs, tally.bytes) for tally in tallies}


def shown_batch(batch: Batch, tallies: Iterable[Tally] | None) -> ShownBatch:
    """A batch without what its payload's URL may hide."""
    told = batch.submission
    return ShownBatch(
        id=batch.id,
        collection=batch.collection,
        status=batch.status,
        message=batch.message,
        submitter=told.submitter,
        payload_url=redact_url(told.payload_url),
        payload_name=told.payload_name or "",
        payload_type=told.type,
        mode=told.submission_mode,
        key=None if told.key == told.payload_url else told.key,  # an upload's own
        jobs=batch.jobs,
        tally=None if tallies is None else shown_tally(tallies),
        last_modified=format_time(batch.last_modified),
        submitted_at=format_time(told.submitted_at),
        locked_by=batch.locked_by or None,
    )


def shown_job(job: IngestJob, progress: DownloadProgress | None = None) -> ShownIngestJob:
    """An ingest job without what its payload's URL may hide."""
    told = job.configuration
    return ShownIngestJob(
        id=job.id,
        batch=job.batch_id,
        collection=told.profile_name,
        status=job.status,
        last_successful_status=job.last_successful_status,
        resumes_at=_resumes_at(job),
        retry_count=job.retry_count,
        message=job.message,
        priority=job.priority,
        space_needed=job.space_needed,
        payload_url=redact_url(told.payload_url),
        payload_name=told.payload_name,
        payload_type=told.payload_type,
        mode=told.submission_mode,
        primary_id=job.identifiers.primary,
        local_ids=job.identifiers.local_id,
        title=told.erc_what,
        working_folder=told.working_dir,
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


def shown_report(report: BatchReport, text: str) -> ShownReport:
    """A report, and the text of the letter that carried it."""
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


def shown_object(row: StoredRow) -> StoredObject:
    """One version of an object."""
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
