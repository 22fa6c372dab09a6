"""`penstock verify`."""

from typing import Annotated

from cyclopts import App, Parameter
from rich.live import Live
from rich.text import Text

from penstock.cli import exit_codes
from penstock.cli.formats import show_bytes
from penstock.cli.options import OPTIONS, Namespace, Options, option
from penstock.cli.output import counted, err, plain
from penstock.cli.targets import Dataset, find_dataset
from penstock.errors import Unavailable
from penstock.schema.provenance import VerifyCounts, VerifyStep

app = App(
    name="verify",
    help_epilogue="""Examples:
  penstock verify shop/totals 20261115PT24H --upstream
  penstock verify shop/totals --all-versions
  penstock verify shop/totals --json

The server reads the data, so you need no access to the object store. The exit
code is 1 if anything is wrong.""",
)


@app.default
def verify(
    dataset: Dataset,
    lot: Annotated[str | None, Parameter(help="the lot; default: every lot")] = None,
    /,
    *,
    namespace: Namespace = None,
    upstream: Annotated[bool, option("also everything that it was made from")] = False,
    all_versions: Annotated[bool, option("every version with data in the store")] = False,
    options: Options = OPTIONS,
) -> int:
    """Read the bytes of lots and of stored objects, and compare them with their manifests."""
    faults: list[VerifyStep] = []
    end: VerifyStep | None = None
    with options.connect() as client:
        name = find_dataset(client, dataset, namespace)
        steps = client.verify(*name, lot, all_versions=all_versions, upstream=upstream)
        with Live(console=err(), transient=True, refresh_per_second=4) as live:
            for step in steps:
                live.update(Text(_progress(step.done)))
                if step.kind == "fault":
                    faults.append(step)
                    if not options.json:
                        live.console.print(Text(_fault(step), "red"), soft_wrap=True)
                elif step.kind == "end":
                    end = step
    if end is None:
        raise Unavailable("the server closed the answer before the end; verify again")
    options.write_line({"faults": faults, "done": end.done}, _result(end.done))
    return exit_codes.FAILED if faults else exit_codes.DONE


def _fault(step: VerifyStep) -> str:
    lot = f" (lot {step.lot}, version {step.version})" if step.lot else ""
    where, what = step.where or "", step.what or ""
    text = what if where in what else f"{where}: {what}"  # a manifest's fault names its place
    return plain(f"{text}{lot}")


def _progress(counts: VerifyCounts) -> str:
    parts = (
        counted(counts.lots, "lot"),
        counted(counts.versions, "version"),
        counted(counts.files, "file"),
        show_bytes(counts.bytes),
        counted(counts.objects, "stored object"),
    )
    return f"{', '.join(parts)}; {counted(counts.faults, 'fault')}"


def _result(counts: VerifyCounts) -> str:
    removed = f"the data of {counted(counts.removed, 'version')} was removed before"
    if not counts.versions and not counts.objects:
        return f"nothing to verify: {removed if counts.removed else 'no lot has a manifest'}"
    content = (
        f"{counted(counts.files, 'file')}, {show_bytes(counts.bytes)}, in "
        f"{counted(counts.versions, 'version')} of {counted(counts.lots, 'lot')}, and "
        f"{counted(counts.objects, 'stored object')}"
    )
    result = "no faults"
    if counts.faults:
        result = f"{counts.faults:,} {'is' if counts.faults == 1 else 'are'} wrong"
    return f"{content}: {result}{f'; {removed}' if counts.removed else ''}"
