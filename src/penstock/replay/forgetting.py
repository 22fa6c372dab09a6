"""Forgetting replays that ended long ago; what they did to lots is in the log and the audit."""

import time
from collections.abc import Callable

from penstock.clock import Clock, Micros
from penstock.db import Database
from penstock.errors import Invalid

BATCH_ROWS = 500
_FIRST_ID = "00000000-0000-0000-0000-000000000000"


def prune_replays(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Delete replays that ended longer ago than this, or only count them: how many there were.

    It is done in batches, with a pause as long as the batch took after each.
    """
    if older_than <= 0:
        raise Invalid("only what is older than some time can be pruned; give 90d, for example")
    before = clock() - older_than
    total, at, last = 0, 0, _FIRST_ID
    while True:
        with database.read() as tx:
            page = tx.fetch("ended_replays", before=before, created_at=at, id=last, most=BATCH_ROWS)
        total += len(page)
        for _, replay_id in () if dry_run else page:
            while _forget_some(database, replay_id, pause):
                pass
        if len(page) < BATCH_ROWS:
            return total
        at, last = page[-1]


def _forget_some(database: Database, replay_id: str, pause: Callable[[float], None]) -> bool:
    """Delete some steps of a replay, and itself with the last: whether there is more."""
    which = {"replay_id": replay_id}
    with database.read() as tx:
        rows = tx.fetch("some_replay_steps", **which, most=BATCH_ROWS)
    numbers = [number for (number,) in rows]
    started = time.monotonic()
    with database.write() as tx:
        tx.execute("forget_replay_edges", **which, numbers=numbers)
        tx.execute("forget_replay_steps", **which, numbers=numbers)
        if len(numbers) < BATCH_ROWS:
            tx.execute("forget_replay", **which)
    pause(time.monotonic() - started)
    return len(numbers) == BATCH_ROWS
