"""Ingest workers that are killed in the middle of their work, while new ones take their places."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from penstock.errors import PenstockError
from penstock.ingest.workers import STAGE_NAMES
from tests.simulation.ingest_site import Site
from tests.simulation.ingest_worker import Order

PROGRAM = "tests.simulation.ingest_worker"
TOP = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.02
STUCK_SECONDS_MAX = 40
POLL_SECONDS = 0.1


class Plan(NamedTuple):
    """How many work on how much, and how often one of them is killed."""

    workers: int
    files: int  # in a batch
    kills: int
    every: int  # steps of jobs between two kills, at most
    outages: int = 0  # of the server that keeps the state


class Worker:
    """One worker process."""

    def __init__(self, pid: int, order: Order) -> None:
        self.stages = frozenset(order.stages)
        self._handle = os.pidfd_open(pid)
        self._log = Path(order.log)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return not select.select([self._handle], [], [], 0)[0]

    def log(self) -> str:
        """What it has said."""
        return self._log.read_text() if self._log.exists() else ""

    def kill(self) -> None:
        """End it as `kill -9` does."""
        if self.is_alive:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        self.wait()

    def wait(self) -> None:
        """Return when it has ended."""
        select.select([self._handle], [], [])


class Nursery:
    """Starts workers without waiting for their imports; they end with it."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        self._settings = settings
        self.workers: list[Worker] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=TOP,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
        for worker in self.workers:
            worker.wait()

    def start(
        self, stages: Sequence[str] = STAGE_NAMES, *, concurrency: int = 2, crash_at: int = 0
    ) -> Worker:
        """A new worker."""
        log = self._folder / f"worker-{len(self.workers)}.log"
        order = Order(self._settings, tuple(stages), concurrency, POLL_SECONDS, str(log), crash_at)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()
        worker = Worker(int(self._process.stdout.readline()), order)
        self.workers.append(worker)
        return worker

    def check_logs(self) -> None:
        """Fail if something happened to a worker that nobody had thought of."""
        for worker in self.workers:
            assert "Traceback" not in worker.log(), worker.log()


class Workforce:
    """Workers with different stages, of which one after the other is killed."""

    def __init__(
        self,
        site: Site,
        nursery: Nursery,
        plan: Plan,
        seed: int,
        outage: Callable[[], None] | None = None,
    ) -> None:
        self._site = site
        self._nursery = nursery
        self._plan = plan
        self._chance = random.Random(seed)
        self._outage = outage
        self._working: list[Worker] = []
        self._next_outage = 0
        self.killed = 0
        self.outages = 0

    def run(self) -> None:
        """Kill as often as planned while there is work, and return when every batch has ended."""
        plan, chance = self._plan, self._chance
        for _ in range(plan.workers):
            self._hire()
        self._submit()
        next_kill = chance.randint(1, plan.every)
        watch = Watch(self._site, self._nursery)
        while self.killed < plan.kills:
            progress = watch.look(self._working)
            if progress is None:
                continue
            if progress >= next_kill:
                self._kill()
                next_kill = progress + chance.randint(1, plan.every)
            if self._site.open_batches < plan.workers:
                self._submit()
        while watch.look(self._working) is None or self._site.open_batches:
            continue
        for worker in self._working:
            worker.kill()

    def _kill(self) -> None:
        chance, plan = self._chance, self._plan
        if self._outage is not None and self.outages * plan.kills <= self.killed * plan.outages:
            self.outages += 1
            self._outage()
        worker = chance.choice(self._working)
        worker.kill()
        self._working.remove(worker)
        self.killed += 1
        self._hire()

    def _hire(self) -> None:
        """A worker for all stages, or for some: at least those that nobody else has."""
        chance = self._chance
        covered = frozenset().union(*(worker.stages for worker in self._working))
        stages = set(STAGE_NAMES)
        if chance.random() < 0.6:
            stages = {name for name in STAGE_NAMES if chance.random() < 0.5}
            stages |= set(STAGE_NAMES) - covered
        concurrency = chance.choice([1, 2, 4])
        self._working.append(self._nursery.start(sorted(stages), concurrency=concurrency))

    def _submit(self) -> None:
        site = self._site
        site.submit_files(self._plan.files)
        site.submit_container()
        site.submit_manifest(is_corrupt=self._chance.random() < 0.3)


class Watch:
    """Looks at a site again and again, and sees when nothing goes on there any more."""

    def __init__(self, site: Site, nursery: Nursery) -> None:
        self._site = site
        self._nursery = nursery
        self._last: object = None
        self._since = time.monotonic()

    def look(self, working: Sequence[Worker]) -> int | None:
        """How far all jobs are, after a short while; None if the site cannot be asked just now."""
        time.sleep(LOOK_SECONDS)
        for worker in working:
            assert worker.is_alive, worker.log()
        try:
            progress, left = self._site.progress, self._site.open_batches
        except PenstockError:
            return None
        if (progress, left) != self._last:
            self._last, self._since = (progress, left), time.monotonic()
        elif time.monotonic() > self._since + STUCK_SECONDS_MAX:
            raise AssertionError(self._stuck(working))
        return progress

    def _stuck(self, working: Sequence[Worker]) -> str:
        logs = "\n\n".join(worker.log()[-3000:] for worker in working)
        store = self._site.store
        jobs = [
            job
            for batch_id in self._site.batches
            for job in store.jobs(batch_id, 1000)
            if job.message or job.locked_by
        ]
        batches = [store.batch(batch_id) for batch_id in self._site.batches]
        return f"nothing goes on any more: {store.tally()}\n{batches}\n{jobs}\n{logs}"
