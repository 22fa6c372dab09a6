"""procrastinate: its job manager fetches and finishes jobs, as its worker does.

The rest of the worker (tasks, logging, polling) is left out, so that only claims and completions
are compared. Jobs have no lock and stay in the table when finished, as by default. It can only
fetch one job at a time.
"""

import asyncio
import time

import uvloop
from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Status
from procrastinate.types import JSONDict

from bench.turns import AsyncStep, Turn, in_tasks

QUEUE = "bench"
WORKERS_MAX = 8
DEFERRED_AT_ONCE = 1000


class Procrastinate:
    """An app with one task, and a connection for each worker."""

    def __init__(self, url: str) -> None:
        connector = PsycopgConnector(conninfo=url, min_size=WORKERS_MAX, max_size=WORKERS_MAX)
        # Import paths of tasks are not needed: no task runs.
        self._app = App(connector=connector)
        self._task = self._app.task(name="refine", queue=QUEUE)(_refine)
        self._workers: list[int] = []
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._runner.run(self._open())

    async def _open(self) -> None:
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()
        manager = self._app.job_manager
        self._workers = [await manager.register_worker() for _ in range(WORKERS_MAX)]

    def fill(self, count: int) -> None:
        """Defer jobs."""
        self._runner.run(self._fill(count))

    async def _fill(self, count: int) -> None:
        for at in range(0, count, DEFERRED_AT_ONCE):
            numbers = range(at, min(at + DEFERRED_AT_ONCE, count))
            lots: list[JSONDict] = [{"lot": f"part-{number}"} for number in numbers]
            await self._task.batch_defer_async(*lots)

    def work(self, workers: int, at_once: int, seconds: float) -> Turn:
        """Fetch and finish jobs, one at a time."""
        assert at_once == 1, "procrastinate fetches one job at a time"
        steps = [self._step(worker) for worker in self._workers[:workers]]
        return self._runner.run(in_tasks(steps, seconds))

    def _step(self, worker: int) -> AsyncStep:
        manager = self._app.job_manager

        async def step() -> int:
            job = await manager.fetch_job(queues=[QUEUE], worker_id=worker)
            if job is None:
                return 0
            await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
            return 1

        return step

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process."""
        return time.process_time()

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._app.close_async())
        self._runner.close()


async def _refine(lot: str) -> None:
    """Do nothing."""
