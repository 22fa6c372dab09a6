"""Results as tables for people and as JSON for machines."""

import os
import platform
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.arcs import Arcs
from bench.arcs_backfill import Refilling
from bench.arcs_engine import Passing
from bench.arcs_gaps import GapTimes
from bench.arcs_schedule import Scheduling
from bench.claims import Claimer, Claims
from bench.flat import Flat
from bench.ingest import Ingest
from bench.ingest_files import Files
from bench.ingest_queue import Passed, Waiting
from bench.page import PageTimes, Seen
from bench.reading import Timing
from bench.targets import Target
from bench.throughput import Ceiling, Throughput

_CLAIMERS: dict[str, str] = {
    Claimer.OURS: "ours, in process",
    Claimer.TWO_CALLS: "ours, in two calls",
    Claimer.HTTP: "ours, over HTTP",
    Claimer.RAW: "raw SKIP LOCKED",
    Claimer.PROCRASTINATE: "procrastinate",
    Claimer.PGQUEUER: "pgqueuer, its worker",
    Claimer.PGQUEUER_CALLS: "pgqueuer, its calls",
}
LATEST = Path(__file__).resolve().parent / "results" / "latest.json"


class Machine(Struct, frozen=True):
    """The machine of the measurement."""

    system: str
    processor: str
    cores: int
    memory_gb: float
    load_average: tuple[float, float, float]
    python: str
    sqlite: str


class GraphSize(Struct, frozen=True):
    """The size of the catalog."""

    datasets: int
    jobs: int
    edges: int


class Report(Struct, kw_only=True):
    """All results of one run."""

    at: str
    quick: bool
    machine: Machine
    ceilings: list[Ceiling] = msgspec.field(default_factory=list)
    events: list[Throughput] = msgspec.field(default_factory=list)
    claims: list[Claims] = msgspec.field(default_factory=list)
    flat: list[Flat] = msgspec.field(default_factory=list)
    ingest: Ingest | None = None
    arcs: Arcs | None = None
    graph_size: GraphSize | None = None
    lineage: list[Timing] = msgspec.field(default_factory=list)
    lists: list[Timing] = msgspec.field(default_factory=list)
    page: PageTimes | None = None
    targets: list[Target] = msgspec.field(default_factory=list)


def new_report(*, quick: bool) -> Report:
    """Return an empty report with place and time."""
    return Report(at=datetime.now(UTC).isoformat(timespec="seconds"), quick=quick, machine=_here())


def _here() -> Machine:
    return Machine(
        platform.platform(),
        _processor(),
        os.cpu_count() or 1,
        round(psutil.virtual_memory().total / 1e9, 1),
        os.getloadavg(),
        platform.python_version(),
        sqlite3.sqlite_version,
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def write_report(report: Report, path: Path) -> None:
    """Write the report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    path.write_bytes(text + b"\n")


def print_report(report: Report, console: Console) -> None:
    """Print the report as tables."""
    machine = report.machine
    console.print(
        f"{machine.cores} cores {machine.processor}, {machine.memory_gb} GB, Python "
        f"{machine.python}, load {machine.load_average[0]:.1f} before it began"
    )
    if report.ceilings:
        console.print(_ceilings(report.ceilings))
    for measured in report.events:
        console.print(_events(measured))
        console.print(_memory(measured))
        console.print(
            f"{measured.acknowledged:,} events acknowledged by ours, {measured.kept:,} found "
            "afterwards"
        )
    for claims in report.claims:
        console.print(_claims(claims))
    if report.flat:
        console.print(_flat(report.flat))
    if report.ingest is not None:
        console.print(_passed(report.ingest.passed))
        console.print(_waiting(report.ingest.waiting))
        console.print(_files(report.ingest.files))
    if report.arcs is not None:
        console.print(_passing(report.arcs.passing))
        if report.arcs.scheduling:
            console.print(_scheduling(report.arcs.scheduling))
        console.print(_gaps(report.arcs.gaps))
        console.print(_refilling(report.arcs.refilling))
    size = report.graph_size
    if size is not None:
        console.print(
            f"over {size.datasets:,} datasets, {size.jobs:,} jobs and {size.edges:,} edges:"
        )
    if report.lineage:
        console.print(_timings("Lineage through HTTP", report.lineage))
    if report.lists:
        console.print(_timings("First pages through HTTP", report.lists))
    if report.page is not None:
        much = f"{report.page.lots:,} lots and {report.page.nodes:,} nodes"
        console.print(_page(f"First views of the page in ms, {much}", report.page.views))
        console.print(_page("The page's answers to a hand in ms", report.page.answers))
    if report.targets:
        console.print(_targets(report.targets))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(columns[0])
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table


def _ceilings(ceilings: list[Ceiling]) -> Table:
    table = _table("Without a database, requests per second", "clients", "load alone", "edge")
    for one in ceilings:
        table.add_row(
            str(one.clients), f"{one.load_per_second:,.0f}", f"{one.edge_per_second:,.0f}"
        )
    return table


def _events(measured: Throughput) -> Table:
    table = _table(
        f"Acknowledged events per second, {measured.database}",
        "clients", "system", "events/s", "p50 ms", "p99 ms", "CPU µs", "database", "ours is",
        "by CPU", "refused",
    )  # fmt: skip
    ratios = {(one.clients, one.against): one for one in measured.ratios}
    clients = 0
    for cell in measured.cells:
        ratio = ratios.get((cell.clients, cell.system))
        table.add_row(
            str(cell.clients) if cell.clients != clients else "",
            cell.system,
            f"{cell.per_second:,.0f}",
            f"{cell.p50_ms:.2f}",
            f"{cell.p99_ms:.2f}",
            f"{cell.server_cpu_us:,.0f}",
            f"{cell.postgres_cpu_us:,.0f}" if cell.postgres_cpu_us else "",
            f"{ratio.ratio:.2f} ×" if ratio else "",
            f"{ratio.cpu:.2f} ×" if ratio else "",
            str(sum(cell.refused.values()) or ""),
        )
        clients = cell.clients
    return table


def _memory(measured: Throughput) -> Table:
    table = _table(
        f"Memory of the server in MB, {measured.database}",
        "system", "start", "middle", "end", "most",
    )  # fmt: skip
    for one in measured.memory:
        held = (one.start, one.middle, one.end, one.most)
        table.add_row(one.system, *(f"{value:.0f}" for value in held))
    return table


def _claims(measured: Claims) -> Table:
    table = _table(
        f"Claims per second, each with its completion, {measured.database}",
        "at once", "workers", "system", "claims/s", "p50 ms", "CPU µs", "database", "ours is",
        "by CPU",
    )  # fmt: skip
    ratios = {(one.at_once, one.workers, one.against): one for one in measured.ratios}
    kind = (0, 0)
    for cell in measured.cells:
        ratio = ratios.get((cell.at_once, cell.workers, cell.system))
        same = (cell.at_once, cell.workers) == kind
        table.add_row(
            "" if same else str(cell.at_once),
            "" if same else str(cell.workers),
            _CLAIMERS[cell.system],
            f"{cell.per_second:,.0f}",
            f"{cell.p50_ms:.2f}" if cell.p50_ms else "",
            f"{cell.cpu_us:,.0f}",
            f"{cell.postgres_cpu_us:,.0f}" if cell.postgres_cpu_us else "",
            f"{ratio.ratio:.2f} ×" if ratio else "",
            f"{ratio.cpu:.2f} ×" if ratio else "",
        )
        kind = (cell.at_once, cell.workers)
    return table


def _flat(measured: list[Flat]) -> Table:
    table = _table(
        f"Per second, with {measured[0].finished:,} finished lots and with none, postgresql",
        "", "none", "with them", "ratio",
    )  # fmt: skip
    for one in measured:
        table.add_row(
            one.what,
            f"{one.without_per_second:,.0f}",
            f"{one.with_per_second:,.0f}",
            f"{one.ratio:.2f} ×",
        )
    return table


def _passed(measured: list[Passed]) -> Table:
    table = _table(
        f"{measured[0].jobs:,} ingest jobs in one batch through all stages, per second",
        "store", "transitions", "CPU µs", "jobs made", "the bare store", "", "memory MB", "most",
    )  # fmt: skip
    for one in measured:
        for number, bare in enumerate(one.bare):
            row = [one.store, f"{one.per_second:,.0f}", f"{one.cpu_us:,.0f}"]
            row += [f"{one.made_per_second:,.0f}"]
            memory = [f"{one.memory_start_mb:.0f}", f"{one.memory_most_mb:.0f}"]
            row, memory = ([""] * 4, [""] * 2) if number else (row, memory)
            table.add_row(*row, bare.what, f"{bare.per_second:,.0f}", *memory)
    return table


def _waiting(measured: list[Waiting]) -> Table:
    table = _table(
        "Claiming and changing an ingest job, 64 at a time",
        "store", "jobs waiting", "µs", "ratio",
    )  # fmt: skip
    for one in measured:
        table.add_row(one.store, f"{one.waiting:,}", f"{one.job_us:,.0f}", f"{one.ratio:.2f} ×")
    return table


def _files(measured: Files) -> str:
    return (
        f"{measured.files:,} files of {measured.file_bytes:,} bytes over HTTP, stored and recorded "
        f"on sqlite: {measured.per_second:,.0f} jobs/s, {measured.cpu_ms:.1f} ms of CPU each"
    )


def _passing(measured: list[Passing]) -> Table:
    table = _table(
        "Lots per second through an arc that does nothing, and claims alone beside them",
        "database", "lots/s", "CPU µs", "database's", "claims/s", "CPU µs", "ratio",
    )  # fmt: skip
    for one in measured:
        table.add_row(
            one.database,
            f"{one.per_second:,.0f}",
            f"{one.cpu_us:,.0f}",
            f"{one.postgres_cpu_us:,.0f}" if one.postgres_cpu_us else "",
            f"{one.claims_per_second:,.0f}",
            f"{one.claims_cpu_us:,.0f}",
            f"{one.ratio:.2f} ×",
        )
    return table


def _scheduling(measured: list[Scheduling]) -> Table:
    first = measured[0]
    table = _table(
        "µs to claim and publish a lot of an arc, postgresql",
        "at once", f"{first.few:,} lots done", f"{first.many:,} lots done", "ratio",
    )  # fmt: skip
    for one in measured:
        times = (f"{one.with_few_us:,.0f}", f"{one.with_many_us:,.0f}")
        table.add_row(str(one.at_once), *times, f"{one.ratio:.2f} ×")
    return table


def _gaps(measured: list[GapTimes]) -> Table:
    table = _table(
        f"Gaps among {measured[0].lots:,} lots in ms, and a bare scan beside it",
        "database", "ranges", "with causes", "without", "bare scan",
    )  # fmt: skip
    for one in measured:
        times = (one.with_causes_ms, one.without_causes_ms, one.scan_ms)
        table.add_row(one.database, f"{one.ranges:,}", *(f"{value:,.0f}" for value in times))
    return table


def _refilling(measured: list[Refilling]) -> Table:
    table = _table(
        "Lots per second of a backfill, and of fresh lots beside it",
        "database", "backfill", "fresh", "ratio",
    )  # fmt: skip
    for one in measured:
        rates = (one.backfill_per_second, one.fresh_per_second)
        table.add_row(one.database, *(f"{rate:,.0f}" for rate in rates), f"{one.ratio:.2f} ×")
    return table


def _timings(title: str, timings: list[Timing]) -> Table:
    databases = list(dict.fromkeys(one.database for one in timings))
    columns = [f"{database} {value}" for database in databases for value in ("median ms", "p95")]
    table = _table(title, "", *columns, "answer kB", "nodes")
    for what in dict.fromkeys(one.what for one in timings):
        found = [one for one in timings if one.what == what]
        times = [f"{value:.2f}" for one in found for value in (one.median_ms, one.p95_ms)]
        nodes = f"{found[0].nodes:,}" if found[0].nodes else ""
        table.add_row(what, *times, f"{found[0].kilobytes:,.0f}", nodes)
    return table


def _page(title: str, measured: list[Seen]) -> Table:
    table = _table(title, "", "median", "worst", "× the empty page")
    limit = measured[0].median_ms
    for one in measured:
        ratio = f"{one.median_ms / limit:.1f} ×" if limit else ""
        table.add_row(one.what, f"{one.median_ms:,.0f}", f"{one.worst_ms:,.0f}", ratio)
    return table


def _targets(found: list[Target]) -> Table:
    table = _table("Targets", "what", "wanted", "reached", "")
    for one in found:
        mark = "[green]met[/]" if one.met else "[red]missed[/]"
        table.add_row(one.what, one.wanted, one.reached, mark)
    return table
