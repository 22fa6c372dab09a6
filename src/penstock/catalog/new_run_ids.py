"""Which ids of runs are certainly not stored, so that nothing is read to know that a run is new.

Ids that clients make now are ordered by time. Between the last one that is stored and one of an
hour from now lie those of nearly all runs that are about to begin.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock import ids
from penstock.clock import HOUR, Micros
from penstock.db.database import Ask
from penstock.store.table_cache import Rows, TableCache


class NewRunIds:
    """Ids after one and up to another: a run with such an id is on the shelf, or there is none.

    That is so for as long as the shelf can be trusted, and what leaves it is told here.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Somebody else may have written: nothing is certain."""
        self._after = self._upto = ""
        self._until: Micros = 0

    def sift(self, runs: Sequence[str], *shelves: TableCache[Any]) -> Sequence[str]:
        """Of runs that are not on the shelves those that may be stored; the others are new."""
        after, upto = self._after, self._upto
        new = [run for run in runs if after < run <= upto]
        for shelf in shelves:
            shelf.fill(new, {})
        return [run for run in runs if not after < run <= upto] if new else runs

    def let_go(self, runs: Iterable[str]) -> None:
        """These runs are stored, and no longer on the shelf."""
        upto = self._upto
        self._after = max((run for run in runs if self._after < run <= upto), default=self._after)

    def question(self, now: Micros) -> tuple[Ask, Callable[[Rows], None]] | None:
        """What to ask the database along with runs that may be stored; mostly nothing.

        With it comes what takes the answer in: what is not stored yet is on the shelf.
        """
        if now < self._until:
            return None
        upto = ids.last_id_at(now + HOUR)

        def learn(rows: Rows) -> None:
            self._after, self._upto = max((run for (run,) in rows), default=""), upto
            self._until = now + HOUR // 2

        return ("last_run_ids", {"upto": upto}), learn
