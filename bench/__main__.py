"""Measure and report: python -m bench [events|lineage|lists|all] [--quick] [--json FILE]."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from bench.filled import FilledDatabases
from bench.graph import JOBS
from bench.processes import DATABASES, Bench
from bench.profile import print_profiles
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


def main() -> None:
    """Measure what was asked for; a target that is missed is reported, not an error."""
    given = _arguments()
    # Whoever stops us must not leave servers and databases behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    console = Console(width=None if sys.stdout.isatty() else 120)
    report = new_report(quick=given.quick)
    say = Console(stderr=True, highlight=False).print
    with Bench() as bench:
        if given.what in ("events", "all"):
            _events(bench, given, report, say)
        if given.what != "events":
            _reading(bench, given, report, say)
    print_report(report, console)
    write_report(report, given.json)
    console.print(f"written to {given.json}")


def _events(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    plan = Plan(
        clients=tuple(given.clients),
        rounds=given.rounds or (1 if given.quick else 5),
        seconds=given.seconds or (1.0 if given.quick else 2.0),
        systems=tuple(given.systems),
    )
    report.ceilings = measure_ceiling(bench, plan, say)
    for database in given.databases:
        folder = Path(tempfile.mkdtemp(prefix="penstock-profile-")) if given.profile else None
        report.events.append(measure_throughput(bench, database, plan, say, folder))
        if folder is not None:
            print_profiles(folder)
            say(f"profiles of {database} in {folder}")
    report.targets += throughput_targets(report.events)


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
        "what", nargs="?", default="all", choices=("events", "lineage", "lists", "all")
    )
    parser.add_argument("--quick", action="store_true", help="short and small, to see that it runs")
    parser.add_argument("--json", type=Path, default=LATEST, metavar="FILE")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    parser.add_argument("--clients", nargs="+", type=int, default=CLIENTS)
    parser.add_argument("--systems", nargs="+", type=System, choices=list(System), default=MEASURED)
    parser.add_argument("--rounds", type=int, help="how often each system has its turn")
    parser.add_argument("--seconds", type=float, help="how long one turn lasts")
    parser.add_argument(
        "--profile", action="store_true", help="profile our server, which slows it down"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
