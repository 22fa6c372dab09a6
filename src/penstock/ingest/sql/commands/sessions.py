"""Writes about who is alive, and about what is held."""

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.ingest.sql.room import IngestRoom
from penstock.ingest.sql.rows import HoldRow, SessionRow
from penstock.ingest.values import Hold, HoldKind


class KeepSession(Write, frozen=True):
    """Say that a session is alive, and free what silent ones have locked.

    False: the session itself was silent for too long, and begins anew without its locks.
    """

    session: str
    owner: str
    lasts: Micros

    def apply(self, world: World, now: Micros) -> bool:
        """Its row, and everybody else's."""
        room = world.room(IngestRoom)
        for silent in room.silent_sessions(now):
            if silent.id == self.session and silent.alive_until > now:
                continue  # the clock was put back, and it has been alive all the time
            room.unlock(silent.id)
            room.sessions.put(silent.id, None)
        row = room.sessions.get(self.session)
        was_alive = row is not None
        row = row or SessionRow(self.session, self.owner, 0, self.lasts)
        room.sessions.put(self.session, replace(row, alive_until=now + self.lasts))
        return was_alive


class EndSession(Write, frozen=True):
    """Give up every lock of a session."""

    session: str

    def apply(self, world: World, now: Micros) -> None:
        """Its locks, then its row."""
        room = world.room(IngestRoom)
        room.unlock(self.session)
        if room.sessions.get(self.session) is not None:
            room.sessions.put(self.session, None)


class PutHold(Write, frozen=True):
    """Stop a collection, or the whole queue."""

    hold: Hold

    def apply(self, world: World, now: Micros) -> None:
        """One row; the last who held it is named."""
        hold = self.hold
        row = HoldRow(hold.kind, hold.name, hold.who, hold.why, hold.since)
        world.room(IngestRoom).holds.put((row.kind, row.name), row)


class LiftHold(Write, frozen=True):
    """Let a collection, or the whole queue, go on; False if it was not held."""

    kind: HoldKind
    name: str

    def apply(self, world: World, now: Micros) -> bool:
        """The row goes."""
        room = world.room(IngestRoom)
        key = (self.kind, self.name)
        if room.holds.get(key) is None:
            return False
        room.holds.put(key, None)
        return True
