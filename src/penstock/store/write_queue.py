"""The write queue: commands of all callers, committed in groups by one thread."""

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
from penstock.clock import Clock, Micros
from penstock.db.database import Database, Sent, Transaction
from penstock.errors import Busy, PenstockError, Unavailable
from penstock.store.unit_of_work import BaseUnitOfWork, Changes, write_changes


class Sized(Protocol):
    """An entry with a size."""

    @property
    def size(self) -> int:
        """Bytes of the request that the entry holds."""


E = TypeVar("E", bound=Sized)


class Inbox(Generic[E]):
    """A queue of entries: any thread puts, one thread takes.

    Entries from an event loop wake the taker once per iteration of the loop. A wake-up for each
    entry would make the thread compete with the loop for the interpreter.
    """

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._entries: deque[E] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._wake_at = 1
        self._loops: set[asyncio.AbstractEventLoop] = set()  # they ring next iteration
        self._closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: E) -> None:
        """Add an entry. Raise Busy if the queue is full, Unavailable if it is closed."""
        self._add(entry)
        self.ring()

    def put_from(self, loop: asyncio.AbstractEventLoop, entry: E) -> None:
        """Add an entry from the thread of an event loop."""
        self._add(entry)
        if loop not in self._loops:
            self._loops.add(loop)
            loop.call_soon(self._ring_for, loop)

    def _add(self, entry: E) -> None:
        if self._closed:
            raise Unavailable("the server is stopping; send this again in a moment")
        if len(self._entries) >= self._length_max:
            raise Busy(
                f"{self._length_max} writes are waiting already; send this again in a second"
            )
        self._entries.append(entry)

    def _ring_for(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loops.discard(loop)
        if len(self._entries) >= self._wake_at:
            self.ring()

    def ring(self) -> None:
        """Wake the taker, or keep it from going to sleep."""
        # A second ring before the taker looks would only cause an empty look.
        if self._bell.empty():
            self._bell.put(None)

    def close(self) -> None:
        """Refuse further entries."""
        self._closed = True
        self.ring()

    def wait(self, enough: int) -> None:
        """Return when there are enough entries, or on a ring.

        A caller that waits for more than one entry must be sure that a ring follows.
        """
        self._wake_at = enough
        if len(self._entries) < enough and not self.is_over:
            self._bell.get()

    def take(self, most: int, bytes_max: int) -> list[E]:
        """Take at most `most` entries and `bytes_max` bytes; a larger entry is taken alone."""
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
        """Whether the queue is closed and empty."""
        return self._closed and not self._entries


T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
U = TypeVar("U", bound=BaseUnitOfWork)

log = logging.getLogger(__name__)

_ENOUGH = 16  # commands that justify a wake-up while other batches are uncommitted
_SHARE_MIN = 4  # commands that justify a transaction while others wait
_FEW = 2  # commands too few for another thread
_BATCH_BYTES_MAX = 8 * 1024 * 1024  # of events in one transaction, unless one event is larger
_UNDER_WAY_MAX = 2  # uncommitted batches; the unit of work tracks two


class Command(Protocol[T_co]):
    """One write: the rows that it needs, and the change."""

    @property
    def exclusive(self) -> bool:
        """Whether the command needs its own transaction because it writes without the caches."""

    def prefetch(self, keys: Any) -> None:
        """Add the keys of rows to load. A key left out costs one round trip."""

    def execute(self, uow: Any, now: Micros) -> T_co:
        """Change rows, or raise a PenstockError to undo all changes."""


class _Entry(Generic[T]):
    """A command, its caller's address, and the future that the caller waits for."""

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
        if self.waiter.done():  # the caller left; its write stands
            return
        if self.error is not None:
            self.waiter.set_exception(self.error)
        else:
            self.waiter.set_result(self.result)


class _Flight(NamedTuple):
    """A batch that was sent; the committer waits for its commit."""

    batch: list[_Entry[Any]]
    sent: Sent
    landing: "Future[None]"


class WriteQueue:
    """All writes of a process.

    One thread folds commands into the unit of work and sends batches. Another thread waits for
    commits. Up to two batches are uncommitted at a time, so that the database never waits for the
    next one; the caches already have their rows. A batch commits only if no other process wrote
    since the batch before (the epoch tells). Otherwise the queue drops the caches and folds the
    uncommitted batches again, each inside its own transaction.
    """

    def __init__(
        self,
        database: Database,
        uow: U,
        changes: Callable[[U], Changes],
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
        self._uow = uow
        self._changes = changes
        self._epoch = -1
        self._has_rivals = True  # until a commit shows that no other process writes
        self._folded: list[_Entry[Any]] = []  # folded, not yet sent
        self._under_way: deque[_Flight] = deque()
        self._committer = ThreadPoolExecutor(1, "penstock-committer")
        self._thread = threading.Thread(target=self._run, name="penstock-writer", daemon=True)

    @property
    def queue_length(self) -> int:
        """The number of waiting commands."""
        return len(self._inbox)

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Refuse further commands; return when all accepted ones are committed and answered."""
        self._inbox.close()
        if self._thread.is_alive():
            self._thread.join()
        self._committer.shutdown()

    def read(self) -> AbstractContextManager[Transaction]:
        """Return a snapshot to query."""
        return self._database.read()

    def submit(self, command: Command[T]) -> "Future[T]":
        """Queue a command; its future completes after the commit."""
        future: Future[T] = Future()
        self._inbox.put(_Entry(command, future, None))
        return future

    def submit_async(self, command: Command[T], size: int = 0) -> "asyncio.Future[T]":
        """Queue a command from an event loop; `size` is the size of its request body."""
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
        """Commands to fold at once: half of all, so that the database has the other half.

        Callers that wait for an answer return together. Without this rule a large and a small
        batch would alternate, and the database would be idle between them.
        """
        if self._has_rivals:
            return self._batch_max
        under_way = sum(len(flight.batch) for flight in self._under_way)
        every = len(self._inbox) + len(self._folded) + under_way
        return min(self._batch_max, max(_SHARE_MIN, (every + 1) // 2))

    @property
    def _enough(self) -> int:
        """Commands to wait for: several while a batch is uncommitted, since its commit wakes us."""
        if not self._under_way:
            return 1
        return max(1, min(_ENOUGH, len(self._under_way[-1].batch) // 2))

    @property
    def _may_send(self) -> bool:
        """Whether a batch may be sent: a slot is free, or the next batch is full."""
        while self._under_way and self._under_way[0].landing.done():
            if not self._land(len(self._under_way) - 1):
                return False
        if len(self._under_way) < _UNDER_WAY_MAX or len(self._folded) >= self._batch_max:
            return True
        return sum(entry.size for entry in self._folded) >= _BATCH_BYTES_MAX

    def _fold_ahead(self, batch: list[_Entry[Any]]) -> None:
        """Fold commands while other batches commit."""
        self._folded += batch
        try:
            with self._reading():
                self._fold(batch)
        except Exception:
            # Folding again, one transaction for each, shows the error at its command.
            self._refold()

    def _send(self) -> None:
        """Send the folded commands when a slot is free."""
        if not self._land(_UNDER_WAY_MAX - 1) or not self._folded:
            return
        after = self._under_way[-1].sent if self._under_way else self._epoch
        try:
            with self._reading():
                writes = self._changes(self._uow)
            sent = self._database.send(writes, after=after)
        except Exception:
            # The database is away or refuses a row. Each caller must get its own error, and this
            # thread must go on.
            self._refold()
            return
        self._uow.mark_sent()
        self._epoch = sent.epoch
        folded, self._folded = self._folded, []
        if len(folded) <= _FEW and not self._under_way and not len(self._inbox):
            # The queue is empty: another thread would only add a switch.
            self._under_way.append(_Flight(folded, sent, _done(self._see_landing, folded, sent)))
            self._land()
        else:
            landing = self._committer.submit(self._see_landing, folded, sent)
            self._under_way.append(_Flight(folded, sent, landing))
            # Ring only after the future is done; an earlier wake-up would be lost.
            landing.add_done_callback(lambda _: self._inbox.ring())
        if self._uow.is_full and self._land():
            self._uow.forget()

    def _land(self, left: int = 0) -> bool:
        """Wait until at most `left` batches are uncommitted; False if one failed and was redone."""
        while len(self._under_way) > left:
            if self._under_way[0].landing.exception() is not None:
                self._refold()
                return False
            self._under_way.popleft()
        return True

    def _refold(self) -> None:
        """Fold uncommitted and folded commands again after a failed commit."""
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
        """Wait for the commit of a batch, then answer its callers."""
        started = time.perf_counter()
        sent.land()
        try:
            self._observe(len(batch), time.perf_counter() - started)
            _answer(batch)
        except Exception:
            # The batch is committed. An error raised here would write it again.
            log.exception("answering a committed batch failed commands=%d", len(batch))

    def _write_folding(self, batch: list[_Entry[Any]]) -> None:
        """Fold and commit a batch in one transaction, then answer its callers."""
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
            # A command that the database refuses must not fail the others.
            self._uow.forget()
            if len(batch) > 1:
                for entry in batch:
                    self._commit([entry])
                return
            if not isinstance(error, PenstockError):
                log.exception("command failed command=%s", type(batch[0].command).__name__)
            batch[0].error = error

    def _together(self, batch: list[_Entry[Any]]) -> None:
        with self._database.write() as tx:
            self._has_rivals = tx.epoch != self._epoch + 1
            if self._has_rivals:
                self._uow.forget()
            self._uow.open(tx, is_shared=len(batch) > 1)
            self._fold(batch)
            write_changes(tx, self._changes(self._uow))
            epoch = tx.epoch
        self._epoch = epoch
        self._uow.mark_sent()
        if self._uow.is_full:
            self._uow.forget()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Open the unit of work; a read transaction starts only if a row is not cached."""
        with ExitStack() as stack:
            read = self._database.read
            self._uow.open_late(lambda: stack.enter_context(read(by_key=True)))
            yield
            self._uow.close()

    def _fold(self, batch: list[_Entry[Any]]) -> None:
        """Execute each command; a refused command is undone alone."""
        uow, now = self._uow, self._clock()
        keys = uow.new_keys()
        for entry in batch:
            entry.result = entry.error = None
            entry.command.prefetch(keys)
        uow.load(keys, now)
        for entry in batch:
            uow.undo.begin()
            try:
                # Only exclusive commands write to the audit log, which records the address.
                if entry.command.exclusive and entry.address:
                    with called_from(entry.address):
                        entry.result = entry.command.execute(uow, now)
                else:
                    entry.result = entry.command.execute(uow, now)
            except Unavailable:
                raise
            except PenstockError as refusal:
                # Only a rollback undoes writes that bypassed the caches.
                if entry.command.exclusive or uow.has_rewritten:
                    raise
                uow.undo.undo()
                entry.error = refusal


def _parts(batch: list[_Entry[Any]]) -> list[list[_Entry[Any]]]:
    """Split a batch, in order, at commands that need their own transaction."""
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
    """Run a function now and return its outcome as a future."""
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
    """Complete the futures; wake each event loop once."""
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
            log.warning("callers left before their answer; writes stand callers=%d", len(entries))


def _resolve_all(entries: list[_Entry[Any]]) -> None:
    for entry in entries:
        entry.resolve()
