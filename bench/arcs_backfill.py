"""Lots of a backfill against fresh lots through one engine."""

import statistics
import tempfile
import time

from msgspec import Struct

from bench.claims import Say
from bench.ours import NAMESPACE, WHO, InProcess
from bench.processes import Bench
from penstock.arcs.commands import ApplyArc
from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.queries import find_arc
from penstock.arcs.spec import Arc, Input, Output, Workload
from penstock.arcs.workload.task import Context
from penstock.clock import HOUR, parse_time
from penstock.locks.commands import RegisterLots
from penstock.objects import Objects
from penstock.operations.backfills.service import Backfills
from penstock.schema.lot_ids import Interval
from penstock.schema.operations import Scope
from penstock.states import BackfillState

AT_ONCE = 8
WORK_SECONDS = 0.02
ARC = Arc(
    name="refill",
    namespace=NAMESPACE,
    inputs=(Input(dataset="hours"),),
    outputs=(Output(dataset="refilled", interval=Interval.HOUR),),
    workload=Workload(function="bench.arcs_backfill:work_shortly"),
    running_max=AT_ONCE,
)
_START = parse_time("2026-01-01T00:00:00Z")
_LOOK_SECONDS = 0.02


class Refilling(Struct, frozen=True):
    """Lots per second of each kind: medians of rounds, and the median of the ratios."""

    database: str
    lots: int  # in each round
    fresh_per_second: float
    backfill_per_second: float
    ratio: float


def work_shortly(context: Context) -> None:
    """Sleep briefly and write nothing."""
    time.sleep(WORK_SECONDS)
    context.empty()


def measure_refilling(bench: Bench, database: str, lots: int, rounds: int, say: Say) -> Refilling:
    """Run fresh lots and a backfill of the same lots in turns on one engine."""
    ours = InProcess(bench.empty_database(database))
    plane = ours.plane
    rates: list[tuple[float, float]] = []
    try:
        plane.catalog.submit(ApplyArc(WHO, ARC)).result()
        backfills = Backfills(plane.catalog, plane.clock)
        objects = Objects.open(tempfile.mkdtemp(dir=bench.folder))
        with (
            LocalThreads(AT_ONCE, "task") as executor,
            ArcWorker(
                plane.catalog, plane.database, objects, executor, plane.clock,
                owner=WHO, concurrency=AT_ONCE, steppers=(backfills.step_all,),
            ),
        ):  # fmt: skip
            for number in range(rounds):
                start = _START + number * lots * HOUR
                names = tuple(Interval.HOUR.lots(start, start + lots * HOUR))
                rates.append((_fresh(ours, names), _backfill(ours, names)))
                say(
                    f"{database} · arcs, round {number + 1} · fresh {rates[-1][0]:,.0f} lots/s, "
                    f"backfill {rates[-1][1]:,.0f}/s"
                )
    finally:
        ours.close()
    return Refilling(
        database=database,
        lots=lots,
        fresh_per_second=statistics.median(fresh for fresh, _ in rates),
        backfill_per_second=statistics.median(backfill for _, backfill in rates),
        ratio=statistics.median(backfill / fresh for fresh, backfill in rates),
    )


def _fresh(ours: InProcess, lots: tuple[str, ...]) -> float:
    plane = ours.plane
    began = time.perf_counter()
    plane.catalog.submit(RegisterLots(NAMESPACE, "hours", lots, WHO)).result()
    with plane.catalog.read() as tx:
        job_id = find_arc(tx, NAMESPACE, ARC.name).job_id
    while True:
        with plane.catalog.read() as tx:
            ready = tx.fetch("arcs_with_ready_lots", ids=[job_id])
            if not ready and not tx.fetch("running_lots"):
                return len(lots) / (time.perf_counter() - began)
        time.sleep(_LOOK_SECONDS)


def _backfill(ours: InProcess, lots: tuple[str, ...]) -> float:
    backfills = Backfills(ours.plane.catalog, ours.plane.clock)
    began = time.perf_counter()
    started = backfills.start(
        WHO, "bench", NAMESPACE, ARC.name, lots[0], lots[-1],
        scope=Scope.ALL, max_running=AT_ONCE,
    )  # fmt: skip
    while backfills.status(started.id).state is not BackfillState.DONE:
        time.sleep(_LOOK_SECONDS)
    return len(lots) / (time.perf_counter() - began)
