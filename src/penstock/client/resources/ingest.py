"""The calls of the client about ingest: batches, ingest jobs, collections, stored objects."""

from collections.abc import Iterable
from dataclasses import replace

from penstock import ids
from penstock.client.operation import call
from penstock.client.request import Request, get, given, post, said
from penstock.client.uploads import Content, Upload
from penstock.schema import ingest as docs

# What was uploaded is on the server's disk before it answers, and that can take a while.
UPLOAD_TIMEOUT_SECONDS = 1800.0


class IngestCalls:
    """What a server shows about ingest, and how a depositor hands something in."""

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

        Never is all of it in memory. What is returned has the URL to submit.
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

        Without a key it has one of its own, so that a call is one batch however often it is sent.
        An update keeps the description that the object has; `clear` names parts to leave empty.
        """
        described = given(who=who, what=what, when=when, where=where)
        body = said(
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
        """Jobs of a batch by id; with `after`, only those behind that one."""
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
        """Jobs of all batches in a state, in the order of their turns."""
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
        """How many jobs are in each state, and what is stopped."""
        return get(docs.Queue, "ingest", "queue")

    @call
    def objects(
        self, *, collection: str | None = None, limit: int = 100, before: str | None = None
    ) -> Request[docs.StoredObjects]:
        """What is stored, newest first; a part may be a little longer or shorter than asked."""
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
