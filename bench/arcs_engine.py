"""Lots through an empty arc with the real engine, against bare claims."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count as counting
from itertools import islice

from msgspec import Struct

from bench.claims import Say, Stock, tuned_interpreter
from bench.graph import FOLDER
from bench.ours import NAMESPACE, WHO, InProcess
from bench.processes import Bench
from bench.turns import Turn
from penstock import ids
from penstock.arcs.commands import ApplyArc
from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.spec import Arc, Input, Output, Workload
from penstock.arcs.workload.task import Context
from penstock.db import open_database
from penstock.locks.commands import RegisterLots
from penstock.objects import Objects

AT_ONCE = 8  # lots that the engine runs at once, and workers that claim
ARC = Arc(
    name="pass",
    namespace=NAMESPACE,
    inputs=(Input(dataset="ticks"),),
    outputs=(Output(dataset="passed"),),
    workload=Workload(function="bench.arcs_engine:nothing"),
    running_max=AT_ONCE,
)
_JOB_ID = ids.job_id(NAMESPACE, ARC.name)
_LOOK_SECONDS = 0.02


class Passing(Struct, frozen=True):
    """The results of one database: medians of rounds with a turn for each side."""

    database: str
    lots: int  # in each round
    per_second: float
    cpu_us: float  # per lot; engine, writer and tasks
    postgres_cpu_us: float
    claims_per_second: float  # claimed and completed only
    claims_cpu_us: float
    ratio: float  # the median over rounds
    rounds: list[float]


class _Seen(Struct, frozen=True):
    """One turn, and the CPU time per lot."""

    turn: Turn
    cpu_us: float
    postgres_cpu_us: float


def nothing(context: Context) -> None:
    """A workload that writes nothing."""
    context.empty()


class PassingLots:
    """A plane with the arc, an object store in a folder, and waiting lots."""

    def __init__(self, ours: InProcess, url: str, folder: str) -> None:
        self._ours = ours
        self._objects = Objects.open(folder)
        self._database = open_database(url, extra=[FOLDER])
        self._names = (f"tick-{number:08d}" for number in counting())
        self._submit = ours.plane.catalog.submit
        self._submit(ApplyArc(WHO, ARC)).result()

    def fill(self, count: int) -> None:
        """Add waiting lots."""
        lots = tuple(islice(self._names, count))
        self._submit(RegisterLots(NAMESPACE, "ticks", lots, WHO)).result()

    def work(self) -> Turn:
        """Run an engine until every waiting lot is published with its state keys."""
        plane = self._ours.plane
        lots = self.left()
        began = time.perf_counter()
        with (
            LocalThreads(AT_ONCE, "task") as executor,
            Engine(
                plane.catalog, self._objects, executor, plane.clock, owner=WHO, concurrency=AT_ONCE
            ),
        ):
            while self.left():
                time.sleep(_LOOK_SECONDS)
        return Turn(lots, time.perf_counter() - began, 0.0, ran_out=True)

    def left(self) -> int:
        """Return the number of unfinished lots."""
        with self._database.read() as tx:
            row = tx.fetch_one("lots_left", job_id=_JOB_ID)
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        """Close the plane."""
        self._database.close()


@contextmanager
def passing_lots(bench: Bench, database: str) -> Iterator[tuple[PassingLots, Stock]]:
    """Prepare a new database with lots for the engine and for bare claims."""
    url = bench.empty_database(database)
    folder = tempfile.mkdtemp(dir=bench.folder)
    with (
        tuned_interpreter(),
        closing(InProcess(url)) as ours,
        closing(PassingLots(ours, url, folder)) as lots,
    ):
        yield lots, Stock(ours, url)


def measure_passing(
    bench: Bench, database: str, lots: int, rounds: int, seconds: float, say: Say
) -> Passing:
    """Run the engine and bare claims in turns on one database."""
    postgres = bench.postgres_cpu_seconds if database == "postgresql" else lambda: 0.0
    seen: list[tuple[_Seen, _Seen]] = []
    with passing_lots(bench, database) as (passing, claims):
        for number in range(rounds):
            passing.fill(lots)
            claims.prepare(1, AT_ONCE, seconds)
            engine = _costed(passing.work, postgres)
            bare = _costed(lambda: claims.work(1, AT_ONCE, seconds), postgres)
            seen.append((engine, bare))
            say(
                f"{database} · arcs, round {number + 1} · engine {engine.turn.rate:,.0f} lots/s, "
                f"{engine.cpu_us:,.0f} µs · bare claims {bare.turn.rate:,.0f}/s"
            )
    engines, bares = zip(*seen, strict=True)
    return Passing(
        database=database,
        lots=lots,
        per_second=statistics.median(one.turn.rate for one in engines),
        cpu_us=statistics.median(one.cpu_us for one in engines),
        postgres_cpu_us=statistics.median(one.postgres_cpu_us for one in engines),
        claims_per_second=statistics.median(one.turn.rate for one in bares),
        claims_cpu_us=statistics.median(one.cpu_us for one in bares),
        ratio=statistics.median(ours.turn.rate / (bare.turn.rate or 1.0) for ours, bare in seen),
        rounds=[one.turn.rate for one in engines],
    )


def _costed(work: Callable[[], Turn], postgres: Callable[[], float]) -> _Seen:
    used, theirs = time.process_time(), postgres()
    turn = work()
    each = 1e6 / max(turn.claims, 1)
    return _Seen(turn, each * (time.process_time() - used), each * (postgres() - theirs))
