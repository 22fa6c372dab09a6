"""Telling subscribers: at least once, in order, and none is held up by another.

Every server may have a deliverer. A subscriber belongs to one of them at a time, by a lease: who
dies loses it within seconds. Its cursor moves after the answer, so what was on its way when
somebody died is sent again, under the same name. What a receiver refuses is never skipped: it is
tried again, ever more rarely.
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
from penstock.subscribers.payloads import EventPosts, load_posts
from penstock.telemetry import logs

if TYPE_CHECKING:
    from penstock.outgoing import Posted
    from penstock.subscribers.sender import Delivery

log = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
LEASE_SECONDS = 10.0
ANSWER_SECONDS_MAX = 30.0
_STOP_SECONDS = 2.0


class DeliveryFailure(Struct, frozen=True):
    """Why something was not taken, and how long the receiver asked to wait."""

    error: str
    wait_seconds: float = 0.0


class Deliverer:
    """Watches the outboxes, and has a thread for each subscriber that there is something for."""

    def __init__(
        self,
        catalog: WriteQueue,
        database: Database,
        clock: Clock,
        *,
        secrets: Secrets | None = None,
        sweep_seconds: float = SWEEP_SECONDS,
        lease_seconds: float = LEASE_SECONDS,
        answer_seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> None:
        self._catalog = catalog
        self._database = database
        self._clock = clock
        self._secrets = secrets
        self._sweep_seconds = min(sweep_seconds, lease_seconds / 3)
        self._lease_seconds = lease_seconds
        self.answer_seconds_max = answer_seconds_max
        self._owner = f"{socket.gethostname()} {new_id()}"
        self._working: dict[str, Delivery] = {}
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._trouble = logs.Trouble(log, "nothing was delivered, and will be tried again")
        self._thread = threading.Thread(target=self._run, name="penstock-deliverer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no delivery any more; one that a receiver keeps waiting is left to itself."""
        self._stopping.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()
        deadline = time.monotonic() + _STOP_SECONDS
        for delivery in self._deliveries():
            delivery.thread.join(max(0.0, deadline - time.monotonic()))

    def wake(self) -> None:
        """Something happened, or a subscriber was changed: look now."""
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
                log.exception("nothing was delivered, and will be tried again")
            self._news.wait(self._sweep_seconds)
            self._news.clear()

    def _listen(self) -> None:
        """Look whenever something was committed, for as long as there are subscribers."""
        with self._database.listen(CHANNEL) as listener:
            self._listener = listener
            try:
                while not self._stopping.is_set() and self._look():
                    listener.wait(self._sweep_seconds)
                    self._keep()
            finally:
                self._listener = None

    def _look(self) -> bool:
        """Set going what is due; False if there is no subscriber at all."""
        with self._catalog.read() as tx:
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
        # Late, because it loads httpx: most servers have nobody to tell, and start faster without.
        from penstock.subscribers.sender import Delivery

        with self._lock:
            if name in self._working or self._stopping.is_set():
                return
            delivery = self._working[name] = Delivery(self, name)
        delivery.thread.start()

    def _deliveries(self) -> "list[Delivery]":
        with self._lock:
            return list(self._working.values())

    def _keep(self) -> None:
        """Renew the leases of what is under way, a receiver may take its time to answer."""
        held = {each.name: each for each in self._deliveries() if each.token is not None}
        refs = tuple((name, each.token or 0) for name, each in held.items())
        if refs:
            lost = self._catalog.submit(RenewSubscribers(refs, self._lease_seconds)).result()
            for name in lost:
                held[name].lost(refs)

    # What follows is called from the threads of deliveries.

    def take(self, name: str) -> SubscriberRow:
        """The subscriber, to deliver to."""
        return self._catalog.submit(
            AcquireSubscriber(name, self._owner, self._lease_seconds)
        ).result()

    def revealed(self, row: SubscriberRow) -> SubscriberRow:
        """The subscriber with its secret decrypted."""
        if row.secret is None or self._secrets is None:
            return row
        return replace(row, secret=self._secrets.reveal(row.secret))

    def letters(self, row: SubscriberRow, after: int) -> list[EventPosts]:
        """What is next for a subscriber."""
        with self._catalog.read() as tx:
            return load_posts(tx, row, after)

    def save(self, row: SubscriberRow, cursor: int, *, delivered: bool, done: bool) -> None:
        """Move the cursor of a subscriber; when all is done, let it go."""
        lease = 0.0 if done else self._lease_seconds
        self._catalog.submit(MoveCursor(row.name, row.token, cursor, lease, delivered)).result()

    def fail(
        self, row: SubscriberRow, cursor: int, failure: DeliveryFailure, *, delivered: bool = False
    ) -> None:
        """Note a failure, and try again later."""
        log.warning("subscriber %s: %s", row.name, failure.error)
        command = FailDelivery(
            row.name, row.token, cursor, failure.error, failure.wait_seconds, delivered
        )
        self._catalog.submit(command).result()

    def send(self, post: "Callable[[Micros], Posted]") -> "Posted":
        """Call a subscriber once."""
        return post(self._clock())

    @property
    def is_stopping(self) -> bool:
        """Whether to send nothing more."""
        return self._stopping.is_set()

    def over(self, delivery: "Delivery", *, well: bool) -> None:
        """A delivery has ended; if well, something may have come since it last looked."""
        with self._lock:
            self._working.pop(delivery.name, None)
        if well:
            self.wake()
