"""Delivery of the events of one subscriber, in a thread of its own."""

import logging
import threading
import time

import httpx

from penstock.errors import Conflict, NotFound, PenstockError
from penstock.lots.rows import SubscriberRow
from penstock.outgoing import certificates, is_near, post
from penstock.subscribers.delivery import Deliverer, DeliveryFailure
from penstock.subscribers.payloads import EventPosts, headers, target
from penstock.telemetry import logs

log = logging.getLogger(__name__)

SAVE_SECONDS = 1.0  # events of this time may be delivered twice after a crash
CONNECT_SECONDS_MAX = 10.0


class Delivery:
    """The delivery to one subscriber, until no event is left or one fails."""

    def __init__(self, deliverer: Deliverer, name: str) -> None:
        self.name = name
        self.token: int | None = None  # set when the subscriber is leased
        self.thread = threading.Thread(target=self._run, name=f"deliver-{name}", daemon=True)
        self._deliverer = deliverer
        self._is_lost = False

    def mark_lost(self, leases: tuple[tuple[str, int], ...]) -> None:
        """Stop: the lease was lost, or the subscriber was changed."""
        self._is_lost = self._is_lost or (self.name, self.token) in leases

    def _run(self) -> None:
        with logs.about(subscriber=self.name):
            self._deliver_all()

    def _deliver_all(self) -> None:
        is_ok = False
        try:
            row = self._deliverer.acquire(self.name)
            self.token = row.token
            is_ok = self._deliver(row)
        except (Conflict, NotFound) as refusal:
            # Several deliverers compete for each event: a warning for each would be noise.
            log.debug("subscriber %s: %s", self.name, refusal)
        except PenstockError as error:
            log.warning(
                "subscriber %s: cursor not saved, events are sent again: %s", self.name, error
            )
        except Exception:
            log.exception("subscriber %s", self.name)
        finally:
            self._deliverer.end(self, is_ok=is_ok)

    def _deliver(self, row: SubscriberRow) -> bool:
        """Deliver all events; return whether all succeeded."""
        cursor = row.cursor
        try:
            row = self._deliverer.reveal(row)
        except PenstockError as error:
            self._deliverer.fail(row, cursor, DeliveryFailure(str(error)))
            return False
        with self._client(row) as client:
            while not self._deliverer.is_stopping and not self._is_lost:
                try:
                    events = self._deliverer.load_posts(row, cursor)
                except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                    # Without this, the delivery would be retried at once, forever.
                    log.exception("subscriber %s", self.name)
                    self._deliverer.fail(
                        row, cursor, DeliveryFailure(f"an event cannot be encoded: {error}")
                    )
                    return False
                if not events:
                    break
                cursor = self._send(client, row, events, cursor)
                if cursor < events[-1].id:
                    return False
        if not self._is_lost:
            self._deliverer.save(row, cursor, delivered=False, done=True)
        return True

    def _client(self, row: SubscriberRow) -> httpx.Client:
        timeout = httpx.Timeout(self._deliverer.answer_seconds_max, connect=CONNECT_SECONDS_MAX)
        trust_env = not is_near(row.url)
        verify = certificates(row.url, trust_env=trust_env)
        return httpx.Client(timeout=timeout, trust_env=trust_env, verify=verify)

    def _send(
        self, client: httpx.Client, row: SubscriberRow, events: list[EventPosts], cursor: int
    ) -> int:
        """Send events in order, up to the first failure; return the new cursor."""
        saved_at, delivered = time.monotonic(), False
        for event in events:
            for name, body in event.posts:
                if self._deliverer.is_stopping or self._is_lost:
                    self._deliverer.save(row, cursor, delivered=delivered, done=True)
                    return cursor
                failure = self._failure(client, row, name, body)
                if failure is not None:
                    self._deliverer.fail(row, cursor, failure, delivered=delivered)
                    return cursor
                delivered = True
            cursor = event.id
            log.debug("subscriber %s: event delivered id=%d", self.name, event.id)
            if time.monotonic() - saved_at > SAVE_SECONDS:
                self._deliverer.save(row, cursor, delivered=delivered, done=False)
                saved_at = time.monotonic()
        self._deliverer.save(row, cursor, delivered=delivered, done=False)
        return cursor

    def _failure(
        self, client: httpx.Client, row: SubscriberRow, name: str, body: bytes
    ) -> DeliveryFailure | None:
        """Send one request; return the failure, or None."""
        try:
            answer = self._deliverer.send(
                lambda now: post(client, target(row), headers(row, name, body, now), body, now)
            )
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.RequestError) as error:
            return DeliveryFailure(f"delivery {name} could not be sent: {error}")
        if answer.is_good:
            return None
        words = f" ({answer.words})" if answer.words else ""
        status = f"was answered {answer.status}" if answer.status else "was not answered"
        return DeliveryFailure(f"delivery {name} {status}{words}", answer.wait_seconds or 0.0)
