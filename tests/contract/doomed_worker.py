"""A process that moves backfills and replays on and runs what they set going, until killed."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from penstock.arcs.backfill import Backfills
from penstock.arcs.engine import Engine
from penstock.catalog.catalog import Catalog
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.objects import Objects
from penstock.replay.replays import Replays


@contextmanager
def doomed_worker(url: str, store: str) -> Iterator[None]:
    """Let the process work on a database and an object store for a while."""
    command = [sys.executable, "-m", __name__, url, store]
    doomed = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        yield
    finally:
        doomed.kill()
        doomed.wait()


def main(url: str, store: str) -> None:
    """Work for ever."""
    database = open_database(url)
    catalog = Catalog(database, clock=system_clock, batch_events_max=64, queue_length_max=1000)
    catalog.start()
    backfills = Backfills(catalog, system_clock)
    replays = Replays(catalog, system_clock)
    engine = Engine(
        catalog,
        Objects.open(store),
        ThreadPoolExecutor(2),
        system_clock,
        owner="doomed",
        concurrency=2,
        sweep_seconds=0.02,
    )
    engine.start()
    pause = threading.Event()
    while not pause.wait(0.01):
        backfills.step_all()
        replays.step_all()


if __name__ == "__main__":
    main(*sys.argv[1:])
