"""The write queue over the catalog's unit of work."""

from collections.abc import Callable

from penstock.catalog.changes import changes
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Clock
from penstock.db.database import Database
from penstock.store.write_queue import WriteQueue


def open_write_queue(
    database: Database,
    *,
    clock: Clock,
    batch_events_max: int,
    queue_length_max: int,
    observe: Callable[[int, float], None] = lambda size, seconds: None,
) -> WriteQueue:
    """Return a queue; `observe` gets the size of each batch and its seconds."""
    return WriteQueue(
        database,
        UnitOfWork(),
        changes,
        clock=clock,
        batch_events_max=batch_events_max,
        queue_length_max=queue_length_max,
        observe=observe,
    )
