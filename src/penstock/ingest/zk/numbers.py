"""Which numbers this queue may give: no other queue on the same database gives them.

ZooKeeper counts by itself, and another ZooKeeper, or the database, may have come further before the
queue was moved here. So numbers are reserved in the database, many at once, before they are used;
where those that come next are another's, they are passed over.

A ZooKeeper that was put back from a backup counts again what it had counted. So what is given is
noted in the database: the first number of each process and session, and every so many after it.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.errors import PenstockError
from penstock.ingest.values import Numbered, Numbers, Reserved
from penstock.ingest.zk.layout import BATCH_IDS, BATCHES, JOB_IDS
from penstock.zk import Create, Delete, Op, Session

AT_ONCE: Final = 1_000  # in one transaction; ZooKeeper takes a megabyte
TELL_EVERY: Final = 50_000

# What a queue may give that wants to give these, and is put back or not, or nobody has looked.
Reserve = Callable[[str, Numbered, Numbers, bool | None], Reserved]

log = logging.getLogger(__name__)

_NAMES: Final = {BATCH_IDS: Numbered.BATCHES, JOB_IDS: Numbered.JOBS}
_NOTED_EVERY: Final = {BATCH_IDS: 10, JOB_IDS: 1_000}


class _Own(NamedTuple):
    """The numbers of a queue, up to which they were noted, and in which epoch of the session."""

    numbers: Numbers
    noted: int
    epoch: int


class QueueNumbers:
    """The numbers of one queue, as far as this process knows them; any thread may ask."""

    def __init__(self, session: Session, reserve: Reserve) -> None:
        self._session = session
        self._reserve = reserve
        self._own: dict[str, _Own] = {}

    def may_give(self, prefix: str, ids: list[str]) -> bool:
        """Whether these ids, which ZooKeeper has just made, are this queue's to give."""
        if not ids:
            return True
        numbers = Numbers(*sorted(int(each[-10:]) for each in (ids[0], ids[-1])))
        own = self._own.get(prefix)
        if (
            own is None
            or own.epoch != self._session.epoch
            or not own.numbers.covers(numbers)
            or numbers.last - own.noted > _NOTED_EVERY[prefix]
        ):
            epoch = self._session.epoch
            may = self._ask(prefix, numbers)
            # Those to which it has to count first are not noted yet.
            noted = numbers.last if may.covers(numbers) else -_NOTED_EVERY[prefix]
            own = self._own[prefix] = _Own(may, noted, epoch)
        return own.numbers.covers(numbers)

    def _ask(self, prefix: str, wanted: Numbers) -> Numbers:
        """What this queue may give; none that it gave before, though it counts from there again."""
        queue, name = self._session.identity(BATCHES), _NAMES[prefix]
        reserved = self._reserve(queue, name, wanted, None)
        if wanted.first <= reserved.given:
            # Another process may be ahead of this one. Then ZooKeeper has counted that far as well.
            self._session.sync()
            is_put_back = self._session.created(_parent(prefix)) <= reserved.given
            if is_put_back:
                log.warning(
                    "ZooKeeper counts %s again that were given before: it was put back", name
                )
            reserved = self._reserve(queue, name, wanted, is_put_back)
        return reserved.numbers

    def pass_over(self, prefix: str) -> None:
        """Let ZooKeeper count up to the first number that is this queue's.

        Only what is made counts, so one node is made and deleted again and again.
        """
        own = self._own[prefix].numbers
        nobody = f"{prefix}{0:010}"
        pair: list[Op] = [Create(nobody), Delete(nobody)]
        left = own.first - self._session.created(_parent(prefix))
        log.info(
            "%s: the numbers up to %d are another queue's or given", _NAMES[prefix], own.first - 1
        )
        while left > 0:
            some = min(left, AT_ONCE)
            [outcome] = self._session.multi_many([pair * some])
            if isinstance(outcome, PenstockError):
                raise outcome
            left -= some
            if left and left % TELL_EVERY < AT_ONCE:
                log.info("%s: %d more numbers are passed over", _NAMES[prefix], left)


def _parent(prefix: str) -> str:
    return prefix.rpartition("/")[0]
