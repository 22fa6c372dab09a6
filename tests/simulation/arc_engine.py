"""An engine in a separate process, to be killed: `python -m tests.simulation.arc_engine JSON`."""

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


def _clock(options: dict[str, Any]) -> Clock:
    """The clock of arriving data. It reads a file that the test writes."""
    if "clock" not in options:
        return system_clock
    path = Path(options["clock"])
    return lambda: int(path.read_text())


def run(options: dict[str, Any]) -> None:
    """Work until a signal stops the engine."""
    settings = Settings(
        database=options["database"],
        objects=options["objects"],
        ingest_folder=options["folder"],
        sweep_seconds=1,
    )
    with (
        StopSignals(lapse_seconds=0) as signals,
        Plane.open(settings) as plane,
        open_executor(options.get("executor", "local"), options.get("processes", 2)) as executor,
        Engine(
            plane.catalog,
            plane.objects,
            executor,
            plane.clock,
            owner=options["owner"],
            database=options["database"] if options.get("lease_from_work") else None,
            concurrency=options.get("concurrency", 4),
            sweep_seconds=options.get("sweep_seconds", 0.2),
        ),
        Watcher(plane.catalog, plane.objects, _clock(options), every_seconds=WATCH_SECONDS),
    ):
        print("ready", flush=True)
        # After SIGCONT another thread may receive the signal, and a main thread that waits without
        # a timeout would never handle it.
        while not signals.received:
            time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    run(json.loads(sys.argv[1]))
