"""pgqueuer: its worker with an empty entry point, and the two calls beneath it.

Both use asyncpg, the driver in its documentation; with psycopg a single worker is many times
slower. Settings are the defaults except for the batch size, and a worker ends when the queue is
empty. Finished jobs move to its log in batches of the same size.
"""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job, TracebackRecord
from pgqueuer.qm import QueueManager
from pgqueuer.queries import EntrypointExecutionParameter, Queries
from pgqueuer.types import JOB_STATUS, QueueEntrypoint, QueueExecutionMode, QueueManagerId

from bench.turns import AsyncStep, Counter, Turn, in_tasks

ENTRY_POINT = "refine"
HEARTBEAT_TIMEOUT = timedelta(seconds=30)
ENQUEUED_AT_ONCE = 5000


class PgqueuerCalls:
    """Workers that only dequeue jobs and log them as done."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connections: list[asyncpg.Connection] = []
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._runner.run(self._install())

    async def _install(self) -> None:
        await (await self._queries(1))[0].install()

    def fill(self, count: int) -> None:
        """Enqueue jobs."""
        self._runner.run(self._fill(count))

    async def _fill(self, count: int) -> None:
        (queries,) = await self._queries(1)
        for at in range(0, count, ENQUEUED_AT_ONCE):
            names = [f"part-{n}".encode() for n in range(at, min(at + ENQUEUED_AT_ONCE, count))]
            await queries.enqueue([ENTRY_POINT] * len(names), list(names), [0] * len(names))

    def work(self, workers: int, at_once: int, seconds: float) -> Turn:
        """Claim and complete in batches."""
        return self._runner.run(self._work(workers, at_once, seconds))

    async def _work(self, workers: int, at_once: int, seconds: float) -> Turn:
        found = await self._queries(workers)
        return await in_tasks([_step(queries, at_once) for queries in found], seconds)

    async def _queries(self, count: int) -> list[Queries]:
        while len(self._connections) < count:
            self._connections.append(await asyncpg.connect(self._url))
        return [Queries(AsyncpgDriver(connection)) for connection in self._connections[:count]]

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process."""
        return time.process_time()

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        for connection in self._connections:
            await connection.close()


def _step(queries: Queries, at_once: int) -> AsyncStep:
    worker = QueueManagerId(uuid4())
    entry_points = {QueueEntrypoint(ENTRY_POINT): EntrypointExecutionParameter(0)}

    async def step() -> int:
        jobs = await queries.dequeue(at_once, entry_points, worker, None, HEARTBEAT_TIMEOUT)
        if jobs:
            await queries.log_jobs([(job, "successful", None) for job in jobs])
        return len(jobs)

    return step


class Pgqueuer(PgqueuerCalls):
    """Its own workers, run as in its documentation."""

    async def _work(self, workers: int, at_once: int, seconds: float) -> Turn:
        # A worker does not close its listener, so each turn has its own connections.
        connections = [await asyncpg.connect(self._url) for _ in range(workers)]
        counter = Counter(seconds)
        managers = [
            _worker(_CountedQueries(AsyncpgDriver(connection), counter=counter))
            for connection in connections
        ]
        running = [
            asyncio.create_task(manager.run(batch_size=at_once, mode=QueueExecutionMode.drain))
            for manager in managers
        ]
        _, busy = await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        counter.ran_out = not busy
        for manager in managers:
            manager.shutdown.set()
        await asyncio.gather(*running)
        for connection in connections:
            await connection.close()
        return counter.turn()


@dataclass
class _CountedQueries(Queries):
    """Counts jobs when they are logged as done."""

    counter: Counter = field(kw_only=True)

    async def dequeue(self, *given: Any, **named: Any) -> list[Job]:
        """Dequeue jobs; the first call only prepares tables and does not count."""
        if not self.counter.claims:
            self.counter.begin()
        return await super().dequeue(*given, **named)

    async def log_jobs(
        self, job_status: list[tuple[Job, JOB_STATUS, TracebackRecord | None]]
    ) -> None:
        """Log jobs and count them."""
        await super().log_jobs(job_status)
        self.counter.count(len(job_status))


def _worker(queries: Queries) -> QueueManager:
    manager = QueueManager(queries)
    manager.entrypoint(ENTRY_POINT)(_refine)
    return manager


async def _refine(job: Job) -> None:
    """Do nothing."""
