"""Claims per second: Penstock, other queues on PostgreSQL, and the raw statement."""

import gc
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum

from msgspec import Struct

from bench.ours import InProcess, InTwoCalls, OverHttp
from bench.peers.pgqueuer_peer import Pgqueuer, PgqueuerCalls
from bench.peers.procrastinate_peer import Procrastinate
from bench.peers.skip_locked import SkipLocked
from bench.processes import Bench
from bench.targets import Target, above, at_least
from bench.turns import Queue, Turn
from bench.vacuum import vacuum
from penstock.server.serve import tune_interpreter

WORKERS = (1, 8)
AT_ONCE = (1, 100)
# Work that waits before a turn, for each second of it, while the pace is unknown: so much for each
# claim of a batch, up to a limit.
WAITING_EACH = 1_500
WAITING_MAX = 12_000
SPARE = 1.3  # factor of the work done in the last turn

Say = Callable[[str], None]


class Claimer(StrEnum):
    """A system under test."""

    OURS = "ours"  # tasks that submit to a plane in their own process
    TWO_CALLS = "two-calls"  # the same with separate calls to claim and to complete
    HTTP = "http"  # the same through our server
    RAW = "raw"  # only FOR UPDATE SKIP LOCKED
    PROCRASTINATE = "procrastinate"  # its job manager
    PGQUEUER = "pgqueuer"  # its worker
    PGQUEUER_CALLS = "pgqueuer-calls"  # the calls of its worker


MEASURED = tuple(Claimer)
ON_SQLITE = (Claimer.OURS, Claimer.TWO_CALLS)
ONE_AT_A_TIME = (Claimer.PROCRASTINATE,)


class Plan(Struct, frozen=True):
    """The length and number of rounds."""

    rounds: int = 5
    seconds: float = 2.0
    systems: tuple[Claimer, ...] = MEASURED
    workers: tuple[int, ...] = WORKERS
    at_once: tuple[int, ...] = AT_ONCE

    @property
    def kinds(self) -> list[tuple[int, int]]:
        """Return the batch sizes and numbers of workers."""
        return [(at_once, workers) for at_once in self.at_once for workers in self.workers]


class Cell(Struct, frozen=True):
    """One system, number of workers and batch size: the medians of its rounds."""

    system: str
    at_once: int
    workers: int
    per_second: float
    p50_ms: float  # from the claim of a batch to its completion
    cpu_us: float  # per claim, system and workers; over HTTP only the server
    postgres_cpu_us: float  # per claim
    rounds: list[float]


class Ratio(Struct, frozen=True):
    """Penstock in process against another system: the median over adjacent rounds.

    `cpu` compares the CPU time of a claim, workers and database together; over HTTP the workers'
    part is unknown. Other load on the machine disturbs it less than the rate.
    """

    at_once: int
    workers: int
    against: str
    ratio: float
    cpu: float


class Claims(Struct, frozen=True):
    """All results of one database."""

    database: str
    cells: list[Cell]
    ratios: list[Ratio]


class _Seen(Struct, frozen=True):
    system: Claimer
    at_once: int
    workers: int
    number: int
    turn: Turn
    cpu_seconds: float
    postgres_cpu_seconds: float

    def each_us(self, seconds: float) -> float:
        """Return microseconds per claim."""
        return 1e6 * seconds / max(self.turn.claims, 1)

    @property
    def cpu_us(self) -> float:
        """Return CPU time per claim, workers and database together."""
        return self.each_us(self.cpu_seconds + self.postgres_cpu_seconds)


def measure_claims(bench: Bench, database: str, plan: Plan, say: Say) -> Claims:
    """Run the systems in turns, in short rounds, so that noise affects all alike."""
    systems = [one for one in plan.systems if database == "postgresql" or one in ON_SQLITE]
    with ExitStack() as stack, tuned_interpreter():
        stocks = {
            system: stack.enter_context(_open(bench, system, bench.empty_database(database)))
            for system in systems
        }
        cpu = bench.postgres_cpu_seconds if database == "postgresql" else lambda: 0.0
        seen = list(_rounds(stocks, cpu, plan, lambda text: say(f"{database} · {text}")))
    return Claims(
        database,
        [
            _cell(seen, system, *kind)
            for kind in plan.kinds
            for system in systems
            if _can(system, kind[0])
        ],
        [
            _ratio(seen, system, *kind)
            for kind in plan.kinds
            for system in systems
            if system is not Claimer.OURS and Claimer.OURS in systems and _can(system, kind[0])
        ],
    )


@contextmanager
def tuned_interpreter() -> Iterator[None]:
    """Tune the interpreter as our server does; all threads benefit."""
    threshold, seconds = gc.get_threshold(), sys.getswitchinterval()
    tune_interpreter()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
        sys.setswitchinterval(seconds)


class Stock:
    """A queue that always has enough work."""

    def __init__(self, queue: Queue, url: str) -> None:
        self.queue = queue
        self._url = url
        self._waiting = 0
        self._pace: dict[tuple[int, int], float] = {}

    def __enter__(self) -> "Stock":
        return self

    def __exit__(self, *raised: object) -> None:
        self.queue.close()

    def prepare(self, at_once: int, workers: int, seconds: float) -> None:
        """Add work in analyzed tables."""
        known = SPARE * self._pace.get((at_once, workers), 0.0)
        wanted = round(seconds * max(min(WAITING_EACH * at_once, WAITING_MAX), known))
        if wanted > self._waiting:
            self.queue.fill(wanted - self._waiting)
            self._waiting = wanted
        vacuum(self._url)

    def work(self, at_once: int, workers: int, seconds: float) -> Turn:
        """Run one turn."""
        turn = self.queue.work(workers, at_once, seconds)
        self._waiting -= turn.claims
        self._pace[at_once, workers] = turn.rate
        return turn


def _open(bench: Bench, system: Claimer, url: str) -> Stock:
    makers: Mapping[Claimer, Callable[[], Queue]] = {
        Claimer.OURS: lambda: InProcess(url),
        Claimer.TWO_CALLS: lambda: InTwoCalls(url),
        Claimer.HTTP: lambda: OverHttp(bench, url),
        Claimer.RAW: lambda: SkipLocked(url),
        Claimer.PROCRASTINATE: lambda: Procrastinate(url),
        Claimer.PGQUEUER: lambda: Pgqueuer(url),
        Claimer.PGQUEUER_CALLS: lambda: PgqueuerCalls(url),
    }
    return Stock(makers[system](), url)


def _can(system: Claimer, at_once: int) -> bool:
    return at_once == 1 or system not in ONE_AT_A_TIME


def _rounds(
    stocks: Mapping[Claimer, Stock], postgres_cpu: Callable[[], float], plan: Plan, say: Say
) -> Iterator[_Seen]:
    for at_once, workers in plan.kinds:
        systems = [system for system in stocks if _can(system, at_once)]
        for number in range(plan.rounds):
            rates = []
            first = number % len(systems)
            for system in systems[first:] + systems[:first]:
                stock = stocks[system]
                stock.prepare(at_once, workers, plan.seconds)
                used = stock.queue.cpu_seconds(), postgres_cpu()
                turn = stock.work(at_once, workers, plan.seconds)
                cpu = stock.queue.cpu_seconds() - used[0], postgres_cpu() - used[1]
                yield _Seen(system, at_once, workers, number, turn, *cpu)
                rates.append(f"{system} {turn.rate:,.0f}/s")
            kind = f"{at_once} at once, workers {workers}, round {number + 1}"
            say(f"{kind} · " + " · ".join(rates))


def _cell(seen: Sequence[_Seen], system: Claimer, at_once: int, workers: int) -> Cell:
    mine = [
        one for one in seen if (one.system, one.at_once, one.workers) == (system, at_once, workers)
    ]
    return Cell(
        system,
        at_once,
        workers,
        statistics.median(one.turn.rate for one in mine),
        statistics.median(one.turn.p50_ms for one in mine),
        statistics.median(one.each_us(one.cpu_seconds) for one in mine),
        statistics.median(one.each_us(one.postgres_cpu_seconds) for one in mine),
        [one.turn.rate for one in mine],
    )


def _ratio(seen: Sequence[_Seen], other: Claimer, at_once: int, workers: int) -> Ratio:
    at = {
        (one.system, one.number): one
        for one in seen
        if (one.at_once, one.workers) == (at_once, workers)
    }
    pairs = [(at[Claimer.OURS, number], its) for (who, number), its in at.items() if who is other]
    return Ratio(
        at_once,
        workers,
        other,
        statistics.median(ours.turn.rate / (its.turn.rate or 1.0) for ours, its in pairs),
        statistics.median(its.cpu_us / (ours.cpu_us or 1.0) for ours, its in pairs),
    )


def claim_targets(measured: Sequence[Claims]) -> list[Target]:
    """Return the targets that these results can decide."""
    found = []
    for one in measured:
        for ratio in one.ratios:
            what = (
                f"{one.database}: claims against {ratio.against}, {ratio.at_once} at once, "
                f"workers {ratio.workers}"
            )
            kind = (ratio.against, ratio.at_once)
            if kind in ((Claimer.PROCRASTINATE, 1), (Claimer.PGQUEUER, 100)):
                found.append(above(what, 1.0, ratio.ratio))
            elif kind == (Claimer.RAW, 1):
                found.append(at_least(what, 0.6, ratio.ratio))
    return found
