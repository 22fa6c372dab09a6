"""The calls of the client about ingest: batches, ingest jobs, collections, stored objects."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from penstock.client import ingest_documents as docs
from penstock.client.lots import Call
from penstock.client.transport import Content

T = TypeVar("T")


class Upload(Protocol):
    """One request whose body is read while it is sent, and its answer."""

    def __call__(
        self, shape: type[T], *segments: str, content: Content, size: int | None = None
    ) -> T: ...


class IngestCalls:
    """What a server shows and does about ingest.

    What asks for a reason is an administrator's, and goes into the audit log.
    """

    _call: Call
    _upload: Upload

    def collections(self) -> docs.Collections:
        """Every collection, by name."""
        return self._call("GET", docs.Collections, "ingest", "collections")

    def collection(self, name: str) -> docs.Collection:
        """One collection."""
        return self._call("GET", docs.Collection, *_collection(name))

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
        keep_days: int | None = None,
    ) -> docs.Collection:
        """Make a collection, or give it another profile; what is left out has its default."""
        body = _body(
            dataset=dataset,
            namespace=namespace,
            owner=owner,
            description=description,
            priority=priority,
            digests=digests,
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
            keepDays=keep_days,
        )
        return self._call("PUT", docs.Collection, *_collection(name), body=body)

    def delete_collection(self, name: str) -> None:
        """Forget a collection; what it stored stays."""
        self._call("DELETE", Any, *_collection(name))

    def hold_collection(self, name: str, why: str) -> docs.Collection:
        """Stop a collection: new batches and jobs of it are held."""
        return self._act_at(docs.Collection, *_collection(name), "hold", why=why)

    def release_collection(self, name: str, why: str) -> docs.Collection:
        """Let a collection go on; what it held stays held."""
        return self._act_at(docs.Collection, *_collection(name), "release", why=why)

    def upload_payload(
        self, name: str, content: Content, *, size: int | None = None
    ) -> docs.Payload:
        """Send a payload from a file that is open for reading, or piece by piece.

        Never is all of it in memory. What is returned has the URL to submit.
        """
        at = ("ingest", "payloads", name)
        return self._upload(docs.Payload, *at, content=content, size=size)

    def submit_batch(
        self,
        collection: str,
        url: str,
        *,
        type: docs.PayloadType | None = None,
        mode: docs.Mode | None = None,
        name: str | None = None,
        digest: tuple[docs.Algorithm, str] | None = None,
        size: int | None = None,
        primary_id: str | None = None,
        local_id: str | None = None,
        who: str | None = None,
        what: str | None = None,
        when: str | None = None,
        where: str | None = None,
        submitter: str | None = None,
        key: str | None = None,
    ) -> docs.Batch:
        """Submit a payload; two submissions to a collection with one key are one batch."""
        described = _given(who=who, what=what, when=when, where=where)
        body = _body(
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
            submitter=submitter,
            key=key,
        )
        return self._call("POST", docs.Batch, "ingest", "batches", body=body)

    def batches(
        self,
        *,
        status: str | None = None,
        collection: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> docs.Batches:
        """Batches, newest first; with `before`, only those older than that one."""
        return self._call(
            "GET",
            docs.Batches,
            "ingest",
            "batches",
            status=status,
            collection=collection,
            limit=limit,
            before=before,
        )

    def batch(self, batch_id: str) -> docs.Batch:
        """One batch."""
        return self._call("GET", docs.Batch, *_batch(batch_id))

    def batch_jobs(
        self,
        batch_id: str,
        *,
        status: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> docs.BatchJobs:
        """Jobs of a batch by id; with `after`, only those behind that one."""
        at = (*_batch(batch_id), "jobs")
        return self._call("GET", docs.BatchJobs, *at, status=status, limit=limit, after=after)

    def batch_report(self, batch_id: str) -> docs.Report:
        """The last report of a batch."""
        return self._call("GET", docs.Report, *_batch(batch_id), "report")

    def hold_batch(self, batch_id: str, why: str) -> docs.Batch:
        """Hold a batch: itself, or those of its jobs that have not begun."""
        return self._act_at(docs.Batch, *_batch(batch_id), "hold", why=why)

    def release_batch(self, batch_id: str, why: str) -> docs.Batch:
        """Let a held batch, and every held job of it, go on."""
        return self._act_at(docs.Batch, *_batch(batch_id), "release", why=why)

    def resume_batch(self, batch_id: str, why: str) -> docs.Resumed:
        """Let every failed job of a batch go on, and say where each goes."""
        return self._act_at(docs.Resumed, *_batch(batch_id), "resume", why=why)

    def update_report(self, batch_id: str, why: str) -> docs.Batch:
        """Have a failed batch reported anew."""
        return self._act_at(docs.Batch, *_batch(batch_id), "update-report", why=why)

    def prioritize_batch(self, batch_id: str, priority: int, why: str) -> int:
        """Change when the turn of a batch's open jobs is; returned is how many there are."""
        at, body = (*_batch(batch_id), "priority"), _body(priority=priority, why=why)
        return self._call("POST", docs.Changed, *at, body=body).changed

    def delete_batch(self, batch_id: str, *, confirmed: bool = False, why: str = "") -> None:
        """Delete a failed or held batch; unless it is confirmed, the server only warns."""
        self._call("DELETE", Any, *_batch(batch_id), confirmed=confirmed, why=why)

    def ingest_jobs(
        self,
        status: str = "failed",
        *,
        collection: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> docs.IngestJobs:
        """Jobs of all batches in a state, in the order of their turns."""
        return self._call(
            "GET",
            docs.IngestJobs,
            "ingest",
            "jobs",
            status=status,
            collection=collection,
            limit=limit,
            after=after,
        )

    def ingest_job(self, job_id: str) -> docs.IngestJob:
        """One ingest job."""
        return self._call("GET", docs.IngestJob, *_job(job_id))

    def hold_ingest_job(self, job_id: str, why: str) -> docs.IngestJob:
        """Hold a job that has not begun."""
        return self._act_at(docs.IngestJob, *_job(job_id), "hold", why=why)

    def release_ingest_job(self, job_id: str, why: str) -> docs.IngestJob:
        """Let a held job go on."""
        return self._act_at(docs.IngestJob, *_job(job_id), "release", why=why)

    def resume_ingest_job(self, job_id: str, why: str) -> docs.IngestJob:
        """Let a failed job go on after the last stage that succeeded."""
        return self._act_at(docs.IngestJob, *_job(job_id), "resume", why=why)

    def fail_ingest_job(self, job_id: str, why: str) -> docs.IngestJob:
        """Force a job to failed, whoever is working on it."""
        return self._act_at(docs.IngestJob, *_job(job_id), "fail", why=why)

    def prioritize_ingest_job(self, job_id: str, priority: int, why: str) -> docs.IngestJob:
        """Change when a job's turn is; low comes first."""
        at, body = (*_job(job_id), "priority"), _body(priority=priority, why=why)
        return self._call("POST", docs.IngestJob, *at, body=body)

    def delete_ingest_job(self, job_id: str, *, confirmed: bool = False, why: str = "") -> None:
        """Delete a failed or held job; while its batch is open, it must be confirmed."""
        self._call("DELETE", Any, *_job(job_id), confirmed=confirmed, why=why)

    def queue(self) -> docs.Queue:
        """How many jobs are in each state, and what is stopped."""
        return self._call("GET", docs.Queue, "ingest", "queue")

    def hold_queue(self, why: str) -> docs.Queue:
        """Stop everything: no batch and no job is taken up."""
        return self._act_at(docs.Queue, "ingest", "queue", "hold", why=why)

    def release_queue(self, why: str) -> docs.Queue:
        """Let the queue go on."""
        return self._act_at(docs.Queue, "ingest", "queue", "release", why=why)

    def release_held(self, why: str, *, collection: str | None = None) -> int:
        """Let every held batch and job go on, of one collection or of all that are not held."""
        body = _body(why=why, collection=collection)
        at = ("ingest", "queue", "release-held")
        return self._call("POST", docs.Released, *at, body=body).released

    def check_ingest(self, *, repair: bool = False) -> docs.Findings:
        """Look for what no crash should have left, and put right what can be."""
        return self._call("POST", docs.Findings, "ingest", "check", body=_body(repair=repair))

    def objects(
        self, *, collection: str | None = None, limit: int = 100, before: str | None = None
    ) -> docs.StoredObjects:
        """What is stored, newest first; a part may be a little longer or shorter than asked."""
        return self._call(
            "GET",
            docs.StoredObjects,
            "ingest",
            "objects",
            collection=collection,
            limit=limit,
            before=before,
        )

    def object_versions(self, ark: str) -> docs.ObjectVersions:
        """The versions of an object, newest first."""
        return self._call("GET", docs.ObjectVersions, "ingest", "objects", "versions", ark=ark)

    def object_files(self, ark: str, version: int | None = None) -> docs.ObjectFiles:
        """The files of a version of an object, or of its newest."""
        at = ("ingest", "objects", "files")
        return self._call("GET", docs.ObjectFiles, *at, ark=ark, version=version)

    def _act_at(self, shape: type[T], *segments: str, why: str) -> T:
        return self._call("POST", shape, *segments, body=_body(why=why))


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _body(**fields: object) -> bytes:
    return msgspec.json.encode(_given(**fields))


def _collection(name: str) -> Sequence[str]:
    return "ingest", "collections", name


def _batch(batch_id: str) -> Sequence[str]:
    return "ingest", "batches", batch_id


def _job(job_id: str) -> Sequence[str]:
    return "ingest", "jobs", job_id
