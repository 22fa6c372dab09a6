"""Notices of new lot events, and the number of the last write, shared by all readers."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

import msgspec

from penstock.db import Database
from penstock.db.database import Listener
from penstock.errors import Busy, PenstockError
from penstock.locks.queries import visibility
from penstock.lots.outbox import CHANNEL, events_after
from penstock.schema.subscribers import LotEvent
from penstock.telemetry import logs

PAGE = 500
SWEEP_SECONDS = 1.0
FOLLOWERS_MAX = 1000
# A reader this far behind is dropped: it reconnects and reads the rest at its own pace.
WAITING_MAX = 4 * PAGE
_GRACE_SECONDS = 2.0
_TURN_SECONDS_MAX = 5.0

_log = logging.getLogger(__name__)


class Frame(NamedTuple):
    """A lot event as a server-sent event; `own_text` is for keys of its namespace."""

    id: int
    namespace: str
    dataset: str
    text: bytes
    own_text: bytes


def frame(event: LotEvent) -> Frame:
    """Encode an event once, for all readers."""
    dataset, text = event.dataset, _text(event)
    own = visibility.redact_event(event, dataset.namespace)
    return Frame(
        event.id, dataset.namespace, dataset.name, text, text if own is event else _text(own)
    )


def _text(event: LotEvent) -> bytes:
    data = msgspec.json.encode(event).decode()
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n".encode()


def read_frames(database: Database, after: int, most: int = PAGE) -> list[Frame]:
    """Return the first events after one."""
    with database.read() as tx:
        return [frame(event) for event in events_after(tx, after, most)]


@dataclass(eq=False)
class Follower:
    """One reader, and the events that wait for it."""

    wants: Callable[[Frame], bool]
    task: "asyncio.Task[Any]"
    waiting: deque[Frame] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    seen: int = 0  # the last event that was offered, whether it matched or not
    is_over: bool = False

    def offer(self, frames: Sequence[Frame]) -> None:
        """Queue events for the reader, unless too many wait already."""
        self.waiting.extend(filter(self.wants, frames))
        self.seen = max(self.seen, frames[-1].id)
        if len(self.waiting) > WAITING_MAX:
            self.waiting.clear()
            _log.info("a reader of the event stream was too slow, and is dropped")
            self.task.cancel()
        elif self.waiting:
            self.news.set()

    def taken(self) -> list[Frame]:
        """Return all waiting events, and remove them."""
        self.news.clear()
        frames = list(self.waiting)
        self.waiting.clear()
        return frames


class Relay:
    """The readers of lot events. Only the event loop touches them; a thread reads the outbox.

    After it has joined, a reader must read the outbox once more; later events are offered to it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers: set[Follower] = set()
        self._cursor = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Listener | None = None
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._is_stopping = False
        self._trouble = logs.Trouble(_log, "events were not read, and will be again")
        self._thread = threading.Thread(target=self._run, name="event-relay", daemon=True)

    @property
    def is_stopping(self) -> bool:
        """Whether all readers are being disconnected."""
        return self._is_stopping

    def check_room(self) -> None:
        """Raise Busy if there are too many readers."""
        if len(self._followers) >= FOLLOWERS_MAX:
            raise Busy(f"{FOLLOWERS_MAX} readers follow the events already; try another server")

    def join(self, wants: Callable[[Frame], bool], cursor: int) -> Follower:
        """Add a reader that has read up to `cursor`; its task is cancelled if it is too slow."""
        task = asyncio.current_task()
        assert task is not None, "only a task can follow"
        follower = Follower(wants, task, seen=cursor, is_over=self._is_stopping)
        self._loop = task.get_loop()
        if not self._followers:
            self._cursor = cursor
        self._followers.add(follower)
        self._wanted.set()
        if not self._thread.is_alive() and not self._closed.is_set():
            self._thread.start()
        return follower

    def leave(self, follower: Follower) -> None:
        """Remove a reader."""
        self._followers.discard(follower)
        if not self._followers:
            self._wanted.clear()
            self._wake()

    def stop(self) -> None:
        """Disconnect all readers. Safe in any thread and in a signal handler."""
        self._is_stopping = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and with it all readers
                self._loop.call_soon_threadsafe(self._send_away)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._wanted.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join()

    def _send_away(self) -> None:
        for follower in self._followers:
            follower.is_over = True
            follower.news.set()
            # A reader that takes no data cannot get a notice either.
            follower.task.get_loop().call_later(_GRACE_SECONDS, follower.task.cancel)

    def _wake(self) -> None:
        listener = self._listener
        if listener is not None:
            listener.wake()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if self._closed.is_set():
                return
            try:
                self._follow()
            except PenstockError as error:
                self._trouble.met(error)
                self._closed.wait(SWEEP_SECONDS)
            except Exception:
                _log.exception("events were not read, and will be again")
                self._closed.wait(SWEEP_SECONDS)

    def _follow(self) -> None:
        with self._database.listen(CHANNEL) as listener:
            self._listener = listener
            try:
                while self._wanted.is_set() and not self._closed.is_set():
                    if not self._read():
                        listener.wait(SWEEP_SECONDS)
            finally:
                self._listener = None

    def _read(self) -> bool:
        """Offer a page of events; return whether there may be another."""
        frames = read_frames(self._database, self._cursor)
        self._trouble.over()
        if not frames:
            return False
        handed = threading.Event()
        assert self._loop is not None, "whoever follows does so in a loop"
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hand_out, frames, handed)
            handed.wait(_TURN_SECONDS_MAX)
        self._cursor = frames[-1].id
        return len(frames) == PAGE

    def _hand_out(self, frames: Sequence[Frame], handed: threading.Event) -> None:
        for follower in self._followers:
            follower.offer(frames)
        handed.set()


FRESH_SECONDS = 0.5


@dataclass
class Epochs:
    """The number of the last write, read at most twice a second however many readers ask."""

    database: Database
    readers: ThreadPoolExecutor
    _last: int = 0
    _asked_at: float = -FRESH_SECONDS
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def last(self) -> int:
        """Return the number of the last write, at most half a second old."""
        async with self._turn:
            if monotonic() - self._asked_at >= FRESH_SECONDS:
                loop = asyncio.get_running_loop()
                self._last = await loop.run_in_executor(self.readers, self._read)
                self._asked_at = monotonic()
        return self._last

    def _read(self) -> int:
        with self.database.read() as tx:
            row = tx.fetch_one("last_epoch")
        return int(row[0]) if row is not None else 0
