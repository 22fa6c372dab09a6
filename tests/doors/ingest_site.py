"""A server, workers of ingest in processes of their own, and a web server to fetch from."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from penstock.ingest.intake.checkm import CheckmRow, ManifestKind, write
from tests.doors.commands import Terminal, environment, program
from tests.doors.ingesting import working
from tests.doors.serving import Running, running
from tests.doors.waiting import until
from tests.web import Web, content

SESSION_SECONDS = 3


@dataclass(frozen=True)
class Site:
    """Where the parts are; commands are run by who has a terminal."""

    folder: Path
    server: Running
    web: Web
    settings: Mapping[str, str]

    @property
    def url(self) -> str:
        return self.server.server.url

    def work(self, *flags: str) -> str:
        """A worker for once; gives what it logged."""
        done = program(
            self.folder, "ingest", "start", "--once", *flags, variables=dict(self.settings)
        )
        assert done.code == 0, done.err
        assert "Traceback" not in done.err, done.err
        return done.err

    @contextmanager
    def working(self, *stages: str) -> Iterator[None]:
        """Workers of some stages, or of all, in this process; they meet nothing unexpected."""
        errors = _Errors()
        log = logging.getLogger("penstock")
        log.addHandler(errors)
        try:
            with working(self.server, *stages):
                yield
        finally:
            log.removeHandler(errors)
        assert errors.told == []

    def start(self, *flags: str) -> "Worker":
        """A worker that stays."""
        return Worker(self, flags)

    def serve(self, name: str, body: bytes) -> str:
        """A file on the web server; gives its URL."""
        return self.web.on(f"/{name}", content(body))

    def manifest(self, files: Mapping[str, bytes], missing: Sequence[str] = ()) -> Path:
        """A manifest of files that are served, and of some that are not."""
        rows = [
            CheckmRow(
                line=0,
                url=self.serve(name, body),
                algorithm="sha-256",
                digest=sha256(body).hexdigest(),
                name=name,
                title=f"title of {name}",
            )
            for name, body in files.items()
        ]
        rows += [CheckmRow(line=0, url=f"{self.web.url}/{name}", name=name) for name in missing]
        path = self.folder / "batch.checkm"
        path.write_bytes(write(ManifestKind.FILES, rows))
        return path


class _Errors(logging.Handler):
    """Keeps what is logged with a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.told.append(self.format(record))


class Worker:
    """`penstock ingest start` while the block lasts."""

    def __init__(self, site: Site, flags: Sequence[str]) -> None:
        self._log = site.folder / "worker.log"
        with self._log.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "penstock.cli", "ingest", "start", *flags],
                cwd=site.folder,
                env=environment(site.folder, **site.settings),
                stderr=stream,
            )

    def __enter__(self) -> "Worker":
        until(lambda: "penstock " in self.log() or self._process.poll() is not None)
        assert self._process.poll() is None, self.log()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()

    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self._process.pid, number)

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait()


@contextmanager
def site(folder: Path, database_url: str, queue: str = "database") -> Iterator[Site]:
    """A server on a database, with folders of its own."""
    settings: dict[str, Any] = {
        "queue": queue,
        "objects": f"file://{folder / 'objects'}",
        "ingest_folder": str(folder / "working"),
        "ingest_session_seconds": SESSION_SECONDS,
    }
    given = {"database": database_url, **settings}
    variables = {f"PENSTOCK_{name.upper()}": str(value) for name, value in given.items()}
    with Web() as web, running(database_url, **settings) as server:
        yield Site(folder, server, web, variables)


def collection(at: Site, penstock: Terminal, name: str) -> str:
    """Make a collection that may read what the site has; gives its name."""
    made = penstock(
        *("ingest", "collections", "set", name, "--dataset", "maps", "--namespace", "library"),
        *("--place", f"{at.web.url}/", "--place", f"file://{at.folder}/"),
    )
    assert "library/maps" in made.text
    assert f"penstock ingest submit {name} PAYLOAD" in made.err
    return name


def submitted(penstock: Terminal, *arguments: str) -> str:
    """Submit, and get the batch's id."""
    done = penstock("ingest", "submit", *arguments)
    assert re.fullmatch(r"bid\d{10}\n", done.text)
    assert f"penstock ingest watch {done.out.strip()}" in done.err
    return done.out.strip()


def ended(penstock: Terminal, *arguments: str) -> str:
    """Submit, wait for the end, and get the batch's id."""
    done = penstock("ingest", "submit", *arguments, "--wait", "--json")
    found = json.loads(done.out)
    assert (done.code, found["status"]) in ((0, "completed"), (1, "failed"))
    return str(found["id"])
