"""What a server answers about ingest, as values."""

from typing import Any, Literal

import msgspec

from penstock.client.documents.catalog import Document
from penstock.client.documents.lots import Held

Algorithm = Literal[
    "adler-32", "crc-32", "md5", "sha-1", "sha-256", "sha-384", "sha-512", "sha-512/256"
]
Mode = Literal["add", "update"]
ErcPart = Literal["who", "what", "when", "where"]
PayloadType = Literal[
    "file",
    "container",
    "manifest",
    "object_manifest",
    "manifest_of_manifests",
    "manifest_of_containers",
    "manifest_of_files",
]


class Collection(Document, frozen=True, kw_only=True):
    """A collection, and who has stopped it; its secret is covered."""

    name: str
    namespace: str
    dataset: str
    owner: str
    description: str
    priority: int | None
    digests: str
    inherited: str
    files_max: int
    bytes_max: int
    rows_max: int
    callback: str | None
    callback_secret: str | None
    mail: tuple[str, ...]
    confirm: bool
    storage: str | None
    shoulder: str
    minting: str
    places: tuple[str, ...]
    lots: str
    keep_days: int
    held: Held | None

    @property
    def profile(self) -> dict[str, Any]:
        """All that `put_collection` takes beside the name; a covered secret stays as it is."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if name not in ("name", "held")}


class Collections(Document, frozen=True):
    """The collections, by name."""

    collections: tuple[Collection, ...]


class Payload(Document, frozen=True):
    """A payload that was uploaded; batches name it by its URL."""

    url: str
    size: int
    digests: dict[str, str]


class StateTally(Document, frozen=True):
    """How many jobs are in a state, and the bytes they need."""

    jobs: int
    bytes: int


Tally = dict[str, StateTally]


class Batch(Document, frozen=True):
    """A batch and how far it is; where the queue is in ZooKeeper, lists have no tally."""

    id: str
    collection: str
    status: str
    message: str
    submitter: str
    payload_url: str
    payload_name: str
    payload_type: str
    mode: str
    key: str | None
    jobs: int
    tally: Tally | None
    last_modified: str
    submitted_at: str
    locked_by: str | None


class Batches(Document, frozen=True):
    """A part of the batches, newest first."""

    batches: tuple[Batch, ...]


class Step(Document, frozen=True):
    """When a job came to a state."""

    status: str
    at: str


class Download(Document, frozen=True):
    """The bytes of a long download that have arrived; `total` is None if it is unknown."""

    bytes: int
    total: int | None
    at: str


class IngestJob(Document, frozen=True):
    """One object of a batch and how far it is; `resumes_at` is the stage a resume goes to.

    `download` is there while files come that take more than some seconds.
    """

    id: str
    batch: str
    collection: str
    status: str
    last_successful_status: str | None
    resumes_at: str | None
    retry_count: int
    message: str
    priority: int
    space_needed: int
    payload_url: str
    payload_name: str
    payload_type: str
    mode: str
    primary_id: str | None
    local_ids: tuple[str, ...]
    title: str | None
    working_folder: str
    last_modified: str
    history: tuple[Step, ...]
    locked_by: str | None
    download: Download | None


class BatchJobs(Document, frozen=True):
    """A part of the jobs of a batch, by id."""

    jobs: tuple[IngestJob, ...]


class IngestJobs(Document, frozen=True):
    """A part of the jobs in a state, in the order of their turns.

    `next` is the `after` of the next part; without it there is none.
    """

    jobs: tuple[IngestJob, ...]
    next: str | None


class FailedJobs(Document, frozen=True):
    """The jobs that failed last, newest first."""

    jobs: tuple[IngestJob, ...]


class Report(Document, frozen=True):
    """What a depositor was told about a batch; jobs are named by their ids."""

    number: int
    kind: str
    batch: str
    collection: str
    submitter: str
    payload_url: str
    submitted_at: str
    last_modified: str
    successful_jobs: tuple[str, ...]
    failed_jobs: tuple[str, ...]
    newly_successful: tuple[str, ...]
    still_open: tuple[str, ...]
    gone: tuple[str, ...]
    text: str


class ResumedJob(Document, frozen=True):
    """A failed job, and the stage it goes on with, or why it cannot."""

    job: str
    stage: str | None
    refused: str | None


class Resumed(Document, frozen=True):
    """What became of each failed job of a batch, and how the batch itself stands now.

    One whose payload could not be read is `pending` again.
    """

    resumed: tuple[ResumedJob, ...]
    status: str


class Changed(Document, frozen=True):
    """How many jobs were changed."""

    changed: int


class Released(Document, frozen=True):
    """How many batches and jobs were let go on."""

    released: int


class HeldCollection(Document, frozen=True):
    """A collection that an administrator has stopped."""

    name: str
    who: str
    why: str
    since: str


class Queue(Document, frozen=True):
    """How many jobs are in each state, and what is stopped.

    A key that is for one namespace gets no tally: the jobs of all are counted together.
    """

    tally: Tally | None
    held: Held | None
    collections_held: tuple[HeldCollection, ...]


class Finding(Document, frozen=True):
    """Something that no crash should have left."""

    what: str
    target: str
    repairable: bool
    repaired: bool


class CheckStep(Document, frozen=True):
    """How far a check is and, if it is a finding, what is wrong; `error` is why it ended early."""

    kind: Literal["progress", "finding", "end"]
    jobs: int
    total: int
    finding: Finding | None
    error: str | None


class StoredObject(Document, frozen=True):
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


class StoredObjects(Document, frozen=True):
    """A part of what is stored, newest first.

    `next` is the `before` of the next part; without it there is none.
    """

    objects: tuple[StoredObject, ...]
    next: str | None


class ObjectVersions(Document, frozen=True):
    """The versions of an object, newest first."""

    versions: tuple[StoredObject, ...]


class ObjectFile(Document, frozen=True):
    """A file of a version; `size` is None if its content is missing from the store.

    `last_modified` and `mime_type` are what the depositor's manifest says about it.
    """

    name: str
    size: int | None
    sha512: str
    last_modified: str | None
    mime_type: str | None


class ObjectFiles(Document, frozen=True):
    """The files of a version, by name."""

    files: tuple[ObjectFile, ...]
