"""Processes of a benchmark: databases and servers, started and stopped together."""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.server import System
from bench.vacuum import LOG_MEGABYTES, fill_log
from tests.servers import COMPILED_WELL, PostgresServer, ZookeeperServer

TOP = Path(__file__).resolve().parents[1]
START_SECONDS_MAX = 60
DATABASES = ("postgresql", "sqlite")
ZOOKEEPER_MB = 2000  # ZooKeeper holds every node in memory


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    port: int
    process: "subprocess.Popen[bytes]"

    def resident_mb(self) -> float:
        """Return the memory of the process."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process."""
        return _cpu_seconds(psutil.Process(self.process.pid))


class Bench:
    """Opens databases and servers; closes and deletes them at the end."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/tmp"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._postgres: PostgresServer | None = None
        self._zookeeper: ZookeeperServer | None = None

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def empty_database(self, kind: str) -> str:
        """Return the URL of a new database."""
        if kind == "sqlite":
            return f"sqlite:///{Path(tempfile.mkdtemp(dir=self.folder)) / 'penstock.db'}"
        if self._postgres is None:
            # A folder directly below /tmp: the user of the server must be able to enter it.
            folder = Path(tempfile.mkdtemp(prefix="penstock-pg-", dir="/tmp"))
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self._postgres = PostgresServer.start(folder, min_wal_size=f"{LOG_MEGABYTES}MB")
            self._stack.callback(self._postgres.stop)
            fill_log(self._postgres.url())
        return self._postgres.create_database()

    def empty_queue(self) -> str:
        """Return the URL of an empty chroot of ZooKeeper."""
        if self._zookeeper is None:
            folder = Path(tempfile.mkdtemp(prefix="zookeeper-", dir=self.folder))
            self._zookeeper = ZookeeperServer.start(folder, ZOOKEEPER_MB, COMPILED_WELL)
            self._stack.callback(self._zookeeper.stop)
        return f"zookeeper://{self._zookeeper.address}/{uuid.uuid4().hex[:16]}"

    def postgres_cpu_seconds(self) -> float:
        """Return the CPU time of all PostgreSQL processes."""
        if self._postgres is None:
            return 0.0
        pid = (self._postgres.folder / "data" / "postmaster.pid").read_text().splitlines()[0]
        postmaster = psutil.Process(int(pid))
        family = [postmaster, *postmaster.children(recursive=True)]
        ended = postmaster.cpu_times()
        used = ended.children_user + ended.children_system
        return float(used) + sum(_cpu_seconds(process) for process in family)

    @contextmanager
    def server(self, system: System, url: str, *, profile: Path | None = None) -> Iterator[Running]:
        """Run a server for the block."""
        port = _free_port()
        options = ["--database", url, "--port", str(port)]
        if profile is not None:
            options += ["--profile", str(profile)]
        command = [sys.executable, "-m", "bench.server", system, *options]
        process = subprocess.Popen(command, cwd=TOP)
        try:
            _wait_until_alive(process, port)
            yield Running(port, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_alive(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}; see its log")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/livez").close()
            return
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)
