"""Batches, ingest jobs and their changes: the values that every queue backend returns."""

from enum import StrEnum

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.clock import Micros
from penstock.schema.ingest import ErcPart, PayloadType, SubmissionMode
from penstock.states import BatchState, IngestState

HISTORY_MAX = 50
# ZooKeeper limits a request to a megabyte, and a job's nodes have several texts and URLs.
TEXT_CHARS_MAX = 10_000
URL_CHARS_MAX = 8_000

ANOTHER_PROGRAM = "another program"  # `who` of a hold without a name


class Submission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A depositor's submission; it never changes.

    `clear` names the parts of the description to empty. `uid` identifies the deposit for ever, also
    after the queue moves. `key` is the depositor's own: two submissions to a collection with one
    key are one batch.
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
    """A submission and its state. `version` grows with every change, and guards the next change.

    `jobs` counts the jobs made so far: an interrupted expansion continues there.
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
        """The name of the collection."""
        return self.submission.profile_name

    @property
    def is_unread(self) -> bool:
        """Whether the batch failed before all its jobs were made: its payload is unreadable."""
        return self.status is BatchState.FAILED and self.report is None


class Configuration(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The task of an ingest job; it never changes.

    `key` identifies the deposit of the object for ever: it has at most one ARK, stored version and
    run. `source_url` is the batch's payload, if that is a manifest with this payload.
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


class StageEntry(Struct, frozen=True, array_like=True):
    """The time at which a job entered a state."""

    status: IngestState
    at: Micros


class IngestJob(Struct, frozen=True, kw_only=True):
    """One object of a batch and its state. `version` grows with every change.

    `can_begin_again`: the job failed before any stage succeeded, but its payload is not the cause.
    `keeps_priority`: a person set the priority, so no stage changes it.
    """

    id: str
    configuration: Configuration
    identifiers: Identifiers
    status: IngestState
    last_successful_status: IngestState | None = None
    last_modified: Micros
    retry_count: int = 0
    message: str = ""
    history: tuple[StageEntry, ...] = ()
    can_begin_again: bool = False
    keeps_priority: bool = False
    priority: int
    space_needed: int = 0
    version: int = 0
    locked_by: str = ""

    @property
    def batch_id(self) -> str:
        return self.configuration.batch_id

    @property
    def position(self) -> "QueuePosition":
        """The position of the job in the queue of its stage."""
        return QueuePosition(self.priority, self.id)


class QueuePosition(Struct, frozen=True, order=True):
    """A position in the queue of a stage: low priorities first, then older jobs."""

    priority: int
    id: str


class NewJob(Struct, frozen=True):
    """A job to add to a batch."""

    configuration: Configuration
    identifiers: Identifiers
    priority: int


class JobChange(Struct, frozen=True):
    """A job as it was read, and its new value; None deletes it.

    The change applies only to a job that still has the version and the lock it was read with. A
    change `by_hand` is an administrator's and ignores locks. The change releases the lock, unless
    `keep_lock`.
    """

    before: IngestJob
    after: IngestJob | None
    keep_lock: bool = False
    by_hand: bool = False


class BatchChange(Struct, frozen=True):
    """A batch as it was read, and its new value; None deletes it, if it has no jobs."""

    before: Batch
    after: Batch | None
    by_hand: bool = False


class IngestHoldKind(StrEnum):
    """The things that a hold of ingest stops."""

    QUEUE = "queue"
    COLLECTION = "collection"


class IngestHold(Struct, frozen=True):
    """An administrator's hold of a collection or of the whole queue."""

    kind: IngestHoldKind
    name: str
    who: str
    why: str
    since: Micros


class NumberSequence(StrEnum):
    """The sequences of numbers that name things."""

    BATCHES = "batches"
    JOBS = "jobs"


class NumberRange(Struct, frozen=True):
    """All numbers from the first to the last."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def covers(self, other: "NumberRange") -> bool:
        return self.first <= other.first and other.last <= self.last


class Reservation(Struct, frozen=True):
    """The numbers that a queue may issue, and the last number it is known to have issued."""

    numbers: NumberRange
    given: int


class Tally(Struct, frozen=True):
    """The number of jobs in a state, and the bytes they need."""

    status: IngestState
    jobs: int
    bytes: int


class CheckProgress(Struct, frozen=True):
    """The progress of a check: ingest jobs checked, and their total."""

    jobs: int
    total: int


def to_json(value: object) -> str:
    """Encode a value as the text that stores keep."""
    return msgspec.json.encode(value).decode()


def run_id_of(key: str) -> str:
    """Return the id of the run of a deposit; it is fixed before the run is recorded."""
    return ids.run_id(f"{key}/run")
