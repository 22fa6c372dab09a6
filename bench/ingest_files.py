"""Real files over HTTP: fetched, described, stored as objects and recorded."""

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from penstock.config import Settings
from penstock.ingest.collections import PutCollection
from penstock.ingest.intake.checkm import CheckmRow, ManifestKind, write
from penstock.ingest.intake.deposits import DepositRequest
from penstock.ingest.workers.pool import Workers
from penstock.plane import Plane
from penstock.schema.ingest import Collection
from penstock.states import BatchState

FILE_BYTES = 10_000
CONCURRENCY = 4
LOOK_SECONDS = 0.05
COLLECTION = "maps"
MANIFEST = "batch.checkm"


class Files(Struct, frozen=True):
    """A batch of files, ingested by one process."""

    files: int
    file_bytes: int
    seconds: float
    per_second: float
    cpu_ms: float  # for each file


def ingest_files(database: str, folder: Path, count: int) -> Files:
    """Run one process on a batch until the batch is reported."""
    served = folder / "served"
    with _serving(served) as url:
        _make_files(served, count, url)
        settings = Settings(
            database=database,
            objects=f"file://{folder / 'objects'}",
            ingest_folder=str(folder / "work"),
        )
        with Plane.open(settings) as plane:
            collection = Collection(name=COLLECTION, dataset="maps", places=(url,))
            plane.catalog.submit(PutCollection("bench", collection)).result()
            deposit = DepositRequest(collection=COLLECTION, url=url + MANIFEST, submitter="jo")
            used, began = time.process_time(), time.perf_counter()
            batch = plane.desk.submit(deposit).batch
            workers = Workers(plane.context, concurrency=CONCURRENCY)
            workers.start()
            while batch.status not in (BatchState.COMPLETED, BatchState.FAILED):
                time.sleep(LOOK_SECONDS)
                batch = plane.context.store.batch(batch.id)
            took, cpu = time.perf_counter() - began, time.process_time() - used
            workers.stop()
    assert (batch.status, batch.jobs) == (BatchState.COMPLETED, count), batch.message
    return Files(count, FILE_BYTES, took, count / took, 1000 * cpu / count)


def _make_files(folder: Path, count: int, url: str) -> None:
    rows = []
    for number in range(count):
        name = f"{number}.csv"
        content = f"{number},".encode().ljust(FILE_BYTES, b"x")
        (folder / name).write_bytes(content)
        rows.append(
            CheckmRow(
                line=0,
                url=url + name,
                algorithm="sha-256",
                digest=hashlib.sha256(content).hexdigest(),
                size=len(content),
                name=name,
                local_id=f"local-{number}",
                title=f"Map {number}",
            )
        )
    (folder / MANIFEST).write_bytes(write(ManifestKind.FILES, rows))


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """Run a web server in its own process; its first line is its port."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    process = subprocess.Popen(
        [*command, "--protocol", "HTTP/1.1"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline().decode().split()
        yield f"http://127.0.0.1:{said[said.index('port') + 1]}/"
    finally:
        process.terminate()
        process.communicate()
