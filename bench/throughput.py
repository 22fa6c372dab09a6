"""Acknowledged events per second: Penstock, a raw insert, and single statements."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.ceiling import answering_server
from bench.events import JOBS, EventPool
from bench.load import Round, send
from bench.processes import Bench, Running
from bench.reading import calling
from bench.server import System
from bench.targets import Target, at_least
from penstock.clock import system_clock

CLIENTS = (1, 8, 32, 128)
RATE_MAX = 16_000  # prepared requests for each second of a round
WARM_UP_CLIENTS = 8
MEASURED = (System.OURS, System.RAW, System.SINGLE)
TARGETS = (
    ("postgresql", 32, System.RAW, 0.4),
    ("postgresql", 32, System.SINGLE, 5.0),
    ("postgresql", 128, System.RAW, 0.5),
    ("postgresql", 128, System.SINGLE, 8.0),
    ("sqlite", 32, System.RAW, 0.5),
    ("sqlite", 32, System.SINGLE, 2.0),
    ("sqlite", 128, System.RAW, 0.5),
    ("sqlite", 128, System.SINGLE, 2.0),
)

Say = Callable[[str], None]


class Plan(Struct, frozen=True):
    """The length and number of rounds."""

    clients: tuple[int, ...] = CLIENTS
    rounds: int = 5
    seconds: float = 2.0
    systems: tuple[System, ...] = MEASURED


class Cell(Struct, frozen=True):
    """One system with a number of clients: the medians of its rounds."""

    system: str
    clients: int
    per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_us: float  # per event
    postgres_cpu_us: float  # per event
    rounds: list[float]
    refused: dict[str, int]


class Memory(Struct, frozen=True):
    """The memory of one server in MB, over the rounds."""

    system: str
    start: float
    middle: float
    end: float
    most: float


class Ratio(Struct, frozen=True):
    """Penstock against another system: the median over adjacent rounds.

    `cpu` compares the CPU time of an event, server and database together. Other load on the machine
    disturbs it less than the rate.
    """

    clients: int
    against: str
    ratio: float
    cpu: float


class Throughput(Struct, frozen=True):
    """All results of one database."""

    database: str
    cells: list[Cell]
    ratios: list[Ratio]
    memory: list[Memory]
    acknowledged: int  # by Penstock in all rounds
    kept: int  # of these, present in its list of events afterwards


class Ceiling(Struct, frozen=True):
    """The limits without a database."""

    clients: int
    load_per_second: float  # the load generator against a server that reads nothing
    edge_per_second: float  # Penstock's HTTP server, which reads and checks every event


class _Total(Struct, frozen=True):
    totalCount: int  # noqa: N815


class _Seen(Struct, frozen=True):
    system: System
    clients: int
    turn: int
    round: Round
    server_cpu_seconds: float
    postgres_cpu_seconds: float
    resident_mb: float

    def each_us(self, seconds: float) -> float:
        """Return microseconds per answer."""
        return 1e6 * seconds / max(self.round.answered, 1)

    @property
    def cpu_us(self) -> float:
        """Return CPU time per event, server and database together."""
        return self.each_us(self.server_cpu_seconds + self.postgres_cpu_seconds)


def measure_ceiling(bench: Bench, plan: Plan, say: Say) -> list[Ceiling]:
    """Measure the limits of the load generator and of the HTTP server."""
    pool = EventPool(system_clock())
    found = []
    with (
        answering_server() as nothing,
        bench.server(System.EDGE, bench.empty_database("sqlite")) as edge,
    ):
        for clients in plan.clients:
            requests = pool.take(round(2 * RATE_MAX * plan.seconds))
            load = send(nothing, requests, clients, plan.seconds)
            door = send(edge.port, requests, clients, plan.seconds)
            say(f"ceiling · {clients} clients · load {load.rate:,.0f}/s · edge {door.rate:,.0f}/s")
            found.append(Ceiling(clients, load.rate, door.rate))
    return found


def measure_throughput(
    bench: Bench, database: str, plan: Plan, say: Say, profile: Path | None = None
) -> Throughput:
    """Load the systems in turns, in short rounds, so that noise affects all alike."""
    with ExitStack() as stack:
        servers = {
            system: stack.enter_context(
                bench.server(
                    system,
                    bench.empty_database(database),
                    profile=profile if system is System.OURS else None,
                )
            )
            for system in plan.systems
        }
        pool = EventPool(system_clock())
        _warm_up(servers, pool)
        kept = _kept_by(servers)
        begun = {system: server.resident_mb() for system, server in servers.items()}
        cpu = bench.postgres_cpu_seconds if database == "postgresql" else lambda: 0.0
        seen = list(_rounds(servers, cpu, pool, plan, lambda text: say(f"{database} · {text}")))
        kept = _kept_by(servers) - kept
    return Throughput(
        database,
        [_cell(seen, system, clients) for clients in plan.clients for system in plan.systems],
        [
            _ratio(seen, clients, other)
            for clients in plan.clients
            for other in plan.systems
            if other is not System.OURS and System.OURS in plan.systems
        ],
        [_memory(seen, system, begun[system]) for system in plan.systems],
        sum(one.round.answered for one in seen if one.system is System.OURS),
        kept,
    )


def _kept_by(servers: dict[System, Running]) -> int:
    """Return the number of events that Penstock lists."""
    if System.OURS not in servers:
        return 0
    with calling(servers[System.OURS].port) as caller:
        answer = caller.get("/api/v1/events/lineage?limit=1")
    return msgspec.json.decode(answer.body, type=_Total).totalCount


def _warm_up(servers: dict[System, Running], pool: EventPool) -> None:
    """Send all jobs and datasets to every server before the clock starts."""
    requests = pool.take(2 * JOBS)
    for system, server in servers.items():
        done = send(server.port, requests, WARM_UP_CLIENTS, seconds=120)
        if done.refused:
            raise RuntimeError(f"{system} refused events before the clock started: {done.refused}")


def _rounds(
    servers: dict[System, Running],
    postgres_cpu: Callable[[], float],
    pool: EventPool,
    plan: Plan,
    say: Say,
) -> Iterator[_Seen]:
    for clients in plan.clients:
        for turn in range(plan.rounds):
            requests = pool.take(round(RATE_MAX * plan.seconds))
            rates = []
            # Vary the order: the predecessor's pages may still be on their way to the disk.
            for system in _rotated(list(servers), turn):
                server = servers[system]
                used = server.cpu_seconds(), postgres_cpu()
                result = send(server.port, requests, clients, plan.seconds)
                cpu = server.cpu_seconds() - used[0], postgres_cpu() - used[1]
                yield _Seen(system, clients, turn, result, *cpu, server.resident_mb())
                rates.append(f"{system} {result.rate:,.0f}/s")
                rates += [f"({n} × {what})" for what, n in result.refused.items()]
            say(f"{clients} clients, round {turn + 1} · " + " · ".join(rates))


def _rotated(systems: list[System], by: int) -> list[System]:
    first = by % len(systems)
    return systems[first:] + systems[:first]


def _cell(seen: Sequence[_Seen], system: System, clients: int) -> Cell:
    mine = [one for one in seen if (one.system, one.clients) == (system, clients)]
    refused: dict[str, int] = {}
    for one in mine:
        for what, count in one.round.refused.items():
            refused[what] = refused.get(what, 0) + count
    return Cell(
        system,
        clients,
        statistics.median(one.round.rate for one in mine),
        statistics.median(one.round.p50_ms for one in mine),
        statistics.median(one.round.p99_ms for one in mine),
        statistics.median(one.each_us(one.server_cpu_seconds) for one in mine),
        statistics.median(one.each_us(one.postgres_cpu_seconds) for one in mine),
        [one.round.rate for one in mine],
        refused,
    )


def _ratio(seen: Sequence[_Seen], clients: int, other: System) -> Ratio:
    at = {(one.system, one.turn): one for one in seen if one.clients == clients}
    pairs = [(at[System.OURS, turn], at[other, turn]) for system, turn in at if system is other]
    return Ratio(
        clients,
        other,
        statistics.median(ours.round.rate / (its.round.rate or 1.0) for ours, its in pairs),
        statistics.median(its.cpu_us / (ours.cpu_us or 1.0) for ours, its in pairs),
    )


def _memory(seen: Sequence[_Seen], system: System, begun: float) -> Memory:
    held = [one.resident_mb for one in seen if one.system is system]
    return Memory(system, begun, held[len(held) // 2], held[-1], max(held))


def throughput_targets(measured: Sequence[Throughput]) -> list[Target]:
    """Return the targets that these results can decide."""
    reached = {
        (one.database, ratio.clients, ratio.against): ratio.ratio
        for one in measured
        for ratio in one.ratios
    }
    return [
        at_least(
            f"{database}: ours against {against} at {clients} clients",
            wanted,
            reached[database, clients, against],
        )
        for database, clients, against, wanted in TARGETS
        if (database, clients, against) in reached
    ]
