"""Numbers for a queue that is not kept in the database: no two queues ever give the same."""

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.ingest.sql.room import IngestRoom
from penstock.ingest.sql.rows import CounterRow, RangeRow
from penstock.ingest.values import Numbered, Numbers, Reserved

AT_ONCE = {Numbered.BATCHES: 100, Numbered.JOBS: 10_000}  # so many are reserved beforehand


class ReserveNumbers(Write, frozen=True):
    """Let a queue give numbers of its own, and note it; `wanted` are those that it would give next.

    They are among those that it gets, unless they were given or reserved before. A number that is
    not greater than the last one noted may have been given: then nothing is done until the asker
    has looked whether the queue `is_put_back`, and counts again what it has counted before.
    """

    queue: str
    name: Numbered
    wanted: Numbers
    is_put_back: bool | None = None

    def apply(self, world: World, now: Micros) -> Reserved:
        """What the queue may give from now on; all up to there are taken."""
        room = world.room(IngestRoom)
        row = room.ranges.get((self.queue, self.name))
        given = 0 if row is None else row.given
        own = None if row is None else Numbers(row.first_number, row.last_number)
        if own is not None and self.wanted.first < own.first:
            return Reserved(own, given)  # the queue has still to count up to there
        if self.is_put_back is None and self.wanted.first <= given:
            return Reserved(own or self.wanted, given)
        counter = room.counters.get(self.name) or CounterRow(self.name, 0)
        after = self._after(own, counter.value)
        noted = max(given, self.wanted.last) if after.covers(self.wanted) else given
        room.ranges.put(
            (self.queue, self.name),
            RangeRow(self.queue, self.name, after.first, after.last, noted),
        )
        room.counters.put(self.name, replace(counter, value=max(counter.value, after.last)))
        return Reserved(after, given)

    def _after(self, own: Numbers | None, taken: int) -> Numbers:
        """The numbers of the queue from now on; all up to `taken` are somebody's."""
        wanted, spare = self.wanted, AT_ONCE[self.name]
        if self.is_put_back:
            return Numbers(taken + 1, taken + wanted.count + spare)
        if own is not None and own.covers(wanted):
            return own
        if own is not None and own.last == taken:
            return Numbers(own.first, max(taken, wanted.last) + spare)
        if wanted.first > taken:
            return Numbers(wanted.first, wanted.last + spare)
        return Numbers(taken + 1, taken + wanted.count + spare)
