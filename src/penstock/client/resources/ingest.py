"""Calls of ingest: collections, batches, jobs, stored objects, and their administration."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeVar

from penstock import ids
from penstock.client.request import (
    Content,
    Lines,
    Request,
    Upload,
    call,
    delete,
    drop_none,
    get,
    gone,
    json_body,
    nothing,
    post,
    put,
    read,
)
from penstock.schema import ingest as docs
from penstock.schema.shape import Empty

# The server answers once the upload is on its disk, which can take a while.
UPLOAD_TIMEOUT_SECONDS = 1800.0


class IngestCalls:
    """Calls of ingest for depositors."""

    @call
    def collections(self) -> Request[docs.Collections]:
        """Every collection, by name."""
        return get(docs.Collections, "ingest", "collections")

    @call
    def collection(self, name: str) -> Request[docs.ShownCollection]:
        """One collection."""
        return get(docs.ShownCollection, "ingest", "collections", name)

    @call
    def upload_payload(
        self, name: str, content: Content, *, size: int | None = None
    ) -> Request[docs.Payload]:
        """Send a payload from a file that is open for reading, or piece by piece.

        It is never whole in memory. The result has the URL to submit.
        """
        upload = Upload(content, size)
        described = post(docs.Payload, "ingest", "payloads", name, repeatable=upload.is_repeatable)
        return replace(described, upload=upload, timeout_seconds=UPLOAD_TIMEOUT_SECONDS)

    @call
    def submit_batch(
        self,
        collection: str,
        url: str,
        *,
        type: docs.PayloadType | str | None = None,
        mode: docs.SubmissionMode | str | None = None,
        name: str | None = None,
        digest: tuple[docs.DigestAlgorithm, str] | None = None,
        size: int | None = None,
        primary_id: str | None = None,
        local_id: str | None = None,
        who: str | None = None,
        what: str | None = None,
        when: str | None = None,
        where: str | None = None,
        clear: Iterable[docs.ErcPart | str] = (),
        submitter: str | None = None,
        key: str | None = None,
    ) -> Request[docs.ShownBatch]:
        """Submit a payload; two submissions to a collection with one key are one batch.

        By default each call has a key of its own, so that a repeated request is one batch.
        An update keeps the description that the object has; `clear` names parts to leave empty.
        """
        described = drop_none(who=who, what=what, when=when, where=where)
        body = json_body(
            collection=collection,
            url=url,
            type=type,
            mode=mode,
            name=name,
            digest=None if digest is None else {"algorithm": digest[0], "value": digest[1]},
            size=size,
            primaryId=primary_id,
            localId=local_id,
            erc=described or None,
            clear=list(clear) or None,
            submitter=submitter,
            key=key or ids.new_id(),
        )
        return post(docs.ShownBatch, "ingest", "batches", body=body, repeatable=True)

    @call
    def batches(
        self,
        *,
        status: str | None = None,
        collection: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> Request[docs.Batches]:
        """Batches, newest first; with `before`, only those older than that one."""
        return get(
            docs.Batches,
            "ingest",
            "batches",
            status=status,
            collection=collection,
            limit=limit,
            before=before,
        )

    @call
    def batch(self, batch_id: str) -> Request[docs.ShownBatch]:
        """One batch."""
        return get(docs.ShownBatch, *_batch(batch_id))

    @call
    def batch_jobs(
        self,
        batch_id: str,
        *,
        status: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Request[docs.BatchJobs]:
        """The jobs of a batch by id; with `after`, only those after that one."""
        at = (*_batch(batch_id), "jobs")
        return get(docs.BatchJobs, *at, status=status, limit=limit, after=after)

    @call
    def batch_report(self, batch_id: str) -> Request[docs.ShownReport]:
        """The last report of a batch."""
        return get(docs.ShownReport, *_batch(batch_id), "report")

    @call
    def ingest_jobs(
        self,
        status: str = "failed",
        *,
        collection: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Request[docs.IngestJobs]:
        """The jobs of all batches in a state, in queue order."""
        return get(
            docs.IngestJobs,
            "ingest",
            "jobs",
            status=status,
            collection=collection,
            limit=limit,
            after=after,
        )

    @call
    def failed_ingest_jobs(self, *, limit: int = 100) -> Request[docs.FailedJobs]:
        """Failed jobs of all batches, the last that failed first."""
        return get(docs.FailedJobs, "ingest", "failed-jobs", limit=limit)

    @call
    def ingest_job(self, job_id: str) -> Request[docs.ShownIngestJob]:
        """One ingest job."""
        return get(docs.ShownIngestJob, "ingest", "jobs", job_id)

    @call
    def queue(self) -> Request[docs.Queue]:
        """The number of jobs in each state, and the holds of the queue."""
        return get(docs.Queue, "ingest", "queue")

    @call
    def objects(
        self, *, collection: str | None = None, limit: int = 100, before: str | None = None
    ) -> Request[docs.StoredObjects]:
        """Stored objects, newest first; a page may be a little longer or shorter than `limit`."""
        return get(
            docs.StoredObjects,
            "ingest",
            "objects",
            collection=collection,
            limit=limit,
            before=before,
        )

    @call
    def object_versions(self, ark: str) -> Request[docs.ObjectVersions]:
        """The versions of an object, newest first."""
        return get(docs.ObjectVersions, "ingest", "objects", "versions", ark=ark)

    @call
    def object_files(self, ark: str, version: int | None = None) -> Request[docs.ObjectFiles]:
        """The files of a version of an object, or of its newest."""
        at = ("ingest", "objects", "files")
        return get(docs.ObjectFiles, *at, ark=ark, version=version)


def _batch(batch_id: str) -> tuple[str, ...]:
    return "ingest", "batches", batch_id


T = TypeVar("T")


class IngestAdminCalls:
    """Calls of administrators on collections, batches and ingest jobs.

    Reasons go into the audit log. A call that moves a batch or a job is not
    repeated after a lost answer, because the batch or job may have moved further since.
    """

    @call
    def put_collection(
        self,
        name: str,
        *,
        dataset: str,
        namespace: str | None = None,
        owner: str | None = None,
        description: str | None = None,
        priority: int | None = None,
        digests: Literal["check", "require"] | None = None,
        inherited: Literal["size", "digest"] | None = None,
        files_max: int | None = None,
        bytes_max: int | None = None,
        rows_max: int | None = None,
        callback: str | None = None,
        callback_secret: str | None = None,
        mail: Iterable[str] | None = None,
        confirm: bool | None = None,
        storage: str | None = None,
        shoulder: str | None = None,
        minting: Literal["local", "ezid"] | None = None,
        places: Iterable[str] | None = None,
        lots: str | None = None,
        keep_days: int | None = None,
    ) -> Request[docs.ShownCollection]:
        """Create a collection, or replace its profile; omitted fields have their default.

        `lots` is the lot of its dataset: a `batch`, or an interval such as PT1H.
        """
        body = json_body(
            dataset=dataset,
            namespace=namespace,
            owner=owner,
            description=description,
            priority=priority,
            digests=digests,
            inherited=inherited,
            filesMax=files_max,
            bytesMax=bytes_max,
            rowsMax=rows_max,
            callback=callback,
            callbackSecret=callback_secret,
            mail=None if mail is None else list(mail),
            confirm=confirm,
            storage=storage,
            shoulder=shoulder,
            minting=minting,
            places=None if places is None else list(places),
            lots=lots,
            keepDays=keep_days,
        )
        return put(docs.ShownCollection, *_collection(name), body=body)

    @call
    def delete_collection(self, name: str) -> Request[None]:
        """Delete a collection; its stored objects stay."""
        return delete(Empty, *_collection(name)).then(nothing).settled(gone)

    @call
    def hold_collection(self, name: str, why: str) -> Request[docs.ShownCollection]:
        """Hold a collection: its new batches and jobs are held."""
        return _act(docs.ShownCollection, *_collection(name), "hold", why=why, repeatable=True)

    @call
    def release_collection(self, name: str, why: str) -> Request[docs.ShownCollection]:
        """Release the hold of a collection; its held batches and jobs stay held."""
        return _act(docs.ShownCollection, *_collection(name), "release", why=why, repeatable=True)

    @call
    def hold_batch(self, batch_id: str, why: str) -> Request[docs.ShownBatch]:
        """Hold a batch, or its jobs that have not begun."""
        return _act(docs.ShownBatch, *_batch(batch_id), "hold", why=why)

    @call
    def release_batch(self, batch_id: str, why: str) -> Request[docs.ShownBatch]:
        """Release a held batch and all its held jobs."""
        return _act(docs.ShownBatch, *_batch(batch_id), "release", why=why)

    @call
    def resume_batch(self, batch_id: str, why: str) -> Request[docs.ResumedJobs]:
        """Resume every failed job of a batch; the result has the stage of each.

        If the payload could not be read, it is read again.
        """
        return _act(docs.ResumedJobs, *_batch(batch_id), "resume", why=why)

    @call
    def update_report(self, batch_id: str, why: str) -> Request[docs.ShownBatch]:
        """Send the report of a failed batch again."""
        return _act(docs.ShownBatch, *_batch(batch_id), "update-report", why=why)

    @call
    def prioritize_batch(self, batch_id: str, priority: int, why: str) -> Request[int]:
        """Set the queue priority of a batch's open jobs; return their number."""
        at, body = (*_batch(batch_id), "priority"), json_body(priority=priority, why=why)
        return post(docs.ChangedJobs, *at, body=body, repeatable=True).then(
            lambda done: done.changed
        )

    @call
    def delete_batch(
        self, batch_id: str, *, confirmed: bool = False, why: str = ""
    ) -> Request[None]:
        """Delete a failed or held batch; without `confirmed` the server only warns."""
        return (
            delete(Empty, *_batch(batch_id), confirmed=confirmed, why=why)
            .then(nothing)
            .settled(gone)
        )

    @call
    def hold_ingest_job(self, job_id: str, why: str) -> Request[docs.ShownIngestJob]:
        """Hold a job that has not begun."""
        return _act(docs.ShownIngestJob, *_job(job_id), "hold", why=why)

    @call
    def release_ingest_job(self, job_id: str, why: str) -> Request[docs.ShownIngestJob]:
        """Release a held job."""
        return _act(docs.ShownIngestJob, *_job(job_id), "release", why=why)

    @call
    def resume_ingest_job(self, job_id: str, why: str) -> Request[docs.ShownIngestJob]:
        """Resume a failed job after its last successful stage."""
        return _act(docs.ShownIngestJob, *_job(job_id), "resume", why=why)

    @call
    def fail_ingest_job(self, job_id: str, why: str) -> Request[docs.ShownIngestJob]:
        """Force a job to failed, also while a worker runs it."""
        return _act(docs.ShownIngestJob, *_job(job_id), "fail", why=why)

    @call
    def prioritize_ingest_job(
        self, job_id: str, priority: int, why: str
    ) -> Request[docs.ShownIngestJob]:
        """Set the queue priority of a job; low comes first."""
        at, body = (*_job(job_id), "priority"), json_body(priority=priority, why=why)
        return post(docs.ShownIngestJob, *at, body=body, repeatable=True)

    @call
    def delete_ingest_job(
        self, job_id: str, *, confirmed: bool = False, why: str = ""
    ) -> Request[None]:
        """Delete a failed or held job; while its batch is open, it must be confirmed."""
        return (
            delete(Empty, *_job(job_id), confirmed=confirmed, why=why).then(nothing).settled(gone)
        )

    @call
    def hold_queue(self, why: str) -> Request[docs.Queue]:
        """Hold the queue: workers take no batch and no job."""
        return _act(docs.Queue, "ingest", "queue", "hold", why=why, repeatable=True)

    @call
    def release_queue(self, why: str) -> Request[docs.Queue]:
        """Release the hold of the queue."""
        return _act(docs.Queue, "ingest", "queue", "release", why=why, repeatable=True)

    @call
    def release_held(self, why: str, *, collection: str | None = None) -> Request[int]:
        """Release all held batches and jobs, of one collection or of all that are not held."""
        body = json_body(why=why, collection=collection)
        at = ("ingest", "queue", "release-held")
        return post(docs.Released, *at, body=body).then(lambda done: done.released)

    @call
    def _check_ingest(self, *, repair: bool | None = None) -> Request[Empty]:
        """The request for a streamed check."""
        return post(Empty, "ingest", "check", body=json_body(repair=repair), repeatable=True)

    @read
    def check_ingest(self, *, repair: bool = False) -> Lines[docs.CheckStep]:
        """Check the queue for faults that a crash left, and repair them; yield the steps.

        The last step has the kind `end`; without it, the check was cut off.
        """
        return Lines(IngestAdminCalls._check_ingest.request(repair=repair), docs.CheckStep)


def _act(shape: type[T], *segments: str, why: str, repeatable: bool = False) -> Request[T]:
    return post(shape, *segments, body=json_body(why=why), repeatable=repeatable)


def _collection(name: str) -> tuple[str, ...]:
    return "ingest", "collections", name


def _job(job_id: str) -> tuple[str, ...]:
    return "ingest", "jobs", job_id
