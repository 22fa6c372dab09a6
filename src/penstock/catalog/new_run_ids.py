"""Run ids that are certainly not stored, so that a new run costs no read.

Clients order run ids by time. Nearly all runs that begin now have an id between the last
stored id and the id of one hour from now.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock import ids
from penstock.clock import HOUR, Micros
from penstock.db.database import Ask
from penstock.store.table_cache import Rows, TableCache


class NewRunIds:
    """A range of ids: a run with an id in it is in the cache, or does not exist.

    The range is valid while the cache is valid. `drop` must be called for each run that leaves
    the cache.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Clear the range: another process may have written."""
        self._after = self._upto = ""
        self._until: Micros = 0

    def without_new(self, runs: Sequence[str], *tables: TableCache[Any]) -> Sequence[str]:
        """Return the runs that may be stored; record the others as absent."""
        after, upto = self._after, self._upto
        new = [run for run in runs if after < run <= upto]
        for table in tables:
            table.fill(new, {})
        return [run for run in runs if not after < run <= upto] if new else runs

    def drop(self, runs: Iterable[str]) -> None:
        """Exclude stored runs that left the cache."""
        upto = self._upto
        self._after = max((run for run in runs if self._after < run <= upto), default=self._after)

    def question(self, now: Micros) -> tuple[Ask, Callable[[Rows], None]] | None:
        """Return a query that extends the range and a function for its answer, or None.

        Runs that are not stored yet are in the cache, so the answer is complete.
        """
        if now < self._until:
            return None
        upto = ids.last_id_at(now + HOUR)

        def learn(rows: Rows) -> None:
            self._after, self._upto = max((run for (run,) in rows), default=""), upto
            self._until = now + HOUR // 2

        return ("last_run_ids", {"upto": upto}), learn
