"""Actions of administrators on batches, ingest jobs, collections and the queue."""

import sys
from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, Group, Parameter
from rich.live import Live
from rich.text import Text

from penstock.cli.ingest.targets import Kind, Target, read_target
from penstock.cli.ingest.watch import HELD, take_snapshot
from penstock.cli.options import OPTIONS, OptionalReason, Options, Reason, option
from penstock.cli.output import counted, err, note, write_line, write_table
from penstock.client import ApiError, Client
from penstock.errors import Invalid, Unavailable
from penstock.schema.ingest import (
    ChangedJobs,
    CheckStep,
    Finding,
    Queue,
    Released,
    ResumedJobs,
    ShownBatch,
    ShownCollection,
    ShownIngestJob,
)

app = App(name="administer")

GROUP = Group("Administer; every action is in the audit log", sort_key=3)
NO_REASON = "no reason given"
Words = Annotated[str, Parameter(help="the target: its kind and name, or an id")]

_CONFLICT = 409
_HELD_NOTE = "its held batches and jobs stay held: penstock ingest release held"


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest hold queue --why "the disk is being replaced"
  penstock ingest hold collection maps --why "wrong titles"
  penstock ingest hold bid0000000001 --why "asked by the depositor"

While the queue is held, running work finishes and no more work starts. New
batches and jobs of a held collection are held. A held batch does not start; if
it is processing, its jobs that have not started are held. If all its jobs have
started, the command fails.""",
)
def hold(*target: Words, why: Reason, options: Options = OPTIONS) -> None:
    """Hold the queue, a collection, a batch or an ingest job."""
    subject = read_target(target, (Kind.QUEUE, Kind.COLLECTION, Kind.BATCH, Kind.JOB))
    with options.connect() as client:
        match subject.kind:
            case Kind.QUEUE:
                _write_done(client.hold_queue(why), "is held", options)
            case Kind.COLLECTION:
                _write_done(client.hold_collection(subject.name, why), "is held", options)
            case Kind.BATCH:
                _write_held_batch(client.hold_batch(subject.name, why), options)
            case _:
                _write_done(client.hold_ingest_job(subject.name, why), "is held", options)


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest release queue --why "the disk is new"
  penstock ingest release collection maps --why "titles are right"
  penstock ingest release held --collection maps
  penstock ingest release jid0000000007""",
)
def release(
    *target: Words,
    why: OptionalReason = NO_REASON,
    collection: Annotated[str | None, Parameter(help="release only this collection")] = None,
    options: Options = OPTIONS,
) -> None:
    """Release the queue, a collection, a batch, an ingest job, or everything held."""
    subject = read_target(target, (Kind.QUEUE, Kind.COLLECTION, Kind.HELD, Kind.BATCH, Kind.JOB))
    if collection is not None and subject.kind is not Kind.HELD:
        raise Invalid("--collection needs: penstock ingest release held")
    with options.connect() as client:
        match subject.kind:
            case Kind.QUEUE:
                _write_done(client.release_queue(why), "is released", options)
            case Kind.COLLECTION:
                _write_done(client.release_collection(subject.name, why), "is released", options)
                _note_held_queue(client)
                note(f"{_HELD_NOTE} --collection {subject.name}")
            case Kind.HELD:
                _write_released(client.release_held(why, collection=collection), options)
            case Kind.BATCH:
                _write_done(client.release_batch(subject.name, why), "is released", options)
                _note_held_queue(client)
            case _:
                _write_done(client.release_ingest_job(subject.name, why), "is released", options)
                _note_held_queue(client)


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest resume bid0000000001
  penstock ingest resume job jid0000000007 --why "the server is back"

A job continues after its last successful stage, or begins again. If its payload
is wrong, correct the payload and submit it again. A batch with an unreadable
payload reads it again. To report another batch again, use `penstock ingest
update-report`.""",
)
def resume(*target: Words, why: OptionalReason = NO_REASON, options: Options = OPTIONS) -> int:
    """Resume a failed job or all failed jobs of a batch, and show the next stage."""
    subject = read_target(target, (Kind.BATCH, Kind.JOB))
    with options.connect() as client:
        if subject.kind is Kind.JOB:
            job = client.resume_ingest_job(subject.name, why)
            _write_done(job, f"continues with {job.status}", options)
            return 0
        resumed = client.resume_batch(subject.name, why)
    options.write(resumed, lambda resumed: _write_resumed(subject.name, resumed))
    return 1 if resumed.resumed and all(job.refused for job in resumed.resumed) else 0


def _write_resumed(batch_id: str, resumed: ResumedJobs) -> None:
    if resumed.status == "pending":
        write_line(f"batch {batch_id} is pending: its payload is read again")
        note(f"follow it: penstock ingest watch {batch_id}")
        return
    if not resumed.resumed:
        write_line(f"no job of batch {batch_id} has failed, so nothing was resumed")
        return
    write_table(
        ("job", "continues with", "refused"),
        ((job.job, job.stage, job.refused) for job in resumed.resumed),
    )
    if any(job.stage for job in resumed.resumed):
        note(f"follow it: penstock ingest watch {batch_id}")
        note(f"report them at the end: penstock ingest update-report {batch_id}")


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest update-report bid0000000001""",
)
def update_report(
    batch: Annotated[str, Parameter(help="the batch")],
    /,
    *,
    why: OptionalReason = NO_REASON,
    options: Options = OPTIONS,
) -> None:
    """Report a failed batch again, with the jobs that succeeded since."""
    subject = _read_batch(batch)
    with options.connect() as client:
        _write_done(client.update_report(subject, why), "is reported again", options)
    note(f"read the report: penstock ingest report {subject}")


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest delete jid0000000007
  penstock ingest delete batch bid0000000001 --yes

Only failed or held batches and jobs can be deleted. Stored objects stay.
Incomplete objects and the announced lot of a batch are removed.""",
)
def delete(
    *target: Words,
    yes: Annotated[bool, option("do not ask first")] = False,
    why: OptionalReason = NO_REASON,
    options: Options = OPTIONS,
) -> int:
    """Delete a failed or held batch or ingest job without a notice to its depositor."""
    subject = read_target(target, (Kind.BATCH, Kind.JOB))
    with options.connect() as client:
        if yes:
            _delete(client, subject, why, confirmed=True)
        elif not _delete_if_agreed(client, subject, why):
            note("nothing was deleted")
            return 1
    noun = "ingest job" if subject.kind is Kind.JOB else subject.kind
    options.write_line({"deleted": subject.name}, f"{noun} {subject.name} is deleted")
    return 0


def _delete_if_agreed(client: Client, target: Target, why: str) -> bool:
    """Try without confirmation; ask the user if the server warns of consequences."""
    try:
        _delete(client, target, why, confirmed=False)
    except ApiError as warning:
        if warning.code != _CONFLICT or "confirm it" not in warning.message:
            raise
        if not sys.stdin.isatty():
            raise Invalid(f"{warning.message}: --yes") from None
        note(f"{warning.message}. Delete it? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return False
        _delete(client, target, why, confirmed=True)
    return True


def _delete(client: Client, target: Target, why: str, *, confirmed: bool) -> None:
    if target.kind is Kind.BATCH:
        client.delete_batch(target.name, confirmed=confirmed, why=why)
    else:
        client.delete_ingest_job(target.name, confirmed=confirmed, why=why)


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest fail jid0000000007 --why "the server hangs"

Its worker can no longer record results of it.""",
)
def fail(*target: Words, why: Reason, options: Options = OPTIONS) -> None:
    """Fail an ingest job, even while a worker processes it."""
    subject = read_target(target, (Kind.JOB,))
    with options.connect() as client:
        job = client.fail_ingest_job(subject.name, why)
    _write_done(job, "is stopped", options)
    if job.resumes_at is not None:
        note(f"resume it with {job.resumes_at}: penstock ingest resume {job.id}")


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest priority bid0000000001 0
  penstock ingest priority job jid0000000007 99 --why "large"

Priorities are from 0 to 99; low ones come first.""",
)
def priority(
    *target: Annotated[str, Parameter(help="a batch or ingest job, then the priority")],
    why: OptionalReason = NO_REASON,
    options: Options = OPTIONS,
) -> None:
    """Set the priority of an ingest job or of a batch's jobs."""
    *words, number = target or ("",)
    if not number.isdecimal():
        raise Invalid("write the priority, from 0 to 99, after the batch or job")
    subject = read_target(words, (Kind.BATCH, Kind.JOB))
    with options.connect() as client:
        if subject.kind is Kind.JOB:
            job = client.prioritize_ingest_job(subject.name, int(number), why)
            _write_done(job, f"has priority {job.priority}", options)
            return
        changed = client.prioritize_batch(subject.name, int(number), why)
    options.write_line(
        ChangedJobs(changed),
        f"{changed:,} open jobs of batch {subject.name} have priority {number}",
    )


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest check
  penstock ingest check --repair

The exit code is 1 if faults are left.""",
)
def check(
    *,
    repair: Annotated[bool, option("repair the faults that can be repaired")] = False,
    options: Options = OPTIONS,
) -> int:
    """Look for faults: orphans, jobs in two places, incomplete objects."""
    with options.connect() as client:
        findings = _collect(client.check_ingest(repair=repair))
    options.write({"findings": findings}, lambda _: _write_findings(findings))
    return 1 if any(not finding.repaired for finding in findings) else 0


def _write_findings(findings: list[Finding]) -> None:
    if not findings:
        write_line("there are no faults")
        return
    write_table(
        ("fault", "of", "repaired"),
        (
            (
                finding.what,
                finding.target,
                "yes" if finding.repaired else "possible" if finding.repairable else "no",
            )
            for finding in findings
        ),
    )
    if any(finding.repairable and not finding.repaired for finding in findings):
        note("repair them with: penstock ingest check --repair")


def _collect(steps: Iterable[CheckStep]) -> list[Finding]:
    """Collect the findings of a check, and show its progress."""
    findings: list[Finding] = []
    end: CheckStep | None = None
    with Live(Text("checking the queue"), console=err(), transient=True) as live:
        for step in steps:
            if step.kind == "progress":
                live.update(Text(f"{step.jobs:,} of {step.total:,} ingest jobs are checked"))
            elif step.finding is not None:
                findings.append(step.finding)
            else:
                end = step
    if end is None:
        raise Unavailable("the server closed the answer before the end; check again")
    if end.error is not None:
        raise Unavailable(end.error)
    return findings


def _read_batch(name: str) -> str:
    return read_target(("batch", name), (Kind.BATCH,)).name


def _write_done(
    target: Queue | ShownCollection | ShownBatch | ShownIngestJob, done: str, options: Options
) -> None:
    match target:
        case Queue():
            text = f"the queue {done}"
        case ShownCollection():
            text = f"collection {target.name} {done}"
        case ShownBatch():
            text = f"batch {target.id} of {target.collection} {done}"
        case _:
            text = f"ingest job {target.id} of batch {target.batch} {done}"
    if isinstance(target, ShownBatch | ShownIngestJob) and not done.endswith(f" {target.status}"):
        text += f": {target.status}"
    options.write_line(target, text)


def _write_held_batch(batch: ShownBatch, options: Options) -> None:
    """Report a held batch; of a processing batch, only jobs that had not started are held."""
    if options.json or batch.status == HELD:
        _write_done(batch, "is held", options)
        return
    snapshot = take_snapshot(batch, 0)
    held, started = snapshot.total(HELD).jobs, snapshot.open_jobs
    write_line(f"{counted(held, 'job')} of batch {batch.id} {'is' if held == 1 else 'are'} held")
    if started:
        note(f"{counted(started, 'job')} had started and will finish")


def _note_held_queue(client: Client) -> None:
    """Note that nothing goes on yet, if the whole queue is held."""
    held = client.queue().held
    if held is not None:
        note(
            f"the queue is held by {held.who}: {held.why}; "
            "release it: penstock ingest release queue"
        )


def _write_released(count: int, options: Options) -> None:
    done = f"{count:,} held batches and jobs are released"
    none = "nothing was released; release held collections first"
    options.write_line(Released(count), done if count else none)
