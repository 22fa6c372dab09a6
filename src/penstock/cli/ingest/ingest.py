"""`penstock ingest`: its short commands; those that need more imports have their own modules."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from penstock.cli.formats import show_bytes, show_time
from penstock.cli.ingest import admin
from penstock.cli.ingest.targets import Kind, read_target
from penstock.cli.ingest.watch import (
    ENDS,
    HELD,
    STAGES,
    bytes_line,
    counts_line,
    jobs_line,
    list_stops,
    next_steps,
    status_text,
    take_snapshot,
)
from penstock.cli.options import OPTIONS, Limit, Options
from penstock.cli.output import Column, note, write_fields, write_line, write_table
from penstock.schema.ingest import (
    BatchJobs,
    IngestJobs,
    Queue,
    ShownBatch,
    ShownIngestJob,
    ShownReport,
    StateTally,
)

app = App(
    name="ingest",
    help_epilogue="""Examples:
  penstock ingest collections set maps --dataset maps --namespace library
  penstock ingest submit maps ./scans.zip --what "Old town" --wait
  penstock ingest start
  penstock ingest watch bid0000000001
  penstock ingest resume bid0000000001
  penstock ingest queue

A batch is a submission. Each of its objects is an ingest job, which passes
through stages. `penstock ingest start` starts a worker for these stages.""",
)

_DO = Group("Submit and work", sort_key=1)
_LOOK = Group("Look", sort_key=2)
# These modules are imported when their command runs: a worker imports far more than the others.
_COMMANDS = (
    (_DO, "submit", "Submit a payload to a collection as a batch."),
    (_DO, "watch", "Follow a batch to its end."),
    (_DO, "start", "Start a worker, which processes batches stage by stage."),
    (_DO, "collections", "List, show, create and change collections."),
    (_LOOK, "objects", "List stored objects, newest first, or show one object."),
)
for _order, (_group, _name, _text) in enumerate(_COMMANDS):
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
InCollection = Annotated[str | None, Parameter(help="only this collection")]
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
    status: Annotated[BatchStatus | None, Parameter(help="only batches in this state")] = None,
    collection: InCollection = None,
    before: Annotated[str | None, Parameter(help="only batches older than this one")] = None,
    limit: Limit = 25,
    options: Options = OPTIONS,
) -> None:
    """List batches, newest first."""
    with options.connect() as client:
        page = client.batches(status=status, collection=collection, before=before, limit=limit)
    if not page.batches and not options.json:
        write_line("there are no such batches" if status or collection else "there are no batches")
        note("submit one with: penstock ingest submit COLLECTION PAYLOAD")
        return
    options.write_table(
        page,
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
                _progress(batch),
            )
            for batch in page.batches
        ),
    )
    if len(page.batches) == limit and not options.json:
        note(f"older batches: --before {page.batches[-1].id}")


def _progress(batch: ShownBatch) -> str:
    if batch.tally is None:
        return f"{batch.jobs:,}"
    return counts_line(take_snapshot(batch, 0)) if batch.jobs else batch.message


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest show bid0000000001")
def show(batch: BatchId, /, *, options: Options = OPTIONS) -> None:
    """Show the progress of a batch, and useful next commands."""
    with options.connect() as client:
        details = client.batch(_batch(batch))
        is_open = not options.json and details.status != "completed"
        stops = list_stops(client, details) if is_open else []
        steps = next_steps(client, details) if is_open else []
    options.write_fields(
        details,
        [
            ("batch", details.id),
            ("collection", details.collection),
            ("status", status_text(details.status)),
            ("message", details.message),
            ("stopped", "; ".join(stops)),
            ("jobs", jobs_line(details)),
            ("bytes", bytes_line(take_snapshot(details, 0))),
            ("payload", details.payload_name),
            ("at", details.payload_url),
            ("type", f"{details.payload_type}, {details.mode}"),
            ("submitted", f"{show_time(details.submitted_at)} by {details.submitter}"),
            ("key", details.key),
            ("since", show_time(details.last_modified)),
            ("claimed by", details.locked_by),
        ],
    )
    for step in steps:
        note(step)


@app.command(
    group=_LOOK,
    help_epilogue="""Examples:
  penstock ingest jobs bid0000000001
  penstock ingest jobs bid0000000001 --status failed
  penstock ingest jobs --status held --collection maps""",
)
def jobs(
    batch: Annotated[str | None, Parameter(help="the batch; default: all batches")] = None,
    /,
    *,
    status: Annotated[
        JobStatus | None, Parameter(help="only jobs in this state; default without BATCH: failed")
    ] = None,
    collection: InCollection = None,
    after: Annotated[str | None, Parameter(help="only jobs after this one")] = None,
    limit: Limit = 100,
    options: Options = OPTIONS,
) -> None:
    """List the jobs of a batch, or all jobs in a state."""
    with options.connect() as client:
        page: BatchJobs | IngestJobs
        if batch is not None:
            page = client.batch_jobs(_batch(batch), status=status, limit=limit, after=after)
        else:
            page = client.ingest_jobs(
                status or "failed", collection=collection, limit=limit, after=after
            )
    if page.jobs:
        options.write(page, lambda page: _write_jobs(page.jobs))
    else:
        state = status or ("failed" if batch is None else "")
        options.write_line(
            page, f"no ingest job is {state}" if state else f"batch {batch} has no jobs"
        )
    if (last := _last(page, limit)) and not options.json:
        note(f"more jobs: --after {last}")


def _last(page: BatchJobs | IngestJobs, limit: int) -> str | None:
    if isinstance(page, IngestJobs):
        return page.next
    return page.jobs[-1].id if page.jobs and len(page.jobs) == limit else None


def _write_jobs(jobs: Sequence[ShownIngestJob]) -> None:
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
            for job in jobs
        ),
    )
    for job in jobs:
        if job.message:
            write_line(f"{job.id}: {job.message}")
        elif job.download is not None:
            write_line(f"{job.id}: downloaded {_downloaded(job)}")


def _downloaded(job: ShownIngestJob) -> str | None:
    """Describe the progress of a download."""
    if job.download is None:
        return None
    done, total = job.download.bytes, job.download.total
    if not total:
        return show_bytes(done)
    return f"{show_bytes(done)} of {show_bytes(total)} ({min(100, 100 * done // total)} %)"


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest job jid0000000007")
def job(
    job: Annotated[str, Parameter(help="the ingest job")], /, *, options: Options = OPTIONS
) -> None:
    """Show an ingest job: its state, its history, and the stage of a resume."""
    name = read_target(("job", job), (Kind.JOB,)).name
    with options.connect() as client:
        details = client.ingest_job(name)
    options.write(details, _write_job)


def _write_job(job: ShownIngestJob) -> None:
    write_fields(
        [
            ("ingest job", job.id),
            ("batch", f"{job.batch} of {job.collection}"),
            ("status", status_text(job.status)),
            ("message", job.message),
            ("downloaded", _downloaded(job)),
            ("last success", job.last_successful_status),
            ("resumes with", job.resumes_at),
            ("resumed", f"{job.retry_count} times" if job.retry_count else None),
            ("title", job.title),
            ("object", job.primary_id),
            ("local ids", ", ".join(job.local_ids)),
            ("payload", f"{job.payload_name}, {job.payload_type}, {job.mode}"),
            ("at", job.payload_url),
            ("space needed", show_bytes(job.space_needed) if job.space_needed else None),
            ("priority", job.priority),
            ("working folder", job.working_folder),
            ("claimed by", job.locked_by),
        ]
    )
    write_line()
    write_table(
        (Column("since", whole=True), "status"),
        ((show_time(step.at), status_text(step.status)) for step in job.history),
    )
    if job.resumes_at is not None:
        note(f"resume it: penstock ingest resume {job.id}")


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest report bid0000000001")
def report(batch: BatchId, /, *, options: Options = OPTIONS) -> None:
    """Print the last report that the depositor of a batch received."""
    with options.connect() as client:
        details = client.batch_report(_batch(batch))
    options.write(details, _write_report)


def _write_report(report: ShownReport) -> None:
    for line in report.text.splitlines():
        write_line(line)


@app.command(group=_LOOK, help_epilogue="Example:\n  penstock ingest queue")
def queue(*, options: Options = OPTIONS) -> None:
    """Count the jobs in each stage, and list holds."""
    with options.connect() as client:
        details = client.queue()
    options.write(details, _write_queue)


def _write_queue(queue: Queue) -> None:
    if queue.tally is None:
        write_line("this key is for one namespace, and the queue counts the jobs of all")
        note(
            "list the jobs of a collection: penstock ingest jobs --status STATUS --collection NAME"
        )
    elif queue.tally:
        _write_tally(queue.tally)
    else:
        write_line("the queue is empty")
    if queue.held is not None:
        held = queue.held
        write_line(f"the queue is held since {show_time(held.since)} by {held.who}: {held.why}")
    for each in queue.collections_held:
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
