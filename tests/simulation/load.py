"""Many clients that send events of the same few jobs and datasets and record the answers."""

import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

import httpx

from tests.patience import HANG_SECONDS

JOBS, DATASETS = 5, 8
NAMESPACE = "s3://lake:9000"
Document = dict[str, Any]


class Load:
    """Threads that send until `stop`.

    `acknowledged` holds the events that were answered with 201, `sent` all events, word for word. A
    call without an answer may or may not have been received. Some events are sent again.
    """

    def __init__(self, urls: Callable[[], Sequence[str]], *, clients: int, seed: int) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.pins: dict[str, dict[str, str]] = {}
        self._urls = urls
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._work, args=(number, random.Random(f"{seed}/{number}")))
            for number in range(clients)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None and self._failures:
            raise self._failures[0]

    def stop(self) -> None:
        """Send no more and wait until every client has ended."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Wait until this many more events are acknowledged."""
        with self._changed:
            total = self.acknowledged.total() + more
            while self.acknowledged.total() < total and not self._failures:
                assert self._changed.wait(HANG_SECONDS), "no event is acknowledged any more"

    def _work(self, number: int, chance: random.Random) -> None:
        try:
            with httpx.Client(timeout=HANG_SECONDS, verify=False) as client:
                while not self._stopping.is_set():
                    self._report_run(client, number, chance)
        except BaseException as error:
            with self._changed:
                self._failures.append(error)
                self._changed.notify_all()

    def _report_run(self, client: httpx.Client, number: int, chance: random.Random) -> None:
        """Send a run from its start to its end, or an event without a run."""
        if chance.random() < 0.1:
            self._send(client, chance, _statement(chance))
            return
        run = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        job, end = f"job {chance.randrange(JOBS)}", chance.choice(["COMPLETE", "COMPLETE", "FAIL"])
        for kind in ("START", *chance.choices(["RUNNING", "OTHER"], k=chance.randrange(2)), end):
            event = _run_event(chance, run, job, kind)
            if self._stopping.is_set() or not self._send(client, chance, event):
                return
        if chance.random() < 0.3:
            self._record_inputs(client, chance, run)

    def _send(self, client: httpx.Client, chance: random.Random, event: Document) -> bool:
        """Send until an answer or the last try; return whether it was acknowledged."""
        text = json.dumps(event)
        while not self._stopping.is_set():
            with self._changed:
                self.sent[text] += 1
            url = chance.choice(self._urls())
            try:
                answer = client.post(f"{url}/api/v1/lineage", content=text)
            except httpx.TransportError:
                if chance.random() < 0.5:
                    return False
                continue
            with self._changed:
                self.statuses[answer.status_code] += 1
                if answer.status_code == 201:
                    self.acknowledged[text] += 1
                    self._changed.notify_all()
                    return True
            if answer.status_code not in (429, 503):
                raise AssertionError(f"{answer.status_code} {answer.text} for {text}")
        return False

    def _record_inputs(self, client: httpx.Client, chance: random.Random, run: str) -> None:
        """Record the inputs of a run as they are shown once the run has ended."""
        try:
            answer = client.get(f"{chance.choice(self._urls())}/api/v1/jobs/runs/{run}")
        except httpx.TransportError:
            return
        with self._changed:
            self.statuses[answer.status_code] += 1
        if answer.status_code == 200:
            read = [entry["datasetVersionId"] for entry in answer.json()["inputDatasetVersions"]]
            self.pins[run] = {version["name"]: version["version"] for version in read}


def _moment(chance: random.Random) -> str:
    hour, minute, micros = (chance.randrange(most) for most in (24, 60, 10**6))
    return f"2026-11-15T{hour:02}:{minute:02}:00.{micros:06}Z"


def _dataset(chance: random.Random) -> Document:
    columns = [{"name": f"column{n}", "type": "INT"} for n in range(chance.randrange(1, 4))]
    facets = {"schema": {"fields": columns}} if chance.random() < 0.7 else {}
    return {
        "namespace": NAMESPACE,
        "name": f"dataset {chance.randrange(DATASETS)}",
        "facets": facets,
    }


def _run_event(chance: random.Random, run: str, job: str, kind: str) -> Document:
    parent = {"run": {"runId": f"flow of {job}"}, "job": {"namespace": "flows", "name": "flow"}}
    return {
        "eventTime": _moment(chance),
        "eventType": kind,
        "run": {"runId": run, "facets": {"parent": parent} if chance.random() < 0.2 else {}},
        "job": {"namespace": "jobs", "name": job},
        "inputs": [_dataset(chance) for _ in range(chance.randrange(3))],
        "outputs": [_dataset(chance) for _ in range(chance.randrange(2))],
    }


def _statement(chance: random.Random) -> Document:
    if chance.random() < 0.5:
        return {"eventTime": _moment(chance), "dataset": _dataset(chance)}
    return {
        "eventTime": _moment(chance),
        "job": {"namespace": "jobs", "name": f"job {chance.randrange(JOBS)}"},
        "inputs": [_dataset(chance)],
        "outputs": [],
    }
