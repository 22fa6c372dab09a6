"""An engine in a process of its own that is killed when it comes to a key."""

import os
import signal
from collections.abc import Mapping
from typing import Any

from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors.local import LocalThreads
from penstock.catalog.writes import open_write_queue
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.objects import Objects
from tests.contract.forking import FORKED


class DeadlyObjects(Objects):
    """An object store of which one operation on one key is the last thing that a process does."""

    operation = ""
    ending = ""

    def put(self, key: str, data: Any, **how: Any) -> None:
        self._die("put", key)
        super().put(key, data, **how)

    def delete(self, key: str) -> None:
        self._die("delete", key)
        super().delete(key)

    def _die(self, operation: str, key: str) -> None:
        if self.operation == operation and key.endswith(self.ending):
            os.kill(os.getpid(), signal.SIGKILL)


def run_to_death(url: str, store: str, operation: str = "", ending: str = "") -> None:
    """Run an engine until it is killed: by a workload, or at an operation on a key."""
    doomed = FORKED.Process(target=_work, args=(dict(os.environ), url, store, operation, ending))
    doomed.start()
    doomed.join()
    assert doomed.exitcode == -signal.SIGKILL


def _work(environ: Mapping[str, str], url: str, store: str, operation: str, ending: str) -> None:
    os.environ.update(environ)
    database = open_database(url)
    catalog = open_write_queue(
        database, clock=system_clock, batch_events_max=64, queue_length_max=1000
    )
    catalog.start()
    objects = DeadlyObjects.open(store)
    objects.operation, objects.ending = operation, ending
    threads = LocalThreads(2)
    with Engine(catalog, objects, threads, system_clock, owner="doomed", sweep_seconds=0.02):
        signal.pause()
