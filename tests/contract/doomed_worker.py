"""A process that moves backfills and replays on and runs what they set going, until killed."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors.local import LocalThreads
from penstock.catalog.writes import open_write_queue
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.objects import Objects
from penstock.operations.backfills.service import Backfills
from penstock.operations.replays.service import Replays
from tests.contract.backfill_site import BROKEN
from tests.contract.forking import FORKED


@contextmanager
def doomed_worker(url: str, store: str, broken: str) -> Iterator[None]:
    """Let the process work on a database, an object store and broken lots for a while."""
    doomed = FORKED.Process(target=_work, args=(url, store, broken))
    doomed.start()
    try:
        yield
    finally:
        doomed.kill()
        doomed.join()


def _work(url: str, store: str, broken: str) -> None:
    """Work for ever."""
    os.environ[BROKEN] = broken
    database = open_database(url)
    catalog = open_write_queue(
        database, clock=system_clock, batch_events_max=64, queue_length_max=1000
    )
    catalog.start()
    backfills = Backfills(catalog, system_clock)
    replays = Replays(catalog, system_clock)
    engine = Engine(
        catalog,
        Objects.open(store),
        LocalThreads(2),
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
