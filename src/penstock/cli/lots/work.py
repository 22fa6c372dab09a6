"""`penstock work`."""

import shlex
from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, Limit, Namespace, Offset, Options, Reason
from penstock.cli.output import Column, write_line
from penstock.cli.targets import Job, exact_job, find_job
from penstock.client import Client
from penstock.errors import Conflict, Invalid
from penstock.schema.locks import Work, WorkList
from penstock.states import WorkState

app = App(
    name="work",
    help_epilogue="""Examples:
  penstock work list shop/totals --state HELD
  penstock work hold shop/totals 3 --why "ask finance first"
  penstock work release shop/totals 3 --why "finance agrees"
  penstock work retry shop/totals 5 --why "the disk is replaced"
  penstock work resubmit shop/totals 3 4 --why "the input was wrong"
  penstock work priority shop/totals 7 --why "finance asks" --priority 100

`release` ends a hold. `retry` runs failed work again at once, with all its
tries. `resubmit` makes finished work again. `penstock claims end` ends the
claim of another worker.""",
)

Lots = Annotated[str, Parameter(help="the lots")]
Action = Callable[[Client, str, str, str], Work]
_STATE = Column("state", whole=True)
_COLUMNS = (
    "lot",
    _STATE,
    Column("try", whole=True),
    Column("priority", numbers=True),
    Column("since", whole=True),
    "claimed by",
    "not before",
    "last error",
)


@app.command(name="list")
def list_work(
    job: Job,
    /,
    *,
    state: Annotated[WorkState | None, Parameter(help="only lots in this state")] = None,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List a job's work, lot by lot."""
    with options.connect() as client:
        name = find_job(client, job, namespace)
        page = client.job_lots(*name, state=state, limit=limit, offset=offset)
    rows = (
        (
            work.lot,
            work.state,
            f"{work.attempts} of {work.attempts_max}",
            work.priority,
            show_time(work.since),
            work.owner if work.state == "RUNNING" else None,
            show_time(work.not_before),
            work.error,
        )
        for work in page.lots
    )
    options.write_table(page, _COLUMNS, rows, total_count=page.total_count, offset=offset)


@app.command
def stale(
    job: Annotated[str | None, Parameter(help="only lots of this job")] = None,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List lots whose inputs have newer versions."""
    with options.connect() as client:
        if job is not None:
            namespace, job = find_job(client, job, namespace)
        page = client.stale_work(namespace=namespace, job=job, limit=limit, offset=offset)
    options.write_table(
        page,
        ("job", "lot", _STATE, Column("stale since", whole=True)),
        (
            (f"{work.namespace}/{work.job}", work.lot, work.state, show_time(work.stale_since))
            for work in page.lots
        ),
    )


@app.command
def resubmit(
    job: Job,
    /,
    *lots: Lots,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Make lots again, finished ones too: all of them, or none."""
    with options.connect() as client:
        done = client.resubmit(*exact_job(client, job, namespace), _require(lots), why).lots
    _write(done, "is resubmitted", options)


@app.command
def hold(
    job: Job,
    /,
    *lots: Lots,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Hold a job's work on lots until it is released."""
    write_each(job, lots, namespace, options, "is held", lambda c, *at: c.hold_work(*at, why))


@app.command
def release(
    job: Job,
    /,
    *lots: Lots,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """End the hold of a job's work on lots, and show what still stops it."""

    def release_one(client: Client, namespace: str, job: str, lot: str) -> Work:
        if "out_of_tries" in _stops(client, namespace, job, lot):
            raise Conflict(
                f"lot {lot} of job {namespace}/{job} is out of tries and not on hold; retry it: "
                f"`{_command('retry', namespace, job, lot)}`"
            )
        return client.release_work(namespace, job, lot, why)

    write_each(job, lots, namespace, options, "is released", release_one, explain=True)


@app.command
def retry(
    job: Job,
    /,
    *lots: Lots,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Run failed work again at once, with all its tries."""

    def retry_one(client: Client, namespace: str, job: str, lot: str) -> Work:
        stops = _stops(client, namespace, job, lot)
        if "out_of_tries" in stops:
            return client.release_work(namespace, job, lot, why)
        where = f"lot {lot} of job {namespace}/{job}"
        if "held_lot" in stops:
            command = _command("release", namespace, job, lot)
            raise Conflict(f"{where} is on hold; release it: `{command}`")
        work = client.job_lot(namespace, job, lot)
        if work.not_before is not None and work.state not in ("DONE", "RUNNING"):
            return client.resubmit(namespace, job, [lot], why).lots[0]
        hint = f"; make it again: `{_command('resubmit', namespace, job, lot)}`"
        more = hint if work.state == "DONE" else ""
        raise Conflict(f"{where} has not failed, it is {work.state}{more}")

    write_each(job, lots, namespace, options, "is retried", retry_one, explain=True)


def _stops(client: Client, namespace: str, job: str, lot: str) -> set[str]:
    """Fetch the kinds of the reasons that stop a job's work on a lot."""
    return {reason.kind for reason in client.why(namespace, job, lot).reasons}


def _command(verb: str, namespace: str, job: str, lot: str) -> str:
    return f"{shlex.join(['penstock', 'work', verb, f'{namespace}/{job}', lot])} --why REASON"


@app.command
def priority(
    job: Job,
    /,
    *lots: Lots,
    priority: Annotated[int, Parameter(help="lots with a higher priority come first")],
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Set the priority of a job's lots."""
    done = f"has priority {priority}"
    write_each(job, lots, namespace, options, done, lambda c, *at: c.prioritize(*at, priority, why))


def write_each(
    job: str,
    lots: Sequence[str],
    namespace: str | None,
    options: Options,
    done: str,
    action: Action,
    *,
    explain: bool = False,
) -> None:
    """Apply an action to a job's work on each lot, and report the new states.

    With `explain`, report also what still stops a lot.
    """
    with options.connect() as client:
        name = exact_job(client, job, namespace)
        works = [action(client, *name, lot) for lot in _require(lots)]
        _write(works, done, options)
        for work in works:
            if explain and not options.json and work.state in ("WAITING", "HELD"):
                write_line(client.why(work.namespace, work.job, work.lot).sentence)


def _require(lots: Sequence[str]) -> Sequence[str]:
    if not lots:
        raise Invalid("name one or more lots")
    return lots


def _write(works: Sequence[Work], done: str, options: Options) -> None:
    def write_text(page: WorkList) -> None:
        for work in page.lots:
            write_line(f"lot {work.lot} of job {work.namespace}/{work.job} {done}: {work.state}")

    options.write(WorkList(tuple(works), len(works)), write_text)
