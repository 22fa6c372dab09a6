"""A Dask cluster of separate processes, started with Dask's own commands."""

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.patience import HANG_SECONDS
from tests.servers import free_port

TOP = Path(__file__).parents[1]
LOOK_SECONDS = 0.05


class Cluster:
    """A scheduler and two workers of one thread each. Lost workers can be replaced."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        host, _, port = self.address.partition(":")
        self.scheduler = self._start("scheduler", "--host", host, "--port", port)
        self.workers = [self._add(), self._add()]

    def _add(self) -> "subprocess.Popen[bytes]":
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        where = ("--local-directory", str(self._folder))
        return self._start("worker", f"tcp://{self.address}", *options, *where)

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        program = str(Path(sys.executable).with_name("dask"))
        with (self._folder / "dask.log").open("ab") as log:
            return subprocess.Popen(
                [program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=os.environ | {"PYTHONPATH": str(TOP)},
            )

    def wait_for_workers(self) -> None:
        """Return when both workers accept tasks."""
        deadline = time.monotonic() + HANG_SECONDS
        log = self._folder / "dask.log"
        while log.read_text().count("Registered to:") < len(self.workers):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(LOOK_SECONDS)

    def share_environment(self) -> None:
        """Wait for all workers and give them the environment of this process."""
        self.replace_lost()
        distributed: Any = importlib.import_module("distributed")
        with distributed.Client(
            f"tcp://{self.address}", timeout=HANG_SECONDS, set_as_default=False
        ) as client:
            client.wait_for_workers(len(self.workers), HANG_SECONDS)
            client.run(_take_environment, dict(os.environ))

    def kill(self, pid: int) -> None:
        """End the worker with this process id as `kill -9` does."""
        [worker] = [each for each in self.workers if each.pid == pid]
        worker.kill()
        worker.wait()

    def kill_any(self) -> None:
        """End one of the workers as `kill -9` does."""
        self.kill(self.workers[0].pid)

    def replace_lost(self) -> int:
        """Start a worker for each ended one and return how many there were."""
        lost = [worker for worker in self.workers if worker.poll() is not None]
        for worker in lost:
            self.workers.remove(worker)
            self.workers.append(self._add())
        return len(lost)

    def stop(self) -> None:
        """Stop the scheduler and all workers."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def _take_environment(variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
