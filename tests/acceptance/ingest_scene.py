"""One batch of three jobs on each backend, and on ZooKeeper the tree that it has to be.

The tree is written out here from the description of the queue, and not from the code that makes
it. Times stand still.
"""

import hashlib
import json
from typing import Any, NamedTuple

from kazoo.client import KazooClient

from penstock.clock import Micros, format_time
from penstock.errors import PenstockError
from penstock.ingest.models import (
    Batch,
    BatchChange,
    Configuration,
    Identifiers,
    IngestJob,
    JobChange,
    NewJob,
    Submission,
)
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.transitions import move_batch, move_job
from penstock.schema.ingest import PayloadType
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Address
from tests.ingest_stores import NEXT, Backend

NOW: Micros = 1_763_199_000_000_000
NOW_TEXT = format_time(NOW)
BID = "bid0000000001"
JIDS = ("jid0000000001", "jid0000000002", "jid0000000003")
STATES = (
    "pending", "estimating", "provisioning", "downloading", "processing", "recording", "notify",
    "completed", "failed", "held",
)  # fmt: skip
ROWS = (("file1.checkm", None, "loc001"), ("file2.checkm", None, "loc002"),
        ("file3.checkm", "ark123", "loc003"))  # fmt: skip
Tree = dict[str, Any]


def frozen_clock() -> Micros:
    """A clock that stands still."""
    return NOW


class JobTree(NamedTuple):
    """What a job's nodes have to say."""

    status: str = "pending"
    last_successful_status: str | None = None
    retry_count: int = 0
    message: str = ""
    passed: tuple[str, ...] = ("pending",)
    priority: int = 5
    space_needed: int = 0
    primary: str | None = None
    lock: str = ""
    can_begin_again: bool = False


class BatchTree(NamedTuple):
    """What a batch's nodes have to say."""

    status: str
    jobs: int = 3
    message: str = ""
    report: Any = None
    lock: str = ""
    has_states: bool = True


class Scene:
    """A submission of three object manifests, and the steps that tests take with it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.store: IngestStore = backend.open("daemon")

    def submit(self) -> Batch:
        """Hand in the batch."""
        return self.store.submit(
            Submission(
                profile_name="profile_name",
                submitter="submitter",
                payload_url="payload_url",
                type=PayloadType.MANIFEST_OF_MANIFESTS,
                erc_what="title",
                erc_who="author",
                erc_when="date",
                uid="uid",
                key="key",
            )
        ).batch

    def claim(self, status: BatchState) -> Batch:
        """Lock the batch in a state."""
        [batch] = self.store.claim_batches(status, 5)
        return batch

    def move(self, batch: Batch, to: BatchState, *, by_hand: bool = False, **more: Any) -> Batch:
        """Move the batch, which the store has to accept."""
        after = move_batch(batch, to, NOW, by_hand=by_hand, **more)
        changed = self.store.change_batch(BatchChange(batch, after, by_hand=by_hand))
        assert changed is not None
        assert changed == self.store.batch(batch.id)
        return changed

    def expand(self) -> Batch:
        """The batch with its three jobs, processing."""
        self.submit()
        batch = self.claim(BatchState.PENDING)
        batch = self.store.add_jobs(batch, [_new_job(*row, n) for n, row in enumerate(ROWS)])
        return self.move(batch, BatchState.PROCESSING)

    def acquire(self, stage: IngestState) -> IngestJob:
        """Lock the next job of a stage."""
        [job] = self.store.claim_jobs(stage, 1)
        return job

    def go(
        self, job: IngestJob, to: IngestState, *, by_hand: bool = False, **more: Any
    ) -> IngestJob:
        """Move a job, which the store has to accept."""
        return self.change(job, move_job(job, to, NOW, by_hand=by_hand, **more), by_hand=by_hand)

    def change(self, job: IngestJob, after: IngestJob, *, by_hand: bool = False) -> IngestJob:
        """Change a job, which the store has to accept."""
        [changed] = self.store.change_jobs([JobChange(job, after, by_hand=by_hand)])
        assert isinstance(changed, IngestJob), changed
        assert changed == self.store.job(job.id)
        assert changed.locked_by == ""
        return changed

    def delete(self, job: IngestJob) -> None:
        """Delete a job, which the store has to accept."""
        assert self.store.change_jobs([JobChange(job, None, by_hand=True)]) == [None]

    def first_in(self, stage: IngestState) -> IngestJob:
        """The batch is expanded, and its first job has come to a stage."""
        self.expand()
        status = IngestState.PENDING
        while status is not stage:
            self.go(self.acquire(status), NEXT[status])
            status = NEXT[status]
        return self.store.job(JIDS[0])

    def failed_in(self, stage: IngestState) -> IngestJob:
        """The first job has failed in a stage."""
        self.first_in(stage)
        return self.go(self.acquire(stage), IngestState.FAILED, by_hand=True, message="broken")

    def finish_all(self, *ends: IngestState) -> None:
        """Every job has ended in one of two ways."""
        self.expand()
        for end in ends:
            job = self.acquire(IngestState.PENDING)
            if end is IngestState.FAILED:
                self.go(job, IngestState.FAILED)
                continue
            while job.status is not IngestState.COMPLETED:
                job = self.go(job, NEXT[job.status])
                if job.status is not IngestState.COMPLETED:
                    job = self.acquire(job.status)

    def refuse(self, job: IngestJob, change: JobChange) -> PenstockError:
        """A change that the store must not carry out."""
        [refused] = self.store.change_jobs([change])
        assert isinstance(refused, PenstockError)
        assert self.store.job(job.id) == job
        return refused

    def expect(self, batch: BatchTree | None, *jobs: JobTree | None) -> None:
        """The first jobs are as told, the others as new; on ZooKeeper, so is every node."""
        if batch is not None:
            found = self.store.batch(BID)
            assert (found.status, found.jobs, found.locked_by) == (
                batch.status, batch.jobs, batch.lock,
            )  # fmt: skip
        all_jobs = (*jobs, *[JobTree()] * (len(JIDS) - len(jobs))) if batch else ()
        if batch is not None and batch.jobs == 0:
            all_jobs = ()
        for jid, expected in zip(JIDS, all_jobs, strict=False):
            if expected is not None:
                job = self.store.job(jid)
                assert job.status == expected.status
                assert job.last_successful_status == expected.last_successful_status
                assert job.retry_count == expected.retry_count
                assert job.can_begin_again == expected.can_begin_again
                assert (job.priority, job.space_needed) == (
                    expected.priority,
                    expected.space_needed,
                )
                assert job.locked_by == expected.lock
                assert tuple(step.status for step in job.history) == expected.passed
        assert self.store.check() == []
        if self.backend.is_zookeeper:
            assert zookeeper_tree(self.backend.url) == expected_tree(batch, all_jobs)


def _new_job(payload: str, primary: str | None, local: str, row: int) -> NewJob:
    configuration = Configuration(
        batch_id=BID,
        profile_name="profile_name",
        submitter="submitter",
        payload_url=payload,
        payload_type=PayloadType.OBJECT_MANIFEST,
        response_type="response_type",
        working_dir=f"/zfs/queue/{BID}",
        row=row,
        key=f"uid/{row}",
        payload_name=payload,
    )
    return NewJob(configuration, Identifiers(primary, (local,)), 5)


def zookeeper_tree(url: str) -> Tree:
    """Every node below a URL and its data, read without any code of ours."""
    address = Address.parse(url)
    client = KazooClient(address.hosts[0] + address.chroot)
    client.start()
    try:
        tree: Tree = {}
        waiting = ["/"]
        while waiting:
            path = waiting.pop()
            data, _ = client.get(path)
            tree[path] = _parsed(data.decode())
            below = path.rstrip("/")
            waiting += [f"{below}/{name}" for name in client.get_children(path)]
        return tree
    finally:
        client.stop()
        client.close()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def expected_tree(batch: BatchTree | None, jobs: tuple[JobTree | None, ...]) -> Tree:
    """What has to stand in ZooKeeper, no node more and none less."""
    folders = ["/", "/batches", "/jobs", "/jobs/states", "/locks", "/locks/queue"]
    folders += ["/locks/collections", "/submissions", *(f"/jobs/states/{s}" for s in STATES)]
    tree: Tree = dict.fromkeys(folders, "")
    if batch is not None:
        tree |= _batch_tree(batch)
    for number, job in enumerate(jobs):
        if job is not None:
            tree |= _job_tree(number, job)
    return tree


def _batch_tree(batch: BatchTree) -> Tree:
    top = f"/batches/{BID}"
    key = hashlib.sha256(b"profile_name\x00key").hexdigest()
    tree: Tree = {
        top: "",
        f"/submissions/{key}": BID,
        f"{top}/submission": {
            "profile_name": "profile_name",
            "submitter": "submitter",
            "payload_url": "payload_url",
            "erc_what": "title",
            "erc_who": "author",
            "erc_when": "date",
            "clear": [],
            "type": "manifest_of_manifests",
            "submission_mode": "add",
            "uid": "uid",
            "key": "key",
            "submitted_at": NOW,
        },
        f"{top}/status": {
            "status": batch.status,
            "last_modified": NOW_TEXT,
            "message": batch.message,
            "jobs": batch.jobs,
        },
    }
    if batch.has_states:
        sides = (f"{top}/states/batch-{side}" for side in ("processing", "failed", "completed"))
        tree |= dict.fromkeys((f"{top}/states", *sides), "")
    if batch.report is not None:
        tree[f"{top}/status-report"] = batch.report
    if batch.lock:
        tree[f"{top}/lock"] = batch.lock
    return tree


def _job_tree(number: int, job: JobTree) -> Tree:
    jid, (payload, primary, local) = JIDS[number], ROWS[number]
    top = f"/jobs/{jid}"
    side = {"failed": "batch-failed", "completed": "batch-completed"}.get(
        job.status, "batch-processing"
    )
    tree: Tree = {
        top: "",
        f"{top}/configuration": {
            "batch_id": BID,
            "profile_name": "profile_name",
            "submitter": "submitter",
            "payload_url": payload,
            "payload_type": "object_manifest",
            "response_type": "response_type",
            "submission_mode": "add",
            "working_dir": f"/zfs/queue/{BID}/{jid}",
            "row": number,
            "key": f"uid/{number}",
            "payload_name": payload,
            "clear": [],
        },
        f"{top}/identifiers": {"primary": job.primary or primary, "local_id": [local]},
        f"{top}/status": {
            "status": job.status,
            "last_successful_status": job.last_successful_status,
            "last_modified": NOW_TEXT,
            "retry_count": job.retry_count,
            "message": job.message,
            "history": [[state, NOW] for state in job.passed],
            **({"can_begin_again": True} if job.can_begin_again else {}),
        },
        f"{top}/priority": job.priority,
        f"{top}/space_needed": job.space_needed,
        f"/jobs/states/{job.status}/{job.priority:02}-{jid}": "",
        f"/batches/{BID}/states/{side}/{jid}": "",
    }
    if job.lock:
        tree[f"{top}/lock"] = job.lock
    return tree
