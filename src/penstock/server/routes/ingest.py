"""Ingest: batches submitted, batches and jobs looked at, the reports of batches."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from penstock.access.keys import Role
from penstock.catalog.shapes import Shape
from penstock.errors import Invalid, Malformed, NotFound
from penstock.ingest.archive.arks import PATTERN
from penstock.ingest.intake.deposits import DepositRequest
from penstock.ingest.intake.digests import DIGEST_CHARS
from penstock.ingest.models import (
    TEXT_CHARS_MAX,
    URL_CHARS_MAX,
    Batch,
    ErcPart,
    IngestJob,
    PayloadType,
    QueuePosition,
    SubmissionMode,
)
from penstock.ingest.notifications.reports import report_letter, report_of
from penstock.ingest.progress import read_progress
from penstock.ingest.queue.port import BatchFilter
from penstock.server.content import OwnBody
from penstock.server.ingest_shapes import (
    ShownBatch,
    ShownIngestJob,
    ShownReport,
    shown_batch,
    shown_job,
    shown_report,
)
from penstock.server.parameters import Limit, Query
from penstock.server.requests import IngestRequest
from penstock.server.routing import BASE, Reach, Route
from penstock.states import BatchState, IngestState

SIZE_MAX = 2**63 - 1
_PAGE = 500
_LOOKED_AT_MAX = 10_000
_PLACE = re.compile(r"([0-9]{1,2})-(\S{1,100})")

Text = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS_MAX)]
ShortText = Annotated[str, Meta(min_length=1, max_length=1_000)]
# The pattern is for readers of the schema. The error for a bad ARK comes from `read_ark`.
Ark = Annotated[str, Meta(min_length=1, max_length=1_000, extra_json_schema={"pattern": PATTERN})]


class DigestBody(OwnBody, frozen=True):
    """The digest that a payload must have."""

    algorithm: Literal[
        "adler-32", "crc-32", "md5", "sha-1", "sha-256", "sha-384", "sha-512", "sha-512/256"
    ]
    value: Annotated[str, Meta(max_length=128)]


class ErcBody(OwnBody, frozen=True):
    """Who made what, when, and where it comes from."""

    who: Text | None = None
    what: Text | None = None
    when: Text | None = None
    where: Text | None = None


class SubmissionBody(OwnBody, frozen=True):
    """What to ingest into which collection; what is left out is found out.

    Two submissions to a collection with one `key` are one batch; a second one with another payload
    or description is refused. Several local ids are divided
    by semicolons. An update keeps the description that the object has, except for the parts that
    `erc` gives and those that `clear` names.
    """

    collection: ShortText
    url: Annotated[str, Meta(min_length=1, max_length=URL_CHARS_MAX)]
    type: PayloadType | None = None
    mode: SubmissionMode = SubmissionMode.ADD
    name: Annotated[str, Meta(min_length=1, max_length=4_096)] | None = None
    digest: DigestBody | None = None
    size: Annotated[int, Meta(ge=0, le=SIZE_MAX)] | None = None
    primary_id: Ark | None = None
    local_id: ShortText | None = None
    erc: ErcBody = ErcBody()
    clear: tuple[ErcPart, ...] = ()
    submitter: ShortText | None = None
    key: ShortText | None = None


class BatchesQuery(Query, frozen=True):
    """Which batches: in a state, of a collection, older than one of them."""

    status: BatchState | None = None
    collection: str | None = None
    limit: Limit = 100
    before: str | None = None


class BatchJobsQuery(Query, frozen=True):
    """Which jobs of a batch: in a state, behind one of them."""

    status: IngestState | None = None
    limit: Limit = 100
    after: str | None = None


class IngestJobsQuery(Query, frozen=True):
    """Which jobs: in a state, of a collection, behind a place (its priority, a dash, its id)."""

    status: IngestState = IngestState.FAILED
    collection: str | None = None
    limit: Limit = 100
    after: str | None = None


class FailedJobsQuery(Query, frozen=True):
    """How many of the jobs that failed last."""

    limit: Limit = 100


class Batches(Shape, frozen=True):
    """A part of the batches, newest first."""

    batches: Sequence[ShownBatch]


class BatchJobs(Shape, frozen=True):
    """A part of the jobs of a batch, by id."""

    jobs: Sequence[ShownIngestJob]


class IngestJobs(Shape, frozen=True):
    """A part of the jobs in a state, in the order of their turns.

    `next` is the `after` of the next part; without it there is none.
    """

    jobs: Sequence[ShownIngestJob]
    next: str | None


class FailedJobs(Shape, frozen=True):
    """The jobs that failed last, newest first."""

    jobs: Sequence[ShownIngestJob]


def submit_batch(visit: IngestRequest, body: SubmissionBody) -> ShownBatch:
    """Submit a payload: one write, and its batch is in the queue.

    Answers 200 instead of 201 with the batch that was submitted under the same key before.
    """
    visit.require(body.collection)
    _check_digest(body.digest)
    deposit = DepositRequest(
        collection=body.collection,
        url=body.url,
        submitter=body.submitter or visit.key.name,
        type=body.type,
        mode=body.mode,
        name=body.name,
        algorithm=body.digest.algorithm if body.digest else None,
        digest=body.digest.value.lower() if body.digest else None,
        size=body.size,
        primary_id=body.primary_id,
        local_id=body.local_id,
        who=body.erc.who,
        what=body.erc.what,
        when=body.erc.when,
        where=body.erc.where,
        clear=body.clear,
        key=body.key,
    )
    submitted = visit.desk.submit(deposit)
    if not submitted.is_new:
        visit.status = 200
    return batch_with_tally(visit, submitted.batch)


def _check_digest(digest: DigestBody | None) -> None:
    if digest is None:
        return
    length = DIGEST_CHARS[digest.algorithm]
    if not re.fullmatch(f"[0-9A-Fa-f]{{{length}}}", digest.value):
        raise Invalid(f"the value of a {digest.algorithm} digest is {length} hexadecimal digits")


def list_batches(visit: IngestRequest, query: BatchesQuery) -> Batches:
    """List batches, newest first."""
    batches = _batches(visit, query) if query.limit else []
    tallies = visit.store.tallies([batch.id for batch in batches]) if batches else {}
    return Batches([shown_batch(batch, tallies.get(batch.id)) for batch in batches])


def _batches(visit: IngestRequest, query: BatchesQuery) -> list[Batch]:
    names = visit.narrowed(query.collection)
    page = query.limit, query.before
    if names is None:
        return visit.store.batches(BatchFilter(query.status), *page)
    found = [
        batch
        for name in names
        for batch in visit.store.batches(BatchFilter(query.status, name), *page)
    ]
    return sorted(found, key=lambda batch: batch.id, reverse=True)[: query.limit]


def get_batch(visit: IngestRequest, batch: str) -> ShownBatch:
    """Show a batch."""
    return batch_with_tally(visit, visit.batch(batch))


def batch_with_tally(visit: IngestRequest, batch: Batch) -> ShownBatch:
    """A batch, and how its jobs stand."""
    return shown_batch(batch, visit.store.tally(batch.id))


def list_batch_jobs(visit: IngestRequest, batch: str, query: BatchJobsQuery) -> BatchJobs:
    """List the jobs of a batch, by id."""
    visit.batch(batch)
    if not query.limit:
        return BatchJobs([])
    jobs = visit.store.jobs(batch, query.limit, query.after, status=query.status)
    return BatchJobs(_shown_jobs(visit, jobs))


def get_batch_report(visit: IngestRequest, batch: str) -> ShownReport:
    """Show the last report of a batch, as its depositor got it; `text` is that of the letter."""
    found = visit.batch(batch)
    report = report_of(found)
    if report is None:
        reason = f": {found.message}" if found.message else ""
        raise NotFound(
            f"batch {batch} is {found.status}{reason}; it has a report once its jobs have ended"
        )
    # What was kept before texts were names its jobs, and says no more of them.
    return shown_report(report, report.text or report_letter(found, report, (), ()).text)


def list_ingest_jobs(visit: IngestRequest, query: IngestJobsQuery) -> IngestJobs:
    """List jobs of all batches in a state, in the order of their turns."""
    after = None if query.after is None else _place(query.after)
    names = visit.narrowed(query.collection)
    found: list[IngestJob] = []
    looked_at = 0
    size = query.limit if names is None else _PAGE
    while len(found) < query.limit and looked_at < _LOOKED_AT_MAX:
        jobs = visit.store.waiting(query.status, size, after)
        for job in jobs:
            after = job.position
            if names is None or job.configuration.profile_name in names:
                found.append(job)
                if len(found) == query.limit:
                    break
        else:
            if len(jobs) < size:
                after = None
                break
        looked_at += len(jobs)
    last = after if query.limit else None
    return IngestJobs(_shown_jobs(visit, found), None if last is None else _text(last))


def list_failed_jobs(visit: IngestRequest, query: FailedJobsQuery) -> FailedJobs:
    """List failed jobs of all batches, the last that failed first.

    A queue that ZooKeeper keeps looks for them among the thousand that were submitted last.
    """
    names = visit.narrowed(None)
    if names is None:
        found = visit.store.failed(query.limit) if query.limit else []
    else:
        jobs = visit.store.failed(_LOOKED_AT_MAX)
        found = [job for job in jobs if job.configuration.profile_name in names][: query.limit]
    return FailedJobs([shown_job(job) for job in found])


def _place(text: str) -> QueuePosition:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise Malformed(f"after is a priority, a dash and a job's id, not {text[:100]!r}")
    return QueuePosition(int(match[1]), match[2])


def _text(place: QueuePosition) -> str:
    return f"{place.priority:02}-{place.id}"


def get_ingest_job(visit: IngestRequest, ingest_job: str) -> ShownIngestJob:
    """Show an ingest job."""
    [shown] = _shown_jobs(visit, [visit.job(ingest_job)])
    return shown


def _shown_jobs(visit: IngestRequest, jobs: Sequence[IngestJob]) -> list[ShownIngestJob]:
    """Jobs, and how far those are whose files are coming just now."""
    coming = [job.id for job in jobs if job.status is IngestState.DOWNLOADING]
    if not coming:
        return [shown_job(job) for job in jobs]
    with visit.plane.catalog.read() as tx:
        progress = read_progress(tx, coming)
    return [shown_job(job, progress.get(job.id)) for job in jobs]


_BATCHES = f"{BASE}/ingest/batches"
_BATCH = f"{_BATCHES}/{{batch}}"
_JOBS = f"{BASE}/ingest/jobs"

ROUTES = (
    Route("POST", _BATCHES, submit_batch, Reach.OWN, Role.WRITER, status=201, also=200),
    Route("GET", _BATCHES, list_batches, Reach.OWN),
    Route("GET", _BATCH, get_batch, Reach.OWN),
    Route("GET", f"{_BATCH}/jobs", list_batch_jobs, Reach.OWN),
    Route("GET", f"{_BATCH}/report", get_batch_report, Reach.OWN),
    Route("GET", _JOBS, list_ingest_jobs, Reach.OWN),
    Route("GET", f"{BASE}/ingest/failed-jobs", list_failed_jobs, Reach.OWN),
    Route("GET", f"{_JOBS}/{{ingest_job}}", get_ingest_job, Reach.OWN),
)
