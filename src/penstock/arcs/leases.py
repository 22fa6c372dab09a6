"""Keeping a claim's lease from where the work runs.

The engine keeps it too; but work that goes on on another machine outlives an engine that died.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from msgspec import Struct

from penstock import logs
from penstock.catalog.catalog import Catalog
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.errors import Conflict, NotFound, PenstockError
from penstock.locks.claiming import Ref
from penstock.locks.commands.claims import HeartbeatClaim

log = logging.getLogger(__name__)

BEATS = 3  # heartbeats in the time of a lease
_FAILED = "a lease could not be extended"


class Lease(Struct, frozen=True):
    """A claim whose lease is to be kept, and the database that knows of it."""

    database: str
    claim: Ref
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
            _catalog(lease.database).submit(HeartbeatClaim(lease.claim)).result()
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
def _catalog(url: str) -> Catalog:
    """The way to a database, opened once in each process."""
    catalog = Catalog(
        open_database(url), clock=system_clock, batch_events_max=16, queue_length_max=64
    )
    catalog.start()
    return catalog
