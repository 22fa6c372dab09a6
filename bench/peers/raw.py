"""The same server that only stores the JSON: the limit of anything durable.

Waiting writes share a transaction as in Penstock.
"""

import asyncio
import queue
import threading
from typing import Any

from msgspec import Struct

from penstock.catalog.changes import changes
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Clock
from penstock.db import Database
from penstock.locks.commands import LockingEvent
from penstock.store.write_queue import WriteQueue

_Waiting = tuple[str, "asyncio.Future[None]", asyncio.AbstractEventLoop]
BATCH_MAX = 256


class _RawEvent(Struct, frozen=True, gc=False):
    payload: str


class RawCatalog(WriteQueue):
    """A write queue that only stores bodies."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        super().__init__(
            database, UnitOfWork(), changes, clock=clock, batch_events_max=1, queue_length_max=1
        )
        self._store = database
        self._bodies: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._keeper = threading.Thread(target=self._keep, name="raw-writer", daemon=True)

    def start(self) -> None:
        """Start the writer thread."""
        self._keeper.start()

    def stop(self) -> None:
        """Return when all accepted bodies are stored."""
        self._bodies.put(None)
        self._keeper.join()

    def submit_async(self, command: Any, size: int = 0) -> "asyncio.Future[Any]":
        """Queue an event from an event loop."""
        assert isinstance(command, LockingEvent), "only events are measured"
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._bodies.put((command.event.payload, future, loop))
        return future

    def _keep(self) -> None:
        more = True
        while more:
            batch, more = self._gather()
            if batch:
                with self._store.write() as tx:
                    tx.write("keep_raw_events", [_RawEvent(payload) for payload, _, _ in batch])
                batch[0][2].call_soon_threadsafe(_answer, batch)

    def _gather(self) -> tuple[list[_Waiting], bool]:
        batch: list[_Waiting] = []
        waiting = self._bodies.get()
        while waiting is not None:
            batch.append(waiting)
            if len(batch) >= BATCH_MAX:
                return batch, True
            try:
                waiting = self._bodies.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False


def _answer(batch: list[_Waiting]) -> None:
    for _, future, _ in batch:
        if not future.done():
            future.set_result(None)
