"""The cost of claims with a long history against none."""

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from msgspec import Struct

from bench.claims import Plan, Say, Stock, tuned_interpreter
from bench.history import write_history
from bench.ours import JOB, NAMESPACE, InProcess
from bench.processes import Bench
from bench.targets import Target, at_least
from penstock import ids
from penstock.locks.rows import WorkRow

FLAT_RATIO_MIN = 0.8
FINDS = 400  # in each round
_JOB_ID = ids.job_id(NAMESPACE, JOB)


class Flat(Struct, frozen=True):
    """One operation per second, without and with history; medians of rounds."""

    what: str
    finished: int  # lots in the history
    without_per_second: float
    with_per_second: float
    ratio: float  # median over adjacent rounds


def measure_flatness(bench: Bench, finished: int, plan: Plan, say: Say) -> list[Flat]:
    """Repeat the same on two PostgreSQL databases, in turns."""
    without, having = bench.empty_database("postgresql"), bench.empty_database("postgresql")
    say(f"postgresql · writing a history of {finished:,} finished lots")
    write_history(having, finished)
    with (
        tuned_interpreter(),
        closing(InProcess(without)) as empty,
        closing(InProcess(having)) as full,
    ):
        sides = {empty: Stock(empty, without), full: Stock(full, having)}
        return [
            Flat(what, finished, *_medians(rates))
            for at_once in plan.at_once
            for what, rates in _rounds(sides, at_once, plan, say).items()
        ]


def _rounds(
    sides: Mapping[InProcess, Stock], at_once: int, plan: Plan, say: Say
) -> dict[str, list[list[float]]]:
    """Return the rates of both sides, round by round."""
    workers = max(plan.workers)
    claiming, finding = f"claims, {at_once} at once, workers {workers}", f"finding {at_once}"
    rates: dict[str, list[list[float]]] = {claiming: [], finding: []}
    order = list(sides)
    for number in range(plan.rounds):
        for stock in sides.values():
            stock.prepare(at_once, workers, plan.seconds)
        found = _finds_per_second(order, at_once)
        # The second side may find the disk busy with the writes of the first.
        turns = order if number % 2 == 0 else order[::-1]
        done = {side: sides[side].work(at_once, workers, plan.seconds).rate for side in turns}
        rates[finding].append(found)
        rates[claiming].append([done[side] for side in order])
        shown = [
            f"{name} {done[side]:,.0f}/s, finding {finds:,.0f}/s"
            for name, side, finds in zip(("without", "with"), order, found, strict=True)
        ]
        say(f"flat · {at_once} at once, round {number + 1} · " + " · ".join(shown))
    return rates


def _finds_per_second(sides: Sequence[InProcess], count: int) -> list[float]:
    """Measure lookups of ready work per second, as the writer does them."""
    took: list[list[float]] = [[] for _ in sides]
    for _ in range(FINDS):
        # Alternate the order: load on the machine then affects both sides alike.
        for side, times in zip(sides, took, strict=True):
            began = time.perf_counter()
            with side.plane.database.read(by_key=True) as tx:
                rows = tx.rows(WorkRow, "ready_work", job_id=_JOB_ID, most=count)
            times.append(time.perf_counter() - began)
            assert len(rows) == count, "lots were registered, and nobody claims them now"
    return [1 / statistics.median(times) for times in took]


def _medians(rates: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    without, having = zip(*rates, strict=True)
    ratio = statistics.median(its / (other or 1.0) for other, its in rates)
    return statistics.median(without), statistics.median(having), ratio


def flat_targets(measured: Sequence[Flat]) -> list[Target]:
    """Check that every rate stays."""
    return [
        at_least(
            f"postgresql: {one.what}, with {one.finished:,} finished lots",
            FLAT_RATIO_MIN,
            one.ratio,
        )
        for one in measured
    ]
