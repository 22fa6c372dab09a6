"""One server in a process of its own: Penstock, or what it is measured against.

    python -m bench.server SYSTEM --database URL --port PORT [--profile FOLDER]

All of them listen, parse and answer with Penstock's own HTTP server.
"""

import argparse
import asyncio
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.peers.raw import RawCatalog
from bench.peers.single import FOLDER, SingleCatalog
from bench.profile import profiled
from penstock.access.keys import Keys
from penstock.catalog.changes import changes
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import system_clock
from penstock.config import Settings
from penstock.db import Database, open_database
from penstock.ingest.opening import open_ingest
from penstock.ingest.service import IngestService
from penstock.locks.lease_expiry import Sweeper
from penstock.plane import Plane
from penstock.server import serve as server
from penstock.server.app import Api
from penstock.server.metrics import Metrics
from penstock.store.write_queue import WriteQueue
from penstock.telemetry.logs import set_up_logs


class System(StrEnum):
    """A system under test."""

    OURS = "ours"  # all of Penstock
    RAW = "raw"  # stores the JSON, with group commit
    SINGLE = "single"  # 33 statements per event
    EDGE = "edge"  # reads and checks events, stores nothing


class EdgeCatalog(WriteQueue):
    """A write queue that stores nothing."""

    def start(self) -> None:
        """Nothing needs to run."""

    def stop(self) -> None:
        """Nothing runs."""

    def submit_async(self, command: Any, size: int = 0) -> "asyncio.Future[Any]":
        """Complete the write at once."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future


def serve(system: System, settings: Settings) -> None:
    """Run a server until SIGTERM."""
    if system is System.OURS:
        server.serve(settings)
        return
    set_up_logs(settings)
    database = open_database(settings.database, extra=[FOLDER])
    database.migrate()
    catalog = _peer(system, database, settings.database)
    catalog.start()
    sweeper = Sweeper(catalog, clock=system_clock, every_seconds=settings.sweep_seconds)
    keys = Keys(database, clock=system_clock)
    context = open_ingest(settings, catalog, system_clock)
    plane = Plane(
        settings, system_clock, database, catalog, keys, sweeper, context, IngestService(context)
    )
    api = Api(plane, Metrics())
    with server.HttpServer(plane, api, server.listen(settings.host, settings.port)) as http:
        server.tune_interpreter()
        http.run()


def _peer(system: System, database: Database, url: str) -> WriteQueue:
    makers: dict[System, Callable[[], WriteQueue]] = {
        System.RAW: lambda: RawCatalog(database, clock=system_clock),
        System.SINGLE: lambda: SingleCatalog(database, clock=system_clock, url=url),
        System.EDGE: lambda: EdgeCatalog(
            database,
            UnitOfWork(),
            changes,
            clock=system_clock,
            batch_events_max=1,
            queue_length_max=1,
        ),
    }
    return makers[system]()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__)
    parser.add_argument("system", type=System, choices=list(System))
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    settings = Settings(database=given.database, port=given.port, log_level="warning")
    with profiled(given.profile):
        serve(given.system, settings)


if __name__ == "__main__":
    main()
