"""`penstock serve` in a separate process, for tests that kill it or use it as users do."""

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx
import pytest

from penstock.access.keys import Keys
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.schema.admin import KeyRole
from tests.databases import migrated_database
from tests.patience import HANG_SECONDS


class ServerDied(RuntimeError):
    """The server ended before it was ready. The message carries its log."""


class ServerProcess:
    """One server on one database. It takes a free port; `url` is set once it is ready."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, database_url: str) -> None:
        self._process = process
        self._log = log
        self.database_url = database_url
        self.url = ""
        self._token = ""

    @classmethod
    def start(
        cls,
        database_url: str,
        command: str = "serve",
        *,
        launcher: Sequence[str] = (),
        **settings: object,
    ) -> Self:
        """Start a server, or everything with `up`, and return when it is ready.

        The launcher is a program that changes its own limits and then executes the server.
        """
        descriptor, name = tempfile.mkstemp(prefix="penstock-", suffix=".log")
        all_settings = {"log_format": "json", "port": 0, **settings}
        variables = {f"PENSTOCK_{key.upper()}": str(value) for key, value in all_settings.items()}
        others = {key: value for key, value in os.environ.items() if key[:9] != "PENSTOCK_"}
        words = [
            *launcher,
            sys.executable,
            "-m",
            "penstock.cli",
            command,
            "--database",
            database_url,
        ]
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=others | variables,
        )
        os.close(descriptor)
        server = cls(process, Path(name), database_url)
        try:
            server._wait_until_ready()
        except BaseException:
            server.kill()
            raise
        return server

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def log(self) -> str:
        """The server's log so far."""
        return self._log.read_text() if self._log.exists() else ""

    def kill(self) -> None:
        """End the server as `kill -9` does."""
        self._process.kill()
        self._process.wait()
        self._log.unlink(missing_ok=True)

    def terminate(self) -> None:
        """Send SIGTERM and return at once."""
        self._process.terminate()

    def wait_for_end(self) -> int:
        """Wait for the end and return the exit status. This deletes the log."""
        status = self._process.wait()
        assert "Traceback" not in self.log()
        self._log.unlink(missing_ok=True)
        return status

    def stop(self) -> None:
        """Stop the server. A nonzero exit status fails the test."""
        if self.is_alive:
            self.terminate()
        assert self.wait_for_end() == 0

    def client(self) -> httpx.Client:
        """Return a client, with an administrator's key if the server has any keys."""
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        return httpx.Client(base_url=self.url, timeout=HANG_SECONDS, verify=False, headers=headers)

    def key(self, role: KeyRole, namespace: str | None = None) -> str:
        """Create a key in this server's database, as an administrator does."""
        database = open_database(self.database_url)
        try:
            keys = Keys(database, clock=system_clock)
            if not self._token:
                self._token = _new_token(keys, KeyRole.ADMIN, None)
                self._wait_until_guarded()
            return _new_token(keys, role, namespace)
        finally:
            database.close()

    def _wait_until_guarded(self) -> None:
        """Return once the server has noticed the first key, which takes up to a second."""
        deadline = time.monotonic() + HANG_SECONDS
        while httpx.get(f"{self.url}/api/v1/key", verify=False).status_code != 401:
            assert time.monotonic() < deadline, "the server did not notice its first key"
            time.sleep(0.02)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + HANG_SECONDS
        while not self._is_ready():
            if not self.is_alive or time.monotonic() > deadline:
                raise ServerDied(f"the server did not start. Its log says:\n{self.log()}")
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        self.url = self.url or _url_in(self.log())
        try:
            return bool(self.url) and httpx.get(f"{self.url}/readyz", verify=False).is_success
        except httpx.TransportError:
            return False


def _new_token(keys: Keys, role: KeyRole, namespace: str | None) -> str:
    return keys.create(f"test {uuid.uuid4()}", role, namespace=namespace, who="test").token


def _url_in(log: str) -> str:
    for line in log.splitlines():
        try:
            message = json.loads(line)["message"]
        except (ValueError, KeyError):
            continue
        if " listens on " in message:
            return str(message.partition(" listens on ")[2].partition(",")[0])
    return ""


@contextmanager
def serving(
    database_url: str, *, launcher: Sequence[str] = (), **settings: object
) -> Iterator[ServerProcess]:
    """Run a server for a block and stop it cleanly at the end."""
    server = ServerProcess.start(database_url, "serve", launcher=launcher, **settings)
    try:
        yield server
        server.stop()
    finally:
        server.kill()


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A shared server on each kind of database. Each test uses its own namespaces."""
    folder = tmp_path_factory.mktemp("served")
    with migrated_database(request.param, request, folder) as url, serving(url) as running:
        yield running


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def guarded_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A shared server on each kind of database that requires a key for every request."""
    folder = tmp_path_factory.mktemp("guarded")
    with migrated_database(request.param, request, folder) as url, serving(url) as running:
        running.key(KeyRole.ADMIN)
        yield running
