"""The catalog: who made what from what."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from penstock.catalog.writer import Writer
from penstock.clock import Clock
from penstock.db.database import Database, Transaction


class Catalog(Writer):
    """Writes through one queue, reads on snapshots of their own."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        batch_events_max: int,
        queue_length_max: int,
        observe: Callable[[int, float], None] = lambda size, seconds: None,
    ) -> None:
        super().__init__(
            database,
            clock=clock,
            batch_events_max=batch_events_max,
            queue_length_max=queue_length_max,
            observe=observe,
        )
        self._reads = database

    def read(self) -> AbstractContextManager[Transaction]:
        """A snapshot to query."""
        return self._reads.read()
