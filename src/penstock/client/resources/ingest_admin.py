"""The calls of the client about ingest that are an administrator's."""

from collections.abc import Iterable
from typing import Literal, TypeVar

from penstock.client.operation import call, read
from penstock.client.request import Empty, Lines, Request, delete, gone, nothing, post, put, said
from penstock.schema import ingest as docs

T = TypeVar("T")


class IngestAdminCalls:
    """What administrators do to collections, batches and ingest jobs.

    Their reasons go into the audit log. What moves a batch or a job on is done once: it is not
    sent again where its answer was lost, because it may have moved further since.
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
        """Make a collection, or give it another profile; what is left out has its default.

        `lots` says what a lot of its dataset is: a `batch`, or an interval such as PT1H.
        """
        body = said(
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
        """Forget a collection; what it stored stays."""
        return delete(Empty, *_collection(name)).then(nothing).settled(gone)

    @call
    def hold_collection(self, name: str, why: str) -> Request[docs.ShownCollection]:
        """Stop a collection: new batches and jobs of it are held."""
        return _act(docs.ShownCollection, *_collection(name), "hold", why=why, repeatable=True)

    @call
    def release_collection(self, name: str, why: str) -> Request[docs.ShownCollection]:
        """Let a collection go on; what it held stays held."""
        return _act(docs.ShownCollection, *_collection(name), "release", why=why, repeatable=True)

    @call
    def hold_batch(self, batch_id: str, why: str) -> Request[docs.ShownBatch]:
        """Hold a batch: itself, or those of its jobs that have not begun."""
        return _act(docs.ShownBatch, *_batch(batch_id), "hold", why=why)

    @call
    def release_batch(self, batch_id: str, why: str) -> Request[docs.ShownBatch]:
        """Let a held batch, and every held job of it, go on."""
        return _act(docs.ShownBatch, *_batch(batch_id), "release", why=why)

    @call
    def resume_batch(self, batch_id: str, why: str) -> Request[docs.ResumedJobs]:
        """Let every failed job of a batch go on, and say where each goes.

        A batch whose payload could not be read has it read again.
        """
        return _act(docs.ResumedJobs, *_batch(batch_id), "resume", why=why)

    @call
    def update_report(self, batch_id: str, why: str) -> Request[docs.ShownBatch]:
        """Have a failed batch reported anew."""
        return _act(docs.ShownBatch, *_batch(batch_id), "update-report", why=why)

    @call
    def prioritize_batch(self, batch_id: str, priority: int, why: str) -> Request[int]:
        """Change when the turn of a batch's open jobs is; returned is how many there are."""
        at, body = (*_batch(batch_id), "priority"), said(priority=priority, why=why)
        return post(docs.ChangedJobs, *at, body=body, repeatable=True).then(
            lambda done: done.changed
        )

    @call
    def delete_batch(
        self, batch_id: str, *, confirmed: bool = False, why: str = ""
    ) -> Request[None]:
        """Delete a failed or held batch; unless it is confirmed, the server only warns."""
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
        """Let a held job go on."""
        return _act(docs.ShownIngestJob, *_job(job_id), "release", why=why)

    @call
    def resume_ingest_job(self, job_id: str, why: str) -> Request[docs.ShownIngestJob]:
        """Let a failed job go on after the last stage that succeeded."""
        return _act(docs.ShownIngestJob, *_job(job_id), "resume", why=why)

    @call
    def fail_ingest_job(self, job_id: str, why: str) -> Request[docs.ShownIngestJob]:
        """Force a job to failed, whoever is working on it."""
        return _act(docs.ShownIngestJob, *_job(job_id), "fail", why=why)

    @call
    def prioritize_ingest_job(
        self, job_id: str, priority: int, why: str
    ) -> Request[docs.ShownIngestJob]:
        """Change when a job's turn is; low comes first."""
        at, body = (*_job(job_id), "priority"), said(priority=priority, why=why)
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
        """Stop everything: no batch and no job is taken up."""
        return _act(docs.Queue, "ingest", "queue", "hold", why=why, repeatable=True)

    @call
    def release_queue(self, why: str) -> Request[docs.Queue]:
        """Let the queue go on."""
        return _act(docs.Queue, "ingest", "queue", "release", why=why, repeatable=True)

    @call
    def release_held(self, why: str, *, collection: str | None = None) -> Request[int]:
        """Let every held batch and job go on, of one collection or of all that are not held."""
        body = said(why=why, collection=collection)
        at = ("ingest", "queue", "release-held")
        return post(docs.Released, *at, body=body).then(lambda done: done.released)

    @call
    def _check_ingest(self, *, repair: bool | None = None) -> Request[Empty]:
        """The lines of a check; they come one by one, so that they are not called for."""
        return post(Empty, "ingest", "check", body=said(repair=repair), repeatable=True)

    @read
    def check_ingest(self, *, repair: bool = False) -> Lines[docs.CheckStep]:
        """Look for what no crash should have left, and put right what can be: steps as they come.

        The last step has the kind `end`; without it, it was broken off.
        """
        return Lines(IngestAdminCalls._check_ingest.request(repair=repair), docs.CheckStep)


def _act(shape: type[T], *segments: str, why: str, repeatable: bool = False) -> Request[T]:
    return post(shape, *segments, body=said(why=why), repeatable=repeatable)


def _collection(name: str) -> tuple[str, ...]:
    return "ingest", "collections", name


def _batch(batch_id: str) -> tuple[str, ...]:
    return "ingest", "batches", batch_id


def _job(job_id: str) -> tuple[str, ...]:
    return "ingest", "jobs", job_id
