"""`penstock verify`."""

from typing import Annotated

from cyclopts import App, Parameter
from rich.live import Live
from rich.text import Text

from penstock.cli.flags import REMOTE, Json, Namespace, RemoteFlags, switch
from penstock.cli.ingest_progress import show_bytes
from penstock.cli.printing import err, plain, write_json, write_line
from penstock.cli.references import find_entity
from penstock.client.provenance_documents import VerifyCounts, VerifyStep
from penstock.errors import Unavailable

app = App(
    name="verify",
    help_epilogue="""Examples:
  penstock verify shop/totals 20261115PT24H --upstream
  penstock verify shop/totals --all-versions
  penstock verify shop/totals --json

The server reads: it has the way to the object store and its keys, you need
neither. The exit code is 1 if anything is wrong.""",
)


@app.default
def verify(
    dataset: Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or dataset:NAMESPACE:NAME")],
    lot: Annotated[str | None, Parameter(help="the lot; without it, every lot")] = None,
    /,
    *,
    namespace: Namespace = None,
    upstream: Annotated[bool, switch("with all that it was made from")] = False,
    all_versions: Annotated[bool, switch("every version whose data is there")] = False,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Read the bytes of lots again, and of stored objects behind them; compare and complain."""
    faults: list[VerifyStep] = []
    end: VerifyStep | None = None
    with remote.connect() as client:
        named = find_entity(client, dataset, "DATASET", namespace)
        steps = client.verify(
            named.namespace, named.name, lot, all_versions=all_versions, upstream=upstream
        )
        with Live(console=err(), transient=True, refresh_per_second=4) as live:
            for step in steps:
                live.update(Text(_so_far(step.done)))
                if step.kind == "fault":
                    faults.append(step)
                    if not as_json:
                        live.console.print(Text(_words(step), "red"), soft_wrap=True)
                elif step.kind == "end":
                    end = step
    if end is None:
        raise Unavailable("the server broke off before everything was read; verify again")
    if as_json:
        write_json({"faults": faults, "done": end.done})
    else:
        write_line(_result(end.done))
    return 1 if faults else 0


def _words(step: VerifyStep) -> str:
    lot = f" (lot {step.lot}, version {step.version})" if step.lot else ""
    return plain(f"{step.where}: {step.what}{lot}")


def _so_far(done: VerifyCounts) -> str:
    return (
        f"{done.lots:,} lots, {done.versions:,} versions, {done.files:,} files, "
        f"{show_bytes(done.bytes)}, {done.objects:,} stored objects; {done.faults:,} faults"
    )


def _result(done: VerifyCounts) -> str:
    if not done.versions and not done.objects:
        return "there was nothing to read: no lot has a manifest"
    read = (
        f"{done.files:,} files, {show_bytes(done.bytes)}, in {done.versions:,} versions of "
        f"{done.lots:,} lots, and {done.objects:,} stored objects"
    )
    return f"{read}: {f'{done.faults:,} are wrong' if done.faults else 'all as they should be'}"
