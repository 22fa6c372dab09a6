"""Group commit: writes that wait together are folded together and share one transaction.

Each caller is answered after the commit that holds its write. A write that is refused fails
alone; the others of its batch go through. While one batch is being committed the next is folded.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from penstock.catalog.flush import Changes, changes, flush
from penstock.catalog.world import Keys, World
from penstock.clock import Clock, Micros
from penstock.db.database import Database, Transaction
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


class _Signal(Enum):
    """What else the writer's thread is woken for."""

    STOP = "take no more"
    LANDED = "the batch under way is committed, or could not be"


class _Overtaken(Exception):
    """Somebody else wrote since the rows that a batch was folded from were read."""


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
    """The one place through which a process writes to the catalog.

    One thread folds while another commits: the rows of the batch on its way are known before the
    database has them. A batch is committed only if nobody else wrote meanwhile; if somebody did,
    it is folded again inside its own transaction.
    """

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
        self._queue: queue.SimpleQueue[_Entry[Any] | _Signal] = queue.SimpleQueue()
        self._world = World()
        self._epoch = -1
        self._has_rivals = True  # until a commit shows that nobody else writes
        self._folded: list[_Entry[Any]] = []  # folded, not yet sent
        self._under_way: tuple[list[_Entry[Any]], Future[None]] | None = None
        self._committer = ThreadPoolExecutor(1, "penstock-committer")
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
            self._queue.put(_Signal.STOP)
        if self._thread.is_alive():
            self._thread.join()
        self._committer.shutdown()

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
            for part in _parts(batch):
                if self._has_rivals or part[0].command.alone:
                    self._send()
                    self._land()
                    self._write_folding(part)
                else:
                    self._fold_ahead(part)
            if self._is_free or len(self._folded) >= self._batch_max:
                self._send()
        self._send()
        self._land()

    def _take(self) -> tuple[list[_Entry[Any]], bool]:
        """Wait for one write, then take whatever else is there."""
        batch: list[_Entry[Any]] = []
        entry = self._queue.get()
        while isinstance(entry, _Entry):
            batch.append(entry)
            if len(batch) >= self._batch_max:
                return batch, True
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, entry is not _Signal.STOP

    @property
    def _is_free(self) -> bool:
        """Whether the next batch can go at once."""
        return self._under_way is None or self._under_way[1].done()

    def _fold_ahead(self, batch: list[_Entry[Any]]) -> None:
        """Fold writes while others are being committed; they go together when those are done."""
        self._folded += batch
        try:
            with self._database.read(by_key=True) as tx:
                self._fold(tx, batch)
        except Exception:
            # Whatever it was, it shows again, and is dealt with, where each can fail alone.
            folded, self._folded = self._folded, []
            self._land()
            self._world.forget()
            self._write_folding(folded)

    def _send(self) -> None:
        """Send what is folded on its way, after the batch before it has landed."""
        folded, self._folded = self._folded, []
        landed = self._land()
        if not folded:
            return
        if not landed:
            self._write_folding(folded)
            return
        try:
            with self._database.read(by_key=True) as tx:
                self._world.open(tx)
                writes = changes(self._world)
        except Exception:
            # The database went away: the callers must hear of it, and this thread must live.
            self._world.forget()
            self._write_folding(folded)
            return
        self._world.settle()
        future = self._committer.submit(self._write_folded, folded, writes)
        self._under_way = folded, future
        # Not from inside the task: who is woken must find it done, or would wait for ever.
        future.add_done_callback(lambda _: self._queue.put(_Signal.LANDED))
        if self._world.is_full and self._land():
            self._world.forget()

    def _land(self) -> bool:
        """Wait for the batch under way; False if what was folded since stands on nothing."""
        if self._under_way is None:
            return True
        batch, future = self._under_way
        self._under_way = None
        error = future.exception()
        if error is None:
            return True
        self._world.forget()
        if isinstance(error, Unavailable):
            for entry in batch:
                entry.error = error
            _answer(batch)
        else:
            self._write_folding(batch)
        return False

    def _write_folded(self, batch: list[_Entry[Any]], writes: Changes) -> None:
        """In the committer's thread: write what was folded ahead, and answer."""
        started = time.perf_counter()
        with self._database.write() as tx:
            if tx.epoch != self._epoch + 1:
                raise _Overtaken
            flush(tx, writes)
            epoch = tx.epoch
        self._epoch = epoch
        try:
            self._observe(len(batch), time.perf_counter() - started)
            _answer(batch)
        except Exception:
            # It is committed: raising here would have it written again.
            log.exception("%d writes are committed, but not all were answered", len(batch))

    def _write_folding(self, batch: list[_Entry[Any]]) -> None:
        """Fold and commit a batch in one transaction, and answer."""
        started = time.perf_counter()
        self._commit(batch)
        self._observe(len(batch), time.perf_counter() - started)
        _answer(batch)

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
        with self._database.write() as tx:
            self._has_rivals = tx.epoch != self._epoch + 1
            if self._has_rivals:
                self._world.forget()
            self._fold(tx, batch)
            flush(tx, changes(self._world))
            epoch = tx.epoch
        self._epoch = epoch
        self._world.settle()
        if self._world.is_full:
            self._world.forget()

    def _fold(self, tx: Transaction, batch: list[_Entry[Any]]) -> None:
        """Let each write change the world, or fail alone."""
        world, now = self._world, self._clock()
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


def _parts(batch: list[_Entry[Any]]) -> list[list[_Entry[Any]]]:
    """Cut a batch, in its order, around the writes that need a transaction of their own."""
    if not any(entry.command.alone for entry in batch):
        return [batch] if batch else []
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
