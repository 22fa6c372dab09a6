"""`penstock provenance`."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.text import Text
from rich.tree import Tree

from penstock.cli.drawing import Symbols, shorten, symbols_for
from penstock.cli.formats import read_moment, show_bytes, show_duration, show_time
from penstock.cli.options import OPTIONS, Namespace, Options, option
from penstock.cli.output import counted, line_width, note, out, plain, state_text, write_json
from penstock.cli.targets import Dataset, LotId, find_dataset
from penstock.errors import Invalid
from penstock.schema.provenance import Contents, Deposit, LotVersion, Maker, Outside, Provenance

_FILES = 5
_NAME_WIDTH = 60

app = App(
    name="provenance",
    help_epilogue="""Examples:
  penstock provenance shop/totals 20261115PT24H
  penstock provenance totals 20261115PT24H --as-of 2026-11-15T12:00Z --depth 1
  penstock provenance totals 20261115PT24H --prov > totals.prov.json

The tree shows what each run read, in the version of that time, even if its job
is wired otherwise now. --prov prints W3C PROV, as PROV-JSON.""",
)


@app.default
def provenance(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    namespace: Namespace = None,
    as_of: Annotated[
        str | None, Parameter(help="the version at this time; 2h is two hours ago")
    ] = None,
    depth: Annotated[
        int | None,
        Parameter(
            help="how many runs to go back at most",
            show_default=False,
            validator=Number(gte=0),
        ),
    ] = None,
    files: Annotated[
        int, Parameter(help="how many files of each version to show", validator=Number(gte=0))
    ] = _FILES,
    options: Options = OPTIONS,
    as_prov: Annotated[bool, option("print W3C PROV-JSON", "--prov")] = False,
) -> None:
    """Show what a lot was made from: inputs, runs, deposits, down to files and digests."""
    if options.json and as_prov:
        raise Invalid("--json and --prov are two formats; choose one")
    at = read_moment(as_of)
    with options.connect() as client:
        name = find_dataset(client, dataset, namespace)
        if as_prov:
            write_json(client.prov(*name, lot, as_of=at, depth=depth, files=files))
            return
        origin = client.provenance(*name, lot, as_of=at, depth=depth, files=files)
    options.write(origin, _draw)


def _draw(provenance: Provenance) -> None:
    console = out()
    console.width = line_width(console)
    style = _Style(symbols_for(console.encoding), _NAME_WIDTH if console.is_terminal else None)
    versions = {version.id: version for version in provenance.versions}
    trunk = Tree("", guide_style="dim")  # its only child is the requested lot
    drawn: set[str] = set()
    waiting = [(trunk, versions[provenance.version])]
    while waiting:
        place, version = waiting.pop()
        title = _title(version, style.symbols)
        if version.id in drawn:
            place.add(title.append(f"  {style.symbols.again}", "dim"))
            continue
        drawn.add(version.id)
        branch = place.add(title)
        for line in _lines(version, style):
            branch.add(line)
        behind = [versions[each] for each in version.inputs if each in versions]
        if version.is_cut and len(behind) < len(version.inputs):
            rest = counted(len(version.inputs) - len(behind), "input")
            branch.add(Text(f"{rest}, not followed", "dim"))
        waiting += [
            (branch, source) for source in reversed(behind)
        ]  # the stack draws the first one next
    console.print(trunk.children[0])
    if provenance.as_of is not None and not provenance.is_current:
        note(f"this is the version of {show_time(provenance.as_of)}; the lot has a newer version")
    if not provenance.is_whole:
        note("the tree is cut, because it is too large; --depth shows a part of it")


class _Style(NamedTuple):
    """The symbols of the tree, and the width of its names."""

    symbols: Symbols
    name_width: int | None  # None in a pipe: names are not cut

    def short(self, name: str) -> str:
        if self.name_width is None:
            return plain(name)
        return shorten(plain(name), self.name_width, self.symbols.more)


def _title(version: LotVersion, symbols: Symbols) -> Text:
    name = plain(f"{version.namespace}/{version.dataset}")
    text = Text.assemble((f"{symbols.dataset} ", "blue"), (name, "bold"))
    text.append(f" {plain(version.lot)}" if version.lot is not None else " (no lot)")
    text.append(f"  V{version.number}", "cyan")
    return text.append(f"  {show_time(version.published_at)}", "dim")


def _lines(version: LotVersion, style: _Style) -> Iterator[Text]:
    if version.run is not None:
        yield _run(version.run, style.symbols)
    if version.outside is not None:
        yield from _outside(version.outside, style)
    for deposit in version.deposits:
        yield from _deposit(deposit)
    if version.contents is not None:
        yield from _contents(version.contents, style)


def _run(run: Maker, symbols: Symbols) -> Text:
    text = Text.assemble((f"{symbols.job} ", "green"), plain(f"{run.job.namespace}/{run.job.name}"))
    text.append(f"  run {run.id}  ").append_text(state_text(run.state))
    parts = counted(run.parts, "part") if run.parts else ""
    version = f"job version {run.job_version}" if run.job_version else ""
    owner = f"by {plain(run.owner)}" if run.owner else ""
    tried = f"try {run.attempt}" if run.attempt and run.attempt > 1 else ""
    took = f"{show_time(run.started_at)}, {show_duration(run.duration_ms)}"
    details = filter(None, (version, owner, tried, parts, took))
    return text.append("  " + "  ".join(details), "dim")


def _outside(outside: Outside, style: _Style) -> Iterator[Text]:
    if outside.registered_by is not None:
        at = show_time(outside.registered_at)
        yield Text(f"from outside, registered by {plain(outside.registered_by)} at {at}")
    else:
        yield Text("from outside")
    for each in outside.arrived:
        name = style.short(each.uri)
        yield Text(f"arrived {name}  {show_bytes(each.size)}  {plain(each.mark)}", "dim")
    if outside.arrived_count > len(outside.arrived):
        yield Text(f"{outside.arrived_count:,} objects arrived in all", "dim")


def _deposit(deposit: Deposit) -> Iterator[Text]:
    who = plain(deposit.depositor or "unknown")
    yield Text(f"deposited by {who} to {plain(deposit.collection)} in batch {deposit.batch}")
    for each in deposit.objects:
        job = f" by ingest job {each.ingest_job}" if each.ingest_job else ""
        yield Text(f"stored as {plain(each.ark)} version {each.object_version}{job}", "dim")


def _short(uri: str) -> str:
    """Drop the folder of the attempt, which the manifest shows."""
    return uri.partition("/attempt=")[2].partition("/")[2] or uri


def _contents(contents: Contents, style: _Style) -> Iterator[Text]:
    more = style.symbols.more
    shown = (
        f"{contents.state}: {counted(contents.total_count, 'file')}, {show_bytes(contents.bytes)}"
    )
    digest = contents.digest if style.name_width is None else f"{contents.digest[:16]}{more}"
    yield Text.assemble(shown, (f"  manifest sha-256:{digest}", "dim"))
    gone = contents.state if contents.state == "removed" else ""
    for file in contents.files:
        text = Text(f"{style.symbols.field} {style.short(_short(file.uri))}")
        size = show_bytes(file.size) if file.size is not None else ""
        yield text.append("  " + "  ".join(filter(None, (size, file.digest, gone))), "dim")
    if contents.error is not None:
        yield Text(plain(contents.error), "bold red")
    elif contents.total_count > len(contents.files):
        rest = contents.total_count - len(contents.files)
        yield Text(f"{more} and {rest:,} more; --files shows them", "dim")
