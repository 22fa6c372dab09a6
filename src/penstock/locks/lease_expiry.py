"""Expiry of leases, end of backoffs, and ticks of clocks: the changes that time alone causes.

Every server has a sweeper. Two sweeps at once do no harm: the second finds nothing left to do.
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
from penstock.locks import claiming, retry, work_state
from penstock.locks.commands.lots import register
from penstock.locks.lock_rules import writable
from penstock.locks.rows import EXTERNAL_JOB, ClockRow
from penstock.locks.tables import LockTables
from penstock.schema.lot_ids import INTERVAL_MAX, Interval
from penstock.schema.lots import Status
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

AT_ONCE_MAX = 500
_FAILED = "sweep failed; it is repeated"


class SweepResult(Struct, frozen=True):
    """The changes of one sweep."""

    expired: int
    due: int
    ticked: int
    shortened: int = 0  # leases that came from a clock far ahead
    lost: tuple[tuple[str, str], ...] = ()  # runs with an expired lease, and their lots

    @property
    def has_more(self) -> bool:
        """Whether the sweep reached a limit and must be repeated at once."""
        return AT_ONCE_MAX in (self.expired, self.due, self.ticked, self.shortened)


class SweepLimits(Struct, frozen=True):
    """The times that decide what is due; a later time was written by a clock far ahead."""

    now: Micros  # leases and backoffs end up to this time
    renewed_at_most: Micros  # the latest plausible renewal of a lease
    not_before_at_most: Micros  # the latest plausible end of a backoff
    due_at_most: Micros  # the latest plausible end of a clock's interval

    @classmethod
    def at(cls, now: Micros) -> Self:
        """Return the limits of a sweep at this time."""
        ahead = now + retry.CLOCK_AHEAD_MAX
        return cls(now, ahead, ahead + retry.BACKOFF_MAX, ahead + INTERVAL_MAX)


class Sweep(Write, frozen=True):
    """Expire claims, end backoffs and make lots of clocks READY, up to a limit.

    It also repairs times that came from a clock far ahead: such a lease starts again now, such a
    backoff ends, and such a clock continues with the current interval.
    """

    def execute(self, uow: UnitOfWork, now: Micros) -> SweepResult:
        """Apply the changes that are due."""
        tables, limits = uow.tables(LockTables), SweepLimits.at(now)
        expired = tables.list_expired_claims(now, AT_ONCE_MAX)
        for row in expired:
            error = f"the lease of {row.owner!r} expired at {say_time(row.lease_until)}"
            claiming.fail(uow, row, error, now, expired=True)
        early = tables.list_leases_ahead(limits.renewed_at_most, AT_ONCE_MAX)
        for row in early:  # not expired: the worker may be alive, and renews in time
            tables.put_work(replace(row, lease_until=now + row.lease_seconds * SECOND))
        for clock in tables.list_clocks_ahead(limits.due_at_most):
            due_at = Interval(clock.interval).at(now).end
            tables.clocks.put(clock.dataset_id, replace(clock, due_at=due_at))
        due = tables.list_due_retries(now, AT_ONCE_MAX)
        due += tables.list_retries_ahead(limits.not_before_at_most, AT_ONCE_MAX - len(due))
        for row in due:
            job = tables.jobs.get(row.job_id)
            assert job is not None, "work is of a job that was wired"
            tables.put_work(replace(row, not_before=0))
            work_state.refresh(tables, job, [row.lot], now)
        ticked = sum(_tick(uow, clock, now) for clock in tables.list_due_clocks(now))
        lost = tuple((row.run_id or "", row.lot) for row in expired)
        return SweepResult(len(expired), len(due), ticked, len(early), lost)


def _tick(uow: UnitOfWork, clock: ClockRow, now: Micros) -> int:
    """Make lots READY whose interval has ended; return how many."""
    tables = uow.tables(LockTables)
    interval = Interval(clock.interval)
    upcoming = interval.at(clock.due_at - 1)
    lots: list[str] = []
    while upcoming.end <= now and len(lots) < AT_ONCE_MAX:
        lots.append(upcoming.id)
        upcoming = upcoming.next
    if lots:
        dataset = uow.datasets.get(clock.dataset_id)
        assert dataset is not None, "a clock in use is a dataset"
        arrived = _from_outside(tables, dataset.id, lots)
        # A lot that is held already stays held.
        register(uow, dataset, arrived, claiming.PENSTOCK, now, renew=True)
        tables.clocks.put(clock.dataset_id, replace(clock, due_at=upcoming.end))
    return len(lots)


def _from_outside(tables: LockTables, dataset_id: str, lots: list[str]) -> list[str]:
    """Leave out lots that a job made, which would stop the clock."""
    tables.outputs.prefetch((dataset_id, lot) for lot in lots)
    rows = [tables.outputs.get((dataset_id, lot)) for lot in lots]
    return [
        lot
        for lot, row in zip(lots, rows, strict=True)
        if row is None or row.job_id == EXTERNAL_JOB or writable(Status(row.status))
    ]


class Sweeper:
    """A thread that sweeps regularly, if something is due."""

    def __init__(self, writes: WriteQueue, *, clock: Clock, every_seconds: float) -> None:
        self._writes = writes
        self._clock = clock
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-sweeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for a sweep that is running."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        trouble = logs.Trouble(log, _FAILED)
        while not self._stopped.wait(self._every_seconds):
            try:
                while self._is_due() and self._sweep().has_more:
                    pass
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception(_FAILED)

    def _sweep(self) -> SweepResult:
        result = self._writes.submit(Sweep()).result()
        for run_id, lot in result.lost:
            with logs.about(lot=lot, run=run_id):
                log.warning("lease expired, run failed")
        if result.shortened:
            log.warning(
                "leases=%d came from a clock far ahead and start again now; synchronize the "
                "clocks of the servers",
                result.shortened,
            )
        return result

    def _is_due(self) -> bool:
        with self._writes.read() as tx:
            row = tx.fetch_one("sweep_is_due", **asdict(SweepLimits.at(self._clock())))
        return bool(row and row[0])
