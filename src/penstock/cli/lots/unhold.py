"""`penstock unhold`."""

from cyclopts import App

from penstock.cli.lots.hold import Dataset, Job, tell
from penstock.cli.options import REMOTE, Json, Namespace, RemoteFlags, Why
from penstock.cli.output import write_line
from penstock.cli.targets import exact_dataset, exact_job
from penstock.schema.locks import ReleasedDataset, ReleasedJob

app = App(
    name="unhold",
    help_epilogue="""Examples:
  penstock unhold job shop/totals --why "the rates are right again"
  penstock unhold dataset shop/raw --why tested

A job or dataset that is not held is refused, with the hold that stops it
instead. One lot is released with `penstock lots unhold`, one job's work on a
lot with `penstock work unhold`.""",
)


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
    """Release the hold of a job, and name the holds that still stop it."""
    with remote.connect() as client:
        released = client.unhold_job(*exact_job(client, name, namespace), why)
    _tell_released(released, as_json)


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
    """Release the hold of a dataset, and name the holds that still stop its jobs."""
    with remote.connect() as client:
        released = client.unhold_dataset(*exact_dataset(client, name, namespace), why)
    _tell_released(released, as_json)


def _tell_released(released: ReleasedJob | ReleasedDataset, as_json: bool) -> None:
    """Report the release; a thing that other holds still stop does not go on."""
    tell(released, "is released" if released.stopped_by else "goes on", as_json)
    if as_json:
        return
    for hold in released.stopped_by:
        what = f"{'dataset' if hold.kind == 'DATASET' else 'job'} {hold.namespace}/{hold.name}"
        command = f"; release it: {hold.command}" if hold.command else ""
        write_line(f"still stopped: {what} is held by {hold.who}: {hold.why}{command}")
