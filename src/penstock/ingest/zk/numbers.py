"""Which numbers this queue may give: no other queue on the same database gives them.

ZooKeeper counts by itself, and another ZooKeeper, or the database, may have come further before the
queue was moved here. So numbers are reserved in the database, many at once, before they are used;
where those that come next are another's, they are passed over.
"""

import logging
from collections.abc import Callable
from typing import Final

from penstock.errors import PenstockError
from penstock.ingest.values import Numbered, Numbers
from penstock.ingest.zk.layout import BATCH_IDS, BATCHES, JOB_IDS
from penstock.zk import Create, Delete, Op, Session

AT_ONCE: Final = 1_000  # in one transaction; ZooKeeper takes a megabyte
TELL_EVERY: Final = 50_000

Reserve = Callable[[str, Numbered, Numbers], Numbers]  # for a queue: what it may give from now on

log = logging.getLogger(__name__)

_NAMES: Final = {BATCH_IDS: Numbered.BATCHES, JOB_IDS: Numbered.JOBS}


class QueueNumbers:
    """The numbers of one queue, as far as this process knows them; any thread may ask."""

    def __init__(self, session: Session, reserve: Reserve) -> None:
        self._session = session
        self._reserve = reserve
        self._own: dict[str, Numbers] = {}

    def may_give(self, prefix: str, ids: list[str]) -> bool:
        """Whether these ids, which ZooKeeper has just made, are this queue's to give."""
        if not ids:
            return True
        numbers = Numbers(*sorted(int(each[-10:]) for each in (ids[0], ids[-1])))
        own = self._own.get(prefix)
        if own is None or not own.covers(numbers):
            queue = self._session.identity(BATCHES)
            own = self._own[prefix] = self._reserve(queue, _NAMES[prefix], numbers)
        return own.covers(numbers)

    def pass_over(self, prefix: str) -> None:
        """Let ZooKeeper count up to the first number that is this queue's.

        Only what is made counts, so one node is made and deleted again and again.
        """
        own = self._own[prefix]
        nobody = f"{prefix}{0:010}"
        pair: list[Op] = [Create(nobody), Delete(nobody)]
        left = own.first - self._session.created(prefix.rpartition("/")[0])
        log.info("%s: the numbers up to %d are another queue's", _NAMES[prefix], own.first - 1)
        while left > 0:
            some = min(left, AT_ONCE)
            [outcome] = self._session.multi_many([pair * some])
            if isinstance(outcome, PenstockError):
                raise outcome
            left -= some
            if left and left % TELL_EVERY < AT_ONCE:
                log.info("%s: %d more numbers are passed over", _NAMES[prefix], left)
