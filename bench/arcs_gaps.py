"""Gaps of a dataset with very many lots, against a bare scan of its rows."""

import statistics
import time
from collections.abc import Callable

from msgspec import Struct

from bench.claims import Say
from bench.graph import FOLDER
from bench.ours import NAMESPACE, WHO
from bench.processes import Bench
from bench.vacuum import vacuum
from penstock import ids
from penstock.arcs.commands import ApplyArc
from penstock.arcs.spec import Arc, Input, Output, Workload
from penstock.clock import DAY, Micros, parse_time
from penstock.config import Settings
from penstock.db import Database, open_database
from penstock.locks.gaps.gaps import load_gaps
from penstock.locks.gaps.spans import Span
from penstock.locks.rows import StatusRow
from penstock.lots.rows import ManifestRow
from penstock.plane import Plane
from penstock.schema.catalog import DatasetRole
from penstock.schema.gaps import Gaps
from penstock.schema.lot_ids import Interval
from penstock.schema.lots import Status
from penstock.states import ManifestState

ODD_EVERY = 10_000  # one lot in so many is missing, and one is empty
INTERVAL = Interval.MINUTES_5
START: Micros = parse_time("2017-01-01T00:00:00Z")
ARC = Arc(
    name="make",
    namespace=NAMESPACE,
    inputs=(Input(dataset="ticks"),),
    outputs=(Output(dataset="made", interval=INTERVAL),),
    workload=Workload(function="bench.arcs_engine:nothing"),
)
_DATASET_ID = ids.dataset_id(NAMESPACE, "made")
_JOB_ID = ids.job_id(NAMESPACE, ARC.name)
_DAYS_AT_ONCE = 500


class GapTimes(Struct, frozen=True):
    """The time to list the gaps, and to read all rows once; medians."""

    database: str
    lots: int
    ranges: int
    with_causes_ms: float
    without_causes_ms: float
    scan_ms: float


def measure_gaps(bench: Bench, database: str, lots: int, rounds: int, say: Say) -> GapTimes:
    """Write the lots of one dataset, then list its gaps."""
    url = bench.empty_database(database)
    say(f"{database} · writing {lots:,} lots to find gaps in")
    span = whole_days(lots)
    write_lots(url, span)
    opened = open_database(url, extra=[FOLDER])
    try:
        found = find_gaps(opened, span, with_causes=False)
        wanted = {
            "with": lambda: find_gaps(opened, span, with_causes=True),
            "without": lambda: find_gaps(opened, span, with_causes=False),
            "scan": lambda: scan(opened),
        }
        took: dict[str, list[float]] = {name: [] for name in wanted}
        for _ in range(rounds):
            for name, ask in wanted.items():
                took[name].append(_milliseconds(ask))
    finally:
        opened.close()
    medians = {name: statistics.median(times) for name, times in took.items()}
    say(f"{database} · gaps " + " · ".join(f"{name} {ms:,.0f} ms" for name, ms in medians.items()))
    return GapTimes(
        database,
        span.count,
        len(found.ranges),
        medians["with"],
        medians["without"],
        medians["scan"],
    )


def write_lots(url: str, span: Span) -> None:
    """Fill an empty database with the lots of a dataset, most of them present."""
    with Plane.open(Settings(database=url), lambda: START) as plane:
        plane.catalog.submit(ApplyArc(WHO, ARC)).result()
    first, *others = span.stretches()
    days = [each.first[:8] for each in others]
    names = list(span.lots())
    of_day = {"dataset_id": _DATASET_ID, "first": first.first, "last": first.last}
    database = open_database(url, extra=[FOLDER])
    try:
        with database.write() as tx:
            tx.write("put_lot_status", [_status(lot) for lot in first.lots()])
            tx.write("put_lot_manifests", [_manifest(lot) for lot in first.lots()])
        for at in range(0, len(days), _DAYS_AT_ONCE):
            with database.write() as tx:
                for table in ("status", "manifests"):
                    some = days[at : at + _DAYS_AT_ONCE]
                    tx.execute(f"repeat_{table}", days=some, **of_day)
        with database.write() as tx:
            lost, empty = (names[ODD_EVERY // part :: ODD_EVERY] for part in (2, 3))
            tx.execute("lose_lots", dataset_id=_DATASET_ID, lots=lost)
            tx.execute("empty_lots", dataset_id=_DATASET_ID, lots=empty)
    finally:
        database.close()
    vacuum(url)


def _version(lot: str) -> str:
    return ids.derived_id("version", lot)


def _status(lot: str) -> StatusRow:
    version = _version(lot)
    return StatusRow(
        _DATASET_ID, lot, DatasetRole.OUTPUT, _JOB_ID, Status.READY, "", version, version, START
    )


def _manifest(lot: str) -> ManifestRow:
    version = _version(lot)
    state = ManifestState.COMPLETE
    return ManifestRow(version, _DATASET_ID, lot, state, "key", 1, 1, "", version, START)


def find_gaps(database: Database, span: Span, *, with_causes: bool) -> Gaps:
    """List the gaps of all lots."""
    with database.read() as tx:
        return load_gaps(
            tx, NAMESPACE, "made", span.start, span.end, span.end, with_causes=with_causes
        )


def scan(database: Database) -> int:
    """Read every lot once, and count the known ones."""
    with database.read() as tx:
        return sum(int(row[1]) for row in tx.fetch("scan_lots", dataset_id=_DATASET_ID))


def whole_days(lots: int) -> Span:
    """Return the number of days that have so many lots."""
    return Span(INTERVAL, START, START + -(-lots * INTERVAL.length // DAY) * DAY)


def _milliseconds(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return 1000 * (time.perf_counter() - began)
