"""Collections, batches and ingest jobs."""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.access.keys import Key
from penstock.errors import Forbidden, Invalid, Malformed, NotFound
from penstock.ingest.archive.arks import PATTERN
from penstock.ingest.collections import PutCollection
from penstock.ingest.intake.deposits import DepositRequest
from penstock.ingest.intake.digests import DIGEST_CHARS
from penstock.ingest.models import (
    TEXT_CHARS_MAX,
    URL_CHARS_MAX,
    Batch,
    IngestHoldKind,
    IngestJob,
    QueuePosition,
)
from penstock.ingest.notifications.reports import report_letter, report_of
from penstock.ingest.progress import read_progress
from penstock.ingest.queue.port import BatchFilter
from penstock.objects.keys import local_folder
from penstock.schema.admin import KeyRole
from penstock.schema.ingest import (
    MASK,
    Batches,
    BatchJobs,
    Collection,
    Collections,
    DigestAlgorithm,
    ErcPart,
    FailedJobs,
    IngestJobs,
    PayloadType,
    ShownBatch,
    ShownCollection,
    ShownIngestJob,
    ShownReport,
    SubmissionMode,
)
from penstock.schema.shape import Empty
from penstock.server.content import Limit, OwnBody, Query
from penstock.server.ingest_shapes import show_batch, show_collection, show_job, show_report
from penstock.server.requests import IngestRequest
from penstock.server.responses import NOTHING
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import BASE, INGEST, Reach, Route
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

    algorithm: DigestAlgorithm
    value: Annotated[str, Meta(max_length=128)]


class ErcBody(OwnBody, frozen=True):
    """The description of an object: who, what, when, where."""

    who: Text | None = None
    what: Text | None = None
    when: Text | None = None
    where: Text | None = None


class SubmissionBody(OwnBody, frozen=True):
    """A submission. Omitted fields are inferred from the payload.

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
    """The selection of batches: by state and collection, before a batch."""

    status: BatchState | None = None
    collection: str | None = None
    limit: Limit = 100
    before: str | None = None


class BatchJobsQuery(Query, frozen=True):
    """The selection of a batch's jobs: by state, after a job."""

    status: IngestState | None = None
    limit: Limit = 100
    after: str | None = None


class IngestJobsQuery(Query, frozen=True):
    """The selection of jobs: by state and collection, after a place (PRIORITY-ID) in the queue."""

    status: IngestState = IngestState.FAILED
    collection: str | None = None
    limit: Limit = 100
    after: str | None = None


class FailedJobsQuery(Query, frozen=True):
    """The number of jobs to list."""

    limit: Limit = 100


def submit_batch(request: IngestRequest, body: SubmissionBody) -> ShownBatch:
    """Submit a payload as a batch.

    If the key was used before, the answer is 200 instead of 201, with the earlier batch.
    """
    request.require(body.collection)
    _check_digest(body.digest)
    deposit = DepositRequest(
        collection=body.collection,
        url=body.url,
        submitter=body.submitter or request.key.name,
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
    submitted = request.desk.submit(deposit)
    if not submitted.is_new:
        request.status = 200
    return batch_with_tally(request, submitted.batch)


def _check_digest(digest: DigestBody | None) -> None:
    if digest is None:
        return
    length = DIGEST_CHARS[digest.algorithm]
    if not re.fullmatch(f"[0-9A-Fa-f]{{{length}}}", digest.value):
        raise Invalid(f"the value of a {digest.algorithm} digest is {length} hexadecimal digits")


def list_batches(request: IngestRequest, query: BatchesQuery) -> Batches:
    """List batches, newest first."""
    batches = _batches(request, query) if query.limit else []
    tallies = request.store.tallies([batch.id for batch in batches]) if batches else {}
    return Batches([show_batch(batch, tallies.get(batch.id)) for batch in batches])


def _batches(request: IngestRequest, query: BatchesQuery) -> list[Batch]:
    names = request.narrowed(query.collection)
    page = query.limit, query.before
    if names is None:
        return request.store.batches(BatchFilter(query.status), *page)
    batches = [
        batch
        for name in names
        for batch in request.store.batches(BatchFilter(query.status, name), *page)
    ]
    return sorted(batches, key=lambda batch: batch.id, reverse=True)[: query.limit]


def get_batch(request: IngestRequest, batch: str) -> ShownBatch:
    """Show a batch."""
    return batch_with_tally(request, request.batch(batch))


def batch_with_tally(request: IngestRequest, batch: Batch) -> ShownBatch:
    """Return a batch with the tally of its jobs."""
    return show_batch(batch, request.store.tally(batch.id))


def list_batch_jobs(request: IngestRequest, batch: str, query: BatchJobsQuery) -> BatchJobs:
    """List the jobs of a batch, by id."""
    request.batch(batch)
    if not query.limit:
        return BatchJobs([])
    jobs = request.store.jobs(batch, query.limit, query.after, status=query.status)
    return BatchJobs(_shown_jobs(request, jobs))


def get_batch_report(request: IngestRequest, batch: str) -> ShownReport:
    """Show the last report of a batch to its depositor; `text` is the text of the letter."""
    row = request.batch(batch)
    report = report_of(row)
    if report is None:
        reason = f": {row.message}" if row.message else ""
        raise NotFound(
            f"batch {batch} is {row.status}{reason}; it has a report once its jobs have ended"
        )
    # A report from before texts were stored only names its jobs.
    return show_report(report, report.text or report_letter(row, report, (), ()).text)


def list_ingest_jobs(request: IngestRequest, query: IngestJobsQuery) -> IngestJobs:
    """List the jobs of all batches in a state, in queue order."""
    after = None if query.after is None else _place(query.after)
    names = request.narrowed(query.collection)
    jobs_shown: list[IngestJob] = []
    looked_at = 0
    size = query.limit if names is None else _PAGE
    while len(jobs_shown) < query.limit and looked_at < _LOOKED_AT_MAX:
        jobs = request.store.waiting(query.status, size, after)
        for job in jobs:
            after = job.position
            if names is None or job.configuration.profile_name in names:
                jobs_shown.append(job)
                if len(jobs_shown) == query.limit:
                    break
        else:
            if len(jobs) < size:
                after = None
                break
        looked_at += len(jobs)
    last = after if query.limit else None
    return IngestJobs(_shown_jobs(request, jobs_shown), None if last is None else _text(last))


def list_failed_jobs(request: IngestRequest, query: FailedJobsQuery) -> FailedJobs:
    """List failed jobs of all batches, the last that failed first.

    If the queue is in ZooKeeper, only the last thousand submitted jobs are searched.
    """
    names = request.narrowed(None)
    if names is None:
        jobs_shown = request.store.failed(query.limit) if query.limit else []
    else:
        jobs = request.store.failed(_LOOKED_AT_MAX)
        jobs_shown = [job for job in jobs if job.configuration.profile_name in names][: query.limit]
    return FailedJobs([show_job(job) for job in jobs_shown])


def _place(text: str) -> QueuePosition:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise Malformed(f"after is a priority, a dash and a job's id, not {text[:100]!r}")
    return QueuePosition(int(match[1]), match[2])


def _text(place: QueuePosition) -> str:
    return f"{place.priority:02}-{place.id}"


def get_ingest_job(request: IngestRequest, ingest_job: str) -> ShownIngestJob:
    """Show an ingest job."""
    [shown] = _shown_jobs(request, [request.job(ingest_job)])
    return shown


def _shown_jobs(request: IngestRequest, jobs: Sequence[IngestJob]) -> list[ShownIngestJob]:
    """Return jobs, with the progress of running downloads."""
    coming = [job.id for job in jobs if job.status is IngestState.DOWNLOADING]
    if not coming:
        return [show_job(job) for job in jobs]
    with request.plane.catalog.read() as tx:
        progress = read_progress(tx, coming)
    return [show_job(job, progress.get(job.id)) for job in jobs]


_BATCHES = f"{BASE}/ingest/batches"
_BATCH = f"{_BATCHES}/{{batch}}"
_JOBS = f"{BASE}/ingest/jobs"


_TEXT_LENGTH_MAX = 10_000


def list_collections(request: IngestRequest) -> Collections:
    """List collections by name."""
    holds = request.held_collections()
    return Collections([show_collection(c, holds.get(c.name)) for c in request.collections()])


def get_collection(request: IngestRequest, collection: str) -> ShownCollection:
    """Show a collection."""
    return _shown(request, request.collection(collection))


def put_collection(request: IngestRequest, collection: str, body: Collection) -> ShownCollection:
    """Create a collection, or replace its profile. Omitted fields have their default.

    A secret that is sent back masked stays as it is. Private places and a storage of
    its own need a key for every namespace.
    """
    if body.name not in ("", collection):
        raise Invalid(f"the body names collection {body.name[:100]!r}; leave the name out")
    wanted = msgspec.structs.replace(body, name=collection)
    request.key.require_namespace(wanted.namespace)
    try:
        before = request.collection(collection)
    except NotFound:
        before = None
    _check_texts(request, wanted)
    request.require_dataset(wanted.namespace, wanted.dataset)
    _check_reach(request.key, before, wanted)
    if before is None and wanted.callback_secret == MASK:
        raise Invalid("the callback's secret is covered, and there is none yet; give a real one")
    if wanted.callback_secret not in (None, MASK):
        sealed = request.context.outbound.secrets.seal(wanted.callback_secret)
        wanted = msgspec.structs.replace(wanted, callback_secret=sealed)
    request.write(PutCollection(request.key.name, wanted))
    return _shown(request, request.collection(collection))


def delete_collection(request: IngestRequest, collection: str) -> Empty:
    """Delete a collection without open batches. Its stored objects stay."""
    request.collection(collection)
    request.desk.delete_collection(request.act(""), collection)
    return NOTHING


def hold_collection(request: IngestRequest, collection: str, body: WhyBody) -> ShownCollection:
    """Hold a collection: its batches and jobs that have not begun are held."""
    row = request.collection(collection)
    request.desk.hold(request.act(body.why), IngestHoldKind.COLLECTION, collection)
    return _shown(request, row)


def release_collection(request: IngestRequest, collection: str, body: WhyBody) -> ShownCollection:
    """Release the hold of a collection. Batches and jobs that it held stay held until released."""
    row = request.collection(collection)
    request.desk.release(request.act(body.why), IngestHoldKind.COLLECTION, collection)
    return _shown(request, row)


def _shown(request: IngestRequest, collection: Collection) -> ShownCollection:
    return show_collection(collection, request.held_collections().get(collection.name))


def _check_texts(request: IngestRequest, wanted: Collection) -> None:
    request.check_names(namespace=wanted.namespace, dataset=wanted.dataset)
    request.check_texts(owner=wanted.owner or None, storage=wanted.storage)
    if len(msgspec.json.encode(wanted)) > _TEXT_LENGTH_MAX:
        raise Invalid(
            f"the profile of collection {wanted.name} has more than {_TEXT_LENGTH_MAX} bytes; "
            "write less, and give a prefix instead of many places"
        )
    folder = local_folder(wanted.storage) if wanted.storage is not None else None
    if folder is not None and not folder.is_absolute():
        raise Invalid(
            f"collection {wanted.name} cannot be stored at {wanted.storage!r}, which is another "
            "folder for each process; name a whole path"
        )


def _check_reach(key: Key, before: Collection | None, wanted: Collection) -> None:
    """Refuse private places and storage to a key of one namespace: they expose local files."""
    if key.namespace is None:
        return
    places = before.places if before else ()
    storage = before.storage if before else None
    if not set(wanted.places) <= set(places) or wanted.storage != storage:
        raise Forbidden(
            f"key {key.name!r} is only for namespace {key.namespace!r}: the places and the storage "
            "of a collection are set with a key for every namespace"
        )


_COLLECTIONS = f"{BASE}/ingest/collections"
_COLLECTION = f"{_COLLECTIONS}/{{collection}}"


ROUTES = (
    Route(INGEST, "POST", _BATCHES, submit_batch, Reach.OWN, KeyRole.WRITER, status=201, also=200),
    Route(INGEST, "GET", _BATCHES, list_batches, Reach.OWN),
    Route(INGEST, "GET", _BATCH, get_batch, Reach.OWN),
    Route(INGEST, "GET", f"{_BATCH}/jobs", list_batch_jobs, Reach.OWN),
    Route(INGEST, "GET", f"{_BATCH}/report", get_batch_report, Reach.OWN),
    Route(INGEST, "GET", _JOBS, list_ingest_jobs, Reach.OWN),
    Route(INGEST, "GET", f"{BASE}/ingest/failed-jobs", list_failed_jobs, Reach.OWN),
    Route(INGEST, "GET", f"{_JOBS}/{{ingest_job}}", get_ingest_job, Reach.OWN),
    Route(INGEST, "GET", _COLLECTIONS, list_collections, Reach.OWN),
    Route(INGEST, "GET", _COLLECTION, get_collection, Reach.OWN),
    Route(INGEST, "PUT", _COLLECTION, put_collection, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "DELETE", _COLLECTION, delete_collection, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_COLLECTION}/hold", hold_collection, Reach.OWN, KeyRole.ADMIN),
    Route(INGEST, "POST", f"{_COLLECTION}/release", release_collection, Reach.OWN, KeyRole.ADMIN),
)
