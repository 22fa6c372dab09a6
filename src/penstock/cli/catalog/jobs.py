"""`penstock jobs`."""

from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.cli.catalog.runs import STATE, TOOK, write_runs
from penstock.cli.options import (
    REMOTE,
    Inputs,
    Json,
    Limit,
    Namespace,
    Offset,
    Outputs,
    RemoteFlags,
)
from penstock.cli.output import (
    Column,
    state_text,
    write_fields,
    write_json,
    write_line,
    write_rest,
    write_table,
)
from penstock.cli.targets import deleted_job, exact_job, find_job, name_job
from penstock.cli.times import show_duration, show_time
from penstock.schema.catalog import EntityId, Job

app = App(
    name="jobs",
    help_epilogue="""Examples:
  penstock jobs list --state FAILED
  penstock jobs show shop/daily_shop.load_orders
  penstock jobs runs load_orders --limit 5
  penstock jobs wire shop/totals --input raw --output totals --tries 3""",
)

Name = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or job:NAMESPACE:NAME")]
State = Literal["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]


@app.command(name="list")
def list_jobs(
    *,
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="only those of this namespace")
    ] = None,
    state: Annotated[
        tuple[State, ...], Parameter(help="only those whose last run is in this state; repeatable")
    ] = (),
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List jobs, the last updated first."""
    with remote.connect() as client:
        found = client.jobs(namespace, last_run_states=state, limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_table(
        ("job", "namespace", STATE, TOOK, Column("updated", whole=True)),
        (
            (
                job.name,
                job.namespace,
                state_text(job.latest_run.state if job.latest_run else None),
                show_duration(job.latest_run.duration_ms if job.latest_run else None),
                show_time(job.updated_at),
            )
            for job in found.jobs
        ),
    )
    write_rest(len(found.jobs), found.total_count, offset)


@app.command
def show(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show a job with what it reads and writes and its newest runs."""
    with remote.connect() as client:
        job = client.job(*find_job(client, name, namespace))
    if as_json:
        write_json(job)
        return
    write_fields(
        [
            ("job", job.name),
            ("namespace", job.namespace),
            ("parent", job.parent_job_name),
            ("type", job.type),
            ("description", job.description),
            ("location", job.location),
            ("tags", ", ".join(job.tags)),
            ("reads", _names(job.inputs)),
            ("writes", _names(job.outputs)),
            ("version id", job.current_version),
            ("updated", show_time(job.updated_at)),
            ("node", f"job:{job.namespace}:{job.name}"),
        ]
    )
    if job.latest_runs:
        write_line()
        write_runs(job.latest_runs)


@app.command
def versions(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List the versions of a job, newest first: what it read and wrote."""
    with remote.connect() as client:
        named = find_job(client, name, namespace)
        found = client.job_versions(*named, limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_table(
        (Column("created", whole=True), "reads", "writes", STATE),
        (
            (
                show_time(version.created_at),
                _names(version.inputs),
                _names(version.outputs),
                state_text(version.latest_run.state if version.latest_run else None),
            )
            for version in found.versions
        ),
    )
    write_rest(len(found.versions), found.total_count, offset)


@app.command
def runs(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List the runs of a job, newest first."""
    with remote.connect() as client:
        found = client.job_runs(*find_job(client, name, namespace), limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_runs(found.runs)
    write_rest(len(found.runs), found.total_count, offset)


@app.command
def wire(
    name: Annotated[str, Parameter(help="NAMESPACE/NAME, or the name of a job that is there")],
    /,
    *,
    inputs: Inputs = (),
    outputs: Outputs = (),
    lease: Annotated[
        int | None, Parameter(help="seconds without a heartbeat after which a lot is free again")
    ] = None,
    tries: Annotated[int | None, Parameter(help="tries before a lot is held")] = None,
    back_off: Annotated[
        int | None, Parameter(help="seconds to wait after a first failure, then twice as long")
    ] = None,
    enforced: Annotated[
        bool | None, Parameter(help="refuse events of runs that collide with a lock")
    ] = None,
    stale: Annotated[
        Literal["rerun", "hold", "ignore"] | None,
        Parameter(help="what to do with a lot when an input of it gets a newer version"),
    ] = None,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """State which datasets a job reads and writes lot by lot; what is left out stays as it is."""
    with remote.connect() as client:
        named = name_job(client, name, namespace)
        wiring = client.wire_job(
            named.namespace,
            named.name,
            inputs=inputs or None,
            outputs=outputs or None,
            lease_seconds=lease,
            tries_max=tries,
            back_off_seconds=back_off,
            enforced=enforced,
            stale=stale,
        )
    if as_json:
        write_json(wiring)
        return
    held = wiring.held
    write_fields(
        [
            ("job", f"{wiring.namespace}/{wiring.job}"),
            ("reads", _names(wiring.inputs)),
            ("writes", _names(wiring.outputs)),
            ("lease", f"{wiring.lease_seconds:,} s"),
            ("tries", wiring.tries_max),
            ("back-off", f"{wiring.back_off_seconds:,} s"),
            ("enforced", "yes" if wiring.enforced else "no"),
            ("when stale", wiring.stale),
            ("held", f"by {held.who} since {show_time(held.since)}: {held.why}" if held else None),
        ]
    )


@app.command
def delete(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Hide a job, until it is restored or runs again."""
    with remote.connect() as client:
        job = client.delete_job(*exact_job(client, name, namespace))
    _tell(job, "is deleted; `penstock jobs restore` brings it back", as_json)


@app.command
def restore(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Bring back a deleted job; name it by NAMESPACE/NAME."""
    with remote.connect() as client:
        job = client.restore_job(*deleted_job(client, name, namespace))
    _tell(job, "is back", as_json)


def _names(datasets: Sequence[EntityId]) -> str:
    return ", ".join(f"{dataset.namespace}/{dataset.name}" for dataset in datasets)


def _tell(job: Job, what: str, as_json: bool) -> None:
    if as_json:
        write_json(job)
    else:
        write_line(f"job {job.namespace}/{job.name} {what}")
