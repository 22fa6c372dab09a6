"""`penstock unhold`."""

from cyclopts import App

from penstock.cli.flags import REMOTE, Json, Namespace, RemoteFlags, Why
from penstock.cli.hold import Dataset, Job, tell
from penstock.cli.references import exact_dataset, exact_job

app = App(
    name="unhold",
    help_epilogue="""Examples:
  penstock unhold job shop/totals --why "the rates are right again"
  penstock unhold dataset shop/raw --why tested""",
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
    """Let a held job go on."""
    with remote.connect() as client:
        freed = client.unhold_job(*exact_job(client, name, namespace), why)
    tell(freed, "goes on", as_json)


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
    """Let the jobs that read or write lots of a held dataset go on."""
    with remote.connect() as client:
        freed = client.unhold_dataset(*exact_dataset(client, name, namespace), why)
    tell(freed, "goes on", as_json)
