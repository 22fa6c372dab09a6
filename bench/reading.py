"""Latency over a catalog of full size: lineage, and the first page of every list."""

import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

from msgspec import Struct

from bench.graph import Place, dataset_name, job_name, random_places
from bench.load import percentile
from bench.targets import Target, below_ms
from penstock.catalog.lineage.nodes import dataset_node, job_node

API = "/api/v1"
DEPTHS = {5: 200, 20: 60}  # graphs per depth
LIST_CALLS = 60
WARM_UP_CALLS = 5
LINEAGE_MS_MAX = {5: 10.0}
LIST_MS_MAX = 20.0


class Timing(Struct, frozen=True):
    """The latency of one kind of request."""

    database: str
    what: str
    calls: int
    median_ms: float
    p95_ms: float
    kilobytes: float  # of an answer, median
    nodes: int = 0  # of a graph, median


class _Answer(Struct, frozen=True):
    seconds: float
    body: bytes


class Caller:
    """A kept-alive connection that waits for each answer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def get(self, path: str) -> _Answer:
        """Get a path; raise unless the status is 200."""
        request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
        began = time.perf_counter()
        self._connection.sendall(request)
        held = b""
        while (end := held.find(b"\r\n\r\n")) < 0:
            held += self._receive()
        head = held[:end].lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        parts, missing = [held[end + 4 :]], length - (len(held) - end - 4)
        while missing > 0:
            parts.append(self._receive())
            missing -= len(parts[-1])
        seconds = time.perf_counter() - began
        if not held.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"{path} was answered with {held[:200]!r}")
        return _Answer(seconds, b"".join(parts))

    def _receive(self) -> bytes:
        data = self._connection.recv(1 << 20)
        if not data:
            raise RuntimeError("the server hung up in the middle of an answer; see its log")
        return data


@contextmanager
def calling(port: int) -> Iterator[Caller]:
    """Connect to a server on this machine."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        yield Caller(connection)


def measure_lineage(database: str, port: int, domains: int, calls_max: int) -> list[Timing]:
    """Request graphs around random jobs and datasets."""
    timings = []
    for depth, count in DEPTHS.items():
        calls = min(count, calls_max)
        places = random_places(calls + WARM_UP_CALLS, domains, seed=depth)
        paths = [
            _lineage_path(place, number % 2 == 0, depth) for number, place in enumerate(places)
        ]
        timings.append(_timed(database, f"lineage, depth {depth}", port, paths))
    return timings


def _lineage_path(place: Place, is_job: bool, hops: int) -> str:
    node = job_node(*job_name(place)) if is_job else dataset_node(*dataset_name(place))
    return f"{API}/lineage?nodeId={quote(node, safe='')}&hops={hops}"


def list_paths() -> dict[str, str]:
    """Return the paths of all first pages, with the default page size."""
    job_namespace, job = (quote(part, safe="") for part in job_name((0, 1, 0)))
    namespace, dataset = (quote(part, safe="") for part in dataset_name((0, 1, 0)))
    jobs = f"{API}/namespaces/{job_namespace}/jobs"
    datasets = f"{API}/namespaces/{namespace}/datasets"
    return {
        "namespaces": f"{API}/namespaces",
        "sources": f"{API}/sources",
        "tags": f"{API}/tags",
        "datasets of a namespace": datasets,
        "versions of a dataset": f"{datasets}/{dataset}/versions",
        "jobs": f"{API}/jobs",
        "jobs of a namespace": jobs,
        "jobs, failed": f"{API}/jobs?lastRunStates=FAILED",
        "jobs, failed or running": f"{API}/jobs?lastRunStates=FAILED&lastRunStates=RUNNING",
        "jobs of a namespace, failed": f"{jobs}?lastRunStates=FAILED",
        "versions of a job": f"{jobs}/{job}/versions",
        "runs of a job": f"{jobs}/{job}/runs",
        "events": f"{API}/events/lineage",
        "events of a time": f"{API}/events/lineage?after=2026-11-15T12:00:00Z",
        "search, one domain": f"{API}/search?q=domain-042",
        "search, one table": f"{API}/search?q=layer_07.orders_10",
        "search, a subject": f"{API}/search?q=refunds",
        "search, last updated": f"{API}/search?q=refunds&sort=UPDATE_AT&filter=JOB",
    }


def measure_lists(database: str, port: int, calls_max: int) -> list[Timing]:
    """Request the first page of every list, several times."""
    calls = min(LIST_CALLS, calls_max) + WARM_UP_CALLS
    return [_timed(database, what, port, [path] * calls) for what, path in list_paths().items()]


def _timed(database: str, what: str, port: int, paths: Sequence[str]) -> Timing:
    with calling(port) as caller:
        answers = [caller.get(path) for path in paths][WARM_UP_CALLS:]
    seconds = sorted(answer.seconds for answer in answers)
    return Timing(
        database,
        what,
        len(answers),
        statistics.median(seconds) * 1000,
        percentile(seconds, 95) * 1000,
        statistics.median(len(answer.body) for answer in answers) / 1000,
        round(statistics.median(answer.body.count(b'"inEdges"') for answer in answers)),
    )


def lineage_targets(timings: Sequence[Timing]) -> list[Target]:
    """Check the latency of graphs."""
    limits = {f"lineage, depth {depth}": most for depth, most in LINEAGE_MS_MAX.items()}
    return [
        below_ms(f"{one.database}: {one.what}, median", limits[one.what], one.median_ms)
        for one in timings
        if one.what in limits
    ]


def list_targets(timings: Sequence[Timing]) -> list[Target]:
    """Check the latency of the slowest first page of each database."""
    slowest: dict[str, Timing] = {}
    for one in sorted(timings, key=lambda one: one.median_ms):
        slowest[one.database] = one
    return [
        below_ms(f"{database}: slowest first page ({one.what}), median", LIST_MS_MAX, one.median_ms)
        for database, one in slowest.items()
    ]
