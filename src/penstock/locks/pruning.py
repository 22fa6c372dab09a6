"""Pruning of the log of lots; entries that explain current versions stay."""

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
    """Delete transitions that are older than this; return how many.

    Transitions of existing runs, of lots from outside that exist, and of holds stay: prune runs
    first. A dry run only counts, and counts the transitions of runs that pruning would delete. Each
    batch is followed by an equally long pause, so that servers can write.
    """
    before = cutoff(clock, older_than)
    total = after = 0
    while True:
        with database.read() as tx:
            page = tx.fetch("oldest_lot_log", after=after, most=BATCH_ROWS)
            old = [row for row in page if row[1] < before]
            runs = {run for _, _, run, _ in old if run is not None}
            if dry_run:
                runs -= _prunable(tx, runs, before)
        gone = [number for number, _, run, is_needed in old if run not in runs and not is_needed]
        total += len(gone)
        if gone and not dry_run:
            with paced_write(database, pause) as tx:
                tx.execute("forget_lot_log", ids=gone)
        if len(old) < BATCH_ROWS:
            return total
        after = page[-1][0]


def _prunable(tx: Transaction, runs: Iterable[str], before: Micros) -> set[str]:
    return {row[0] for row in tx.fetch("runs_still_prunable", ids=sorted(runs), cutoff=before)}
