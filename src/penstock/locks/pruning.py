"""Forgetting what happened to lots long ago, but for what tells how that came about which is."""

import time
from collections.abc import Iterable

from penstock.clock import Clock, Micros
from penstock.db import Database, Transaction
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, paced_write


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
    stays: prune runs first. Who only counts has not done so, and leaves out those that would go.
    It is done in batches, with a pause as long as the batch took after each, so that servers may go
    on meanwhile.
    """
    before = cutoff(clock, older_than)
    total = after = 0
    while True:
        with database.read() as tx:
            page = tx.fetch("oldest_lot_log", after=after, most=BATCH_ROWS)
            old = [row for row in page if row[1] < before]
            known = {run for _, _, run, _ in old if run is not None}
            if dry_run:
                known -= _prunable(tx, known, before)
        gone = [number for number, _, run, is_needed in old if run not in known and not is_needed]
        total += len(gone)
        if gone and not dry_run:
            with paced_write(database, pause) as tx:
                tx.execute("forget_lot_log", ids=gone)
        if len(old) < BATCH_ROWS:
            return total
        after = page[-1][0]


def _prunable(tx: Transaction, runs: Iterable[str], before: Micros) -> set[str]:
    """Which of these runs go when runs are pruned."""
    return {row[0] for row in tx.fetch("runs_still_prunable", ids=sorted(runs), cutoff=before)}
