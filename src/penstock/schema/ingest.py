"""Wire types of ingest: collections, batches, jobs, stored objects."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from penstock.schema.lot_ids import Interval
from penstock.schema.lots import Held
from penstock.schema.shape import Shape
from penstock.states import BatchState, IngestState

PRIORITY_MAX = 99


class ErcPart(StrEnum):
    """A part of the description of an object."""

    WHO = "who"
    WHAT = "what"
    WHEN = "when"
    WHERE = "where"


DigestAlgorithm = Literal[
    "adler-32", "crc-32", "md5", "sha-1", "sha-256", "sha-384", "sha-512", "sha-512/256"
]


class PayloadType(StrEnum):
    """The kind of a payload, which decides the number of jobs."""

    FILE = "file"
    CONTAINER = "container"
    MANIFEST = "manifest"  # one of the four below, as its profile states
    OBJECT_MANIFEST = "object_manifest"
    MANIFEST_OF_MANIFESTS = "manifest_of_manifests"
    MANIFEST_OF_CONTAINERS = "manifest_of_containers"
    MANIFEST_OF_FILES = "manifest_of_files"


class SubmissionMode(StrEnum):
    """The effect of a deposit on an object that exists."""

    ADD = "add"  # the new version holds the deposited files and no others
    UPDATE = "update"  # the new version holds the earlier files too


class Finding(Struct, frozen=True):
    """A fault that `ingest check` reports, and whether it can be repaired."""

    what: str
    target: str
    repairable: bool
    repaired: bool = False


MASK = "********"
TEST_SHOULDER = "ark:/99999/fk4"
BY_BATCH = "batch"  # each batch is a lot of its own
_GIB = 1024**3
Count = Annotated[int, Meta(ge=1)]
Days = Annotated[int, Meta(ge=0, le=36500)]
Priority = Annotated[int, Meta(ge=0, le=PRIORITY_MAX)]


class DigestPolicy(StrEnum):
    """The policy for the digests of a depositor."""

    CHECK = "check"  # digests that are sent are checked
    REQUIRE = "require"  # every file must have one


class InheritedPolicy(StrEnum):
    """The check of stored files that an update inherits. Existence is always checked."""

    SIZE = "size"  # each file has the size that was stored
    DIGEST = "digest"  # each file is read again and has the digest that was stored


class Minting(StrEnum):
    """The service that mints ARKs."""

    LOCAL = "local"
    EZID = "ezid"


class Collection(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The profile of a collection. All but its dataset can be left out.

    owner: whose local ids its objects have. priority: of its jobs, instead of one by batch size.
    inherited: how an update checks the stored files that it takes over, by size or by digest.
    places: URL prefixes that may be read although they are not public. storage: another object
    store than the server's, which stays once something is stored there. mail: who gets the
    reports; confirm: also when a batch is queued. lots: what one lot of its dataset is, a batch
    (`batch`) or all that completed in an interval (PT5M, PT10M, PT15M, PT1H, PT24H). keep_days:
    how long completed batches stay in lists.
    """

    name: str = ""
    namespace: str = "default"
    dataset: str
    owner: str = ""
    description: str = ""
    priority: Priority | None = None
    digests: DigestPolicy = DigestPolicy.CHECK
    inherited: InheritedPolicy = InheritedPolicy.SIZE
    files_max: Count = 100_000
    bytes_max: Count = 1024 * _GIB
    rows_max: Count = 1_000_000
    callback: str | None = None
    callback_secret: str | None = None
    mail: tuple[str, ...] = ()
    confirm: bool = False
    storage: str | None = None
    shoulder: str = TEST_SHOULDER
    minting: Minting = Minting.LOCAL
    places: tuple[str, ...] = ()
    lots: str = BY_BATCH
    keep_days: Days = 30

    @property
    def interval(self) -> Interval | None:
        """The interval of its lots; None if each batch is one."""
        return None if self.lots == BY_BATCH else Interval(self.lots)

    @property
    def owner_name(self) -> str:
        """The owner of the local ids of its objects."""
        return self.owner or self.name

    @property
    def storage_url(self) -> str:
        """The store of its objects; empty is the server's own store."""
        return (self.storage or "").rstrip("/")

    @property
    def masked(self) -> "Collection":
        """The profile without its secret."""
        if self.callback_secret is None:
            return self
        return msgspec.structs.replace(self, callback_secret=MASK)


class ShownCollection(Collection, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A collection with its hold. The secret is masked."""

    held: Held | None

    @property
    def profile(self) -> dict[str, Any]:
        """All that `put_collection` takes except the name. A masked secret stays as it is."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if name not in ("name", "held")}


class StateTally(Shape, frozen=True):
    """The number of jobs in a state, and the bytes they need."""

    jobs: int
    bytes: int


class ShownBatch(Shape, frozen=True):
    """A batch and its progress. If the queue is in ZooKeeper, lists have no tally."""

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
    """The time at which a job entered a state."""

    status: IngestState
    at: str


class Download(Shape, frozen=True):
    """The bytes of a long download that have arrived; `total` is null if it is unknown."""

    bytes: int
    total: int | None
    at: str


class ShownIngestJob(Shape, frozen=True):
    """One object of a batch and its progress. `resumesAt` is the stage after a resume.

    `download` is set while a download takes longer than a few seconds.
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
    """A report about a batch to its depositor. Jobs are named by their ids."""

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


class Collections(Shape, frozen=True):
    """The collections, by name."""

    collections: Sequence[ShownCollection]


class Batches(Shape, frozen=True):
    """A page of batches, newest first."""

    batches: Sequence[ShownBatch]


class BatchJobs(Shape, frozen=True):
    """A page of the jobs of a batch, by id."""

    jobs: Sequence[ShownIngestJob]


class IngestJobs(Shape, frozen=True):
    """A page of the jobs in a state, in queue order.

    `next` is the `after` of the next page, null at the end.
    """

    jobs: Sequence[ShownIngestJob]
    next: str | None


class FailedJobs(Shape, frozen=True):
    """The jobs that failed last, newest first."""

    jobs: Sequence[ShownIngestJob]


class ResumedJob(Shape, frozen=True):
    """A failed job with the stage where it continues, or the reason why it cannot."""

    job: str
    stage: IngestState | None
    refused: str | None


class ResumedJobs(Shape, frozen=True):
    """The result of a resume for each failed job of a batch, and the state of the batch.

    A batch whose payload could not be read is `pending` again.
    """

    resumed: Sequence[ResumedJob]
    status: BatchState


class ChangedJobs(Shape, frozen=True):
    """The number of jobs that were changed."""

    changed: int


class Released(Shape, frozen=True):
    """The number of batches and jobs that were released."""

    released: int


class HeldCollection(Shape, frozen=True):
    """A collection that an administrator has stopped."""

    name: str
    who: str
    why: str
    since: str


class Queue(Shape, frozen=True):
    """The number of jobs in each state, and the holds of the queue.

    A key that is for one namespace gets no tally: the jobs of all are counted together.
    """

    tally: Mapping[str, StateTally] | None
    held: Held | None
    collections_held: Sequence[HeldCollection]


class CheckStepKind(StrEnum):
    """The kind of a line of a check."""

    PROGRESS = "progress"
    FINDING = "finding"
    END = "end"


class CheckStep(Shape, frozen=True):
    """The progress of a check in ingest jobs and, for a finding, the fault.

    At the `end`, `error` says why the check could not be finished.
    """

    kind: CheckStepKind
    jobs: int
    total: int
    finding: Finding | None = None
    error: str | None = None


class StoredObjects(Shape, frozen=True):
    """A page of stored objects, newest first.

    `next` is the `before` of the next page, null at the end.
    """

    objects: Sequence[StoredObject]
    next: str | None


class ObjectVersions(Shape, frozen=True):
    """The versions of an object, newest first."""

    versions: Sequence[StoredObject]


class ObjectFile(Shape, frozen=True):
    """A file of a version; `size` is null if its content is missing from the store.

    `lastModified` and `mimeType` are what the depositor's manifest says about it.
    """

    name: str
    size: int | None
    sha512: str
    last_modified: str | None
    mime_type: str | None


class ObjectFiles(Shape, frozen=True):
    """The files of a version, by name."""

    files: Sequence[ObjectFile]


class Payload(Shape, frozen=True):
    """A payload that was uploaded; batches name it by its URL."""

    url: str
    size: int
    digests: dict[str, str]
