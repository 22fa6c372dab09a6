"""`penstock locks`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Limit, Offset, RemoteFlags
from penstock.cli.output import Column, write_json, write_line, write_rest, write_table
from penstock.cli.targets import find_entity
from penstock.cli.times import show_duration, show_time
from penstock.errors import Invalid
from penstock.schema.locks import Lock

app = App(
    name="locks",
    help_epilogue="""Examples:
  penstock locks
  penstock locks --namespace shop --lot 20261115PT24H
  penstock locks --dataset shop/totals --json""",
)


@app.default
def locks(
    *,
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="only those of this namespace")
    ] = None,
    job: Annotated[str | None, Parameter(help="only those of this job")] = None,
    dataset: Annotated[str | None, Parameter(help="only those on this dataset")] = None,
    lot: Annotated[str | None, Parameter(help="only those on this lot")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List what is being worked on, by whom, and what that locks."""
    if job is not None and dataset is not None:
        raise Invalid("name a job or a dataset, not both")
    with remote.connect() as client:
        if job is not None:
            at = find_entity(client, job, "JOB", namespace)
            namespace, job = at.namespace, at.name
        if dataset is not None:
            at = find_entity(client, dataset, "DATASET", namespace)
            namespace, dataset = at.namespace, at.name
        found = client.locks(
            namespace=namespace, job=job, dataset=dataset, lot=lot, limit=limit, offset=offset
        )
    if as_json:
        write_json(found)
        return
    if not found.locks:
        write_line("nothing is locked by a claim")
        return
    write_table(
        (
            "lot",
            "job",
            "held by",
            Column("since", whole=True),
            Column("lease left", numbers=True),
            "locks",
        ),
        (
            (
                lock.lot,
                f"{lock.namespace}/{lock.job}",
                lock.owner,
                show_time(lock.since),
                show_duration(max(0, int(lock.lease_seconds_left * 1000))),
                _datasets(lock),
            )
            for lock in found.locks
        ),
    )
    write_rest(len(found.locks), found.total_count, offset)


def _datasets(lock: Lock) -> str:
    return ", ".join(
        f"{dataset.name} ({' and '.join(dataset.locks)})"
        for dataset in lock.datasets
        if dataset.locks
    )
