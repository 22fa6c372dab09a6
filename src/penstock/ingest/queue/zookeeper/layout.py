"""The layout of the queue in ZooKeeper: every path, and the JSON of every node.

    /batches/bid0000000001/{submission,status,status-report,lock}     a long report is gzipped
                          /states/batch-{processing,failed,completed}/JID
    /jobs/jid0000000001/{configuration,identifiers,status,priority,space_needed,lock}
    /jobs/states/STATE/PP-JID      the queue of a state: two digits of priority, low first
    /locks/queue/ingest, /locks/collections/NAME      holds
    /submissions/SHA256            the batch that was submitted under a depositor's key

A node without `status` is an unused id and is ignored. Every change of a batch or job sets its
status node, so the version of that node covers all nodes beside it.
"""

import gzip
import re
import zlib
from typing import Final, TypeVar
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from penstock.clock import Micros, format_time, parse_time
from penstock.errors import Invalid
from penstock.ingest.models import (
    ANOTHER_PROGRAM,
    Batch,
    Configuration,
    Identifiers,
    IngestHold,
    IngestHoldKind,
    IngestJob,
    QueuePosition,
    StageEntry,
    Submission,
)
from penstock.ingest.queue.port import QUEUE
from penstock.ingest.transitions import BatchSide
from penstock.states import BatchState, IngestState
from penstock.zookeeper import Create, Delete, Op

BATCHES: Final = "/batches"
BATCH_IDS: Final = "/batches/bid"
JOBS: Final = "/jobs"
JOB_IDS: Final = "/jobs/jid"
STATES: Final = "states"
HOLDS: Final = {
    IngestHoldKind.QUEUE: "/locks/queue",
    IngestHoldKind.COLLECTION: "/locks/collections",
}
QUEUE_HOLD: Final = f"/locks/queue/{QUEUE}"
SUBMISSIONS: Final = "/submissions"
QUEUED: Final = tuple(state for state in IngestState if state is not IngestState.DELETED)
JOB_NODES: Final = ("status", "configuration", "identifiers", "priority", "space_needed")
BATCH_NODES: Final = ("status", "submission", "status-report")

REPORT_BYTES_MAX: Final = 500_000  # ZooKeeper limits a request to a megabyte

_ADVICE = "`penstock ingest check` shows what is wrong"
_GZIP = b"\x1f\x8b"
_BATCH_ID = re.compile(r"bid[0-9]{10}")
_JOB_ID = re.compile(r"jid[0-9]{10}")
_ENTRY = re.compile(r"([0-9]{2})-(jid[0-9]{10})")

Data = bytes | None
T = TypeVar("T")

_configuration = Decoder(Configuration)
_identifiers = Decoder(Identifiers)
_submission = Decoder(Submission)
_number = Decoder(int)


class JobStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a job's status node."""

    status: IngestState
    last_successful_status: IngestState | None
    last_modified: str
    retry_count: int
    message: str
    history: tuple[StageEntry, ...]
    can_begin_again: bool = False
    keeps_priority: bool = False


class BatchStatus(Struct, frozen=True, kw_only=True):
    """The content of a batch's status node."""

    status: BatchState
    last_modified: str
    message: str
    jobs: int


class HoldNode(Struct, frozen=True, kw_only=True):
    """The content of a hold's node."""

    who: str
    why: str
    since: str


# Module globals: msgspec can crash if two threads decode a class for the first time at once.
_job_status = Decoder(JobStatus)
_batch_status = Decoder(BatchStatus)
_hold = Decoder(HoldNode)


def first_ops() -> list[Op]:
    """Return the operations that create an empty queue.

    ZooKeeper numbers children from 0 by how many there ever were, but ids begin with 1. `/jobs` has
    `states` as its first child; `/batches` gets a temporary one.
    """
    paths = [JOBS, f"{JOBS}/{STATES}", *(stage_path(state) for state in QUEUED)]
    paths += ["/locks", *HOLDS.values(), SUBMISSIONS]
    zeroth = f"{BATCH_IDS}{0:010}"
    return [Create(BATCHES), Create(zeroth), Delete(zeroth), *(Create(path) for path in paths)]


def is_batch_id(text: str) -> bool:
    """Whether the text is a well-formed batch id; other text must not become part of a path."""
    return _BATCH_ID.fullmatch(text) is not None


def is_job_id(text: str) -> bool:
    """Whether the text is a well-formed ingest job id; other text must not be part of a path."""
    return _JOB_ID.fullmatch(text) is not None


def batch_path(batch_id: str, *below: str) -> str:
    """Return the path of a batch, or of a node below it."""
    return "/".join((BATCHES, batch_id, *below))


def job_path(job_id: str, *below: str) -> str:
    """Return the path of an ingest job, or of a node below it."""
    return "/".join((JOBS, job_id, *below))


def side_path(batch_id: str, side: BatchSide, *job_id: str) -> str:
    """Return the path of a batch's jobs on one side, or of one of them."""
    return batch_path(batch_id, STATES, side, *job_id)


def stage_path(status: IngestState) -> str:
    """Return the path of a state's queue."""
    return f"{JOBS}/{STATES}/{status}"


def entry_path(status: IngestState, position: QueuePosition) -> str:
    """Return the path of a job's entry in the queue of a state."""
    return f"{stage_path(status)}/{entry_name(position)}"


def entry_name(position: QueuePosition) -> str:
    """Return the name of a job's entry; names sort like positions."""
    return f"{position.priority:02}-{position.id}"


def read_entry(name: str) -> QueuePosition | None:
    """Parse the name of an entry; None if it is not one."""
    match = _ENTRY.fullmatch(name)
    return None if match is None else QueuePosition(int(match[1]), match[2])


def submission_path(hashed: str) -> str:
    """Return the path of the node that names the batch submitted under a key."""
    return f"{SUBMISSIONS}/{hashed}"


def hold_path(kind: IngestHoldKind, name: str) -> str:
    """Return the path of a hold; quote names with `/` and names of dots."""
    quoted = quote(name, safe="")
    return f"{HOLDS[kind]}/{quoted.replace('.', '%2E') if not quoted.strip('.') else quoted}"


def hold_data(hold: IngestHold) -> bytes:
    """Encode the node of a hold."""
    return msgspec.json.encode(HoldNode(who=hold.who, why=hold.why, since=format_time(hold.since)))


def read_hold(kind: IngestHoldKind, child: str, data: bytes, made_at: Micros) -> IngestHold:
    """Decode the node of a hold.

    The node's existence is the hold. Merritt's library leaves it empty, so an unreadable node is a
    hold of another program, since the node was created.
    """
    path = f"{HOLDS[kind]}/{child}"
    try:
        node = _decode(_hold, data, path)
        return IngestHold(kind, unquote(child), node.who, node.why, parse_time(node.since))
    except Invalid:
        fault = "cannot be read" if data else "is empty"
        return IngestHold(kind, unquote(child), ANOTHER_PROGRAM, f"{path} {fault}", made_at)


def document(value: Struct) -> bytes:
    """Encode a node that never changes: all fields that are not None, defaults included."""
    fields = msgspec.structs.asdict(value)
    return msgspec.json.encode({key: each for key, each in fields.items() if each is not None})


def job_status_data(job: IngestJob) -> bytes:
    """Encode a job's status node."""
    return msgspec.json.encode(
        JobStatus(
            status=job.status,
            last_successful_status=job.last_successful_status,
            last_modified=format_time(job.last_modified),
            retry_count=job.retry_count,
            message=job.message,
            history=job.history,
            can_begin_again=job.can_begin_again,
            keeps_priority=job.keeps_priority,
        )
    )


def batch_status_data(batch: Batch) -> bytes:
    """Encode a batch's status node."""
    return msgspec.json.encode(
        BatchStatus(
            status=batch.status,
            last_modified=format_time(batch.last_modified),
            message=batch.message,
            jobs=batch.jobs,
        )
    )


def read_job_status(job_id: str, data: bytes) -> JobStatus:
    """Decode a job's status node."""
    return _decode(_job_status, data, job_path(job_id, "status"))


def read_batch_status(batch_id: str, data: bytes) -> BatchStatus:
    """Decode a batch's status node."""
    return _decode(_batch_status, data, batch_path(batch_id, "status"))


def read_job(job_id: str, version: int, nodes: dict[str, Data], locked_by: str) -> IngestJob:
    """Build a job from its nodes, by name."""

    def read(decoder: Decoder[T], name: str) -> T:
        return _decode(decoder, nodes[name], job_path(job_id, name))

    status = read(_job_status, "status")
    return IngestJob(
        id=job_id,
        configuration=read(_configuration, "configuration"),
        identifiers=read(_identifiers, "identifiers"),
        status=status.status,
        last_successful_status=status.last_successful_status,
        last_modified=_time(status.last_modified, job_path(job_id, "status")),
        retry_count=status.retry_count,
        message=status.message,
        history=status.history,
        can_begin_again=status.can_begin_again,
        keeps_priority=status.keeps_priority,
        priority=read(_number, "priority"),
        space_needed=read(_number, "space_needed"),
        version=version,
        locked_by=locked_by,
    )


def read_batch(batch_id: str, version: int, nodes: dict[str, Data], locked_by: str) -> Batch:
    """Build a batch from its nodes, by name."""
    status = _decode(_batch_status, nodes["status"], batch_path(batch_id, "status"))
    report = nodes["status-report"]
    return Batch(
        id=batch_id,
        submission=_decode(_submission, nodes["submission"], batch_path(batch_id, "submission")),
        status=status.status,
        last_modified=_time(status.last_modified, batch_path(batch_id, "status")),
        message=status.message,
        jobs=status.jobs,
        report=None if report is None else read_report(report, batch_path(batch_id)),
        version=version,
        locked_by=locked_by,
    )


def report_data(report: str) -> bytes:
    """Encode a status-report node: JSON, gzipped if it is too large for a node."""
    data = report.encode()
    return data if len(data) <= REPORT_BYTES_MAX else gzip.compress(data, mtime=0)


def read_report(data: bytes, path: str) -> str:
    """Decode a status-report node."""
    try:
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise Invalid(f"{path}/status-report cannot be read: {error}; {_ADVICE}") from None


def read_number(data: Data, path: str) -> int:
    """Decode a priority or space_needed node."""
    return _decode(_number, data, path)


def _time(text: str, path: str) -> Micros:
    try:
        return parse_time(text)
    except Invalid as error:
        raise Invalid(f"{path} cannot be read: {error}; {_ADVICE}") from None


def _decode(decoder: Decoder[T], data: Data, path: str) -> T:
    if data is None:
        raise Invalid(f"{path} does not exist, although its status does; {_ADVICE}")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{path} cannot be read: {error}; {_ADVICE}") from None
