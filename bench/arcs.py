"""Arcs: lots per second through the engine, the cost of scheduling, and gaps."""

from collections.abc import Sequence

from msgspec import Struct

from bench.arcs_backfill import Refilling, measure_refilling
from bench.arcs_engine import Passing, measure_passing
from bench.arcs_gaps import GapTimes, measure_gaps
from bench.arcs_schedule import Scheduling, measure_scheduling
from bench.claims import Say
from bench.processes import Bench
from bench.targets import Target, at_least, below_ms

FLAT_RATIO_MIN = 0.8
BACKFILL_RATIO_MIN = 0.7
GAPS_MS_MAX = 1000


class Plan(Struct, frozen=True):
    """The size of the measurement."""

    lots: int = 400  # through the engine, in each round
    rounds: int = 3
    seconds: float = 1.0  # of bare claims, in each round
    finished: int = 1_000_000
    turns: int = 250  # of scheduling, for each number of lots at once
    gap_lots: int = 1_000_000
    gap_rounds: int = 5
    backfill_lots: int = 168  # the hours of a week, in each round


QUICK = Plan(
    lots=50,
    rounds=1,
    seconds=0.3,
    finished=5_000,
    turns=10,
    gap_lots=20_000,
    gap_rounds=1,
    backfill_lots=50,
)


class Arcs(Struct, frozen=True):
    """All results."""

    passing: list[Passing]
    scheduling: list[Scheduling]
    gaps: list[GapTimes]
    refilling: list[Refilling]


def measure_arcs(bench: Bench, databases: Sequence[str], plan: Plan, say: Say) -> Arcs:
    """Measure the engine and gaps on each database, and scheduling on PostgreSQL."""
    return Arcs(
        passing=[
            measure_passing(bench, database, plan.lots, plan.rounds, plan.seconds, say)
            for database in databases
        ],
        scheduling=(
            measure_scheduling(bench, plan.finished, plan.turns, say)
            if "postgresql" in databases
            else []
        ),
        gaps=[
            measure_gaps(bench, database, plan.gap_lots, plan.gap_rounds, say)
            for database in databases
        ],
        refilling=[
            measure_refilling(bench, database, plan.backfill_lots, plan.rounds, say)
            for database in databases
        ],
    )


def arc_targets(measured: Arcs) -> list[Target]:
    """Check that scheduling stays flat, gaps are found at once, and backfills keep up."""
    flat = [
        at_least(
            f"postgresql: scheduling {one.at_once} at once, {one.many:,} lots done",
            FLAT_RATIO_MIN,
            one.ratio,
        )
        for one in measured.scheduling
    ]
    quick = [
        below_ms(f"{one.database}: gaps among {one.lots:,} lots", GAPS_MS_MAX, one.with_causes_ms)
        for one in measured.gaps
    ]
    busy = [
        at_least(f"{one.database}: a backfill and fresh lots", BACKFILL_RATIO_MIN, one.ratio)
        for one in measured.refilling
    ]
    return flat + quick + busy
