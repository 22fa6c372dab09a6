"""Measure and report.

python -m bench [events|claims|flat|ingest|arcs|lineage|lists|page|all] [--quick]
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console

from bench import arcs, claims, page
from bench.arcs import arc_targets, measure_arcs
from bench.claims import Claimer, claim_targets, measure_claims
from bench.filled import FilledDatabases
from bench.flat import flat_targets, measure_flatness
from bench.graph import JOBS
from bench.ingest import QUICK, ingest_targets, measure_ingest
from bench.ingest import Plan as IngestPlan
from bench.page import measure_page, page_targets
from bench.processes import DATABASES, Bench
from bench.profile import print_profiles, profiled
from bench.reading import lineage_targets, list_targets, measure_lineage, measure_lists
from bench.report import LATEST, GraphSize, Report, new_report, print_report, write_report
from bench.server import System
from bench.throughput import (
    CLIENTS,
    MEASURED,
    Plan,
    Say,
    measure_ceiling,
    measure_throughput,
    throughput_targets,
)

DOMAINS = 100
DOMAINS_QUICK = 3
CALLS_QUICK = 10
FINISHED = 1_000_000
FINISHED_QUICK = 10_000


def main() -> None:
    """Run the requested benchmarks; report a missed target without an error."""
    given = _arguments()
    # A signal must not leave servers and databases behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    console = Console(width=None if sys.stdout.isatty() else 120)
    report = new_report(quick=given.quick)
    say = Console(stderr=True, highlight=False).print
    with Bench() as bench:
        if given.what in ("events", "all"):
            _events(bench, given, report, say)
        if given.what in ("claims", "all"):
            _claims(bench, given, report, say)
        if given.what in ("flat", "all"):
            _flat(bench, given, report, say)
        if given.what in ("ingest", "all"):
            _ingest(bench, given, report, say)
        if given.what in ("arcs", "all"):
            _arcs(bench, given, report, say)
        if given.what in ("lineage", "lists", "all"):
            _reading(bench, given, report, say)
        if given.what in ("page", "all"):
            _page(bench, given, report, say)
    print_report(report, console)
    write_report(report, given.json)
    console.print(f"written to {given.json}")


def _events(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    plan = Plan(
        clients=tuple(given.clients),
        rounds=given.rounds,
        seconds=given.seconds,
        systems=tuple(system for system in MEASURED if system in given.systems),
    )
    report.ceilings = measure_ceiling(bench, plan, say)
    for database in given.databases:
        with _profiles(given, database, say) as folder:
            report.events.append(measure_throughput(bench, database, plan, say, folder))
    report.targets += throughput_targets(report.events)


def _claims(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    plan = _claim_plan(given)
    for database in given.databases:
        with _profiles(given, database, say) as folder, profiled(folder):
            report.claims.append(measure_claims(bench, database, plan, say))
    report.targets += claim_targets(report.claims)


def _flat(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    finished = given.finished or (FINISHED_QUICK if given.quick else FINISHED)
    report.flat = measure_flatness(bench, finished, _claim_plan(given), say)
    report.targets += flat_targets(report.flat)


def _ingest(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    report.ingest = measure_ingest(bench, QUICK if given.quick else IngestPlan(), say)
    report.targets += ingest_targets(report.ingest)


def _arcs(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    plan = arcs.QUICK if given.quick else arcs.Plan()
    if given.finished:
        plan = msgspec.structs.replace(plan, finished=given.finished)
    report.arcs = measure_arcs(bench, given.databases, plan, say)
    report.targets += arc_targets(report.arcs)


def _page(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    report.page = measure_page(bench, page.QUICK if given.quick else page.Plan(), say)
    report.targets += page_targets(report.page)


def _claim_plan(given: argparse.Namespace) -> claims.Plan:
    systems = tuple(system for system in Claimer if system in given.systems)
    return claims.Plan(
        rounds=given.rounds,
        seconds=given.seconds,
        systems=systems,
        workers=tuple(given.workers),
        at_once=tuple(given.at_once),
    )


@contextmanager
def _profiles(given: argparse.Namespace, database: str, say: Say) -> Iterator[Path | None]:
    """Return a folder for profiles, if requested; print it at the end."""
    if not given.profile:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="penstock-profile-"))
    yield folder
    print_profiles(folder)
    say(f"profiles of {database} in {folder}")


def _reading(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    domains = DOMAINS_QUICK if given.quick else DOMAINS
    calls_max = CALLS_QUICK if given.quick else sys.maxsize
    report.graph_size = GraphSize(domains * JOBS, domains * JOBS, 3 * domains * JOBS)
    with FilledDatabases(domains, say) as filled:
        for database in given.databases:
            with bench.server(System.OURS, filled.url(database)) as server:
                if given.what in ("lineage", "all"):
                    say(f"{database} · lineage")
                    report.lineage += measure_lineage(database, server.port, domains, calls_max)
                if given.what in ("lists", "all"):
                    say(f"{database} · first pages")
                    report.lists += measure_lists(database, server.port, calls_max)
    report.targets += lineage_targets(report.lineage) + list_targets(report.lists)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=main.__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=("events", "claims", "flat", "ingest", "arcs", "lineage", "lists", "page", "all"),
    )
    parser.add_argument("--quick", action="store_true", help="short and small, to see that it runs")
    parser.add_argument("--json", type=Path, default=LATEST, metavar="FILE")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    parser.add_argument("--clients", nargs="+", type=int, default=CLIENTS)
    systems = tuple(dict.fromkeys([*MEASURED, *Claimer]))
    parser.add_argument("--systems", nargs="+", choices=systems, default=systems)
    parser.add_argument("--rounds", type=int, help="how often each system has its turn")
    parser.add_argument("--seconds", type=float, help="how long one turn lasts")
    parser.add_argument(
        "--profile", action="store_true", help="profile our server, which slows it down"
    )
    parser.add_argument("--workers", nargs="+", type=int, default=claims.WORKERS)
    parser.add_argument("--at-once", nargs="+", type=int, default=claims.AT_ONCE)
    parser.add_argument("--finished", type=int, help="how many lots the long history has")
    given = parser.parse_args()
    given.rounds = given.rounds or (1 if given.quick else 5)
    given.seconds = given.seconds or (1.0 if given.quick else 2.0)
    return given


if __name__ == "__main__":
    main()
