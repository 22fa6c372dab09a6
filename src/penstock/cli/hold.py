"""`penstock hold`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.flags import REMOTE, Json, Namespace, RemoteFlags, Why
from penstock.cli.printing import write_json, write_line
from penstock.cli.references import exact_dataset, exact_job
from penstock.client.lot_documents import HeldDataset, Wiring

app = App(
    name="hold",
    help_epilogue="""Examples:
  penstock hold job shop/totals --why "the rates are wrong"
  penstock hold dataset shop/raw --why "the disk is being replaced"

One lot is held with `penstock lots hold` for everybody, with `penstock work
hold` for one job.""",
)

Job = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or job:NAMESPACE:NAME")]
Dataset = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or dataset:NAMESPACE:NAME")]


@app.command
def job(
    name: Job,
    /,
    *,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Stop a job: none of its lots is claimed until it is let go."""
    with remote.connect() as client:
        held = client.hold_job(*exact_job(client, name, namespace), why)
    tell(held, "is held", as_json)


@app.command
def dataset(
    name: Dataset,
    /,
    *,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Stop every job that reads or writes lots of a dataset, until it is let go."""
    with remote.connect() as client:
        held = client.hold_dataset(*exact_dataset(client, name, namespace), why)
    tell(held, "is held", as_json)


def tell(done: Wiring | HeldDataset, what: str, as_json: bool) -> None:
    """Say what became of a job or a dataset."""
    if as_json:
        write_json(done)
        return
    which = (
        f"job {done.namespace}/{done.job}"
        if isinstance(done, Wiring)
        else (f"dataset {done.namespace}/{done.name}")
    )
    write_line(f"{which} {what}")
