"""Measure and report: python -m bench [events|lineage|lists|all] [--quick] [--json FILE]."""

import argparse
import tempfile
from pathlib import Path

from rich.console import Console

from bench.processes import DATABASES, Bench
from bench.profile import print_profiles
from bench.report import LATEST, Report, new_report, print_report, write_report
from bench.server import System
from bench.throughput import (
    CLIENTS,
    MEASURED,
    Plan,
    Say,
    measure_ceiling,
    measure_throughput,
    targets,
)


def main() -> None:
    """Measure what was asked for; a target that is missed is reported, not an error."""
    given = _arguments()
    console = Console()
    report = new_report(quick=given.quick)
    say = Console(stderr=True, highlight=False).print
    with Bench() as bench:
        if given.what in ("events", "all"):
            _events(bench, given, report, say)
    print_report(report, console)
    write_report(report, given.json)
    console.print(f"written to {given.json}")


def _events(bench: Bench, given: argparse.Namespace, report: Report, say: Say) -> None:
    plan = Plan(
        clients=tuple(given.clients),
        rounds=given.rounds or (1 if given.quick else 3),
        seconds=given.seconds or (1.0 if given.quick else 3.0),
        systems=tuple(given.systems),
    )
    report.ceilings = measure_ceiling(bench, plan, say)
    for database in given.databases:
        folder = Path(tempfile.mkdtemp(prefix="penstock-profile-")) if given.profile else None
        report.events.append(measure_throughput(bench, database, plan, say, folder))
        if folder is not None:
            print_profiles(folder)
            say(f"profiles of {database} in {folder}")
    report.targets = targets(report.events)


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
