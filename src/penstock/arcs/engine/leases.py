"""While an object store or cluster does not answer: when lots are claimed again.

A lot that met it is given back unharmed. To claim more would only make more runs that end the same
way, so the engine asks what it works with first, and less and less often while that is away.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from msgspec import Struct

from penstock.catalog.writes import open_write_queue
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.errors import Conflict, NotFound, PenstockError
from penstock.locks.claiming import ClaimRef
from penstock.locks.commands.claims import RenewClaim
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

# A lot that was given back rests so long: other engines, which have not met it, leave it alone too.
REST_SECONDS = 5
_ASK_SECONDS = 1.0
_ASK_SECONDS_MAX = 60.0


class Outage:
    """What one engine knows of all that it works with; safe to share between threads.

    Each of `asks` raises an error while what it asks does not answer.
    """

    def __init__(self, *asks: Callable[[], None]) -> None:
        self._asks = asks
        self._met = threading.Event()
        self._pause = _ASK_SECONDS
        self._ask_at = 0.0

    def meet(self) -> int:
        """Somebody has found something that he needs away; his lot rests so long."""
        self._met.set()
        return REST_SECONDS

    def is_over(self) -> bool:
        """Whether lots may be claimed; asks, but not all the time."""
        if not self._met.is_set():
            return True
        if time.monotonic() < self._ask_at:
            return False
        self._met.clear()  # whoever meets it from now on is not covered by this answer
        try:
            for ask in self._asks:
                ask()
        except PenstockError as error:
            self._met.set()
            self._ask_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _ASK_SECONDS_MAX)
            log.warning("no lots are claimed until this is over: %s", error)
            return False
        self._pause = _ASK_SECONDS
        log.info("what was away answers: lots are claimed")
        return True


BEATS = 3  # heartbeats in the time of a lease
_FAILED = "a lease could not be extended"


class Lease(Struct, frozen=True):
    """A claim whose lease is to be kept, and the database that knows of it."""

    database: str
    claim: ClaimRef
    seconds: int


@contextmanager
def kept(lease: Lease | None, lost: Callable[[], None]) -> Iterator[None]:
    """Extend the lease again and again; says so once it is lost. Short work never asks."""
    if lease is None:
        yield
        return
    over = threading.Event()
    heart = threading.Thread(target=_beat, args=(lease, over, lost), daemon=True)
    heart.start()
    try:
        yield
    finally:
        over.set()


def _beat(lease: Lease, over: threading.Event, lost: Callable[[], None]) -> None:
    def keep() -> None:
        try:
            _catalog(lease.database).submit(RenewClaim(lease.claim)).result()
        except (Conflict, NotFound):
            lost()
            over.set()

    trouble = lease_trouble()
    while not over.wait(lease.seconds / BEATS):
        extend(keep, trouble)


def lease_trouble() -> logs.Trouble:
    """What keeps leases from being extended, as it is told."""
    return logs.Trouble(log, _FAILED)


def extend(keep: Callable[[], None], trouble: logs.Trouble) -> None:
    """Have a lease kept; whatever goes wrong, the next beat may do better, and has to come."""
    try:
        keep()
        trouble.over()
    except PenstockError as error:
        trouble.met(error)
    except Exception:
        log.exception(_FAILED)


@lru_cache(maxsize=4)
def _catalog(url: str) -> WriteQueue:
    """The way to a database, opened once in each process."""
    catalog = open_write_queue(
        open_database(url), clock=system_clock, batch_events_max=16, queue_length_max=64
    )
    catalog.start()
    return catalog
