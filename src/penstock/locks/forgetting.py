"""Forgetting what happened to lots long ago, but for what tells how that came about which is."""

import time
from collections.abc import Callable

from penstock.clock import Clock, Micros
from penstock.db import Database
from penstock.errors import Invalid

BATCH_ROWS = 500


def prune_log(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Delete transitions that are older than this, or only count them: how many there were.

    What tells of a run that is still known, of a lot from outside that is there, and of a hold
    stays: prune runs first. It is done in batches, with a pause as long as the batch took after
    each, so that servers may go on meanwhile.
    """
    if older_than <= 0:
        raise Invalid("only what is older than some time can be pruned; give 90d, for example")
    before = clock() - older_than
    total = after = 0
    while True:
        with database.read() as tx:
            page = tx.fetch("oldest_lot_log", after=after, most=BATCH_ROWS)
        old = [row for row in page if row[1] < before]
        gone = [number for number, _, is_needed in old if not is_needed]
        total += len(gone)
        if gone and not dry_run:
            started = time.monotonic()
            with database.write() as tx:
                tx.execute("forget_lot_log", ids=gone)
            pause(time.monotonic() - started)
        if len(old) < BATCH_ROWS:
            return total
        after = page[-1][0]
