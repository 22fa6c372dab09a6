"""Forgetting backfills that ended long ago; what they did to lots is in the log and the audit."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.clock import Clock, Micros
from penstock.db import Database, Transaction
from penstock.errors import Invalid

BATCH_ROWS = 500
_FIRST_ID = "00000000-0000-0000-0000-000000000000"


def prune_backfills(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Delete backfills that ended longer ago than this, or only count them: how many there were.

    It is done in batches, with a pause as long as the batch took after each.
    """
    if older_than <= 0:
        raise Invalid("only what is older than some time can be pruned; give 90d, for example")
    before = clock() - older_than
    total, at, last = 0, 0, _FIRST_ID
    while True:
        with database.read() as tx:
            page = tx.fetch(
                "ended_backfills", before=before, created_at=at, id=last, most=BATCH_ROWS
            )
        total += len(page)
        for _, backfill_id in () if dry_run else page:
            _forget(database, backfill_id, pause)
        if len(page) < BATCH_ROWS:
            return total
        at, last = page[-1]


def _forget(database: Database, backfill_id: str, pause: Callable[[float], None]) -> None:
    which = {"backfill_id": backfill_id}
    while True:
        with database.read() as tx:
            lots = [lot for (lot,) in tx.fetch("some_backfill_lots", **which, most=BATCH_ROWS)]
        with _turn(database, pause) as tx:
            tx.execute("forget_backfill_lots", **which, lots=lots)
            if len(lots) < BATCH_ROWS:
                tx.execute("forget_backfill", **which)
                return


@contextmanager
def _turn(database: Database, pause: Callable[[float], None]) -> Iterator[Transaction]:
    """One write, and then as long a pause, in which other writers get their turn."""
    started = time.monotonic()
    with database.write() as tx:
        yield tx
    pause(time.monotonic() - started)
