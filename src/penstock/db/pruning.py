"""Deletion of old rows in small writes, while servers run."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.clock import Clock, Micros
from penstock.db.database import Database, Transaction
from penstock.errors import Invalid

# Rows per write: large enough to be quick, small enough that other writers get their turn.
BATCH_ROWS = 500
_FIRST_ID = "00000000-0000-0000-0000-000000000000"

Pause = Callable[[float], None]


def cutoff(clock: Clock, older_than: Micros) -> Micros:
    """Return the time before which something is old."""
    if older_than <= 0:
        raise Invalid("the age must be more than zero; use 90d, for example")
    return clock() - older_than


@contextmanager
def paced_write(database: Database, pause: Pause) -> Iterator[Transaction]:
    """Write once, then pause as long as the write took, so that other writers get their turn."""
    started = time.monotonic()
    with database.write() as tx:
        yield tx
    pause(time.monotonic() - started)


def pages_of_ended(
    database: Database, statement: str, before: Micros, most: int
) -> Iterator[list[str]]:
    """Yield the ids of operations that ended before a time, in pages that may be deleted."""
    at, last = 0, _FIRST_ID
    while True:
        with database.read() as tx:
            page = tx.fetch(statement, before=before, created_at=at, id=last, most=most)
        yield [each for _, each in page]
        if len(page) < most:
            return
        at, last = page[-1]
