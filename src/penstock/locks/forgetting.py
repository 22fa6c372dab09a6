"""Forgetting what happened to lots long ago, but for what tells how that came about which is."""

import time

from penstock.clock import Clock, Micros
from penstock.db import Database
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, turn


def prune_log(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Pause = time.sleep,
) -> int:
    """Delete transitions that are older than this, or only count them: how many there were.

    What tells of a run that is still known, of a lot from outside that is there, and of a hold
    stays: prune runs first. It is done in batches, with a pause as long as the batch took after
    each, so that servers may go on meanwhile.
    """
    before = cutoff(clock, older_than)
    total = after = 0
    while True:
        with database.read() as tx:
            page = tx.fetch("oldest_lot_log", after=after, most=BATCH_ROWS)
        old = [row for row in page if row[1] < before]
        gone = [number for number, _, is_needed in old if not is_needed]
        total += len(gone)
        if gone and not dry_run:
            with turn(database, pause) as tx:
                tx.execute("forget_lot_log", ids=gone)
        if len(old) < BATCH_ROWS:
            return total
        after = page[-1][0]
