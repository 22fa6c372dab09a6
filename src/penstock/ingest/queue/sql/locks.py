"""The locks of a session in the database, compared with the locks that this process uses.

If the answer to a claim is lost, or the database is away during a release, rows stay locked that no
thread works on. The session goes on, so these locks would never expire: this module finds them.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from penstock.errors import Busy, Unavailable
from penstock.ingest.models import Batch, IngestJob
from penstock.ingest.queue.sql.commands import LockRef, ReleaseLocks
from penstock.store.write_queue import Command, WriteQueue

T = TypeVar("T", IngestJob, Batch)

LOOKS: Final = 3  # searches without result that end the doubt


class SqlLocks:
    """The locks that this process knows of; every method may be called in any thread."""

    def __init__(self, catalog: WriteQueue) -> None:
        self._catalog = catalog
        self._mutex = threading.Lock()
        self._sessions: dict[str, str] = {}  # by id, the session that locked it
        self._suspects: frozenset[LockRef] = frozenset()
        self._looks = 0

    def claim(self, claim: Command[list[T]]) -> list[T]:
        """Run a claim and remember its locks."""
        try:
            items = self._catalog.submit(claim).result()
        except Unavailable:
            self._looks = LOOKS
            raise
        with self._mutex:
            self._sessions.update((item.id, item.locked_by) for item in items)
        return items

    def forget(self, items: Iterable[IngestJob | Batch]) -> None:
        """Forget locks that no thread uses any more."""
        with self._mutex:
            for item in items:
                if self._sessions.get(item.id) == item.locked_by:
                    del self._sessions[item.id]

    def release(self, items: Sequence[IngestJob | Batch], session: str) -> None:
        """Unlock the items of this session, now or, if the database is away, soon after."""
        self.forget(items)
        own_items = [item for item in items if item.locked_by == session]
        jobs = tuple(_lock_ref(item) for item in own_items if isinstance(item, IngestJob))
        batches = tuple(_lock_ref(item) for item in own_items if isinstance(item, Batch))
        try:
            self._catalog.submit(ReleaseLocks(jobs, batches)).result()
        except (Busy, Unavailable):
            self._looks = LOOKS

    def release_unknown(self, session: str) -> None:
        """If in doubt, unlock the rows of this session that this process does not know of.

        A claim that is being answered is not known yet. So a row is unlocked only if the search
        before found it unknown too.
        """
        if not self._looks:
            return
        with self._catalog.read() as tx:
            rows = tx.fetch("ingest_locks_of_session", session=session)
        with self._mutex:
            unknown = frozenset(
                LockRef(each, status, session)
                for each, status in rows
                if self._sessions.get(each) != session
            )
        unlocked, self._suspects = unknown & self._suspects, unknown
        self._looks = LOOKS if unknown else self._looks - 1
        if unlocked:
            self._catalog.submit(ReleaseLocks(tuple(unlocked), tuple(unlocked))).result()


def _lock_ref(item: IngestJob | Batch) -> LockRef:
    return LockRef(item.id, item.status, item.locked_by)
