"""The catalog: who made what from what."""

from contextlib import AbstractContextManager

from penstock.catalog.writer import Writer
from penstock.db.database import Transaction


class Catalog(Writer):
    """Writes through one queue, reads on snapshots of their own."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A snapshot to query."""
        return self._database.read()
