"""Engines in processes of their own that are killed, stopped and continued."""

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

    def __init__(self, folder: Path, owner: str, **told: Any) -> None:
        self.owner = owner
        self._log = folder / f"{owner.replace(' ', '-')}.log"
        self._is_told = False
        told |= {"owner": owner, "folder": str(folder / "ingest")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.simulation.arc_engine", json.dumps(told)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[2],
                # Who stands still in a group whose shell ends is sent SIGCONT by the kernel.
                start_new_session=True,
            )

    @property
    def is_ready(self) -> bool:
        """Whether it works; an engine that ended by itself fails the test."""
        assert self._process.poll() is None, self.log()
        return "ready" in self.log()

    def wait_until_ready(self) -> None:
        """Return when it works."""
        deadline = time.monotonic() + HANG_SECONDS
        while not self.is_ready:
            assert time.monotonic() < deadline, self.log()
            time.sleep(LOOK_SECONDS)

    def log(self) -> str:
        """Return its log."""
        return self._log.read_text(errors="replace")

    def workers(self) -> list[psutil.Process]:
        """Return the processes that run its workloads."""
        try:
            found = psutil.Process(self._process.pid).children(recursive=True)
            return [child for child in found if "spawn_main" in " ".join(child.cmdline())]
        except psutil.NoSuchProcess:
            return []

    def stand_still(self) -> None:
        """Stop it and its workers, as if the machine slept."""
        for process in (psutil.Process(self._process.pid), *self.workers()):
            process.suspend()
            while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                os.sched_yield()

    def go_on(self) -> None:
        """Continue it after a stop."""
        for process in (*self.workers(), psutil.Process(self._process.pid)):
            process.resume()

    def kill(self) -> list[psutil.Process]:
        """End it as `kill -9` does; return its workers, which are not killed."""
        workers = self.workers() if self._process.poll() is None else []
        self._process.kill()
        self._process.wait()
        return workers

    def stop_soon(self) -> None:
        """Send it one stop signal and return at once."""
        if not self._is_told:
            self._process.send_signal(signal.SIGTERM)
        self._is_told = True

    def stop(self) -> None:
        """Stop it cleanly; anything else fails the test."""
        self.stop_soon()
        assert self._process.wait(HANG_SECONDS) == 0, self.log()
