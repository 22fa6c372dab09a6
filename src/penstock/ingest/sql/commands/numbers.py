"""Numbers for a queue that is not kept in the database: no two queues ever give the same."""

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.ingest.sql.room import IngestRoom
from penstock.ingest.sql.rows import CounterRow, RangeRow
from penstock.ingest.values import Numbered, Numbers

AT_ONCE = {Numbered.BATCHES: 100, Numbered.JOBS: 10_000}  # so many are reserved beforehand


class ReserveNumbers(Write, frozen=True):
    """Let a queue give numbers of its own; `wanted` are those that it would give next.

    They are among those that it gets, unless they were given or reserved before.
    """

    queue: str
    name: Numbered
    wanted: Numbers

    def apply(self, world: World, now: Micros) -> Numbers:
        """What the queue may give from now on; all up to there are taken."""
        room = world.room(IngestRoom)
        row = room.ranges.get((self.queue, self.name))
        own = None if row is None else Numbers(row.first_number, row.last_number)
        if own is not None and own.covers(self.wanted):
            return own
        counter = room.counters.get(self.name) or CounterRow(self.name, 0)
        after = _next(own, self.wanted, counter.value, AT_ONCE[self.name])
        room.ranges.put(
            (self.queue, self.name), RangeRow(self.queue, self.name, after.first, after.last)
        )
        room.counters.put(self.name, replace(counter, value=after.last))
        return after


def _next(own: Numbers | None, wanted: Numbers, taken: int, spare: int) -> Numbers:
    """The numbers of a queue that has used up its own; all up to `taken` are somebody's."""
    if own is not None and own.last == taken and wanted.first >= own.first:
        return Numbers(own.first, max(taken, wanted.last) + spare)
    if wanted.first > taken:
        return Numbers(wanted.first, wanted.last + spare)
    return Numbers(taken + 1, taken + wanted.count + spare)
