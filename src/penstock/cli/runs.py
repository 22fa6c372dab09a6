"""`penstock runs`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.text import Text

from penstock.cli.flags import REMOTE, Json, Limit, Namespace, RemoteFlags
from penstock.cli.printing import (
    Column,
    state_text,
    write_fields,
    write_json,
    write_line,
    write_table,
)
from penstock.cli.references import find_entity
from penstock.cli.times import show_duration, show_time
from penstock.client.documents import Facets, Run, RunDatasetVersion, Runs

app = App(
    name="runs",
    help_epilogue="""Examples:
  penstock runs list --state FAILED
  penstock runs show 019a7f6c-8a00-7000-8000-000000000001
  penstock runs upstream 019a7f6c-8a00-7000-8000-000000000001 --depth 3""",
)

RunId = Annotated[str, Parameter(help="the run's id")]
State = Literal["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]
STATE = Column("state", whole=True)
TOOK = Column("took", numbers=True)
_CAUSE_LENGTH_MAX = 200
_JOBS_MAX = 200
_RUNS_MAX = 1000


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
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List runs, newest first: of one job, or the newest of the jobs last updated."""
    with remote.connect() as client:
        if job is not None:
            named = find_entity(client, job, "JOB", namespace)
            runs = client.job_runs(
                named.namespace, named.name, limit=_RUNS_MAX if state else limit
            ).runs
        else:
            jobs = client.jobs(namespace, limit=_JOBS_MAX).jobs
            runs = tuple(run for job in jobs for run in job.latest_runs)
    newest = sorted(runs, key=lambda run: (run.created_at, run.id), reverse=True)
    shown = tuple(run for run in newest if not state or run.state in state)[:limit]
    if as_json:
        write_json(Runs(shown, len(shown)))
    else:
        write_runs(shown, with_job=job is None)


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
            ("cause", cause(run.facets)),
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


def cause(facets: Facets) -> str | None:
    """Why a run failed, in one line, if it said so."""
    message = (facets.get("errorMessage") or {}).get("message")
    if not isinstance(message, str):
        return None
    return " ".join(message.split())[:_CAUSE_LENGTH_MAX]


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
