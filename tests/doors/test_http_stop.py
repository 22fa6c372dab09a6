"""A server that is told to stop answers what it has begun, and loses nothing."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from penstock.catalog import reading
from penstock.config import Settings
from penstock.ids import run_id
from penstock.plane import Plane
from tests.doors.serving import API, run_event

CALLERS = 8
ENOUGH = 200
PROGRAM = """
import sys
from penstock.api.server import serve
from penstock.config import Settings
serve(Settings(database=sys.argv[1], port=0, log_format="json"))
"""


@contextmanager
def server_process(database_url: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server in a process of its own, and its URL."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, database_url], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = json.loads(process.stderr.readline())
        yield process, line["message"].partition(" listens on ")[2].partition(",")[0]
    finally:
        process.kill()
        process.communicate()


class Load:
    """Callers that send events one after the other until the server is gone."""

    def __init__(self, url: str) -> None:
        self.acknowledged: set[str] = set()
        self.refused: list[int] = []
        self.enough = threading.Event()
        self._url = url
        self._threads = [
            threading.Thread(target=self._send, args=(number,)) for number in range(CALLERS)
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        for thread in self._threads:
            thread.join()

    def _send(self, number: int) -> None:
        with httpx.Client(base_url=self._url, timeout=60) as client:
            for count in range(1_000_000):
                run = f"{number}-{count}"
                try:
                    answer = client.post(f"{API}/lineage", json=run_event(run))
                except httpx.TransportError:
                    return
                if answer.status_code == 201:
                    self.acknowledged.add(run)
                else:
                    self.refused.append(answer.status_code)
                if len(self.acknowledged) >= ENOUGH:
                    self.enough.set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_and_loses_nothing(
    database_url: str, number: signal.Signals
) -> None:
    with server_process(database_url) as (process, url):
        with Load(url) as load:
            assert load.enough.wait(120)
            process.send_signal(number)
            _, log = process.communicate(timeout=120)
        assert process.returncode == 0, log
        assert "stopped" in log
        assert "Traceback" not in log
    assert load.refused == []
    with Plane.open(Settings(database=database_url)) as plane, plane.catalog.read() as tx:
        for run in load.acknowledged:
            assert reading.get_run(tx, run_id(run)).state == "RUNNING"


def test_a_request_that_was_begun_is_answered(database_url: str) -> None:
    with server_process(database_url) as (process, url):
        begun = threading.Event()

        def slowly() -> Iterator[bytes]:
            body = json.dumps(run_event("slow")).encode()
            yield body[:10]
            begun.set()
            process.send_signal(signal.SIGTERM)
            stopping.wait(60)
            yield body[10:]

        stopping = threading.Event()

        def watch() -> None:
            """Let the body go on once nobody new is let in."""
            begun.wait(60)
            while True:
                try:
                    httpx.get(f"{url}/livez")
                except httpx.TransportError:
                    stopping.set()
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        answer = httpx.post(f"{url}{API}/lineage", content=slowly(), timeout=60)
        watcher.join()
        assert answer.status_code == 201
        process.communicate(timeout=120)
        assert process.returncode == 0
    with Plane.open(Settings(database=database_url)) as plane, plane.catalog.read() as tx:
        assert reading.get_run(tx, run_id("slow")).state == "RUNNING"


def test_the_first_line_says_where_and_hides_the_password(tmp_path: object) -> None:
    from penstock.config import mask_url

    with server_process(f"sqlite:///{tmp_path}/p.db") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
        process.terminate()
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert "secret" not in mask_url("postgresql://me:secret@db/x")
