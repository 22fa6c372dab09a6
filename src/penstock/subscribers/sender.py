"""Telling one subscriber what there is for it, in a thread of its own."""

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

SAVE_SECONDS = 1.0  # so much may be delivered twice after a crash
CONNECT_SECONDS_MAX = 10.0


class Delivery:
    """One subscriber, for as long as there is something for it and it takes it."""

    def __init__(self, deliverer: Deliverer, name: str) -> None:
        self.name = name
        self.token: int | None = None  # once it is ours
        self.thread = threading.Thread(target=self._run, name=f"deliver-{name}", daemon=True)
        self._deliverer = deliverer
        self._is_lost = False

    def lost(self, held: tuple[tuple[str, int], ...]) -> None:
        """The subscriber that was held so is somebody else's now, or was changed."""
        self._is_lost = self._is_lost or (self.name, self.token) in held

    def _run(self) -> None:
        with logs.about(subscriber=self.name):
            self._deliver_all()

    def _deliver_all(self) -> None:
        well = False
        try:
            row = self._deliverer.take(self.name)
            self.token = row.token
            well = self._deliver(row)
        except (Conflict, NotFound) as refusal:
            # Of several that look at once, one gets it: this is not worth a line for each event.
            log.debug("subscriber %s: %s", self.name, refusal)
        except PenstockError as error:
            log.warning("subscriber %s is told again what was not noted: %s", self.name, error)
        except Exception:
            log.exception("subscriber %s", self.name)
        finally:
            self._deliverer.over(self, well=well)

    def _deliver(self, row: SubscriberRow) -> bool:
        """Whether it took all there was."""
        cursor = row.cursor
        try:
            row = self._deliverer.revealed(row)
        except PenstockError as error:
            self._deliverer.fail(row, cursor, DeliveryFailure(str(error)))
            return False
        with self._client(row) as client:
            while not self._deliverer.is_stopping and not self._is_lost:
                try:
                    letters = self._deliverer.letters(row, cursor)
                except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                    # Otherwise it would be tried again at once, and for ever.
                    log.exception("subscriber %s", self.name)
                    self._deliverer.fail(
                        row, cursor, DeliveryFailure(f"an event cannot be told: {error}")
                    )
                    return False
                if not letters:
                    break
                cursor = self._send(client, row, letters, cursor)
                if cursor < letters[-1].id:
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
        self, client: httpx.Client, row: SubscriberRow, letters: list[EventPosts], cursor: int
    ) -> int:
        """Send what there is, in order, up to the first failure; returns how far it came."""
        saved, delivered = time.monotonic(), False
        for letter in letters:
            for name, body in letter.posts:
                if self._deliverer.is_stopping or self._is_lost:
                    self._deliverer.save(row, cursor, delivered=delivered, done=True)
                    return cursor
                failure = self._failure(client, row, name, body)
                if failure is not None:
                    self._deliverer.fail(row, cursor, failure, delivered=delivered)
                    return cursor
                delivered = True
            cursor = letter.id
            log.debug("subscriber %s has had event %d", self.name, letter.id)
            if time.monotonic() - saved > SAVE_SECONDS:
                self._deliverer.save(row, cursor, delivered=delivered, done=False)
                saved = time.monotonic()
        self._deliverer.save(row, cursor, delivered=delivered, done=False)
        return cursor

    def _failure(
        self, client: httpx.Client, row: SubscriberRow, name: str, body: bytes
    ) -> DeliveryFailure | None:
        """Send one thing: None if it was taken, else what was wrong."""
        try:
            answer = self._deliverer.send(
                lambda now: post(client, target(row), headers(row, name, body, now), body, now)
            )
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.RequestError) as error:
            return DeliveryFailure(f"delivery {name} could not be sent: {error}")
        if answer.is_good:
            return None
        words = f" ({answer.words})" if answer.words else ""
        said = f"was answered {answer.status}" if answer.status else "was not answered"
        return DeliveryFailure(f"delivery {name} {said}{words}", answer.wait_seconds or 0.0)
