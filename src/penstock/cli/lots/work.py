"""`penstock work`."""

from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Limit, Namespace, Offset, RemoteFlags, Why
from penstock.cli.output import Column, write_json, write_line, write_rest, write_table
from penstock.cli.targets import exact_job, find_entity
from penstock.cli.times import show_time
from penstock.client import Client
from penstock.errors import Invalid
from penstock.schema.locks import Work, WorkList
from penstock.states import WorkState

app = App(
    name="work",
    help_epilogue="""Examples:
  penstock work list shop/totals --state HELD
  penstock work resubmit shop/totals 3 4 --why "the input was wrong"
  penstock work release shop/totals 5 --why "the worker hangs"
  penstock work priority shop/totals 7 --why "finance asks" --priority 100""",
)

Job = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or job:NAMESPACE:NAME")]
Lots = Annotated[str, Parameter(help="the lots")]
_STOPPED = ("WAITING", "HELD")
Action = Callable[[str, str, str, str], Work]


@app.command(name="list")
def list_work(
    job: Job,
    /,
    *,
    state: Annotated[WorkState | None, Parameter(help="only lots in this state")] = None,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List what a job has to do, lot by lot."""
    with remote.connect() as client:
        named = find_entity(client, job, "JOB", namespace)
        found = client.job_lots(
            named.namespace, named.name, state=state, limit=limit, offset=offset
        )
    if as_json:
        write_json(found)
        return
    write_work(found.lots)
    write_rest(len(found.lots), found.total_count, offset)


def write_work(lots: Sequence[Work]) -> None:
    """What is to be done with lots, one to a line."""
    write_table(
        (
            "lot",
            Column("state", whole=True),
            Column("try", whole=True),
            Column("priority", numbers=True),
            Column("since", whole=True),
            "held by",
            "not before",
            "last error",
        ),
        (
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
            for work in lots
        ),
    )


@app.command
def stale(
    job: Annotated[str | None, Parameter(help="only of this job")] = None,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List lots that were made with inputs of which there are newer versions."""
    with remote.connect() as client:
        named = find_entity(client, job, "JOB", namespace) if job is not None else None
        found = client.stale_work(
            namespace=named.namespace if named else namespace,
            job=named.name if named else None,
            limit=limit,
            offset=offset,
        )
    if as_json:
        write_json(found)
        return
    write_table(
        ("job", "lot", Column("state", whole=True), Column("stale since", whole=True)),
        (
            (f"{work.namespace}/{work.job}", work.lot, work.state, show_time(work.stale_since))
            for work in found.lots
        ),
    )


@app.command(name=("resubmit", "rerun"))
def resubmit(
    job: Job,
    /,
    *lots: Lots,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Have a job work on lots again; all of them, or none. RERUN is another name for it."""
    with remote.connect() as client:
        at = exact_job(client, job, namespace)
        done = client.resubmit(*at, _some(lots), why).lots
    _tell(done, "is resubmitted", as_json)


@app.command
def hold(
    job: Job,
    /,
    *lots: Lots,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Keep a job from lots, until they are let go."""
    with remote.connect() as client:
        done = _each(client, job, namespace, lots, client.hold_work, why)
    _tell(done, "is held", as_json)


@app.command
def unhold(
    job: Job,
    /,
    *lots: Lots,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Let a job try lots again, with all its tries, and show what still stops them."""
    with remote.connect() as client:
        done = _each(client, job, namespace, lots, client.unhold_work, why)
        _tell(done, "is let go", as_json)
        for work in done:
            if not as_json and work.state in _STOPPED:
                write_line(client.why(work.namespace, work.job, work.lot).sentence)


@app.command
def release(
    job: Job,
    /,
    *lots: Lots,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """End somebody else's claims; who held them can publish nothing any more."""
    with remote.connect() as client:
        done = _each(client, job, namespace, lots, client.release_lock, why)
    _tell(done, "is released", as_json)


@app.command
def priority(
    job: Job,
    /,
    *lots: Lots,
    priority: Annotated[int, Parameter(help="higher ones are worked on first")],
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Have a job work on lots before others, or after them."""

    def prioritize(at: str, name: str, lot: str, why: str) -> Work:
        return client.prioritize(at, name, lot, priority, why)

    with remote.connect() as client:
        done = _each(client, job, namespace, lots, prioritize, why)
    _tell(done, f"has priority {priority}", as_json)


def _each(
    client: Client,
    job: str,
    namespace: str | None,
    lots: Sequence[str],
    action: Action,
    why: str,
) -> list[Work]:
    at = exact_job(client, job, namespace)
    return [action(*at, lot, why) for lot in _some(lots)]


def _some(lots: Sequence[str]) -> Sequence[str]:
    if not lots:
        raise Invalid("there is no lot to do it to; name one or more")
    return lots


def _tell(done: Sequence[Work], what: str, as_json: bool) -> None:
    if as_json:
        write_json(WorkList(tuple(done), len(done)))
        return
    for work in done:
        write_line(f"lot {work.lot} of job {work.namespace}/{work.job} {what}: {work.state}")
