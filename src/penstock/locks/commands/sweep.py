"""What time alone changes: leases run out, back-offs end, clocks go on."""

from typing import Self

from msgspec import Struct

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.world import World
from penstock.clock import SECOND, Micros, say_time
from penstock.locks import claiming, rules
from penstock.locks.commands.lots import register
from penstock.locks.room import LockRoom
from penstock.locks.rows import OUTSIDE, ClockRow
from penstock.locks.table import Status, writable
from penstock.lots.ids import INTERVAL_MAX, Interval

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
        ahead = now + rules.AHEAD_MAX
        return cls(now, ahead, ahead + rules.BACK_OFF_MAX, ahead + INTERVAL_MAX)


class Sweep(Write, frozen=True):
    """Expire claims, let back-offs end, make lots of clocks READY; a part at a time.

    What a server whose clock was far ahead has left ends as well: a lease is never longer from now
    than it was given for, a back-off never longer than any, and a clock goes on with the interval
    of today.
    """

    def apply(self, world: World, now: Micros) -> Swept:
        """Look at what is due now."""
        room, limits = world.room(LockRoom), Limits.at(now)
        expired = room.expired(now, AT_ONCE_MAX)
        for row in expired:
            error = f"the lease of {row.owner!r} ran out at {say_time(row.lease_until)}"
            claiming.fail(world, row, error, now, expired=True)
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
            rules.refresh(room, job, [row.lot], now)
        ticked = sum(_tick(world, clock, now) for clock in room.due_clocks(now))
        lost = tuple((row.run_id or "", row.lot) for row in expired)
        return Swept(len(expired), len(due), ticked, len(early), lost)


def _tick(world: World, clock: ClockRow, now: Micros) -> int:
    """Make lots READY whose interval has ended."""
    room = world.room(LockRoom)
    interval = Interval(clock.interval)
    upcoming = interval.at(clock.due_at - 1)
    lots: list[str] = []
    while upcoming.end <= now and len(lots) < AT_ONCE_MAX:
        lots.append(upcoming.id)
        upcoming = upcoming.next
    if lots:
        dataset = world.datasets.get(clock.dataset_id)
        assert dataset is not None, "a clock in use is a dataset"
        arrived = _from_outside(room, dataset.id, lots)
        # One that somebody holds already arrives as held.
        register(world, dataset, arrived, claiming.PENSTOCK, now, renew=True)
        room.clocks.put(clock.dataset_id, replace(clock, due_at=upcoming.end))
    return len(lots)


def _from_outside(room: LockRoom, dataset_id: str, lots: list[str]) -> list[str]:
    """Those of a clock's lots that nobody makes: whoever did must not stop the clock."""
    room.outputs.prefetch((dataset_id, lot) for lot in lots)
    rows = [room.outputs.get((dataset_id, lot)) for lot in lots]
    return [
        lot
        for lot, row in zip(lots, rows, strict=True)
        if row is None or row.job_id == OUTSIDE or writable(Status(row.status))
    ]
