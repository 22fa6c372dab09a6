"""Pruning of old outbox events that every subscriber has received."""

import time

from penstock.clock import Clock, Micros
from penstock.db import Database
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, paced_write
from penstock.lots.outbox import Outbox
from penstock.subscribers.commands import load_subscribers, outbox_of

_STATEMENTS: dict[Outbox, tuple[str, str]] = {
    "lots": ("oldest_lot_events", "forget_lot_events"),
    "runs": ("oldest_run_ends", "forget_run_ends"),
}


def prune_outbox(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Pause = time.sleep,
) -> int:
    """Delete events that are older than this; return how many. A dry run only counts.

    Events that a subscriber has not received stay. Each batch is followed by an equally long pause,
    so that servers can write.
    """
    before = cutoff(clock, older_than)
    return sum(_prune(database, outbox, before, dry_run, pause) for outbox in _STATEMENTS)


def _prune(
    database: Database,
    outbox: Outbox,
    before: Micros,
    dry_run: bool,
    pause: Pause,
) -> int:
    look, forget = _STATEMENTS[outbox]
    total = after = 0
    while True:
        with database.read() as tx:
            page = tx.fetch(look, after=after, most=BATCH_ROWS)
            cursors = [row.cursor for row in load_subscribers(tx) if outbox_of(row.kind) == outbox]
        bound = min(cursors, default=None)
        old = _old(page, before, bound)
        total += len(old)
        if old and not dry_run:
            with paced_write(database, pause) as tx:
                # A subscriber may have been moved back since, to receive events again.
                cursors = [
                    row.cursor for row in load_subscribers(tx) if outbox_of(row.kind) == outbox
                ]
                if min(cursors, default=old[-1]) < old[-1]:
                    return total - len(old)
                tx.execute(forget, upto=old[-1])
                tx.execute("put_pruned_upto", outbox=outbox, upto=old[-1])
        if len(old) < BATCH_ROWS:
            return total
        after = old[-1]


def _old(page: list[tuple[int, Micros]], before: Micros, bound: int | None) -> list[int]:
    """Return the first ids of a page that are old enough and received by all subscribers."""
    old: list[int] = []
    for number, at in page:
        if at >= before or (bound is not None and number > bound):
            break
        old.append(number)
    return old
