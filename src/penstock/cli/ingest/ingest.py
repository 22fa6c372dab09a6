"""`penstock ingest`: its commands, and those that only look."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from penstock.cli.ingest import admin
from penstock.cli.ingest.targets import Kind, read_target
from penstock.cli.ingest.watch import (
    ENDS,
    HELD,
    STAGES,
    bytes_line,
    counts_line,
    jobs_line,
    look_at,
    show_bytes,
    status_text,
    stops,
    ways_on,
)
from penstock.cli.options import REMOTE, Json, Limit, RemoteFlags
from penstock.cli.output import Column, note, write_fields, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.schema.ingest import (
    BatchJobs,
    IngestJobs,
    Queue,
    ShownBatch,
    ShownIngestJob,
    StateTally,
)

app = App(
    name="ingest",
    help_epilogue="""Examples:
  penstock ingest collections set maps --dataset maps --namespace library
  penstock ingest submit maps ./scans.zip --what "Old town" --wait
  penstock ingest work
  penstock ingest watch bid0000000001
  penstock ingest resume bid0000000001
  penstock ingest queue

A batch is a submission; each object of it is an ingest job, which waits in one
stage after the other for a worker. `penstock ingest work` is such a worker.""",
)

_DO = Group("Submit and work", sort_key=1)
_LOOK = Group("Look", sort_key=2)
# Imported when they are run: a worker needs far more than who looks at a batch.
COMMANDS: tuple[tuple[Group, str, str], ...] = (
    (_DO, "submit", "Submit a payload to a collection as a batch."),
    (_DO, "watch", "Follow a batch to its end."),
    (_DO, "work", "Work on what was submitted, stage by stage, until told to stop."),
    (_DO, "collections", "List, show, make and change what batches are submitted to."),
    (_LOOK, "objects", "List what is stored, newest first, or show one object."),
)
for _order, (_group, _name, _text) in enumerate(COMMANDS):
    _path = f"penstock.cli.ingest.{_name}:app"
    app.command(_path, name=_name, help=_text, group=_group, sort_key=_order)
app.command(admin.app, name="*")

BatchId = Annotated[str, Parameter(help="the batch")]
BatchStatus = Literal[
    "pending", "held", "processing", "reporting", "completed", "failed", "update-reporting"
]
JobStatus = Literal[
    "pending",
    "held",
    "estimating",
    "provisioning",
    "downloading",
    "processing",
    "recording",
    "notify",
    "completed",
    "failed",
]
InCollection = Annotated[str | None, Parameter(help="only those of this collection")]
STATUS = Column("status", whole=True)


@app.command(
    name="list",
    group=_LOOK,
    help_epilogue="""Examples:
  penstock ingest list
  penstock ingest list --status failed --collection maps""",
)
def list_batches(
    *,
    status: Annotated[BatchStatus | None, Parameter(help="only those that are so")] = None,
    collection: InCollection = None,
    before: Annotated[str | None, Parameter(help="only those older than this batch")] = None,
    limit: Limit = 25,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List batches, newest first."""
    with remote.connect() as client:
        found = client.batches(status=status, collection=collection, before=before, limit=limit)
    if as_json:
        write_json(found)
        return
    if not found.batches:
        write_line("there are no such batches" if status or collection else "there are no batches")
        note("submit one with: penstock ingest submit COLLECTION PAYLOAD")
        return
    write_table(
        (
            Column("batch", whole=True),
            "collection",
            STATUS,
            Column("submitted", whole=True),
            "payload",
            "jobs",
        ),
        (
            (
                batch.id,
                batch.collection,
                status_text(batch.status),
                show_time(batch.submitted_at),
                batch.payload_name,
                _standing(batch),
            )
            for batch in found.batches
        ),
    )
    if len(found.batches) == limit:
        note(f"older ones: --before {found.batches[-1].id}")


def _standing(batch: ShownBatch) -> str:
    if batch.tally is None:
        return f"{batch.jobs:,}"
    return counts_line(look_at(batch, 0)) if batch.jobs else batch.message


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest show bid0000000001")
def show(batch: BatchId, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """Show a batch: how far it is, and what can be done."""
    with remote.connect() as client:
        found = client.batch(_batch(batch))
        is_open = not as_json and found.status != "completed"
        stopped = stops(client, found) if is_open else []
        ways = ways_on(client, found) if is_open else []
    if as_json:
        write_json(found)
        return
    write_fields(
        [
            ("batch", found.id),
            ("collection", found.collection),
            ("status", status_text(found.status)),
            ("message", found.message),
            ("stopped", "; ".join(stopped)),
            ("jobs", jobs_line(found)),
            ("bytes", bytes_line(look_at(found, 0))),
            ("payload", found.payload_name),
            ("at", found.payload_url),
            ("type", f"{found.payload_type}, {found.mode}"),
            ("submitted", f"{show_time(found.submitted_at)} by {found.submitter}"),
            ("key", found.key),
            ("since", show_time(found.last_modified)),
            ("worked on by", found.locked_by),
        ]
    )
    for way in ways:
        note(way)


@app.command(
    group=_LOOK,
    help_epilogue="""Examples:
  penstock ingest jobs bid0000000001
  penstock ingest jobs bid0000000001 --status failed
  penstock ingest jobs --status held --collection maps""",
)
def jobs(
    batch: Annotated[str | None, Parameter(help="the batch; else jobs of all batches")] = None,
    /,
    *,
    status: Annotated[
        JobStatus | None, Parameter(help="only those that are so; failed, where no batch is named")
    ] = None,
    collection: InCollection = None,
    after: Annotated[str | None, Parameter(help="only those behind this one")] = None,
    limit: Limit = 100,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List the jobs of a batch, or all that are in a state."""
    with remote.connect() as client:
        found: BatchJobs | IngestJobs
        if batch is not None:
            found = client.batch_jobs(_batch(batch), status=status, limit=limit, after=after)
        else:
            found = client.ingest_jobs(
                status or "failed", collection=collection, limit=limit, after=after
            )
    if as_json:
        write_json(found)
        return
    if found.jobs:
        _write_jobs(found.jobs)
    else:
        state = status or ("failed" if batch is None else "")
        write_line(f"no ingest job is {state}" if state else f"batch {batch} has no jobs")
    if rest := _rest(found, limit):
        note(f"those behind: --after {rest}")


def _rest(found: BatchJobs | IngestJobs, limit: int) -> str | None:
    if isinstance(found, IngestJobs):
        return found.next
    return found.jobs[-1].id if found.jobs and len(found.jobs) == limit else None


def _write_jobs(found: Sequence[ShownIngestJob]) -> None:
    write_table(
        (
            Column("job", whole=True),
            STATUS,
            "payload",
            Column("size", numbers=True),
            Column("priority", numbers=True),
            "object",
        ),
        (
            (
                job.id,
                status_text(job.status),
                job.title or job.payload_name,
                show_bytes(job.space_needed) if job.space_needed else "",
                job.priority,
                job.primary_id or ", ".join(job.local_ids),
            )
            for job in found
        ),
    )
    for job in found:
        if job.message:
            write_line(f"{job.id}: {job.message}")
        elif job.download is not None:
            write_line(f"{job.id}: downloaded {_downloaded(job)}")


def _downloaded(job: ShownIngestJob) -> str | None:
    """How much of a long download has come."""
    if job.download is None:
        return None
    come, total = job.download.bytes, job.download.total
    if not total:
        return show_bytes(come)
    return f"{show_bytes(come)} of {show_bytes(total)} ({min(100, 100 * come // total)} %)"


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest job jid0000000007")
def job(
    job: Annotated[str, Parameter(help="the ingest job")],
    /,
    *,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show an ingest job: where it is, where it has been, and where a resume would go."""
    name = read_target(("job", job), (Kind.JOB,)).name
    with remote.connect() as client:
        found = client.ingest_job(name)
    if as_json:
        write_json(found)
        return
    write_fields(
        [
            ("ingest job", found.id),
            ("batch", f"{found.batch} of {found.collection}"),
            ("status", status_text(found.status)),
            ("message", found.message),
            ("downloaded", _downloaded(found)),
            ("last success", found.last_successful_status),
            ("a resume goes to", found.resumes_at),
            ("resumed", f"{found.retry_count} times" if found.retry_count else None),
            ("title", found.title),
            ("object", found.primary_id),
            ("local ids", ", ".join(found.local_ids)),
            ("payload", f"{found.payload_name}, {found.payload_type}, {found.mode}"),
            ("at", found.payload_url),
            ("space needed", show_bytes(found.space_needed) if found.space_needed else None),
            ("priority", found.priority),
            ("working folder", found.working_folder),
            ("worked on by", found.locked_by),
        ]
    )
    write_line()
    write_table(
        (Column("since", whole=True), "status"),
        ((show_time(step.at), status_text(step.status)) for step in found.history),
    )
    if found.resumes_at is not None:
        note(f"to let it go on: penstock ingest resume {found.id}")


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest report bid0000000001")
def report(batch: BatchId, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """Print the last report of a batch, as its depositor got it."""
    with remote.connect() as client:
        found = client.batch_report(_batch(batch))
    if as_json:
        write_json(found)
        return
    for line in found.text.splitlines():
        write_line(line)


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest queue")
def queue(*, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """Show how many jobs are in each stage, and what is held."""
    with remote.connect() as client:
        found = client.queue()
    if as_json:
        write_json(found)
    else:
        _write_queue(found)


def _write_queue(found: Queue) -> None:
    if found.tally is None:
        write_line("the jobs of all namespaces are counted together, and this key is for one")
        note("those of a collection: penstock ingest jobs --status STATUS --collection COLLECTION")
    elif found.tally:
        _write_tally(found.tally)
    else:
        write_line("the queue is empty")
    if found.held is not None:
        held = found.held
        write_line(f"the queue is held since {show_time(held.since)} by {held.who}: {held.why}")
    for each in found.collections_held:
        since = show_time(each.since)
        write_line(f"collection {each.name} is held since {since} by {each.who}: {each.why}")


def _write_tally(tally: Mapping[str, StateTally]) -> None:
    states = [state for state in (*STAGES, HELD, *ENDS) if state in tally]
    write_table(
        (STATUS, Column("jobs", numbers=True), Column("bytes", numbers=True)),
        (
            (
                status_text(state),
                tally[state].jobs,
                show_bytes(tally[state].bytes) if tally[state].bytes else "",
            )
            for state in states
        ),
    )


def _batch(name: str) -> str:
    return read_target(("batch", name), (Kind.BATCH,)).name
