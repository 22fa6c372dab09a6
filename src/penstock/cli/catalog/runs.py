"""`penstock runs`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.text import Text

from penstock.cli.options import REMOTE, Json, Limit, Namespace, Offset, RemoteFlags
from penstock.cli.output import (
    Column,
    note,
    state_text,
    write_fields,
    write_json,
    write_line,
    write_rest,
    write_table,
)
from penstock.cli.targets import find_entity
from penstock.cli.times import show_duration, show_time
from penstock.client import Client
from penstock.errors import Invalid
from penstock.schema.catalog import EntityId, Run, RunDatasetVersion, Runs

app = App(
    name="runs",
    help_epilogue="""Examples:
  penstock runs list --state FAILED
  penstock runs list --state FAILED --state ABORTED --namespace shop --limit 100
  penstock runs show 019a7f6c-8a00-7000-8000-000000000001
  penstock runs upstream 019a7f6c-8a00-7000-8000-000000000001 --depth 3
  penstock runs abort 019a7f6c-8a00-7000-8000-000000000001""",
)

RunId = Annotated[str, Parameter(help="the run's id")]
State = Literal["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]
STATE = Column("state", whole=True)
TOOK = Column("took", numbers=True)
_CAUSE_LENGTH_MAX = 200
_PAGE = 1000


@app.command(name="list")
def list_runs(
    job: Annotated[str | None, Parameter(help="only those of this job")] = None,
    /,
    *,
    state: Annotated[
        tuple[State, ...], Parameter(help="only those in this state; repeatable")
    ] = (),
    namespace: Namespace = None,
    limit: Limit = 20,
    offset: Offset = 0,
    after: Annotated[
        str | None, Parameter(help="go on after a page; what to write here stands below it")
    ] = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List runs, newest first: of one job, or of all jobs."""
    if job is None and offset:
        raise Invalid("--offset counts the runs of one JOB; of all runs, --after shows the next")
    if job is not None and after is not None:
        raise Invalid("--after continues the list of all runs; of one JOB, --offset shows the next")
    with remote.connect() as client:
        if job is None:
            _list_all(client, namespace, state, limit, after, as_json=as_json)
            return
        owner = find_entity(client, job, "JOB", namespace)
        if state:
            found = _in_state(client, owner, state, limit, offset)
        else:
            found = client.job_runs(owner.namespace, owner.name, limit=limit, offset=offset)
    if as_json:
        write_json(found)
    else:
        write_runs(found.runs)
        write_rest(len(found.runs), found.total_count, offset)


def _list_all(
    client: Client,
    namespace: str | None,
    state: Sequence[State],
    limit: int,
    after: str | None,
    *,
    as_json: bool,
) -> None:
    page = client.runs(state=state, namespace=namespace, limit=limit, after=after)
    if as_json:
        write_json(page)
        return
    write_runs(page.runs, with_job=True)
    if page.next is not None:
        note(f"there are more; --after {page.next} shows the next")


def _in_state(
    client: Client, job: EntityId, state: Sequence[State], limit: int, offset: int
) -> Runs:
    """The runs of a job in these states; however many others are newer."""
    found: list[Run] = []
    at = 0
    while True:
        page = client.job_runs(job.namespace, job.name, limit=_PAGE, offset=at)
        found += [run for run in page.runs if run.state in state]
        at += len(page.runs)
        if not page.runs or at >= page.total_count:
            return Runs(tuple(found[offset : offset + limit]), len(found))


def write_runs(runs: Sequence[Run], *, with_job: bool = False) -> None:
    """Runs, one to a line; beside names of jobs, ids only where there is room for both."""
    run_id = Column("run", whole=True, spare=with_job)
    headings = (run_id, STATE, Column("started", whole=True), TOOK)
    rows = (
        (run.id, state_text(run.state), show_time(run.started_at), show_duration(run.duration_ms))
        for run in runs
    )
    if with_job:
        jobs = (run.job.name for run in runs)
        write_table(("job", *headings), ((job, *row) for job, row in zip(jobs, rows, strict=True)))
    else:
        write_table(headings, rows)


@app.command
def show(run_id: RunId, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """Show a run with what it read and wrote."""
    with remote.connect() as client:
        run = client.run(run_id)
    if as_json:
        write_json(run)
        return
    write_fields(
        [
            ("run", run.id),
            ("job", f"{run.job.namespace}/{run.job.name}"),
            ("state", state_text(run.state)),
            ("cause", cause(run)),
            ("started", show_time(run.started_at)),
            ("ended", show_time(run.ended_at)),
            ("took", show_duration(run.duration_ms)),
            ("nominal time", show_time(run.nominal_start_time)),
            ("parent", f"{run.parent.name} {run.parent.run_id}" if run.parent else None),
            *((f"argument {name}", _plain(value)) for name, value in run.args.items()),
            *(("read", _version(version)) for version in run.input_dataset_versions),
            *(("wrote", _version(version)) for version in run.output_dataset_versions),
        ]
    )


def cause(run: Run) -> str | None:
    """Why a run failed, in one line, if anything reported it."""
    return " ".join(run.cause.split())[:_CAUSE_LENGTH_MAX] if run.cause is not None else None


@app.command
def abort(run_id: RunId, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """End a run as ABORTED of which nobody will report the end any more.

    What is current stays as it is, and so does the run: an end that is reported later changes
    nothing.
    """
    with remote.connect() as client:
        run = client.abort_run(run_id)
    if as_json:
        write_json(run)
        return
    write_line(f"run {run.id} of {run.job.namespace}/{run.job.name} is {run.state}")


@app.command
def upstream(
    run_id: RunId,
    /,
    *,
    depth: Annotated[int, Parameter(help="how many runs back to look")] = 20,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show the runs that made what a run read, and those before them."""
    with remote.connect() as client:
        found = client.upstream_runs(run_id, depth=depth)
    if as_json:
        write_json(found)
        return
    for each in found.runs:
        line = Text.assemble(each.job.name, " ", state_text(each.run.status), " ", each.run.id)
        write_line(line)
        for read in each.inputs:
            maker = read.produced_by_run_id
            origin = f"made by {maker}" if maker else "made by no run that is known"
            write_line(f"  read {read.namespace}/{read.name}, {origin}")


def _version(version: RunDatasetVersion) -> str:
    named = version.dataset_version_id
    number = "" if version.number is None else f" V{version.number}"
    return f"{named.namespace}/{named.name}{number}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
