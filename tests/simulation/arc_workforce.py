"""Engine processes that are killed, stopped and continued."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from tests.patience import HANG_SECONDS

LOOK_SECONDS = 0.02


class EngineProcess:
    """One engine with its workers, which are its children."""

    def __init__(self, folder: Path, owner: str, **options: Any) -> None:
        self.owner = owner
        self._log = folder / f"{owner.replace(' ', '-')}.log"
        self._is_told = False
        options |= {"owner": owner, "folder": str(folder / "ingest")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.simulation.arc_engine", json.dumps(options)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[2],
                # The kernel sends SIGCONT to a stopped process in a group whose shell ends.
                start_new_session=True,
            )

    @property
    def is_ready(self) -> bool:
        """Return whether it works. An engine that has ended by itself fails the test."""
        assert self._process.poll() is None, self.log()
        return "ready" in self.log()

    def wait_until_ready(self) -> None:
        """Return when it works."""
        deadline = time.monotonic() + HANG_SECONDS
        while not self.is_ready:
            assert time.monotonic() < deadline, self.log()
            time.sleep(LOOK_SECONDS)

    def log(self) -> str:
        """The engine's log so far."""
        return self._log.read_text(errors="replace")

    def workers(self) -> list[psutil.Process]:
        """Return the processes that run its workloads."""
        try:
            children = psutil.Process(self._process.pid).children(recursive=True)
            return [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        except psutil.NoSuchProcess:
            return []

    def stand_still(self) -> None:
        """Stop the engine and its workers with SIGSTOP, as if the machine slept."""
        for process in (psutil.Process(self._process.pid), *self.workers()):
            process.suspend()
            while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                os.sched_yield()

    def go_on(self) -> None:
        """Continue the engine and its workers."""
        for process in (*self.workers(), psutil.Process(self._process.pid)):
            process.resume()

    def kill(self) -> list[psutil.Process]:
        """End the engine as `kill -9` does; return its workers, which keep running."""
        workers = self.workers() if self._process.poll() is None else []
        self._process.kill()
        self._process.wait()
        return workers

    def stop_soon(self) -> None:
        """Send a stop signal once and return at once. A second one would abandon running work."""
        if not self._is_told:
            self._process.send_signal(signal.SIGTERM)
        self._is_told = True

    def stop(self) -> None:
        """Stop cleanly. A nonzero exit status fails the test."""
        self.stop_soon()
        assert self._process.wait(HANG_SECONDS) == 0, self.log()
