"""The rows of the ingest tables, one frozen value per table; field order is column order."""

import msgspec

from penstock.catalog.rows import Row
from penstock.clock import Micros
from penstock.ingest.models import (
    Batch,
    Configuration,
    Identifiers,
    IngestJob,
    QueuePosition,
    StageEntry,
    Submission,
    to_json,
)
from penstock.ingest.transitions import BatchSide, side_of
from penstock.states import BatchState, IngestState

_decode_submission = msgspec.json.Decoder(Submission).decode
_decode_configuration = msgspec.json.Decoder(Configuration).decode
_decode_identifiers = msgspec.json.Decoder(Identifiers).decode
_decode_history = msgspec.json.Decoder(tuple[StageEntry, ...]).decode


class CounterRow(Row, frozen=True):
    """The last number of a sequence."""

    name: str
    value: int


class RangeRow(Row, frozen=True):
    """The numbers of a queue outside the database; `given` is the last number known as issued."""

    queue: str
    name: str
    first_number: int
    last_number: int
    given: int


class SessionRow(Row, frozen=True):
    """A session that has locks; each heartbeat moves `alive_until` by `lasts`."""

    id: str
    owner: str
    alive_until: Micros
    lasts: Micros


class BatchRow(Row, frozen=True):
    """A batch."""

    id: str
    collection: str
    submission: str
    key_hash: str | None
    status: BatchState
    last_modified: Micros
    message: str
    jobs: int
    report: str | None
    version: int
    locked_by: str

    @property
    def value(self) -> Batch:
        """The batch in this row."""
        return Batch(
            id=self.id,
            submission=_decode_submission(self.submission),
            status=BatchState(self.status),
            last_modified=self.last_modified,
            message=self.message,
            jobs=self.jobs,
            report=self.report,
            version=self.version,
            locked_by=self.locked_by,
        )


class IngestJobRow(Row, frozen=True):
    """An ingest job."""

    id: str
    batch_id: str
    configuration: str
    identifiers: str
    status: IngestState
    side: BatchSide
    last_successful_status: IngestState | None
    last_modified: Micros
    retry_count: int
    message: str
    history: str
    can_begin_again: int
    keeps_priority: int
    priority: int
    space_needed: int
    version: int
    locked_by: str

    @classmethod
    def of(cls, job: IngestJob) -> "IngestJobRow":
        """Build the row of a job."""
        return cls(
            id=job.id,
            batch_id=job.batch_id,
            configuration=to_json(job.configuration),
            identifiers=to_json(job.identifiers),
            status=job.status,
            side=side_of(job.status),
            last_successful_status=job.last_successful_status,
            last_modified=job.last_modified,
            retry_count=job.retry_count,
            message=job.message,
            history=to_json(job.history),
            can_begin_again=int(job.can_begin_again),
            keeps_priority=int(job.keeps_priority),
            priority=job.priority,
            space_needed=job.space_needed,
            version=job.version,
            locked_by=job.locked_by,
        )

    @property
    def value(self) -> IngestJob:
        """The job in this row."""
        last = self.last_successful_status
        return IngestJob(
            id=self.id,
            configuration=_decode_configuration(self.configuration),
            identifiers=_decode_identifiers(self.identifiers),
            status=IngestState(self.status),
            last_successful_status=None if last is None else IngestState(last),
            last_modified=self.last_modified,
            retry_count=self.retry_count,
            message=self.message,
            history=_decode_history(self.history),
            can_begin_again=bool(self.can_begin_again),
            keeps_priority=bool(self.keeps_priority),
            priority=self.priority,
            space_needed=self.space_needed,
            version=self.version,
            locked_by=self.locked_by,
        )

    @property
    def position(self) -> QueuePosition:
        """The position in the queue of its state."""
        return QueuePosition(self.priority, self.id)


class IngestJobAdvance(Row, frozen=True):
    """The columns that a transition of a job changes."""

    id: str
    identifiers: str
    status: IngestState
    side: BatchSide
    last_successful_status: IngestState | None
    last_modified: Micros
    retry_count: int
    message: str
    history: str
    can_begin_again: int
    keeps_priority: int
    priority: int
    space_needed: int
    version: int
    locked_by: str


class TallyRow(Row, frozen=True):
    """The number of a batch's jobs in a state, and the bytes they need."""

    batch_id: str
    status: IngestState
    jobs: int
    bytes: int


class IngestHoldRow(Row, frozen=True):
    """A hold of a collection or of the whole queue."""

    kind: str
    name: str
    who: str
    why: str
    since: Micros
