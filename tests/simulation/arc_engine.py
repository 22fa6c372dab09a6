"""An engine in a process of its own, to be killed: `python -m tests.simulation.arc_engine JSON`."""

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from penstock.arcs.arrivals.watcher import Watcher
from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors import open_executor
from penstock.cli.stopping import StopSignals
from penstock.clock import Clock, system_clock
from penstock.config import Settings
from penstock.plane import Plane

WATCH_SECONDS = 0.5
LOOK_SECONDS = 0.05


def _clock(told: dict[str, Any]) -> Clock:
    """Return the clock of arrivals, which is in a file that others write."""
    if "clock" not in told:
        return system_clock
    path = Path(told["clock"])
    return lambda: int(path.read_text())


def run(told: dict[str, Any]) -> None:
    """Work until a signal stops it."""
    settings = Settings(
        database=told["database"],
        objects=told["objects"],
        ingest_folder=told["folder"],
        sweep_seconds=1,
    )
    with (
        StopSignals(lapse_seconds=0) as signals,
        Plane.open(settings) as plane,
        open_executor(told.get("executor", "local"), told.get("processes", 2)) as executor,
        Engine(
            plane.catalog,
            plane.objects,
            executor,
            plane.clock,
            owner=told["owner"],
            database=told["database"] if told.get("lease_from_work") else None,
            concurrency=told.get("concurrency", 4),
            sweep_seconds=told.get("sweep_seconds", 0.2),
        ),
        Watcher(plane.catalog, plane.objects, _clock(told), every_seconds=WATCH_SECONDS),
    ):
        print("ready", flush=True)
        # A process that has just been let go on may be told on another thread, and the main one,
        # if it waited for ever, would not hear of it.
        while not signals.received:
            time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    run(json.loads(sys.argv[1]))
