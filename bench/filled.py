"""Databases of full size, filled once and kept for later runs."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bench import events, graph
from bench.graph import FOLDER, Graph
from bench.vacuum import vacuum
from penstock.db import open_database
from penstock.db.folders import capability_folders, sql_files
from tests.contract import catalog_rows
from tests.servers import SETTINGS, PostgresServer

# As root, PostgreSQL runs as another user, who must be able to enter its folder.
KEPT = Path(f"/tmp/penstock-bench-{os.getuid()}")


class _KeptServer(PostgresServer):
    """A server whose cluster outlives it."""

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """Start the cluster in an existing folder."""
        server = cls(folder)
        server._settings = dict(SETTINGS)
        server.restart()
        return server


class FilledDatabases:
    """A SQLite file and a PostgreSQL cluster with the same graph."""

    def __init__(self, domains: int, say: Callable[[str], None]) -> None:
        self._domains = domains
        self._say = say
        self._stack = ExitStack()
        self._folder = self._own_folder()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def url(self, kind: str) -> str:
        """Return the URL of the graph; write it first if it does not exist."""
        if kind == "sqlite":
            return self._sqlite()
        return self._postgresql()

    def _sqlite(self) -> str:
        path = self._folder / "sqlite" / "penstock.db"
        return self._made("sqlite", lambda: f"sqlite:///{path}")

    def _postgresql(self) -> str:
        folder = self._folder / "pg"
        if (self._folder / "postgresql.ready").exists():
            server: PostgresServer = _KeptServer.reopen(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            server = PostgresServer.start(folder)
        self._stack.callback(server.stop)
        ready = self._folder / "postgresql.ready"
        if ready.exists():
            return ready.read_text()
        return self._made("postgresql", server.create_database)

    def _made(self, kind: str, create: Callable[[], str]) -> str:
        """Return the URL of the filled database, which a file records when complete."""
        ready = self._folder / f"{kind}.ready"
        if ready.exists():
            return ready.read_text()
        shutil.rmtree(self._folder / kind, ignore_errors=True)
        url = create()
        self._say(f"{kind} · writing {self._domains * graph.JOBS:,} jobs and as many datasets")
        database = open_database(url, extra=[FOLDER])
        try:
            database.migrate()
            Graph(self._domains).save(database)
        finally:
            database.close()
        vacuum(url)
        ready.write_text(url)
        return url

    def _own_folder(self) -> Path:
        """Return the kept folder, or a temporary one while another process uses it."""
        folder = KEPT / f"{self._domains}"
        folder.mkdir(parents=True, exist_ok=True)
        for path in (KEPT, folder):
            path.chmod(0o755)
        lock = self._stack.enter_context((KEPT / f"{self._domains}.lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/tmp"))
            folder.chmod(0o755)
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            return folder
        digest = folder / "digest"
        if not digest.exists() or digest.read_text() != _digest():
            shutil.rmtree(folder)
            folder.mkdir()
            digest.write_text(_digest())
        return folder


def _digest() -> str:
    """Return the digest of everything that determines the rows."""
    texts = [Path(module.__file__ or "").read_text() for module in (graph, events, catalog_rows)]
    texts += [file.text for file in sql_files(capability_folders(), "migrations")]
    return hashlib.blake2b("\x00".join(texts).encode(), digest_size=16).hexdigest()
