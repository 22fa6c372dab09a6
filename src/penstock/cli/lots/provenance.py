"""`penstock provenance`."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.text import Text
from rich.tree import Tree

from penstock.cli.drawing import Symbols, shorten, symbols_for
from penstock.cli.ingest.watch import show_bytes
from penstock.cli.options import REMOTE, Json, Namespace, RemoteFlags
from penstock.cli.output import counted, line_width, note, out, plain, state_text, write_json
from penstock.cli.targets import find_entity
from penstock.cli.times import read_moment, show_duration, show_time
from penstock.errors import Invalid
from penstock.schema.provenance import Contents, Deposit, LotVersion, Maker, Outside, Provenance

FILES = 5
NAME_WIDTH = 60

app = App(
    name="provenance",
    help_epilogue="""Examples:
  penstock provenance shop/totals 20261115PT24H
  penstock provenance totals 20261115PT24H --as-of 2026-11-15T12:00Z --depth 1
  penstock provenance totals 20261115PT24H --prov > totals.prov.json

What is shown is what each run really read, in the version it had then, whatever
its job is wired to now. --prov is W3C PROV, as PROV-JSON.""",
)


@app.default
def provenance(
    dataset: Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or dataset:NAMESPACE:NAME")],
    lot: Annotated[str, Parameter(help="the lot")],
    /,
    *,
    namespace: Namespace = None,
    as_of: Annotated[
        str | None, Parameter(help="the version that it had then; 2h is two hours ago")
    ] = None,
    depth: Annotated[
        int | None,
        Parameter(
            help="how many runs to go back at most, each to what it read",
            show_default=False,
            validator=Number(gte=0),
        ),
    ] = None,
    files: Annotated[
        int, Parameter(help="how many files of each version to show", validator=Number(gte=0))
    ] = FILES,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
    as_prov: Annotated[
        bool, Parameter(name="--prov", negative=(), show_default=False, help="print W3C PROV-JSON")
    ] = False,
) -> None:
    """Say what a lot was made from: inputs, runs, deposits, down to files and digests."""
    if as_json and as_prov:
        raise Invalid("--json and --prov are two answers; ask for one")
    at = read_moment(as_of)
    with remote.connect() as client:
        named = find_entity(client, dataset, "DATASET", namespace)
        asked = (named.namespace, named.name, lot)
        if as_prov:
            write_json(client.prov(*asked, as_of=at, depth=depth, files=files))
            return
        found = client.provenance(*asked, as_of=at, depth=depth, files=files)
    if as_json:
        write_json(found)
    else:
        _draw(found)


def _draw(found: Provenance) -> None:
    console = out()
    console.width = line_width(console)
    look = _Look(symbols_for(console.encoding), NAME_WIDTH if console.is_terminal else None)
    versions = {version.id: version for version in found.versions}
    trunk = Tree("", guide_style="dim")  # what is asked about is the only one below it
    drawn: set[str] = set()
    waiting = [(trunk, versions[found.version])]
    while waiting:
        place, version = waiting.pop()
        title = _title(version, look.symbols)
        if version.id in drawn:
            place.add(title.append(f"  {look.symbols.again}", "dim"))
            continue
        drawn.add(version.id)
        branch = place.add(title)
        for line in _lines(version, look):
            branch.add(line)
        behind = [versions[each] for each in version.inputs if each in versions]
        if version.is_cut and len(behind) < len(version.inputs):
            rest = counted(len(version.inputs) - len(behind), "input")
            branch.add(Text(f"{rest}, not followed", "dim"))
        waiting += [(branch, source) for source in reversed(behind)]  # the first is drawn next
    console.print(trunk.children[0])
    if found.as_of is not None and not found.is_current:
        note(f"this is what it was at {show_time(found.as_of)}; it has another version now")
    if not found.is_whole:
        note("there is more behind it than can be shown; --depth shows less of it")


class _Look(NamedTuple):
    """The characters to draw with, and how wide names may be."""

    symbols: Symbols
    name_width: int | None  # None: in a pipe, where nothing is cut

    def short(self, name: str) -> str:
        """A name as wide as it may be."""
        if self.name_width is None:
            return plain(name)
        return shorten(plain(name), self.name_width, self.symbols.more)


def _title(version: LotVersion, symbols: Symbols) -> Text:
    name = plain(f"{version.namespace}/{version.dataset}")
    text = Text.assemble((f"{symbols.dataset} ", "blue"), (name, "bold"))
    text.append(f" {plain(version.lot)}" if version.lot is not None else " (no lot)")
    text.append(f"  V{version.number}", "cyan")
    return text.append(f"  {show_time(version.published_at)}", "dim")


def _lines(version: LotVersion, look: _Look) -> Iterator[Text]:
    if version.run is not None:
        yield _run(version.run, look.symbols)
    if version.outside is not None:
        yield from _outside(version.outside, look)
    for deposit in version.deposits:
        yield from _deposit(deposit)
    if version.contents is not None:
        yield from _contents(version.contents, look)


def _run(run: Maker, symbols: Symbols) -> Text:
    text = Text.assemble((f"{symbols.job} ", "green"), plain(f"{run.job.namespace}/{run.job.name}"))
    text.append(f"  run {run.id}  ").append_text(state_text(run.state))
    parts = counted(run.parts, "part") if run.parts else ""
    version = f"job version {run.job_version}" if run.job_version else ""
    owner = f"by {plain(run.owner)}" if run.owner else ""
    tried = f"try {run.attempt}" if run.attempt and run.attempt > 1 else ""
    took = f"{show_time(run.started_at)}, {show_duration(run.duration_ms)}"
    told = (version, owner, tried, parts, took)
    return text.append("  " + "  ".join(filter(None, told)), "dim")


def _outside(outside: Outside, look: _Look) -> Iterator[Text]:
    if outside.registered_by is not None:
        at = show_time(outside.registered_at)
        yield Text(f"from outside, registered by {plain(outside.registered_by)} at {at}")
    else:
        yield Text("from outside")
    for each in outside.arrived:
        name = look.short(each.uri)
        yield Text(f"arrived {name}  {show_bytes(each.size)}  {plain(each.mark)}", "dim")
    if outside.arrived_count > len(outside.arrived):
        yield Text(f"{outside.arrived_count:,} objects arrived in all", "dim")


def _deposit(deposit: Deposit) -> Iterator[Text]:
    who = plain(deposit.depositor or "somebody")
    yield Text(f"deposited by {who} to {plain(deposit.collection)} in batch {deposit.batch}")
    for each in deposit.objects:
        job = f" by ingest job {each.ingest_job}" if each.ingest_job else ""
        yield Text(f"stored as {plain(each.ark)} version {each.object_version}{job}", "dim")


def _short(uri: str) -> str:
    """A file without the place that its manifest tells: the attempt that wrote it."""
    return uri.partition("/attempt=")[2].partition("/")[2] or uri


def _contents(contents: Contents, look: _Look) -> Iterator[Text]:
    more = look.symbols.more
    shown = (
        f"{contents.state}: {counted(contents.total_count, 'file')}, {show_bytes(contents.bytes)}"
    )
    digest = contents.digest if look.name_width is None else f"{contents.digest[:16]}{more}"
    yield Text.assemble(shown, (f"  manifest sha-256:{digest}", "dim"))
    gone = contents.state if contents.state == "removed" else ""
    for file in contents.files:
        text = Text(f"{look.symbols.field} {look.short(_short(file.uri))}")
        size = show_bytes(file.size) if file.size is not None else ""
        yield text.append("  " + "  ".join(filter(None, (size, file.digest, gone))), "dim")
    if contents.error is not None:
        yield Text(plain(contents.error), "bold red")
    elif contents.total_count > len(contents.files):
        rest = contents.total_count - len(contents.files)
        yield Text(f"{more} and {rest:,} more; --files shows them", "dim")
