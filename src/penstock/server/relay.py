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
# A reader that is so far behind is dropped: it comes back and reads the rest at its own pace.
WAITING_MAX = 4 * PAGE
_GRACE_SECONDS = 2.0
_TURN_SECONDS_MAX = 5.0

_log = logging.getLogger(__name__)


class Frame(NamedTuple):
    """An event as server-sent events are written; `own_text` is for keys for its namespace."""

    id: int
    namespace: str
    dataset: str
    text: bytes
    own_text: bytes


def frame(event: LotEvent) -> Frame:
    """Write an event once, for everybody."""
    dataset, text = event.dataset, _text(event)
    own = visibility.redact_event(event, dataset.namespace)
    return Frame(
        event.id, dataset.namespace, dataset.name, text, text if own is event else _text(own)
    )


def _text(event: LotEvent) -> bytes:
    data = msgspec.json.encode(event).decode()
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n".encode()


def read_frames(database: Database, after: int, most: int = PAGE) -> list[Frame]:
    """The first events after one."""
    with database.read() as tx:
        return [frame(event) for event in events_after(tx, after, most)]


@dataclass(eq=False)
class Follower:
    """One reader: what waits for it, and whether it may stay."""

    wants: Callable[[Frame], bool]
    task: "asyncio.Task[Any]"
    waiting: deque[Frame] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    seen: int = 0  # the last event that it was offered, wanted or not
    is_over: bool = False

    def offer(self, frames: Sequence[Frame]) -> None:
        """Have these wait for it, unless too many do already."""
        self.waiting.extend(filter(self.wants, frames))
        self.seen = max(self.seen, frames[-1].id)
        if len(self.waiting) > WAITING_MAX:
            self.waiting.clear()
            _log.info("a reader of the event stream was too slow, and is dropped")
            self.task.cancel()
        elif self.waiting:
            self.news.set()

    def taken(self) -> list[Frame]:
        """All that waits."""
        self.news.clear()
        found = list(self.waiting)
        self.waiting.clear()
        return found


class Relay:
    """Followers belong to the event loop alone; a thread reads for them while there are any.

    Whoever joins must read the outbox once more after that: what is committed later it is offered.
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
        """Whether everybody is being sent away."""
        return self._is_stopping

    def check_room(self) -> None:
        """Refuse to have more followers than there is room for."""
        if len(self._followers) >= FOLLOWERS_MAX:
            raise Busy(f"{FOLLOWERS_MAX} readers follow the events already; try another server")

    def join(self, wants: Callable[[Frame], bool], cursor: int) -> Follower:
        """Follow, having read up to `cursor`; the calling task is cancelled if it is too slow."""
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
        """Follow no more."""
        self._followers.discard(follower)
        if not self._followers:
            self._wanted.clear()
            self._wake()

    def stop(self) -> None:
        """Send everybody away; from any thread, and from a signal's handler too."""
        self._is_stopping = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is over, and all are gone
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
            # One that takes nothing cannot be told.
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
        """Hand out a page of events; whether there may be another."""
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
    """Belongs to the event loop alone; the database is asked in a thread."""

    database: Database
    readers: ThreadPoolExecutor
    _last: int = 0
    _asked_at: float = -FRESH_SECONDS
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def last(self) -> int:
        """The number of the last write, as it was at most half a second ago."""
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
