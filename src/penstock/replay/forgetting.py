"""Forgetting replays that ended long ago; what they did to lots is in the log and the audit."""

import time

from penstock.clock import Clock, Micros
from penstock.db import Database
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, ended, turn


def prune_replays(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Pause = time.sleep,
) -> int:
    """Delete replays that ended longer ago than this, or only count them: how many there were.

    It is done in batches, with a pause as long as the batch took after each.
    """
    before = cutoff(clock, older_than)
    total = 0
    for found in ended(database, "ended_replays", before, BATCH_ROWS):
        total += len(found)
        for replay_id in () if dry_run else found:
            while _forget_some(database, replay_id, pause):
                pass
    return total


def _forget_some(database: Database, replay_id: str, pause: Pause) -> bool:
    """Delete some steps of a replay, and itself with the last: whether there is more."""
    which = {"replay_id": replay_id}
    with database.read() as tx:
        rows = tx.fetch("some_replay_steps", **which, most=BATCH_ROWS)
    numbers = [number for (number,) in rows]
    with turn(database, pause) as tx:
        tx.execute("forget_replay_edges", **which, numbers=numbers)
        tx.execute("forget_replay_steps", **which, numbers=numbers)
        if len(numbers) < BATCH_ROWS:
            tx.execute("forget_replay", **which)
    return len(numbers) == BATCH_ROWS
