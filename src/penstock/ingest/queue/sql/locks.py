"""The locks that a session has in the database, and whether anybody here still works under them.

A claim whose answer is lost locks what nobody knows of, and a lock that is to be given up while the
database is away stays. The session lives on, so these would stay for ever: they are looked for.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from penstock.errors import Busy, Unavailable
from penstock.ingest.models import Batch, IngestJob
from penstock.ingest.queue.sql.commands import Held, LetGo
from penstock.store.write_queue import Command, WriteQueue

T = TypeVar("T", IngestJob, Batch)

LOOKS: Final = 3  # that find nothing, until there is no doubt any more


class SqlLocks:
    """What this process has locked, as far as it knows; every method may be called anywhere."""

    def __init__(self, catalog: WriteQueue) -> None:
        self._catalog = catalog
        self._mutex = threading.Lock()
        self._known: dict[str, str] = {}  # by id, the session that locked it
        self._suspects: frozenset[Held] = frozenset()
        self._looks = 0

    def take(self, claim: Command[list[T]]) -> list[T]:
        """Claim, and remember what was claimed."""
        try:
            items = self._catalog.submit(claim).result()
        except Unavailable:
            self._looks = LOOKS
            raise
        with self._mutex:
            self._known.update((item.id, item.locked_by) for item in items)
        return items

    def forget(self, items: Iterable[IngestJob | Batch]) -> None:
        """Nobody works under these locks any more."""
        with self._mutex:
            for item in items:
                if self._known.get(item.id) == item.locked_by:
                    del self._known[item.id]

    def give_up(self, items: Sequence[IngestJob | Batch], session: str) -> None:
        """Unlock those that this session has, now or, if the database is away, soon after."""
        self.forget(items)
        ours = [item for item in items if item.locked_by == session]
        jobs = tuple(_held(item) for item in ours if isinstance(item, IngestJob))
        batches = tuple(_held(item) for item in ours if isinstance(item, Batch))
        try:
            self._catalog.submit(LetGo(jobs, batches)).result()
        except (Busy, Unavailable):
            self._looks = LOOKS

    def free_lost(self, session: str) -> None:
        """Where there is doubt, unlock what this session has locked without knowing.

        A claim that is answered just now is not known yet: only what was unknown at the look
        before as well is unlocked.
        """
        if not self._looks:
            return
        with self._catalog.read() as tx:
            rows = tx.fetch("ingest_locks_of_session", session=session)
        with self._mutex:
            lost = frozenset(
                Held(each, status, session)
                for each, status in rows
                if self._known.get(each) != session
            )
        free, self._suspects = lost & self._suspects, lost
        self._looks = LOOKS if lost else self._looks - 1
        if free:
            self._catalog.submit(LetGo(tuple(free), tuple(free))).result()


def _held(item: IngestJob | Batch) -> Held:
    return Held(item.id, item.status, item.locked_by)
