"""`penstock verify`."""

from typing import Annotated

from cyclopts import App, Parameter
from rich.live import Live
from rich.text import Text

from penstock.cli.ingest.watch import show_bytes
from penstock.cli.options import REMOTE, Json, Namespace, RemoteFlags, switch
from penstock.cli.output import counted, err, plain, write_json, write_line
from penstock.cli.targets import find_entity
from penstock.errors import Unavailable
from penstock.schema.provenance import VerifyCounts, VerifyStep

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
    where, what = step.where or "", step.what or ""
    named = what if where in what else f"{where}: {what}"  # a manifest's fault names it
    return plain(f"{named}{lot}")


def _so_far(done: VerifyCounts) -> str:
    parts = (
        counted(done.lots, "lot"),
        counted(done.versions, "version"),
        counted(done.files, "file"),
        show_bytes(done.bytes),
        counted(done.objects, "stored object"),
    )
    return f"{', '.join(parts)}; {counted(done.faults, 'fault')}"


def _result(done: VerifyCounts) -> str:
    removed = f"the data of {counted(done.removed, 'version')} was removed before"
    if not done.versions and not done.objects:
        return f"there was nothing to read: {removed if done.removed else 'no lot has a manifest'}"
    read = (
        f"{counted(done.files, 'file')}, {show_bytes(done.bytes)}, in "
        f"{counted(done.versions, 'version')} of {counted(done.lots, 'lot')}, and "
        f"{counted(done.objects, 'stored object')}"
    )
    told = "all as they should be"
    if done.faults:
        told = f"{done.faults:,} {'is' if done.faults == 1 else 'are'} wrong"
    return f"{read}: {told}{f'; {removed}' if done.removed else ''}"
