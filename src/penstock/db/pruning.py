"""Forgetting what is old, a little at a time, while servers go on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.clock import Clock, Micros
from penstock.db.database import Database, Transaction
from penstock.errors import Invalid

# So many rows share a write: large enough to be quick, small enough to let others have their turn.
BATCH_ROWS = 500
_FIRST_ID = "00000000-0000-0000-0000-000000000000"

Pause = Callable[[float], None]


def cutoff(clock: Clock, older_than: Micros) -> Micros:
    """Before when something is old."""
    if older_than <= 0:
        raise Invalid("only what is older than some time can be pruned; give 90d, for example")
    return clock() - older_than


@contextmanager
def turn(database: Database, pause: Pause) -> Iterator[Transaction]:
    """One write, and then as long a pause, in which other writers get their turn."""
    started = time.monotonic()
    with database.write() as tx:
        yield tx
    pause(time.monotonic() - started)


def ended(database: Database, statement: str, before: Micros, most: int) -> Iterator[list[str]]:
    """The ids of operations that ended before a time, by pages; each page may be deleted."""
    at, last = 0, _FIRST_ID
    while True:
        with database.read() as tx:
            page = tx.fetch(statement, before=before, created_at=at, id=last, most=most)
        yield [each for _, each in page]
        if len(page) < most:
            return
        at, last = page[-1]
