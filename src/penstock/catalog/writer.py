"""Group commit: writes that wait together are folded together and share one transaction.

Each caller is answered after the commit that holds its write. A write that is refused fails
alone; the others of its batch go through.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from penstock.catalog.flush import flush
from penstock.catalog.world import Keys, World
from penstock.clock import Clock, Micros
from penstock.db.database import Database
from penstock.errors import Busy, PenstockError, Unavailable

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

log = logging.getLogger(__name__)


class Command(Protocol[T_co]):
    """One write: what it will touch, and what it does to that."""

    @property
    def alone(self) -> bool:
        """Whether it must have a transaction of its own."""

    def want(self, keys: Keys) -> None:
        """Name the rows to load beforehand; leaving one out costs a round trip, no more."""

    def apply(self, world: World, now: Micros) -> T_co:
        """Change the world, or raise a PenstockError and have everything undone."""


class _Entry(Generic[T]):
    """A command and who waits for it."""

    __slots__ = ("command", "error", "loop", "result", "waiter")

    def __init__(self, command: Command[T], waiter: Any, loop: asyncio.AbstractEventLoop | None):
        self.command = command
        self.waiter = waiter
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        if self.waiter.done():  # the caller has gone away; its write stands
            return
        if self.error is not None:
            self.waiter.set_exception(self.error)
        else:
            self.waiter.set_result(self.result)


class Writer:
    """The one thread through which a process writes to the catalog."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        batch_events_max: int,
        queue_length_max: int,
        observe: Callable[[int, float], None] = lambda size, seconds: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._batch_max = batch_events_max
        self._queue_max = queue_length_max
        self._observe = observe
        self._queue: queue.SimpleQueue[_Entry[Any] | None] = queue.SimpleQueue()
        self._world = World()
        self._epoch = -1
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="penstock-writer", daemon=True)

    @property
    def queue_length(self) -> int:
        """How many writes are waiting."""
        return self._queue.qsize()

    def start(self) -> None:
        """Begin to take writes."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more; return when all that was taken is committed and answered."""
        if not self._stopping:
            self._stopping = True
            self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def submit(self, command: Command[T]) -> "Future[T]":
        """Hand over a write; the future is done after its commit."""
        future: Future[T] = Future()
        self._put(_Entry(command, future, None))
        return future

    def submit_async(self, command: Command[T]) -> "asyncio.Future[T]":
        """Hand over a write from an event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._put(_Entry(command, future, loop))
        return future

    def _put(self, entry: _Entry[Any]) -> None:
        if self._stopping:
            raise Unavailable("the server is stopping; send this again in a moment")
        if self._queue.qsize() >= self._queue_max:
            raise Busy(f"{self._queue_max} writes are waiting already; send this again in a second")
        self._queue.put(entry)

    def _run(self) -> None:
        more = True
        while more:
            batch, more = self._take()
            if batch:
                started = time.perf_counter()
                for part in _parts(batch):
                    self._commit(part)
                self._observe(len(batch), time.perf_counter() - started)
                _answer(batch)

    def _take(self) -> tuple[list[_Entry[Any]], bool]:
        """Wait for one write, then take whatever else is there."""
        batch: list[_Entry[Any]] = []
        entry = self._queue.get()
        while entry is not None:
            batch.append(entry)
            if len(batch) >= self._batch_max:
                return batch, True
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _commit(self, batch: list[_Entry[Any]]) -> None:
        try:
            self._together(batch)
        except Unavailable as error:
            self._world.forget()
            for entry in batch:
                entry.error = error
        except Exception as error:
            # One write that the database itself refuses must not take the others with it.
            self._world.forget()
            if len(batch) > 1:
                for entry in batch:
                    self._commit([entry])
                return
            if not isinstance(error, PenstockError):
                log.exception("a write failed: %s", type(batch[0].command).__name__)
            batch[0].error = error

    def _together(self, batch: list[_Entry[Any]]) -> None:
        world, now = self._world, self._clock()
        with self._database.write() as tx:
            if tx.epoch != self._epoch + 1:
                world.forget()
            world.open(tx)
            keys = Keys()
            for entry in batch:
                entry.result = entry.error = None
                entry.command.want(keys)
            world.load(keys)
            for entry in batch:
                world.undo.begin()
                try:
                    entry.result = entry.command.apply(world, now)
                except Unavailable:
                    raise
                except PenstockError as refusal:
                    world.undo.undo()
                    entry.error = refusal
            flush(world)
            epoch = tx.epoch
        self._epoch = epoch
        world.settle()


def _parts(batch: list[_Entry[Any]]) -> list[list[_Entry[Any]]]:
    """Cut a batch, in its order, around the writes that need a transaction of their own."""
    if not any(entry.command.alone for entry in batch):
        return [batch]
    parts: list[list[_Entry[Any]]] = [[]]
    for entry in batch:
        if entry.command.alone:
            parts += [[entry], []]
        else:
            parts[-1].append(entry)
    return [part for part in parts if part]


def _answer(batch: list[_Entry[Any]]) -> None:
    """Wake each loop once for all of its callers."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Entry[Any]]] = {}
    for entry in batch:
        if entry.loop is None:
            entry.resolve()
        else:
            by_loop.setdefault(entry.loop, []).append(entry)
    for loop, entries in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve_all, entries)
        except RuntimeError:
            log.warning("%d callers left before their answer; their writes stand", len(entries))


def _resolve_all(entries: list[_Entry[Any]]) -> None:
    for entry in entries:
        entry.resolve()
