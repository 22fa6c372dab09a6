"""Where batches and ingest jobs are in ZooKeeper: every path, and the JSON of every node.

    /batches/bid0000000001/{submission,status,status-report,lock}     a long report is gzipped
                          /states/batch-{processing,failed,completed}/JID
    /jobs/jid0000000001/{configuration,identifiers,status,priority,space_needed,lock}
    /jobs/states/STATE/PP-JID      the queue of a state: two digits of priority, low first
    /locks/queue/ingest, /locks/collections/NAME      what an administrator holds
    /submissions/SHA256            the batch that was submitted under a depositor's key

A node without `status` is an id that was taken and not used: nobody sees it. Every change of a
batch or a job sets its status node, so that node's version stands for all the others beside it.
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
    Hold,
    HoldKind,
    Identifiers,
    IngestJob,
    Place,
    Step,
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
HOLDS: Final = {HoldKind.QUEUE: "/locks/queue", HoldKind.COLLECTION: "/locks/collections"}
QUEUE_HOLD: Final = f"/locks/queue/{QUEUE}"
SUBMISSIONS: Final = "/submissions"
QUEUED: Final = tuple(state for state in IngestState if state is not IngestState.DELETED)
JOB_NODES: Final = ("status", "configuration", "identifiers", "priority", "space_needed")
BATCH_NODES: Final = ("status", "submission", "status-report")

REPORT_BYTES_MAX: Final = 500_000  # ZooKeeper takes a megabyte

_ADVICE = "`penstock ingest check` says what is wrong"
_GZIP = b"\x1f\x8b"
_BATCH_ID = re.compile(r"bid[0-9]{10}")
_JOB_ID = re.compile(r"jid[0-9]{10}")
_ENTRY = re.compile(r"([0-9]{2})-(jid[0-9]{10})")

Data = bytes | None
T = TypeVar("T")


class JobStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands in a job's status node."""

    status: IngestState
    last_successful_status: IngestState | None
    last_modified: str
    retry_count: int
    message: str
    history: tuple[Step, ...]
    can_begin_again: bool = False
    keeps_priority: bool = False


class BatchStatus(Struct, frozen=True, kw_only=True):
    """What stands in a batch's status node."""

    status: BatchState
    last_modified: str
    message: str
    jobs: int


class HoldNode(Struct, frozen=True, kw_only=True):
    """What stands in the node of a hold."""

    who: str
    why: str
    since: str


# Decoders are made here because two threads that both decode a class first can crash msgspec.
_job_status = Decoder(JobStatus)
_batch_status = Decoder(BatchStatus)
_hold = Decoder(HoldNode)
_configuration = Decoder(Configuration)
_identifiers = Decoder(Identifiers)
_submission = Decoder(Submission)
_number = Decoder(int)


def first_ops() -> list[Op]:
    """What makes an empty queue, at once.

    ZooKeeper numbers children by how many there ever were, from 0; ids are to begin with 1.
    `/jobs/states` is such a first child, and `/batches` needs one for a moment.
    """
    paths = [JOBS, f"{JOBS}/{STATES}", *(stage_path(state) for state in QUEUED)]
    paths += ["/locks", *HOLDS.values(), SUBMISSIONS]
    zeroth = f"{BATCH_IDS}{0:010}"
    return [Create(BATCHES), Create(zeroth), Delete(zeroth), *(Create(path) for path in paths)]


def is_batch_id(text: str) -> bool:
    """Whether this can be a batch's id; nothing else may become part of a path."""
    return _BATCH_ID.fullmatch(text) is not None


def is_job_id(text: str) -> bool:
    """Whether this can be an ingest job's id; nothing else may become part of a path."""
    return _JOB_ID.fullmatch(text) is not None


def batch_path(batch_id: str, *below: str) -> str:
    """A batch's node, or one below it."""
    return "/".join((BATCHES, batch_id, *below))


def job_path(job_id: str, *below: str) -> str:
    """An ingest job's node, or one below it."""
    return "/".join((JOBS, job_id, *below))


def side_path(batch_id: str, side: BatchSide, *job_id: str) -> str:
    """Where a batch has its jobs of one side, or one of them."""
    return batch_path(batch_id, STATES, side, *job_id)


def stage_path(status: IngestState) -> str:
    """The queue of a state."""
    return f"{JOBS}/{STATES}/{status}"


def entry_path(status: IngestState, place: Place) -> str:
    """A job's entry in the queue of a state."""
    return f"{stage_path(status)}/{entry_name(place)}"


def entry_name(place: Place) -> str:
    """The name of a job's entry: names sort as places do."""
    return f"{place.priority:02}-{place.id}"


def read_entry(name: str) -> Place | None:
    """The place that an entry's name stands for."""
    found = _ENTRY.fullmatch(name)
    return None if found is None else Place(int(found[1]), found[2])


def submission_path(hashed: str) -> str:
    """Where the batch that was submitted under a key is named."""
    return f"{SUBMISSIONS}/{hashed}"


def hold_path(kind: HoldKind, name: str) -> str:
    """The node of a hold; `/` in a name, or a name of dots, must not lead elsewhere."""
    quoted = quote(name, safe="")
    return f"{HOLDS[kind]}/{quoted.replace('.', '%2E') if not quoted.strip('.') else quoted}"


def hold_data(hold: Hold) -> bytes:
    """The data of a hold's node."""
    return msgspec.json.encode(HoldNode(who=hold.who, why=hold.why, since=format_time(hold.since)))


def read_hold(kind: HoldKind, child: str, data: bytes, made_at: Micros) -> Hold:
    """The hold that a node stands for.

    The node alone is the hold. Merritt's library leaves it empty, so what cannot be read is held
    by another program, since the node was made.
    """
    path = f"{HOLDS[kind]}/{child}"
    try:
        node = _decoded(_hold, data, path)
        return Hold(kind, unquote(child), node.who, node.why, parse_time(node.since))
    except Invalid:
        fault = "cannot be read" if data else "is empty"
        return Hold(kind, unquote(child), ANOTHER_PROGRAM, f"{path} {fault}", made_at)


def document(value: Struct) -> bytes:
    """The data of a node that never changes: everything that has a value, defaults included."""
    named = msgspec.structs.asdict(value)
    return msgspec.json.encode({key: each for key, each in named.items() if each is not None})


def job_status_data(job: IngestJob) -> bytes:
    """The data of a job's status node."""
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
    """The data of a batch's status node."""
    return msgspec.json.encode(
        BatchStatus(
            status=batch.status,
            last_modified=format_time(batch.last_modified),
            message=batch.message,
            jobs=batch.jobs,
        )
    )


def read_job_status(job_id: str, data: bytes) -> JobStatus:
    """What a job's status node says."""
    return _decoded(_job_status, data, job_path(job_id, "status"))


def read_batch_status(batch_id: str, data: bytes) -> BatchStatus:
    """What a batch's status node says."""
    return _decoded(_batch_status, data, batch_path(batch_id, "status"))


def read_job(job_id: str, version: int, nodes: dict[str, Data], locked_by: str) -> IngestJob:
    """The job that its nodes, by name, stand for."""

    def read(decoder: Decoder[T], name: str) -> T:
        return _decoded(decoder, nodes[name], job_path(job_id, name))

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
    """The batch that its nodes, by name, stand for."""
    status = _decoded(_batch_status, nodes["status"], batch_path(batch_id, "status"))
    report = nodes["status-report"]
    return Batch(
        id=batch_id,
        submission=_decoded(_submission, nodes["submission"], batch_path(batch_id, "submission")),
        status=status.status,
        last_modified=_time(status.last_modified, batch_path(batch_id, "status")),
        message=status.message,
        jobs=status.jobs,
        report=None if report is None else read_report(report, batch_path(batch_id)),
        version=version,
        locked_by=locked_by,
    )


def report_data(report: str) -> bytes:
    """The data of a status-report node: JSON, packed if it would be too large for a node."""
    data = report.encode()
    return data if len(data) <= REPORT_BYTES_MAX else gzip.compress(data, mtime=0)


def read_report(data: bytes, path: str) -> str:
    """The report in a status-report node."""
    try:
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise Invalid(f"{path}/status-report cannot be read: {error}; {_ADVICE}") from None


def read_number(data: Data, path: str) -> int:
    """The bare number of a priority or a space_needed node."""
    return _decoded(_number, data, path)


def _time(text: str, path: str) -> Micros:
    try:
        return parse_time(text)
    except Invalid as error:
        raise Invalid(f"{path} cannot be read: {error}; {_ADVICE}") from None


def _decoded(decoder: Decoder[T], data: Data, path: str) -> T:
    if data is None:
        raise Invalid(f"{path} is not there, although its status is; {_ADVICE}")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{path} cannot be read: {error}; {_ADVICE}") from None
