"""What administrators do to batches, ingest jobs, collections and the queue."""

import sys
from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, Group, Parameter
from rich.live import Live
from rich.text import Text

from penstock.cli.ingest.targets import Kind, Target, read_target
from penstock.cli.ingest.watch import HELD, look_at
from penstock.cli.options import REMOTE, Json, RemoteFlags, switch
from penstock.cli.output import err, note, write_json, write_line, write_table
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
Why = Annotated[str, Parameter(help="the reason, for the record")]
MaybeWhy = Annotated[str, Parameter(help="the reason, for the record", show_default=False)]
NO_REASON = "no reason given"
Words = Annotated[str, Parameter(help="what: its kind and name; an id alone is enough")]

_CONFLICT = 409
_HELD_NOTE = "what it held stays held: penstock ingest release held"


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest hold queue --why "the disk is being replaced"
  penstock ingest hold collection maps --why "wrong titles"
  penstock ingest hold bid0000000001 --why "asked by the depositor"

A held queue lets nothing be taken up; what is being worked on is finished. The
new batches and jobs of a held collection are held. A held batch stays as it is,
or those of its jobs do that have not begun; it is refused if all have.""",
)
def hold(
    *target: Words,
    why: Why,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Stop the queue, a collection, a batch or an ingest job."""
    found = read_target(target, (Kind.QUEUE, Kind.COLLECTION, Kind.BATCH, Kind.JOB))
    with remote.connect() as client:
        match found.kind:
            case Kind.QUEUE:
                _tell(client.hold_queue(why), "is held", as_json)
            case Kind.COLLECTION:
                _tell(client.hold_collection(found.name, why), "is held", as_json)
            case Kind.BATCH:
                _tell_held(client.hold_batch(found.name, why), as_json)
            case _:
                _tell(client.hold_ingest_job(found.name, why), "is held", as_json)


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
    why: MaybeWhy = NO_REASON,
    collection: Annotated[
        str | None, Parameter(help="release what is held of this collection only")
    ] = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Let the queue, a collection, a batch, an ingest job, or all that is held go on."""
    found = read_target(target, (Kind.QUEUE, Kind.COLLECTION, Kind.HELD, Kind.BATCH, Kind.JOB))
    if collection is not None and found.kind is not Kind.HELD:
        raise Invalid("--collection goes with: penstock ingest release held")
    with remote.connect() as client:
        match found.kind:
            case Kind.QUEUE:
                _tell(client.release_queue(why), "goes on", as_json)
            case Kind.COLLECTION:
                _tell(client.release_collection(found.name, why), "goes on", as_json)
                _note_held_queue(client)
                note(f"{_HELD_NOTE} --collection {found.name}")
            case Kind.HELD:
                _tell_released(client.release_held(why, collection=collection), as_json)
            case Kind.BATCH:
                _tell(client.release_batch(found.name, why), "goes on", as_json)
                _note_held_queue(client)
            case _:
                _tell(client.release_ingest_job(found.name, why), "goes on", as_json)
                _note_held_queue(client)


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest resume bid0000000001
  penstock ingest resume job jid0000000007 --why "the server is back"

A job goes on after the last stage that succeeded. One that failed before any did
begins again, unless its payload is at fault: that must be corrected and
submitted again. A batch whose payload could not be read has it read again; any
other is reported anew with `penstock ingest update-report`.""",
)
def resume(
    *target: Words,
    why: MaybeWhy = NO_REASON,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Let a failed job, or every failed job of a batch, go on, and say with which stage."""
    found = read_target(target, (Kind.BATCH, Kind.JOB))
    with remote.connect() as client:
        if found.kind is Kind.JOB:
            job = client.resume_ingest_job(found.name, why)
            _tell(job, f"goes on with {job.status}", as_json)
            return 0
        resumed = client.resume_batch(found.name, why)
    if as_json:
        write_json(resumed)
    else:
        _write_resumed(found.name, resumed)
    return 1 if resumed.resumed and all(job.refused for job in resumed.resumed) else 0


def _write_resumed(batch_id: str, resumed: ResumedJobs) -> None:
    if resumed.status == "pending":
        write_line(f"batch {batch_id} is pending again: its payload is read anew")
        note(f"follow it with: penstock ingest watch {batch_id}")
        return
    if not resumed.resumed:
        write_line(f"no job of batch {batch_id} has failed; nothing was resumed")
        return
    write_table(
        ("job", "goes on with", "refused"),
        ((job.job, job.stage, job.refused) for job in resumed.resumed),
    )
    if any(job.stage for job in resumed.resumed):
        note(f"follow it with: penstock ingest watch {batch_id}")
        note(f"when they have ended: penstock ingest update-report {batch_id}")


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest update-report bid0000000001""",
)
def update_report(
    batch: Annotated[str, Parameter(help="the batch")],
    /,
    *,
    why: MaybeWhy = NO_REASON,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Have a failed batch reported anew: what has succeeded since, and what is still open."""
    found = _read_batch(batch)
    with remote.connect() as client:
        _tell(client.update_report(found, why), "is being reported anew", as_json)
    note(f"read it with: penstock ingest report {found}")


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest delete jid0000000007
  penstock ingest delete batch bid0000000001 --yes

Only what has failed or is held can be deleted. What was stored stays; what was
only begun to be stored goes, and so does the lot that was announced of a batch.""",
)
def delete(
    *target: Words,
    yes: Annotated[bool, switch("do not ask first")] = False,
    why: MaybeWhy = NO_REASON,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Delete a failed or held batch or ingest job; its depositor is not told about it."""
    found = read_target(target, (Kind.BATCH, Kind.JOB))
    with remote.connect() as client:
        if yes:
            _delete(client, found, why, confirmed=True)
        elif not _delete_if_agreed(client, found, why):
            note("nothing was deleted")
            return 1
    if as_json:
        write_json({"deleted": found.name})
    else:
        write_line(f"{_words(found)} is deleted")
    return 0


def _delete_if_agreed(client: Client, target: Target, why: str) -> bool:
    """Try without being sure; what the server then warns of is somebody's to decide."""
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

Whoever works on it can write down nothing about it any more.""",
)
def fail(
    *target: Words,
    why: Why,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Force an ingest job to failed, whoever is working on it."""
    found = read_target(target, (Kind.JOB,))
    with remote.connect() as client:
        job = client.fail_ingest_job(found.name, why)
    _tell(job, "is stopped", as_json)
    if job.resumes_at is not None:
        note(f"it can go on with {job.resumes_at}: penstock ingest resume {job.id}")


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest priority bid0000000001 0
  penstock ingest priority job jid0000000007 99 --why "large"

Priorities are from 0 to 99; low ones come first.""",
)
def priority(
    *target: Annotated[str, Parameter(help="a batch or ingest job, and the priority last")],
    why: MaybeWhy = NO_REASON,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Change when the turn of an ingest job, or of a batch's jobs, is."""
    *words, number = target or ("",)
    if not number.isdecimal():
        raise Invalid("write the priority, from 0 to 99, behind the batch or job")
    found = read_target(words, (Kind.BATCH, Kind.JOB))
    with remote.connect() as client:
        if found.kind is Kind.JOB:
            job = client.prioritize_ingest_job(found.name, int(number), why)
            _tell(job, f"has priority {job.priority}", as_json)
            return
        changed = client.prioritize_batch(found.name, int(number), why)
    if as_json:
        write_json(ChangedJobs(changed))
    else:
        write_line(f"{changed:,} open jobs of batch {found.name} have priority {number}")


@app.command(
    group=GROUP,
    help_epilogue="""Examples:
  penstock ingest check
  penstock ingest check --repair

The exit code is 1 if something is wrong and was not put right.""",
)
def check(
    *,
    repair: Annotated[bool, switch("put right what can be")] = False,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Look for what no crash should have left: orphans, jobs in two places, half-stored objects."""
    with remote.connect() as client:
        found = _checked(client.check_ingest(repair=repair))
    left = [finding for finding in found if not finding.repaired]
    if as_json:
        write_json({"findings": found})
    elif not found:
        write_line("nothing is wrong")
    else:
        write_table(
            ("what is wrong", "with", "repaired"),
            (
                (
                    finding.what,
                    finding.target,
                    "yes" if finding.repaired else "it can be" if finding.repairable else "no",
                )
                for finding in found
            ),
        )
        if any(finding.repairable for finding in left):
            note("put it right with: penstock ingest check --repair")
    return 1 if left else 0


def _checked(steps: Iterable[CheckStep]) -> list[Finding]:
    """What a check has found, once it has come to its end; how far it is can be seen meanwhile."""
    found: list[Finding] = []
    end: CheckStep | None = None
    with Live(Text("the queue is being checked"), console=err(), transient=True) as live:
        for step in steps:
            if step.kind == "progress":
                live.update(Text(f"{step.jobs:,} of {step.total:,} ingest jobs are checked"))
            elif step.finding is not None:
                found.append(step.finding)
            else:
                end = step
    if end is None:
        raise Unavailable("the server broke off before all was checked; check again")
    if end.error is not None:
        raise Unavailable(end.error)
    return found


def _read_batch(name: str) -> str:
    return read_target(("batch", name), (Kind.BATCH,)).name


def _words(target: Target) -> str:
    return f"{'ingest job' if target.kind is Kind.JOB else target.kind} {target.name}"


def _tell(
    done: Queue | ShownCollection | ShownBatch | ShownIngestJob, what: str, as_json: bool
) -> None:
    if as_json:
        write_json(done)
        return
    match done:
        case Queue():
            write_line(f"the queue {what}")
        case ShownCollection():
            write_line(f"collection {done.name} {what}")
        case ShownBatch():
            write_line(f"batch {done.id} of {done.collection} {what}{_now(done.status, what)}")
        case _:
            stands = _now(done.status, what)
            write_line(f"ingest job {done.id} of batch {done.batch} {what}{stands}")


def _now(status: str, what: str) -> str:
    """The state that something came to, where what was done does not say it."""
    return "" if what.endswith(f" {status}") else f": {status}"


def _tell_held(batch: ShownBatch, as_json: bool) -> None:
    """A batch that is processing goes on itself: those of its jobs are held that had not begun."""
    if as_json or batch.status == HELD:
        _tell(batch, "is held", as_json)
        return
    look = look_at(batch, 0)
    held, begun = look.of(HELD).jobs, look.under_way
    noun, verb = ("job", "is") if held == 1 else ("jobs", "are")
    write_line(f"{held:,} {noun} of batch {batch.id} {verb} held")
    if begun:
        note(f"{begun:,} had begun and {'goes' if begun == 1 else 'go'} on")


def _note_held_queue(client: Client) -> None:
    """Note that nothing goes on yet, if the whole queue is held."""
    held = client.queue().held
    if held is not None:
        note(
            f"it waits: the queue is held by {held.who}: {held.why}; "
            "release it: penstock ingest release queue"
        )


def _tell_released(count: int, as_json: bool) -> None:
    if as_json:
        write_json(Released(count))
    elif count:
        write_line(f"{count:,} held batches and jobs go on")
    else:
        write_line("nothing that is held can go on; held collections are released first")
