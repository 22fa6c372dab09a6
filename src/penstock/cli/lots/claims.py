"""`penstock claims`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.formats import show_duration, show_time
from penstock.cli.lots.work import Lots, write_each
from penstock.cli.options import OPTIONS, Limit, Namespace, NamespaceFilter, Offset, Options, Reason
from penstock.cli.output import Column, write_line
from penstock.cli.targets import Job, find_dataset, find_job
from penstock.errors import Invalid
from penstock.schema.locks import Lock

app = App(
    name="claims",
    help_epilogue="""Examples:
  penstock claims list
  penstock claims list --namespace shop --lot 20261115PT24H
  penstock claims list --dataset shop/totals --json
  penstock claims end shop/totals 5 --why "the worker hangs\"""",
)
_COLUMNS = (
    "lot",
    "job",
    "claimed by",
    Column("since", whole=True),
    Column("lease left", numbers=True),
    "locks",
)


@app.command(name="list")
def list_claims(
    *,
    namespace: NamespaceFilter = None,
    job: Annotated[str | None, Parameter(help="only claims of this job")] = None,
    dataset: Annotated[str | None, Parameter(help="only claims on this dataset")] = None,
    lot: Annotated[str | None, Parameter(help="only claims on this lot")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List claims: the lot, its worker, the lease, and the lots that it locks."""
    if job is not None and dataset is not None:
        raise Invalid("name a job or a dataset, not both")
    with options.connect() as client:
        if job is not None:
            namespace, job = find_job(client, job, namespace)
        if dataset is not None:
            namespace, dataset = find_dataset(client, dataset, namespace)
        page = client.locks(
            namespace=namespace, job=job, dataset=dataset, lot=lot, limit=limit, offset=offset
        )
    if not page.locks and not options.json:
        write_line("there are no claims")
        return
    rows = map(_row, page.locks)
    options.write_table(page, _COLUMNS, rows, total_count=page.total_count, offset=offset)


def _row(claim: Lock) -> tuple[str, ...]:
    locks = (f"{each.name} ({' and '.join(each.locks)})" for each in claim.datasets if each.locks)
    lease = show_duration(max(0, int(claim.lease_seconds_left * 1000)))
    job = f"{claim.namespace}/{claim.job}"
    return claim.lot, job, claim.owner, show_time(claim.since), lease, ", ".join(locks)


@app.command
def end(
    job: Job,
    /,
    *lots: Lots,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """End the claims of other workers, which can no longer publish the lots."""
    write_each(job, lots, namespace, options, "is unclaimed", lambda c, *at: c.end_claim(*at, why))
