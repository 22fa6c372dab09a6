"""Leases of claims, renewed by the engine or by a task on another machine."""

import logging
import threading
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

BEATS = 3  # heartbeats in one lease
_FAILED = "a lease could not be renewed"


class TaskLease(Struct, frozen=True):
    """A lease to renew, and the URL of its database."""

    database: str
    claim: ClaimRef
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
    def renew() -> None:
        try:
            _catalog(lease.database).submit(RenewClaim(lease.claim)).result()
        except (Conflict, NotFound):
            lost()
            over.set()

    trouble = renewal_trouble()
    while not over.wait(lease.seconds / BEATS):
        try_renewal(renew, trouble)


def renewal_trouble() -> logs.Trouble:
    """Return the log of failed renewals."""
    return logs.Trouble(log, _FAILED)


def try_renewal(renew: Callable[[], None], trouble: logs.Trouble) -> None:
    """Renew a lease. A failure is only logged, because the next beat may succeed."""
    try:
        renew()
        trouble.over()
    except PenstockError as error:
        trouble.met(error)
    except Exception:
        log.exception(_FAILED)


@lru_cache(maxsize=4)
def _catalog(url: str) -> WriteQueue:
    catalog = open_write_queue(
        open_database(url), clock=system_clock, batch_events_max=16, queue_length_max=64
    )
    catalog.start()
    return catalog
