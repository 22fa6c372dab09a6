"""The thread that looks after what time alone changes.

Every server has one. Two that sweep at once do no harm: the second finds nothing left.
"""

import logging
import threading
from typing import Self

from msgspec import Struct
from msgspec.structs import asdict

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import SECOND, Clock, Micros, say_time
from penstock.errors import PenstockError
from penstock.locks import claiming, work
from penstock.locks.commands.lots import register
from penstock.locks.lock_rules import writable
from penstock.locks.rows import OUTSIDE, ClockRow
from penstock.locks.tables import LockTables
from penstock.schema.lot_ids import INTERVAL_MAX, Interval
from penstock.schema.lots import Status
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

AT_ONCE_MAX = 500


class Swept(Struct, frozen=True):
    """How much a sweep has changed, and whether there is more of it."""

    expired: int
    due: int
    ticked: int
    shortened: int = 0  # leases that a clock far ahead had given
    lost: tuple[tuple[str, str], ...] = ()  # runs whose lease ran out, and their lots

    @property
    def has_more(self) -> bool:
        """Whether to sweep again at once."""
        return AT_ONCE_MAX in (self.expired, self.due, self.ticked, self.shortened)


class Limits(Struct, frozen=True):
    """The times by which a sweep finds what is due."""

    now: Micros  # a lease that ends, or a back-off, not after it
    renewed_at_most: Micros  # a lease that was given or renewed after it, by a clock far ahead
    not_before_at_most: Micros  # a back-off that ends after it
    due_at_most: Micros  # an interval of a clock that ends after it

    @classmethod
    def at(cls, now: Micros) -> Self:
        """Those of a sweep now."""
        ahead = now + work.AHEAD_MAX
        return cls(now, ahead, ahead + work.BACK_OFF_MAX, ahead + INTERVAL_MAX)


class Sweep(Write, frozen=True):
    """Expire claims, let back-offs end, make lots of clocks READY; a part at a time.

    What a server whose clock was far ahead has left ends as well: a lease is never longer from now
    than it was given for, a back-off never longer than any, and a clock goes on with the interval
    of today.
    """

    def execute(self, uow: UnitOfWork, now: Micros) -> Swept:
        """Look at what is due now."""
        room, limits = uow.tables(LockTables), Limits.at(now)
        expired = room.expired(now, AT_ONCE_MAX)
        for row in expired:
            error = f"the lease of {row.owner!r} ran out at {say_time(row.lease_until)}"
            claiming.fail(uow, row, error, now, expired=True)
        early = room.early(limits.renewed_at_most, AT_ONCE_MAX)
        for row in early:  # not ended: whoever works on it may be alive, and says so in time
            room.put_work(replace(row, lease_until=now + row.lease_seconds * SECOND))
        for clock in room.clocks_ahead(limits.due_at_most):
            due_at = Interval(clock.interval).at(now).end
            room.clocks.put(clock.dataset_id, replace(clock, due_at=due_at))
        due = room.due(now, AT_ONCE_MAX)
        due += room.endless(limits.not_before_at_most, AT_ONCE_MAX - len(due))
        for row in due:
            job = room.jobs.get(row.job_id)
            assert job is not None, "work is of a job that was wired"
            room.put_work(replace(row, not_before=0))
            work.refresh(room, job, [row.lot], now)
        ticked = sum(_tick(uow, clock, now) for clock in room.due_clocks(now))
        lost = tuple((row.run_id or "", row.lot) for row in expired)
        return Swept(len(expired), len(due), ticked, len(early), lost)


def _tick(uow: UnitOfWork, clock: ClockRow, now: Micros) -> int:
    """Make lots READY whose interval has ended."""
    room = uow.tables(LockTables)
    interval = Interval(clock.interval)
    upcoming = interval.at(clock.due_at - 1)
    lots: list[str] = []
    while upcoming.end <= now and len(lots) < AT_ONCE_MAX:
        lots.append(upcoming.id)
        upcoming = upcoming.next
    if lots:
        dataset = uow.datasets.get(clock.dataset_id)
        assert dataset is not None, "a clock in use is a dataset"
        arrived = _from_outside(room, dataset.id, lots)
        # One that somebody holds already arrives as held.
        register(uow, dataset, arrived, claiming.PENSTOCK, now, renew=True)
        room.clocks.put(clock.dataset_id, replace(clock, due_at=upcoming.end))
    return len(lots)


def _from_outside(room: LockTables, dataset_id: str, lots: list[str]) -> list[str]:
    """Those of a clock's lots that nobody makes: whoever did must not stop the clock."""
    room.outputs.prefetch((dataset_id, lot) for lot in lots)
    rows = [room.outputs.get((dataset_id, lot)) for lot in lots]
    return [
        lot
        for lot, row in zip(lots, rows, strict=True)
        if row is None or row.job_id == OUTSIDE or writable(Status(row.status))
    ]


log = logging.getLogger(__name__)


class Sweeper:
    """Sweeps once in a while, and only when something is due."""

    def __init__(self, catalog: WriteQueue, *, clock: Clock, every_seconds: float) -> None:
        self._catalog = catalog
        self._clock = clock
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-sweeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Return when no sweep is under way."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        trouble = logs.Trouble(log, "leases were not looked at, and will be again")
        while not self._stopped.wait(self._every_seconds):
            try:
                while self._is_due() and self._sweep().has_more:
                    pass
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("leases were not looked at, and will be again")

    def _sweep(self) -> Swept:
        swept = self._catalog.submit(Sweep()).result()
        for run_id, lot in swept.lost:
            with logs.about(lot=lot, run=run_id):
                log.warning("the lease of lot %s ran out, and its run has failed", lot)
        if swept.shortened:
            log.warning(
                "%d leases came from a clock that was far ahead; they last as long as they were "
                "given for, from now on: look after the clocks of the servers",
                swept.shortened,
            )
        return swept

    def _is_due(self) -> bool:
        with self._catalog.read() as tx:
            found = tx.fetch_one("sweep_is_due", **asdict(Limits.at(self._clock())))
        return bool(found and found[0])
