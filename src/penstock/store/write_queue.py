"""Where writes wait for the writer's thread, and what wakes it."""

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from penstock.access.caller import called_from, caller_address
from penstock.catalog.flush import changes, flush
from penstock.catalog.unit_of_work import Keys, UnitOfWork
from penstock.clock import Clock, Micros
from penstock.db.database import Database, Sent, Transaction
from penstock.errors import Busy, PenstockError, Unavailable


class Sized(Protocol):
    """An entry that knows how many bytes it keeps."""

    @property
    def size(self) -> int:
        """Bytes of the request that the entry came with."""


E = TypeVar("E", bound=Sized)


class Inbox(Generic[E]):
    """Entries in the order they came; put by any thread, taken by one.

    Entries from an event loop wake the taker once for each turn of the loop: a thread woken for
    every one of them would fight the loop for the interpreter.
    """

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._entries: deque[E] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._enough = 1
        self._loops: set[asyncio.AbstractEventLoop] = set()  # that will ring at their next turn
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: E) -> None:
        """Add an entry, or refuse it: Busy when too many wait, Unavailable when closed."""
        self._add(entry)
        self.ring()

    def put_from(self, loop: asyncio.AbstractEventLoop, entry: E) -> None:
        """Add an entry in an event loop's own thread."""
        self._add(entry)
        if loop not in self._loops:
            self._loops.add(loop)
            loop.call_soon(self._turn, loop)

    def _add(self, entry: E) -> None:
        if self._closed:
            raise Unavailable("the server is stopping; send this again in a moment")
        if len(self._entries) >= self._length_max:
            raise Busy(
                f"{self._length_max} writes are waiting already; send this again in a second"
            )
        self._entries.append(entry)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loops.discard(loop)
        if len(self._entries) >= self._enough:
            self.ring()

    def ring(self) -> None:
        """Wake the taker, or have it not fall asleep."""
        # Rung twice between two looks, it would only look in vain.
        if self._bell.empty():
            self._bell.put(None)

    def close(self) -> None:
        """Take no more entries."""
        self._closed = True
        self.ring()

    def wait(self, enough: int) -> None:
        """Return when there are enough entries or somebody rings.

        Who asks for more than one must know that somebody will ring.
        """
        self._enough = enough
        if len(self._entries) < enough and not self.is_over:
            self._bell.get()

    def take(self, most: int, bytes_max: int) -> list[E]:
        """Take so many entries at most, and no more than so many bytes unless in one entry."""
        taken: list[E] = []
        size = 0
        while self._entries and len(taken) < most:
            size += self._entries[0].size
            if taken and size > bytes_max:
                break
            taken.append(self._entries.popleft())
        return taken

    @property
    def is_over(self) -> bool:
        """Whether it is closed and all that it took was taken from it."""
        return self._closed and not self._entries


T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

log = logging.getLogger(__name__)

_ENOUGH = 16  # writes that are worth waking up for while others are on their way
_SHARE_MIN = 4  # writes that are worth a transaction of their own while others wait
_FEW = 2  # writes that are not worth another thread
_BATCH_BYTES_MAX = 8 * 1024 * 1024  # of events in one transaction, unless one alone is larger
_UNDER_WAY_MAX = 2  # batches on their way: the world has room for two


class Command(Protocol[T_co]):
    """One write: what it will touch, and what it does to that."""

    @property
    def exclusive(self) -> bool:
        """Whether it must have a transaction of its own, as what writes by itself must."""

    def prefetch(self, keys: Keys) -> None:
        """Name the rows to load beforehand; leaving one out costs a round trip, no more."""

    def execute(self, uow: UnitOfWork, now: Micros) -> T_co:
        """Change the world, or raise a PenstockError and have everything undone."""


class _Entry(Generic[T]):
    """A command, the address that it came from, and the caller that waits for it."""

    __slots__ = ("address", "command", "error", "loop", "result", "size", "waiter")

    def __init__(
        self,
        command: Command[T],
        waiter: Any,
        loop: asyncio.AbstractEventLoop | None,
        size: int = 0,
    ) -> None:
        self.command = command
        self.size = size
        self.waiter = waiter
        self.loop = loop
        self.address = caller_address()
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        if self.waiter.done():  # the caller has gone away; its write stands
            return
        if self.error is not None:
            self.waiter.set_exception(self.error)
        else:
            self.waiter.set_result(self.result)


class _Flight(NamedTuple):
    """A batch that was folded and sent; the committer waits for its landing."""

    batch: list[_Entry[Any]]
    sent: Sent
    landing: "Future[None]"


class Writer:
    """The one place through which a process writes to the catalog.

    One thread folds and sends while another waits for commits: the rows of a batch on its way are
    known before the database has them. Two batches can be on their way, so that the database finds
    the next one ready. A batch is committed only if nobody else wrote meanwhile; if somebody did,
    it and what was folded on top of it are folded again, each inside its own transaction.
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
        self._observe = observe
        self._inbox: Inbox[_Entry[Any]] = Inbox(queue_length_max)
        self._uow = UnitOfWork()
        self._epoch = -1
        self._has_rivals = True  # until a commit shows that nobody else writes
        self._folded: list[_Entry[Any]] = []  # folded, not yet sent
        self._under_way: deque[_Flight] = deque()
        self._committer = ThreadPoolExecutor(1, "penstock-committer")
        self._thread = threading.Thread(target=self._run, name="penstock-writer", daemon=True)

    @property
    def queue_length(self) -> int:
        """How many writes are waiting."""
        return len(self._inbox)

    def start(self) -> None:
        """Begin to take writes."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more; return when all that was taken is committed and answered."""
        self._inbox.close()
        if self._thread.is_alive():
            self._thread.join()
        self._committer.shutdown()

    def submit(self, command: Command[T]) -> "Future[T]":
        """Hand over a write; the future is done after its commit."""
        future: Future[T] = Future()
        self._inbox.put(_Entry(command, future, None))
        return future

    def submit_async(self, command: Command[T], size: int = 0) -> "asyncio.Future[T]":
        """Hand over a write from an event loop; `size` is that of the body kept with it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._inbox.put_from(loop, _Entry(command, future, loop, size))
        return future

    def _run(self) -> None:
        while not self._inbox.is_over:
            self._inbox.wait(self._enough)
            for part in _parts(self._inbox.take(self._share, _BATCH_BYTES_MAX)):
                if self._has_rivals or part[0].command.exclusive:
                    self._send()
                    self._land()
                    self._write_folding(part)
                else:
                    self._fold_ahead(part)
            if self._may_send:
                self._send()
        self._send()
        self._land()

    @property
    def _share(self) -> int:
        """How many writes to fold at once: half of all, so that the database has as many.

        Callers who wait for an answer before they send more come back together: left alone, a
        large batch and a small one would take turns for ever, and the database idle meanwhile.
        """
        if self._has_rivals:
            return self._batch_max
        under_way = sum(len(flight.batch) for flight in self._under_way)
        every = len(self._inbox) + len(self._folded) + under_way
        return min(self._batch_max, max(_SHARE_MIN, (every + 1) // 2))

    @property
    def _enough(self) -> int:
        """How many writes to wait for: while others are on their way there is no hurry.

        Whoever waits for more than one is woken by a landing.
        """
        if not self._under_way:
            return 1
        return max(1, min(_ENOUGH, len(self._under_way[-1].batch) // 2))

    @property
    def _may_send(self) -> bool:
        """Whether there is room on the way, or the next batch is full and goes when there is."""
        while self._under_way and self._under_way[0].landing.done():
            if not self._land(len(self._under_way) - 1):
                return False
        if len(self._under_way) < _UNDER_WAY_MAX or len(self._folded) >= self._batch_max:
            return True
        return sum(entry.size for entry in self._folded) >= _BATCH_BYTES_MAX

    def _fold_ahead(self, batch: list[_Entry[Any]]) -> None:
        """Fold writes while others are being committed."""
        self._folded += batch
        try:
            with self._reading():
                self._fold(batch)
        except Exception:
            # Whatever it was, it shows again, and is dealt with, where each can fail alone.
            self._refold()

    def _send(self) -> None:
        """Send what is folded, once there is room for one more on the way."""
        if not self._land(_UNDER_WAY_MAX - 1) or not self._folded:
            return
        after = self._under_way[-1].sent if self._under_way else self._epoch
        try:
            with self._reading():
                writes = changes(self._uow)
            sent = self._database.send(writes, after=after)
        except Exception:
            # The database went away, or will not have a row: the callers must hear of it, each of
            # his own, and this thread must live.
            self._refold()
            return
        self._uow.settle()
        self._epoch = sent.epoch
        folded, self._folded = self._folded, []
        if len(folded) <= _FEW and not self._under_way and not len(self._inbox):
            # Nothing else to do meanwhile: waking another thread would only take time.
            self._under_way.append(_Flight(folded, sent, _done(self._see_landing, folded, sent)))
            self._land()
        else:
            landing = self._committer.submit(self._see_landing, folded, sent)
            self._under_way.append(_Flight(folded, sent, landing))
            # Not from inside the task: who is woken must find it done, or would wait for ever.
            landing.add_done_callback(lambda _: self._inbox.ring())
        if self._uow.is_full and self._land():
            self._uow.forget()

    def _land(self, left: int = 0) -> bool:
        """Wait until no more than so many are under way; False if one failed, and all is done."""
        while len(self._under_way) > left:
            if self._under_way[0].landing.exception() is not None:
                self._refold()
                return False
            self._under_way.popleft()
        return True

    def _refold(self) -> None:
        """Write what is under way and could not be, and what was folded on top of it, anew."""
        flights, folded = list(self._under_way), self._folded
        self._under_way.clear()
        self._folded = []
        errors = [flight.landing.exception() for flight in flights]
        self._uow.forget()
        self._epoch = -1
        for flight, error in zip(flights, errors, strict=True):
            if isinstance(error, Unavailable):
                _refuse(flight.batch, error)
            elif error is not None:
                self._write_folding(flight.batch)
        if folded:
            self._write_folding(folded)

    def _see_landing(self, batch: list[_Entry[Any]], sent: Sent) -> None:
        """Wait until what was folded ahead is committed, and answer."""
        started = time.perf_counter()
        sent.land()
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
            self._uow.forget()
            for entry in batch:
                entry.error = error
        except Exception as error:
            # One write that the database itself refuses must not take the others with it.
            self._uow.forget()
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
                self._uow.forget()
            self._uow.open(tx, is_shared=len(batch) > 1)
            self._fold(batch)
            flush(tx, changes(self._uow))
            epoch = tx.epoch
        self._epoch = epoch
        self._uow.settle()
        if self._uow.is_full:
            self._uow.forget()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Have the world open; most batches find all that they need there, and read nothing."""
        with ExitStack() as stack:
            read = self._database.read
            self._uow.open_late(lambda: stack.enter_context(read(by_key=True)))
            yield
            self._uow.close()

    def _fold(self, batch: list[_Entry[Any]]) -> None:
        """Let each write change the world, or fail alone."""
        uow, now = self._uow, self._clock()
        keys = Keys()
        for entry in batch:
            entry.result = entry.error = None
            entry.command.prefetch(keys)
        uow.load(keys, now)
        for entry in batch:
            uow.undo.begin()
            try:
                # Only commands that run alone write to the audit log, which keeps the address.
                if entry.command.exclusive and entry.address:
                    with called_from(entry.address):
                        entry.result = entry.command.execute(uow, now)
                else:
                    entry.result = entry.command.execute(uow, now)
            except Unavailable:
                raise
            except PenstockError as refusal:
                # What it wrote by itself goes with its transaction.
                if entry.command.exclusive or uow.has_rewritten:
                    raise
                uow.undo.undo()
                entry.error = refusal


def _parts(batch: list[_Entry[Any]]) -> list[list[_Entry[Any]]]:
    """Cut a batch, in its order, around the writes that need a transaction of their own."""
    if not any(entry.command.exclusive for entry in batch):
        return [batch] if batch else []
    parts: list[list[_Entry[Any]]] = [[]]
    for entry in batch:
        if entry.command.exclusive:
            parts += [[entry], []]
        else:
            parts[-1].append(entry)
    return [part for part in parts if part]


def _done(work: Callable[..., None], *args: Any) -> "Future[None]":
    """Do something here and now, as if an executor had done it."""
    future: Future[None] = Future()
    try:
        work(*args)
        future.set_result(None)
    except BaseException as error:
        future.set_exception(error)
    return future


def _refuse(batch: list[_Entry[Any]], error: Exception) -> None:
    for entry in batch:
        entry.error = error
    _answer(batch)


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


class WriteQueue(Writer):
    """Writes through one queue, reads on snapshots of their own."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A snapshot to query."""
        return self._database.read()
