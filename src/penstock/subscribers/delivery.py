"""Delivery to subscribers: at least once, in order, and independent of each other.

Every server may have a deliverer. A lease assigns a subscriber to one deliverer at a time; a dead
deliverer loses it within seconds. The cursor moves after the answer, so a delivery that a crash
cut off is sent again under the same name. A refused event is never skipped: it is retried with a
growing backoff.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.access.secrets import Secrets
from penstock.catalog.rows import replace
from penstock.clock import Clock, Micros
from penstock.db import Database
from penstock.db.database import Listener
from penstock.errors import PenstockError
from penstock.ids import new_id
from penstock.lots.outbox import CHANNEL, Outbox, last_id
from penstock.lots.rows import SubscriberRow
from penstock.store.write_queue import WriteQueue
from penstock.subscribers import payloads
from penstock.subscribers.commands import (
    AcquireSubscriber,
    FailDelivery,
    MoveCursor,
    RenewSubscribers,
    is_backing_off,
    is_leased_elsewhere,
    load_subscribers,
    outbox_of,
)
from penstock.subscribers.payloads import EventPosts
from penstock.telemetry import logs

if TYPE_CHECKING:
    from penstock.outgoing import Posted
    from penstock.subscribers.sender import Delivery

log = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
LEASE_SECONDS = 10.0
ANSWER_SECONDS_MAX = 30.0
_STOP_SECONDS = 2.0
_FAILED = "delivery failed; it is retried"


class DeliveryFailure(Struct, frozen=True):
    """The error of a failed delivery, and the wait that the receiver asked for."""

    error: str
    wait_seconds: float = 0.0


class Deliverer:
    """Watches the outboxes, and starts a thread for each subscriber with new events."""

    def __init__(
        self,
        writes: WriteQueue,
        database: Database,
        clock: Clock,
        *,
        secrets: Secrets | None = None,
        sweep_seconds: float = SWEEP_SECONDS,
        lease_seconds: float = LEASE_SECONDS,
        answer_seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> None:
        self._writes = writes
        self._database = database
        self._clock = clock
        self._secrets = secrets
        self._sweep_seconds = min(sweep_seconds, lease_seconds / 3)
        self._lease_seconds = lease_seconds
        self.answer_seconds_max = answer_seconds_max
        self._owner = f"{socket.gethostname()} {new_id()}"
        self._running: dict[str, Delivery] = {}
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._trouble = logs.Trouble(log, _FAILED)
        self._thread = threading.Thread(target=self._run, name="penstock-deliverer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Start no delivery any more; do not wait for one whose receiver is slow."""
        self._stopping.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()
        deadline = time.monotonic() + _STOP_SECONDS
        for delivery in self._deliveries():
            delivery.thread.join(max(0.0, deadline - time.monotonic()))

    def wake(self) -> None:
        """Look for new events now: one was committed, or a subscriber changed."""
        self._news.set()
        listener = self._listener
        if listener is not None:
            listener.wake()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._look():
                    self._listen()
            except PenstockError as error:
                self._trouble.met(error)
            except Exception:
                log.exception(_FAILED)
            self._news.wait(self._sweep_seconds)
            self._news.clear()

    def _listen(self) -> None:
        """Look after every commit, while subscribers exist."""
        with self._database.listen(CHANNEL) as listener:
            self._listener = listener
            try:
                while not self._stopping.is_set() and self._look():
                    listener.wait(self._sweep_seconds)
                    self._renew()
            finally:
                self._listener = None

    def _look(self) -> bool:
        """Start the deliveries that are due; return False if no subscriber exists."""
        with self._writes.read() as tx:
            rows = load_subscribers(tx)
            last: dict[Outbox, int] = {
                outbox: last_id(tx, outbox) for outbox in {outbox_of(row.kind) for row in rows}
            }
        self._trouble.over()
        now = self._clock()
        for row in rows:
            if is_leased_elsewhere(row, self._owner, self._lease_seconds, now) or is_backing_off(
                row, now
            ):
                continue
            if row.cursor < last[outbox_of(row.kind)]:
                self._begin(row.name)
        return bool(rows)

    def _begin(self, name: str) -> None:
        # Imported late: it loads httpx, and most servers have no subscriber and start faster.
        from penstock.subscribers.sender import Delivery

        with self._lock:
            if name in self._running or self._stopping.is_set():
                return
            delivery = self._running[name] = Delivery(self, name)
        delivery.thread.start()

    def _deliveries(self) -> "list[Delivery]":
        with self._lock:
            return list(self._running.values())

    def _renew(self) -> None:
        """Renew the leases of running deliveries: a receiver may answer slowly."""
        running = {each.name: each for each in self._deliveries() if each.token is not None}
        refs = tuple((name, each.token or 0) for name, each in running.items())
        if refs:
            lost = self._writes.submit(RenewSubscribers(refs, self._lease_seconds)).result()
            for name in lost:
                running[name].mark_lost(refs)

    # The methods below are called from the threads of deliveries.

    def acquire(self, name: str) -> SubscriberRow:
        """Acquire the lease of a subscriber."""
        return self._writes.submit(
            AcquireSubscriber(name, self._owner, self._lease_seconds)
        ).result()

    def reveal(self, row: SubscriberRow) -> SubscriberRow:
        """Decrypt the secret of a subscriber."""
        if row.secret is None or self._secrets is None:
            return row
        return replace(row, secret=self._secrets.reveal(row.secret))

    def load_posts(self, row: SubscriberRow, after: int) -> list[EventPosts]:
        """Load the next events for a subscriber."""
        with self._writes.read() as tx:
            return payloads.load_posts(tx, row, after)

    def save(self, row: SubscriberRow, cursor: int, *, delivered: bool, done: bool) -> None:
        """Move the cursor of a subscriber; release the subscriber when all is done."""
        lease = 0.0 if done else self._lease_seconds
        self._writes.submit(MoveCursor(row.name, row.token, cursor, lease, delivered)).result()

    def fail(
        self, row: SubscriberRow, cursor: int, failure: DeliveryFailure, *, delivered: bool = False
    ) -> None:
        """Record a failure; the delivery is retried later."""
        log.warning("subscriber %s: %s", row.name, failure.error)
        command = FailDelivery(
            row.name, row.token, cursor, failure.error, failure.wait_seconds, delivered
        )
        self._writes.submit(command).result()

    def send(self, post: "Callable[[Micros], Posted]") -> "Posted":
        """Call a subscriber once, with the current time."""
        return post(self._clock())

    @property
    def is_stopping(self) -> bool:
        """Whether the deliverer stops."""
        return self._stopping.is_set()

    def end(self, delivery: "Delivery", *, is_ok: bool) -> None:
        """End a delivery; after a success, look for events that were committed meanwhile."""
        with self._lock:
            self._running.pop(delivery.name, None)
        if is_ok:
            self.wake()
