"""Batches and ingest jobs, as every store gives them."""

from enum import StrEnum

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.clock import Micros
from penstock.states import BatchState, IngestState

PRIORITY_MAX = 99
HISTORY_MAX = 50
# A job's nodes in ZooKeeper, which takes a megabyte at once, have some of each.
TEXT_CHARS_MAX = 10_000
URL_CHARS_MAX = 8_000


class PayloadType(StrEnum):
    """What a payload is, and so how many jobs it makes."""

    FILE = "file"
    CONTAINER = "container"
    MANIFEST = "manifest"  # one of the four below: its profile says which
    OBJECT_MANIFEST = "object_manifest"
    MANIFEST_OF_MANIFESTS = "manifest_of_manifests"
    MANIFEST_OF_CONTAINERS = "manifest_of_containers"
    MANIFEST_OF_FILES = "manifest_of_files"


class SubmissionMode(StrEnum):
    """What a deposit does to an object that is already there."""

    ADD = "add"  # the new version holds the deposited files and no others
    UPDATE = "update"  # the new version holds the earlier files too


class ErcPart(StrEnum):
    """A part of the description of an object."""

    WHO = "who"
    WHAT = "what"
    WHEN = "when"
    WHERE = "where"


class Submission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a depositor handed in; never changed afterwards.

    `clear` names the parts of the description that are to be empty, whatever the object had.
    `uid` identifies the deposit for ever, wherever the queue is kept. `key` is the depositor's own:
    two submissions to a collection with one key are one batch.
    """

    profile_name: str
    submitter: str
    payload_url: str
    type: PayloadType
    submission_mode: SubmissionMode = SubmissionMode.ADD
    erc_what: str | None = None
    erc_who: str | None = None
    erc_when: str | None = None
    erc_where: str | None = None
    clear: tuple[ErcPart, ...] = ()
    payload_name: str | None = None
    digest_algorithm: str | None = None
    digest: str | None = None
    size: int | None = None
    primary_id: str | None = None
    local_id: str | None = None
    uid: str
    key: str | None = None
    submitted_at: Micros = 0


class Batch(Struct, frozen=True, kw_only=True):
    """A submission and how far it is. `version` grows with every change, and guards the next.

    `jobs` counts the jobs made so far: where an interrupted expansion goes on.
    """

    id: str
    submission: Submission
    status: BatchState
    last_modified: Micros
    message: str = ""
    jobs: int = 0
    report: str | None = None
    version: int = 0
    locked_by: str = ""

    @property
    def collection(self) -> str:
        """The collection it was submitted to."""
        return self.submission.profile_name

    @property
    def is_unread(self) -> bool:
        """Whether it failed before all its jobs were made: its payload could not be read."""
        return self.status is BatchState.FAILED and self.report is None


class Configuration(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an ingest job has to do; never changed afterwards.

    `key` identifies the object's deposit for ever: its ARK, its stored version and its run are
    made at most once under it. `source_url` is the batch's payload, where that names this one.
    """

    batch_id: str
    profile_name: str
    submitter: str
    payload_url: str
    payload_type: PayloadType
    submission_mode: SubmissionMode = SubmissionMode.ADD
    response_type: str = "none"
    working_dir: str
    row: int
    key: str
    payload_name: str
    source_url: str | None = None
    digest_algorithm: str | None = None
    digest: str | None = None
    size: int | None = None
    modified: str | None = None
    mime: str | None = None
    erc_what: str | None = None
    erc_who: str | None = None
    erc_when: str | None = None
    erc_where: str | None = None
    clear: tuple[ErcPart, ...] = ()


class Identifiers(Struct, frozen=True):
    """An object's ARK, once it has one, and the depositor's own names for it."""

    primary: str | None = None
    local_id: tuple[str, ...] = ()


class Step(Struct, frozen=True, array_like=True):
    """When a job came to a state."""

    status: IngestState
    at: Micros


class IngestJob(Struct, frozen=True, kw_only=True):
    """One object of a batch and how far it is. `version` grows with every change of it.

    `can_begin_again`: it failed before any stage succeeded, but not for its payload.
    `keeps_priority`: a person set its priority, and no stage changes it.
    """

    id: str
    configuration: Configuration
    identifiers: Identifiers
    status: IngestState
    last_successful_status: IngestState | None = None
    last_modified: Micros
    retry_count: int = 0
    message: str = ""
    history: tuple[Step, ...] = ()
    can_begin_again: bool = False
    keeps_priority: bool = False
    priority: int
    space_needed: int = 0
    version: int = 0
    locked_by: str = ""

    @property
    def batch_id(self) -> str:
        """The batch it belongs to."""
        return self.configuration.batch_id

    @property
    def place(self) -> "Place":
        """Where it stands in the queue of its stage."""
        return Place(self.priority, self.id)


class Place(Struct, frozen=True, order=True):
    """A place in the queue of a stage: low priorities first, then the older job."""

    priority: int
    id: str


class NewJob(Struct, frozen=True):
    """A job that a batch is to have."""

    configuration: Configuration
    identifiers: Identifiers
    priority: int


class JobChange(Struct, frozen=True):
    """A job as it was read and as it shall be; None deletes it.

    It holds only if the job is still as it was read, and still has the lock that it was read with;
    an administrator's, by hand, takes no notice of locks. The lock is given up, unless it is kept.
    """

    before: IngestJob
    after: IngestJob | None
    keep_lock: bool = False
    by_hand: bool = False


class BatchChange(Struct, frozen=True):
    """A batch as it was read and as it shall be; None deletes it, once it has no jobs."""

    before: Batch
    after: Batch | None
    by_hand: bool = False


class HoldKind(StrEnum):
    """What can be stopped as a whole."""

    QUEUE = "queue"
    COLLECTION = "collection"


ANOTHER_PROGRAM = "another program"  # who holds something without saying so


class Hold(Struct, frozen=True):
    """A collection, or the whole queue, that an administrator has stopped."""

    kind: HoldKind
    name: str
    who: str
    why: str
    since: Micros


class Numbered(StrEnum):
    """What is named by numbers."""

    BATCHES = "batches"
    JOBS = "jobs"


class Numbers(Struct, frozen=True):
    """All numbers from the first to the last."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    def covers(self, other: "Numbers") -> bool:
        """Whether it has all of the other's."""
        return self.first <= other.first and other.last <= self.last


class Reserved(Struct, frozen=True):
    """What a queue may give, and the last number that it is known to have given before."""

    numbers: Numbers
    given: int


class Tally(Struct, frozen=True):
    """How many jobs are in a state, and the bytes they need."""

    status: IngestState
    jobs: int
    bytes: int


class Finding(Struct, frozen=True):
    """Something that `ingest check` found wrong, and whether it can be repaired."""

    what: str
    target: str
    repairable: bool
    repaired: bool = False


class Looked(Struct, frozen=True):
    """How many ingest jobs, of how many, a check has looked at."""

    jobs: int
    total: int


def to_json(value: object) -> str:
    """A value as the text that stores keep."""
    return msgspec.json.encode(value).decode()


def run_id_of(key: str) -> str:
    """Return the id of the run of a deposit; it is fixed before the run is recorded."""
    return ids.run_id(f"{key}/run")
