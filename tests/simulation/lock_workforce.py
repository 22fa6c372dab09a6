"""Worker processes that are killed and stopped during their work, and their journals."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import httpx
import psutil

from tests.patience import HANG_SECONDS

SCRIPT = Path(__file__).with_name("lock_worker.py")
LOOK_SECONDS = 0.02
AGAIN_AT_ONCE = 100

Document = dict[str, Any]


class Plan(NamedTuple):
    """The numbers of workers, lots and disturbances."""

    workers: int
    lots: int
    crashes: int  # workers killed, or stopped until their claims expire
    resubmissions: int
    at_once: int  # claims of one call, at most
    work_seconds: float
    lease_seconds: int = 2


class Note(NamedTuple):
    """A line of a journal."""

    what: str
    claim: str
    job: str
    lot: str
    rest: Document


class Worker:
    """One worker process."""

    def __init__(self, settings: Document) -> None:
        self.owner: str = settings["owner"]
        self._journal = Path(settings["journal"])
        self._errors = self._journal.with_suffix(".err")
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-S", str(SCRIPT), json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                # The kernel sends SIGCONT to a stopped process in a group whose shell ends.
                start_new_session=True,
            )

    def notes(self) -> list[Note]:
        """Return the lines of its journal, without a line cut by a kill."""
        if not self._journal.exists():
            return []
        lines = self._journal.read_text().split("\n")[:-1]
        entries = [json.loads(line) for line in lines]
        return [
            Note(line.pop("what"), line.pop("claim"), line.pop("job"), line.pop("lot"), line)
            for line in entries
        ]

    def untouched(self) -> list[str]:
        """Return the claims that it holds and has not begun to end."""
        return [claim for claim, what in self._last().items() if what == "claimed"]

    def is_answered(self) -> bool:
        """Return whether the journal has the result of every claim that it began to end."""
        return not {"complete", "fail", "release"} & set(self._last().values())

    def _last(self) -> dict[str, str]:
        return {note.claim: note.what for note in self.notes()}

    def check(self) -> None:
        """Fail if it has ended by itself."""
        assert self._process.poll() is None, self._errors.read_text()

    def stop(self) -> None:
        """Stop the process, as if the machine slept, and return when it has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        process = psutil.Process(self._process.pid)
        while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
            os.sched_yield()

    def go_on(self) -> None:
        """Continue the process."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._process.kill()
        self._process.wait()


class Workforce:
    """Workers of two jobs on one or more servers. Job b reads the output of job a."""

    def __init__(self, urls: Sequence[str], folder: Path, plan: Plan, seed: int) -> None:
        self._urls = urls
        self._folder = folder
        self._plan = plan
        self._seed = seed
        self._chance = random.Random(seed)
        self._client = httpx.Client(
            base_url=f"{urls[0]}/api/v1", timeout=HANG_SECONDS, verify=False
        )
        self._everybody: list[Worker] = []
        self._working: list[Worker] = []
        self._stopped: list[tuple[Worker, list[str]]] = []
        self.killed: dict[str, list[str]] = {}  # claims that each held, by owner
        self.delayed: list[str] = []  # claims that had expired when their worker continued
        self.resubmitted: list[tuple[str, str]] = []  # job and lot

    def __enter__(self) -> Self:
        for _ in range(self._plan.workers):
            self._hire()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._everybody:
            worker.kill()
        self._client.close()

    def notes(self) -> Iterator[tuple[str, Note]]:
        """Return all journals, by owner."""
        for worker in self._everybody:
            for note in worker.notes():
                yield worker.owner, note

    def ask(self, method: str, path: str, body: Document | None = None) -> Any:
        """Make a call of an administrator, which must succeed."""
        answer = self._client.request(method, path, json=body)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def run(self) -> None:
        """Disturb the workers as planned, and return when everything is done."""
        while True:
            for worker in self._working:
                worker.check()
            self._wake()
            crashes = len(self.killed) + len(self.delayed) + len(self._stopped)
            if crashes < self._plan.crashes:
                self._disturb()
            if len(self.resubmitted) < self._plan.resubmissions:
                self._resubmit()
            elif not self._stopped and self._is_done("a") and self._is_done("b"):
                if crashes < self._plan.crashes:
                    self._resubmit(AGAIN_AT_ONCE)  # there must be work to disturb
                elif all(worker.is_answered() for worker in self._working):
                    return
            Event().wait(LOOK_SECONDS)

    def _hire(self) -> None:
        number = len(self._everybody)
        worker = Worker(
            {
                "owner": f"worker {number}",
                "seed": f"{self._seed}/{number}",
                "hosts": [urlsplit(url).netloc for url in self._urls],
                "journal": str(self._folder / f"{number}.jsonl"),
                "namespace": "ns",
                "jobs": ["a", "b"],
                "lease_seconds": self._plan.lease_seconds,
                "work_seconds": self._plan.work_seconds,
                "at_once": self._plan.at_once,
            }
        )
        self._everybody.append(worker)
        self._working.append(worker)

    def _disturb(self) -> None:
        """Kill or stop a worker while it has claims that it has not begun to end."""
        worker = self._chance.choice(self._working)
        worker.stop()
        claims = worker.untouched()
        if not claims:
            worker.go_on()
        elif self._chance.random() < 0.6 or len(self._working) == 1:
            worker.kill()
            self.killed[worker.owner] = claims
            self._working.remove(worker)
            self._hire()
        else:
            self._stopped.append((worker, claims))
            self._working.remove(worker)

    def _wake(self) -> None:
        """Continue the workers whose claims have expired."""
        for worker, claims in list(self._stopped):
            states = [self.ask("GET", f"/claims/{claim}")["state"] for claim in claims]
            if "RUNNING" not in states:
                self._stopped.remove((worker, claims))
                self._working.append(worker)
                self.delayed.append(claims[0])
                worker.go_on()

    def _resubmit(self, most: int = 1) -> None:
        """Resubmit done lots. No other process does, so they are still done."""
        job = self._chance.choice(["a", "b"])
        path = f"/namespaces/ns/jobs/{job}"
        done = self.ask("GET", f"{path}/lots?state=DONE&limit=200")["lots"]
        lots = [lot["lot"] for lot in self._chance.sample(done, min(most, len(done)))]
        if lots:
            self.ask("POST", f"{path}/resubmit", {"lots": lots, "why": "it was wrong"})
            self.resubmitted += [(job, lot) for lot in lots]

    def _is_done(self, job: str) -> bool:
        path = f"/namespaces/ns/jobs/{job}/lots?state=DONE&limit=1"
        total: int = self.ask("GET", path)["totalCount"]
        return total == self._plan.lots
