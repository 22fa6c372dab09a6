"""A server that is told to stop answers what it has begun, and loses nothing."""

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from penstock.catalog.queries import catalog
from penstock.config import Settings
from penstock.ids import run_id
from penstock.plane import Plane
from penstock.server import serve as serving
from penstock.server.serve import HttpServer, listen
from tests.doors.serving import API, run_event
from tests.patience import HANG_SECONDS

CALLERS = 8
ENOUGH = 200
PROGRAM = """
import sys
from penstock.server.serve import serve
from penstock.config import Settings
serve(Settings(database=sys.argv[1], port=0, log_format="json"))
"""


@dataclass(frozen=True)
class ServerProcess:
    """A server in a process of its own, and the line with which it began."""

    process: "subprocess.Popen[str]"
    first_line: str

    @property
    def url(self) -> str:
        return self.first_line.partition(" listens on ")[2].partition(",")[0]

    def ends_well(self) -> str:
        """Wait for the end, which must be a good one; gives what was logged."""
        _, log = self.process.communicate(timeout=HANG_SECONDS)
        assert self.process.returncode == 0, log
        assert "Traceback" not in log
        return log


@contextmanager
def server_process(database_url: str) -> Iterator[ServerProcess]:
    """Start a server on this database, and end it at the latest with the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, database_url], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        yield ServerProcess(process, json.loads(process.stderr.readline())["message"])
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
        with httpx.Client(base_url=self._url, timeout=HANG_SECONDS, verify=False) as client:
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
    with server_process(database_url) as server, Load(server.url) as load:
        assert load.enough.wait(HANG_SECONDS)
        server.process.send_signal(number)
        assert "stopped" in server.ends_well()
    assert load.refused == []
    with Plane.open(Settings(database=database_url)) as plane, plane.catalog.read() as tx:
        for run in load.acknowledged:
            assert catalog.get_run(tx, run_id(run)).state == "RUNNING"


def test_a_request_that_was_begun_is_answered(database_url: str) -> None:
    with server_process(database_url) as server:
        begun = threading.Event()

        def slowly() -> Iterator[bytes]:
            body = json.dumps(run_event("slow")).encode()
            yield body[:10]
            # What was sent before this has been read when it is answered.
            httpx.get(f"{server.url}/livez", verify=False)
            begun.set()
            server.process.send_signal(signal.SIGTERM)
            stopping.wait(HANG_SECONDS)
            yield body[10:]

        stopping = threading.Event()

        def watch() -> None:
            """Let the body go on once nobody new is let in."""
            begun.wait(HANG_SECONDS)
            while True:
                try:
                    httpx.get(f"{server.url}/livez", verify=False)
                except httpx.TransportError:
                    stopping.set()
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        answer = httpx.post(
            f"{server.url}{API}/lineage", content=slowly(), timeout=HANG_SECONDS, verify=False
        )
        watcher.join()
        assert answer.status_code == 201
        server.ends_well()
    with Plane.open(Settings(database=database_url)) as plane, plane.catalog.read() as tx:
        assert catalog.get_run(tx, run_id("slow")).state == "RUNNING"


def test_the_first_line_says_where_and_hides_the_password(database_url: str) -> None:
    url = database_url.replace("//postgres@", "//postgres:hunter2@")
    with server_process(url) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert "database " in server.first_line
        assert "hunter2" not in server.first_line
        assert httpx.get(f"{server.url}/readyz", verify=False).json() == {"status": "ok"}


@pytest.mark.parametrize("name", ["Api", "Site"])
def test_a_server_that_cannot_be_made_leaves_nothing_open(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumbles(*_: object, **__: object) -> None:
        raise RuntimeError("no memory left")

    listening: list[socket.socket] = []

    def noted(host: str, port: int) -> socket.socket:
        listening.append(listen(host, port))
        return listening[-1]

    monkeypatch.setattr(serving, name, stumbles)
    monkeypatch.setattr(serving, "listen", noted)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="no memory left"):
        HttpServer.open(Settings(database=f"sqlite:///{tmp_path}/penstock.db", port=0))
    assert [each.fileno() for each in listening] == [-1]
    assert set(threading.enumerate()) <= before
