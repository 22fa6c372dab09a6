"""Leases of claims, and pauses while an object store or a cluster is away.

A lot that meets an outage is released without losing a try. New claims would only end the same way.
The engine first probes what it depends on, less and less often while that is away.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from msgspec import Struct

from penstock.clock import system_clock
from penstock.db import open_database
from penstock.errors import Conflict, NotFound, PenstockError
from penstock.locks.claiming import Ref
from penstock.locks.commands.claims import HeartbeatClaim
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

# How long a released lot rests, also for engines that have not met the outage.
REST_SECONDS = 5
_PROBE_SECONDS = 1.0
_PROBE_SECONDS_MAX = 60.0
BEATS = 3  # heartbeats in one lease
_FAILED = "a lease could not be renewed"


class Outage:
    """The outages that one engine has met; safe to share between threads.

    Each of `probes` raises an error while its service does not answer.
    """

    def __init__(self, *probes: Callable[[], None]) -> None:
        self._probes = probes
        self._met = threading.Event()
        self._pause = _PROBE_SECONDS
        self._probe_at = 0.0

    def meet(self) -> int:
        """Record an outage; return how many seconds the lot should rest."""
        self._met.set()
        return REST_SECONDS

    def is_over(self) -> bool:
        """Whether lots may be claimed; probes now and then during an outage."""
        if not self._met.is_set():
            return True
        if time.monotonic() < self._probe_at:
            return False
        self._met.clear()  # the probe does not cover an outage that is met from now on
        try:
            for probe in self._probes:
                probe()
        except PenstockError as error:
            self._met.set()
            self._probe_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _PROBE_SECONDS_MAX)
            log.warning("no lots are claimed during an outage: %s", error)
            return False
        self._pause = _PROBE_SECONDS
        log.info("the outage is over: lots are claimed")
        return True


class TaskLease(Struct, frozen=True):
    """A lease to renew, and the URL of its database."""

    database: str
    claim: Ref
    seconds: int


@contextmanager
def renewing(lease: TaskLease | None, lost: Callable[[], None]) -> Iterator[None]:
    """Renew a lease while the block lasts, and call `lost` if it is lost."""
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


def _beat(lease: TaskLease, over: threading.Event, lost: Callable[[], None]) -> None:
    def keep() -> None:
        try:
            _catalog(lease.database).submit(HeartbeatClaim(lease.claim)).result()
        except (Conflict, NotFound):
            lost()
            over.set()

    trouble = renewal_trouble()
    while not over.wait(lease.seconds / BEATS):
        renew(keep, trouble)


def renewal_trouble() -> logs.Trouble:
    """Return the log of failed renewals."""
    return logs.Trouble(log, _FAILED)


def renew(keep: Callable[[], None], trouble: logs.Trouble) -> None:
    """Renew a lease. A failure is only logged, because the next beat may succeed."""
    try:
        keep()
        trouble.over()
    except PenstockError as error:
        trouble.met(error)
    except Exception:
        log.exception(_FAILED)


@lru_cache(maxsize=4)
def _catalog(url: str) -> WriteQueue:
    """Return the write queue of a database, opened once in each process."""
    catalog = WriteQueue(
        open_database(url), clock=system_clock, batch_events_max=16, queue_length_max=64
    )
    catalog.start()
    return catalog
