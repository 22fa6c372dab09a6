"""`penstock runs`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.text import Text

from penstock.cli.formats import show_duration, show_time
from penstock.cli.options import OPTIONS, Limit, Namespace, Offset, Options
from penstock.cli.output import Column, note, state_text, write_line, write_rest, write_table
from penstock.cli.targets import Name, find_job
from penstock.client import Client
from penstock.errors import Invalid
from penstock.schema.catalog import Run, RunDatasetVersion, Runs
from penstock.schema.lineage import UpstreamRuns

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
RunState = Literal["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]
STATE = Column("state", whole=True)
TOOK = Column("took", numbers=True)
_CAUSE_LENGTH_MAX = 200
_PAGE = 1000


@app.command(name="list")
def list_runs(
    job: Annotated[str | None, Parameter(help="only runs of this job")] = None,
    /,
    *,
    state: Annotated[
        tuple[RunState, ...], Parameter(help="only runs in this state; repeatable")
    ] = (),
    namespace: Namespace = None,
    limit: Limit = 20,
    offset: Offset = 0,
    after: Annotated[
        str | None, Parameter(help="continue after a page, with the value shown below it")
    ] = None,
    options: Options = OPTIONS,
) -> None:
    """List the runs of one job or of all jobs, newest first."""
    if job is None and offset:
        raise Invalid("--offset counts the runs of one JOB; to page all runs, use --after")
    if job is not None and after is not None:
        raise Invalid("--after pages all runs; to page the runs of one JOB, use --offset")
    with options.connect() as client:
        if job is None:
            page = client.runs(state=state, namespace=namespace, limit=limit, after=after)
            options.write(page, lambda page: write_runs(page.runs, with_job=True))
            if page.next is not None and not options.json:
                note(f"there are more; --after {page.next} shows the next")
            return
        name = find_job(client, job, namespace)
        if state:
            runs = _list_in_state(client, name, state, limit, offset)
        else:
            runs = client.job_runs(*name, limit=limit, offset=offset)
    write_runs_page(runs, offset, options)


def _list_in_state(
    client: Client, job: Name, state: Sequence[RunState], limit: int, offset: int
) -> Runs:
    """List the runs of a job in these states, from all pages."""
    matches: list[Run] = []
    at = 0
    while True:
        page = client.job_runs(*job, limit=_PAGE, offset=at)
        matches += [run for run in page.runs if run.state in state]
        at += len(page.runs)
        if not page.runs or at >= page.total_count:
            return Runs(tuple(matches[offset : offset + limit]), len(matches))


def write_runs_page(page: Runs, offset: int, options: Options) -> None:
    """Write a page of a job's runs."""

    def write_text(page: Runs) -> None:
        write_runs(page.runs)
        write_rest(len(page.runs), page.total_count, offset)

    options.write(page, write_text)


def write_runs(runs: Sequence[Run], *, with_job: bool = False) -> None:
    """Write one run a line; beside job names, ids only if they fit."""
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
def show(run_id: RunId, /, *, options: Options = OPTIONS) -> None:
    """Show a run with its inputs and outputs."""
    with options.connect() as client:
        run = client.run(run_id)
    options.write_fields(
        run,
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
        ],
    )


def cause(run: Run) -> str | None:
    """Describe in one line why a run failed, if its error was reported."""
    return " ".join(run.cause.split())[:_CAUSE_LENGTH_MAX] if run.cause is not None else None


@app.command
def abort(run_id: RunId, /, *, options: Options = OPTIONS) -> None:
    """End a run whose end will not be reported as ABORTED.

    Current versions stay as they are. An end that is reported later changes nothing.
    """
    with options.connect() as client:
        run = client.abort_run(run_id)
    options.write_line(run, f"run {run.id} of {run.job.namespace}/{run.job.name} is {run.state}")


@app.command
def upstream(
    run_id: RunId,
    /,
    *,
    depth: Annotated[int, Parameter(help="how many runs to go back")] = 20,
    options: Options = OPTIONS,
) -> None:
    """Show the runs that made a run's inputs, and the runs before them."""
    with options.connect() as client:
        runs = client.upstream_runs(run_id, depth=depth)
    options.write(runs, _write_upstream)


def _write_upstream(upstream: UpstreamRuns) -> None:
    for each in upstream.runs:
        state = state_text(each.run.status)
        write_line(Text.assemble(each.job.name, " ", state, " ", each.run.id))
        for read in each.inputs:
            maker = read.produced_by_run_id
            origin = f"made by {maker}" if maker else "made by no known run"
            write_line(f"  read {read.namespace}/{read.name}, {origin}")


def _version(version: RunDatasetVersion) -> str:
    name = version.dataset_version_id
    number = "" if version.number is None else f" V{version.number}"
    return f"{name.namespace}/{name.name}{number}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
