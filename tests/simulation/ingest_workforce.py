"""Ingest workers that are killed during their work, while new ones replace them."""

import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from penstock.errors import PenstockError
from penstock.ingest.stages import STAGE_NAMES
from tests.patience import HANG_SECONDS
from tests.simulation.ingest_site import Site
from tests.simulation.ingest_worker import Order

PROGRAM = "tests.simulation.ingest_worker"
TOP = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.02
POLL_SECONDS = 0.1


class Plan(NamedTuple):
    """The numbers of workers, payloads and kills."""

    workers: int
    files: int  # in a batch
    crashes: int  # workers killed, or stopped until they lose their locks
    every: int  # steps of jobs between two crashes, at most
    outages: int = 0  # of the server that keeps the state
    stopped_share: float = 0.0  # of the crashes


class Worker:
    """One worker process."""

    def __init__(self, pid: int, order: Order) -> None:
        self.stages = frozenset(order.stages)
        self._handle = os.pidfd_open(pid)
        self._log = Path(order.log)
        self._alarms: list[threading.Timer] = []

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return not select.select([self._handle], [], [], 0)[0]

    def log(self) -> str:
        """The worker's log."""
        return self._log.read_text() if self._log.exists() else ""

    def stop(self, seconds: float) -> None:
        """Stop the process for a while, as if the machine slept.

        Other processes and this test may wait for its locks, so it continues by itself.
        """
        signal.pidfd_send_signal(self._handle, signal.SIGSTOP)
        go_on = (self._handle, signal.SIGCONT)
        self._alarms.append(threading.Timer(seconds, signal.pidfd_send_signal, go_on))
        self._alarms[-1].start()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        if self.is_alive:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        self.wait()

    def end(self) -> None:
        """Let it finish its work and release its locks."""
        signal.pidfd_send_signal(self._handle, signal.SIGTERM)
        self.wait()

    def wait(self) -> None:
        """Return when it has ended."""
        ended, _, _ = select.select([self._handle], [], [], HANG_SECONDS)
        assert ended, self.log()

    def close(self) -> None:
        """Return when it has ended, and delete its files."""
        self.wait()
        for alarm in self._alarms:
            alarm.cancel()
            alarm.join()
        os.close(self._handle)


class Nursery:
    """Forks workers from a process with every import loaded. They end with it."""

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

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        for worker in self.workers:
            worker.close()

    def start(
        self, stages: Sequence[str] = STAGE_NAMES, *, concurrency: int = 2, crash_at: int = 0
    ) -> Worker:
        """Start a worker."""
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
        """Fail if a worker's log has an unexpected error."""
        for worker in self.workers:
            assert "Traceback" not in worker.log(), worker.log()


class Workforce:
    """Workers with different stages, which are killed or stopped one after the other."""

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
        self._stopped: list[tuple[float, Worker]] = []  # and when each continues
        self._session_seconds = site.plane.settings.ingest_session_seconds
        self.killed = 0
        self.stopped = 0
        self.outages = 0

    def run(self) -> None:
        """Crash as often as planned while there is work, and return when every batch has ended."""
        plan, chance = self._plan, self._chance
        for _ in range(plan.workers):
            self._hire()
        self._submit()
        next_crash = chance.randint(1, plan.every)
        watch = Watch(self._site)
        while self.crashes < plan.crashes:
            self._wake(time.monotonic())
            progress = watch.look(self._working)
            if progress is None:
                continue
            if progress >= next_crash:
                self._crash()
                next_crash = progress + chance.randint(1, plan.every)
            if self._site.open_batches < plan.workers:
                self._submit()
        while self._stopped or watch.look(self._working) is None or self._site.open_batches:
            self._wake(time.monotonic())
        for worker in self._working:
            worker.end()

    @property
    def crashes(self) -> int:
        """How many workers were killed or stopped."""
        return self.killed + self.stopped

    def _crash(self) -> None:
        chance, plan = self._chance, self._plan
        if self._outage is not None and self.outages * plan.crashes <= self.crashes * plan.outages:
            self.outages += 1
            self._outage()
        worker = chance.choice(self._working)
        self._working.remove(worker)
        if chance.random() >= plan.stopped_share:
            worker.kill()
            self.killed += 1
            self._hire()
        else:
            seconds = chance.uniform(0.5, 2.0) * self._session_seconds
            worker.stop(seconds)
            self.stopped += 1
            self._stopped.append((time.monotonic() + seconds, worker))
            if not frozenset(STAGE_NAMES) <= self._covered:
                self._hire()

    def _wake(self, now: float) -> None:
        """Move the workers that have continued back to the active ones."""
        for when, worker in list(self._stopped):
            if when <= now:
                self._stopped.remove((when, worker))
                self._working.append(worker)

    @property
    def _covered(self) -> frozenset[str]:
        """Return the stages that have a worker."""
        return frozenset().union(*(worker.stages for worker in self._working))

    def _hire(self) -> None:
        """Start a worker for all stages, or for some that include every uncovered stage."""
        chance = self._chance
        stages = set(STAGE_NAMES)
        if chance.random() < 0.6:
            stages = {name for name in STAGE_NAMES if chance.random() < 0.5}
            stages |= set(STAGE_NAMES) - self._covered
        concurrency = chance.choice([1, 2, 4])
        self._working.append(self._nursery.start(sorted(stages), concurrency=concurrency))

    def _submit(self) -> None:
        site = self._site
        site.submit_files(self._plan.files)
        site.submit_container()
        site.submit_manifest(is_corrupt=self._chance.random() < 0.3)


class Watch:
    """Polls a site and notices when its progress stops."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._last: object = None
        self._since = time.monotonic()

    def look(self, working: Sequence[Worker]) -> int | None:
        """Return the progress of all jobs after a short wait, or None without an answer."""
        time.sleep(LOOK_SECONDS)
        for worker in working:
            assert worker.is_alive, worker.log()
        try:
            progress, left = self._site.progress, self._site.open_batches
        except PenstockError:
            return None
        if (progress, left) != self._last:
            self._last, self._since = (progress, left), time.monotonic()
        elif time.monotonic() > self._since + HANG_SECONDS:
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
