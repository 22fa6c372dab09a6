"""`penstock hold`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Namespace, RemoteFlags, Why
from penstock.cli.output import write_json, write_line
from penstock.cli.targets import exact_dataset, exact_job
from penstock.cli.times import show_time
from penstock.schema.locks import HeldDataset, Wiring
from penstock.schema.lots import Held

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
    _tell_held(held, why, as_json)


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
    _tell_held(held, why, as_json)


def _tell_held(done: Wiring | HeldDataset, why: str, as_json: bool) -> None:
    """Say that it is held; of what was held already, the first reason is the one that is shown."""
    tell(done, "is held", as_json)
    if done.held is not None and done.held.why != why and not as_json:
        write_line(held_before(done.held))


def held_before(held: Held) -> str:
    """What is said of something that was held already."""
    since = show_time(held.since)
    return f"it was held already, by {held.who} since {since}: {held.why}; one unhold ends both"


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
