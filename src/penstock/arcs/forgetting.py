"""Forgetting backfills that ended long ago; what they did to lots is in the log and the audit."""

import time

from penstock.clock import Clock, Micros
from penstock.db import Database
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, ended, turn


def prune_backfills(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Pause = time.sleep,
) -> int:
    """Delete backfills that ended longer ago than this, or only count them: how many there were.

    It is done in batches, with a pause as long as the batch took after each.
    """
    before = cutoff(clock, older_than)
    total = 0
    for found in ended(database, "ended_backfills", before, BATCH_ROWS):
        total += len(found)
        for backfill_id in () if dry_run else found:
            _forget(database, backfill_id, pause)
    return total


def _forget(database: Database, backfill_id: str, pause: Pause) -> None:
    which = {"backfill_id": backfill_id}
    while True:
        with database.read() as tx:
            lots = [lot for (lot,) in tx.fetch("some_backfill_lots", **which, most=BATCH_ROWS)]
        with turn(database, pause) as tx:
            tx.execute("forget_backfill_lots", **which, lots=lots)
            if len(lots) < BATCH_ROWS:
                tx.execute("forget_backfill", **which)
                return
