"""What time alone changes: leases run out, back-offs end, clocks go on."""

from msgspec import Struct

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.world import World
from penstock.clock import Micros, format_time
from penstock.locks import claiming, rules
from penstock.locks.commands.lots import register
from penstock.locks.room import LockRoom
from penstock.locks.rows import OUTSIDE, ClockRow
from penstock.locks.table import Status, writable
from penstock.lots.ids import Interval, parse_interval

AT_ONCE_MAX = 500


class Swept(Struct, frozen=True):
    """How much a sweep has changed, and whether there is more of it."""

    expired: int
    due: int
    ticked: int
    lost: tuple[tuple[str, str], ...] = ()  # runs whose lease ran out, and their lots

    @property
    def has_more(self) -> bool:
        """Whether to sweep again at once."""
        return AT_ONCE_MAX in (self.expired, self.due, self.ticked)


class Sweep(Write, frozen=True):
    """Expire claims, let back-offs end, make lots of clocks READY; a part at a time."""

    def apply(self, world: World, now: Micros) -> Swept:
        """Look at what is due now."""
        room = world.room(LockRoom)
        expired = room.expired(now, AT_ONCE_MAX)
        for row in expired:
            error = f"the lease of {row.owner!r} ran out at {format_time(row.lease_until)}"
            claiming.fail(world, row, error, now, expired=True)
        due = room.due(now, AT_ONCE_MAX)
        for row in due:
            job = room.jobs.get(row.job_id)
            assert job is not None, "work is of a job that was wired"
            room.put_work(replace(row, not_before=0))
            rules.refresh(room, job, [row.lot], now)
        ticked = sum(_tick(world, clock, now) for clock in room.due_clocks(now))
        lost = tuple((row.run_id or "", row.lot) for row in expired)
        return Swept(len(expired), len(due), ticked, lost)


def _tick(world: World, clock: ClockRow, now: Micros) -> int:
    """Make lots READY whose interval has ended."""
    room = world.room(LockRoom)
    interval = Interval(clock.interval)
    upcoming = parse_interval(interval.lot_at(clock.due_at - 1))
    assert upcoming is not None, "an interval's lot is an interval lot"
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
