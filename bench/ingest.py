"""Ingest: job transitions per second against the limit of each store, and real files."""

import multiprocessing
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from bench.ingest_files import Files, ingest_files
from bench.ingest_queue import Passed, Place, Waiting, cost_of_waiting, pass_through
from bench.processes import Bench
from bench.targets import Target, at_least

STORES = ("sqlite", "postgresql", "zookeeper")
FLAT_RATIO_MIN = 0.8

Say = Callable[[str], None]
T = TypeVar("T")


class Plan(Struct, frozen=True):
    """The size of the measurement."""

    jobs: int = 10_000
    waiting: tuple[int, ...] = (1_000, 10_000, 100_000)
    files: int = 1_000
    seconds: float = 1.5  # for each bare store
    stores: tuple[str, ...] = STORES


QUICK = Plan(jobs=1_000, waiting=(1_000, 2_000), files=50, seconds=0.3)


class Ingest(Struct, frozen=True):
    """All results."""

    passed: list[Passed]
    waiting: list[Waiting]
    files: Files


def measure_ingest(bench: Bench, plan: Plan, say: Say) -> Ingest:
    """Measure each store in its own process, so that memory is measured apart."""
    passed: list[Passed] = []
    waiting: list[Waiting] = []
    for store in plan.stores:
        say(f"{store} · {plan.jobs:,} jobs through all stages")
        passed.append(_apart(pass_through, _place(bench, store), plan.jobs, plan.seconds))
        say(f"{store} · {passed[-1].per_second:,.0f} transitions/s")
    for store in plan.stores:
        say(f"{store} · claims while {' / '.join(f'{n:,}' for n in plan.waiting)} jobs wait")
        found = _apart(cost_of_waiting, {n: _place(bench, store) for n in plan.waiting})
        say(f"{store} · " + " / ".join(f"{one.job_us:,.0f} µs" for one in found))
        waiting += found
    say(f"sqlite · {plan.files:,} files over HTTP")
    place = _place(bench, "sqlite")
    files = _apart(ingest_files, place.database, Path(place.folder), plan.files)
    return Ingest(passed, waiting, files)


def ingest_targets(measured: Ingest) -> list[Target]:
    """Check the share of the store's limit, and the cost with many waiting jobs."""
    faster = [
        at_least(
            f"{one.store}: transitions against {one.bare[0].what}",
            1.0,
            one.per_second / (one.bare[0].per_second or 1.0),
        )
        for one in measured.passed
    ]
    few = min(one.waiting for one in measured.waiting)
    flat = [
        at_least(
            f"{one.store}: a claim with {one.waiting:,} jobs waiting, not {few:,}",
            FLAT_RATIO_MIN,
            one.ratio,
        )
        for one in measured.waiting
        if one.waiting != few
    ]
    return faster + flat


def _place(bench: Bench, store: str) -> Place:
    database = bench.empty_database("postgresql" if store == "postgresql" else "sqlite")
    queue = bench.empty_queue() if store == "zookeeper" else "database"
    return Place(store, database, queue, tempfile.mkdtemp(dir=bench.folder))


def _apart(measure: Callable[..., T], *args: object) -> T:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(measure, *args).result()
