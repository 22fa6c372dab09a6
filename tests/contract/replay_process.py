"""A process that moves replays on and runs what they set going, until it is killed."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from penstock.arcs.engine import Engine
from penstock.catalog.catalog import Catalog
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.objects import Objects
from penstock.replay.replays import Replays


def main(url: str, store: str) -> None:
    """Work for ever."""
    database = open_database(url)
    catalog = Catalog(database, clock=system_clock, batch_events_max=64, queue_length_max=1000)
    catalog.start()
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
        replays.step_all()


if __name__ == "__main__":
    main(*sys.argv[1:])
