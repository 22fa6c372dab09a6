"""Ingest workers in separate processes, to be killed or to kill themselves at a given step.

The program has every import loaded. It forks a worker for each order that it reads and writes its
process id. It ends, with all workers, when its input closes.
"""

import functools
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from penstock.config import Settings
from penstock.errors import Unavailable
from penstock.ingest.archive import register
from penstock.ingest.queue.sql.store import SqlIngestStore
from penstock.ingest.queue.zookeeper.store import ZkIngestStore
from penstock.ingest.stages import notify
from penstock.ingest.workers.pool import Workers
from penstock.objects import Objects
from penstock.plane import Plane
from penstock.store.write_queue import WriteQueue
from penstock.zookeeper.connection import Connection

CHANGES = ("add_jobs", "change_jobs", "change_batch", "release")
AGAIN_SECONDS = 0.1
CLAIMS = ("claim_jobs", "claim_batches")


class Order(Struct, frozen=True):
    """The settings of a worker. It kills itself at step `crash_at`."""

    settings: dict[str, Any]
    stages: tuple[str, ...]
    concurrency: int
    poll_seconds: float
    log: str
    crash_at: int = 0


class Steps:
    """Counts a worker's external effects and kills the process at one of these steps."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._done = 0
        self._turn = threading.Lock()

    def take(self, what: str) -> None:
        """Count one step."""
        with self._turn:
            self._done += 1
            if self._done == self._last:
                sys.stderr.write(f"killed at step {self._done}: {what}\n")
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: object, name: str) -> None:
        """Count the moments before and after each call."""
        call = getattr(owner, name)

        @functools.wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.take(f"before {name}")
            result = call(*args, **kwargs)
            self.take(f"after {name}")
            return result

        setattr(owner, name, counted)

    def after(self, owner: object, name: str, counts: Callable[[Any], object]) -> None:
        """Count the moment after each call whose result matters."""
        call = getattr(owner, name)

        @functools.wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if counts(result):
                self.take(f"after {name}")
            return result

        setattr(owner, name, counted)

    def watch(self) -> None:
        """Count every write: to the queue, the register, the disk and the object store."""
        for store in (SqlIngestStore, ZkIngestStore):
            for name in CHANGES:
                self.around(store, name)
            for name in CLAIMS:
                self.after(store, name, bool)
        self.around(Connection, "_send")
        self.after(Connection, "_outcome", lambda outcome: isinstance(outcome, list))
        self.around(Objects, "put")
        self.around(Objects, "delete")
        self.around(os, "replace")
        self.around(shutil, "rmtree")
        self.around(notify, "call_back")
        self._watch_register()

    def _watch_register(self) -> None:
        submit = WriteQueue.submit

        def counted(catalog: WriteQueue, command: Any) -> Any:
            if type(command).__module__ != register.__name__:
                return submit(catalog, command)
            name = type(command).__name__
            self.take(f"before {name}")
            answer: Any = submit(catalog, command)
            if answer.exception() is None:
                self.take(f"after {name}")
            return answer

        setattr(WriteQueue, "submit", counted)  # noqa: B010


def run(order: Order) -> None:
    """Work until SIGTERM."""
    with Plane.open(Settings(**order.settings)) as plane:
        workers = Workers(
            plane.context,
            order.stages,
            concurrency=order.concurrency,
            poll_seconds=order.poll_seconds,
        )
        workers.start()
        signal.sigwait({signal.SIGTERM})
        workers.stop()


def work(order: Order) -> None:
    """Work until a kill or the given step."""
    log = os.open(order.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.basicConfig(level=logging.INFO, format="%(threadName)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    if order.crash_at:
        Steps(order.crash_at).watch()
    while True:
        try:
            run(order)
        except Unavailable as error:
            # The servers have not started or have stopped. A supervisor would restart the worker.
            logging.info("%s", error)
            threading.Event().wait(AGAIN_SECONDS)
        else:
            return


def main() -> None:
    """Fork a worker for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # exit statuses are not collected
    read = msgspec.json.Decoder(Order).decode
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            work(read(line))
            os._exit(0)
        print(child, flush=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
