"""`penstock jobs`."""

from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.cli.catalog.runs import STATE, TOOK, RunState, write_runs, write_runs_page
from penstock.cli.formats import show_duration, show_time
from penstock.cli.lots.holds import write_held, write_released
from penstock.cli.options import (
    OPTIONS,
    Inputs,
    Limit,
    Namespace,
    NamespaceFilter,
    Offset,
    Options,
    Outputs,
    Reason,
)
from penstock.cli.output import Column, state_text, write_fields, write_line
from penstock.cli.targets import Job as Name
from penstock.cli.targets import deleted_job, exact_job, find_job, job_or_new
from penstock.schema.catalog import EntityId, Job

app = App(
    name="jobs",
    help_epilogue="""Examples:
  penstock jobs list --state FAILED
  penstock jobs show shop/daily_shop.load_orders
  penstock jobs runs load_orders --limit 5
  penstock jobs wire shop/totals --input raw --output totals --tries 3
  penstock jobs hold shop/totals --why "the rates are wrong"
  penstock jobs release shop/totals --why "the rates are right again\"""",
)


@app.command(name="list")
def list_jobs(
    *,
    namespace: NamespaceFilter = None,
    state: Annotated[
        tuple[RunState, ...], Parameter(help="only if the last run is in this state; repeatable")
    ] = (),
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List jobs, last updated first."""
    with options.connect() as client:
        page = client.jobs(namespace, last_run_states=state, limit=limit, offset=offset)
    options.write_table(
        page,
        ("job", "namespace", STATE, TOOK, Column("updated", whole=True)),
        (
            (
                job.name,
                job.namespace,
                state_text(job.latest_run.state if job.latest_run else None),
                show_duration(job.latest_run.duration_ms if job.latest_run else None),
                show_time(job.updated_at),
            )
            for job in page.jobs
        ),
        total_count=page.total_count,
        offset=offset,
    )


@app.command
def show(name: Name, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Show a job with its inputs, outputs and newest runs."""
    with options.connect() as client:
        job = client.job(*find_job(client, name, namespace))
    options.write(job, _write_job)


def _write_job(job: Job) -> None:
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
    options: Options = OPTIONS,
) -> None:
    """List the versions of a job with their inputs and outputs, newest first."""
    with options.connect() as client:
        at = find_job(client, name, namespace)
        page = client.job_versions(*at, limit=limit, offset=offset)
    options.write_table(
        page,
        (Column("created", whole=True), "reads", "writes", STATE),
        (
            (
                show_time(version.created_at),
                _names(version.inputs),
                _names(version.outputs),
                state_text(version.latest_run.state if version.latest_run else None),
            )
            for version in page.versions
        ),
        total_count=page.total_count,
        offset=offset,
    )


@app.command
def runs(
    name: Name,
    /,
    *,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List the runs of a job, newest first."""
    with options.connect() as client:
        page = client.job_runs(*find_job(client, name, namespace), limit=limit, offset=offset)
    write_runs_page(page, offset, options)


@app.command
def wire(
    name: Annotated[str, Parameter(help="NAMESPACE/NAME, or the name of an existing job")],
    /,
    *,
    inputs: Inputs = (),
    outputs: Outputs = (),
    lease: Annotated[
        int | None, Parameter(help="seconds without a heartbeat until a lot is free again")
    ] = None,
    tries: Annotated[int | None, Parameter(help="tries until a lot is held")] = None,
    back_off: Annotated[
        int | None, Parameter(help="seconds to wait after a first failure, then twice as long")
    ] = None,
    enforced: Annotated[
        bool | None, Parameter(help="refuse events of runs that conflict with a lock")
    ] = None,
    stale: Annotated[
        Literal["rerun", "hold", "ignore"] | None,
        Parameter(help="what to do with a lot when one of its inputs has a newer version"),
    ] = None,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Declare the datasets that a job reads and writes lot by lot.

    Settings without an option stay as they are.
    """
    with options.connect() as client:
        job = job_or_new(client, name, namespace)
        wiring = client.wire_job(
            job.namespace,
            job.name,
            inputs=inputs or None,
            outputs=outputs or None,
            lease_seconds=lease,
            tries_max=tries,
            back_off_seconds=back_off,
            enforced=enforced,
            stale=stale,
        )
    held = wiring.held
    options.write_fields(
        wiring,
        [
            ("job", f"{wiring.namespace}/{wiring.job}"),
            ("reads", _names(wiring.inputs)),
            ("writes", _names(wiring.outputs)),
            ("lease", f"{wiring.lease_seconds:,} s"),
            ("tries", wiring.tries_max),
            ("backoff", f"{wiring.back_off_seconds:,} s"),
            ("enforced", "yes" if wiring.enforced else "no"),
            ("when stale", wiring.stale),
            ("held", f"by {held.who} since {show_time(held.since)}: {held.why}" if held else None),
        ],
    )


@app.command
def hold(
    name: Name,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Hold a job until it is released: no worker can claim its lots."""
    with options.connect() as client:
        held = client.hold_job(*exact_job(client, name, namespace), why)
    write_held(options, held, why)


@app.command
def release(
    name: Name,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """End the hold of a job, and list the holds that still stop it."""
    with options.connect() as client:
        released = client.release_job(*exact_job(client, name, namespace), why)
    write_released(options, released)


@app.command
def delete(name: Name, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Hide a job until it is restored or runs again."""
    with options.connect() as client:
        job = client.delete_job(*exact_job(client, name, namespace))
    options.write_line(
        job, f"job {job.namespace}/{job.name} is deleted; `penstock jobs restore` restores it"
    )


@app.command
def restore(name: Name, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Restore a deleted job, named NAMESPACE/NAME."""
    with options.connect() as client:
        job = client.restore_job(*deleted_job(client, name, namespace))
    options.write_line(job, f"job {job.namespace}/{job.name} is restored")


def _names(datasets: Sequence[EntityId]) -> str:
    return ", ".join(f"{dataset.namespace}/{dataset.name}" for dataset in datasets)
