"""The rows of replays, and those rows as a batch of writes sees them."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from penstock.catalog.rows import Row
from penstock.catalog.shelf import Shelf, write_only
from penstock.catalog.world import Changes, World
from penstock.clock import Micros
from penstock.locks.rows import KeeperRow
from penstock.replay.target import Target
from penstock.states import ReplayState, StepState


class Counts(Struct, frozen=True):
    """How many steps of a replay are in each state, and how long they took the time before."""

    pending: int = 0
    going: int = 0
    done: int = 0
    failed: int = 0
    blocked: int = 0
    micros: Micros = 0  # of all steps
    micros_done: Micros = 0
    stale: int = 0  # of those that were not begun, when it ended

    @property
    def steps(self) -> int:
        """All of them."""
        return self.pending + self.going + self.done + self.failed + self.blocked

    @property
    def is_over(self) -> bool:
        """Whether nothing is to be begun, and nothing has to end."""
        return not self.pending and not self.going


class Asked(Struct, frozen=True):
    """What a replay was asked for, and the same pinned: `pinned` never means anything newer."""

    target: Target
    pinned: Target


_decode_asked = msgspec.json.Decoder(Asked).decode
_decode_counts = msgspec.json.Decoder(Counts).decode


class ReplayRow(Row, frozen=True):
    """A replay."""

    id: str
    namespace: str
    target: str
    state: ReplayState
    is_open: int
    counts: str
    max_running: int
    who: str
    why: str
    ran: Micros
    since: Micros
    created_at: Micros

    @property
    def keeper(self) -> KeeperRow:
        """It, as who keeps the turns of its steps."""
        return KeeperRow(self.id, f"replay {self.id}", int(self.state == ReplayState.PAUSED))

    @property
    def asked(self) -> Asked:
        """What it was asked for."""
        return _decode_asked(self.target)

    @property
    def counted(self) -> Counts:
        """What its steps have come to so far."""
        return _decode_counts(self.counts)


class StepRow(Row, frozen=True):
    """One job's work on one lot, to be done again."""

    replay_id: str
    number: int
    job_id: str
    lot: str
    depth: int
    state: StepState
    waits_for: int
    run_before: str | None
    run_id: str | None
    micros: Micros
    note: str
    at: Micros

    @property
    def work(self) -> tuple[str, str]:
        """The work that it is."""
        return self.job_id, self.lot


class EdgeRow(Row, frozen=True):
    """That a step has to be done before another."""

    replay_id: str
    earlier: int
    later: int


class ReplayRoom:
    """Replays by id; steps by replay and number, for writes that are alone."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.replays: Shelf[ReplayRow] = Shelf(self._fetch, world.undo)
        self.steps: Shelf[StepRow] = Shelf(self._fetch_steps, world.undo)
        self.edges: Shelf[EdgeRow] = Shelf(write_only, world.undo)
        self.lasting: tuple[Shelf[Any], ...] = (self.replays,)
        self.passing: tuple[Shelf[Any], ...] = (self.steps, self.edges)

    def changes(self) -> Changes:
        """Every change of the batch of writes."""
        return [
            ("put_replays", self.replays.changed()),
            ("put_replay_steps", self.steps.changed()),
            ("put_replay_edges", self.edges.changed()),
        ]

    def put_step(self, row: StepRow) -> None:
        """Write a step."""
        self.steps.put((row.replay_id, row.number), row)

    def put_edge(self, row: EdgeRow) -> None:
        """Write that a step has to be done before another."""
        self.edges.put((row.replay_id, row.earlier, row.later), row)

    def going(self, replay_id: str, most: int) -> list[StepRow]:
        """The steps that were set going and have not ended."""
        which = {"replay_id": replay_id, "state": StepState.GOING, "most": most}
        found = self._world.tx.rows(StepRow, "replay_steps_in_state", **which)
        for row in found:
            self.steps.learn((replay_id, row.number), row)
        rows = (self.steps.get((replay_id, row.number)) for row in found)
        return [row for row in rows if row is not None and row.state == StepState.GOING]

    def unbegun(self, replay_id: str, most: int) -> list[StepRow]:
        """The steps that were not set going, and are not done."""
        states = (StepState.PENDING, StepState.BLOCKED)
        which = {"replay_id": replay_id, "most": most}
        found = [
            row
            for state in states
            for row in self._world.tx.rows(StepRow, "replay_steps_in_state", state=state, **which)
        ]
        for row in found:
            self.steps.learn((replay_id, row.number), row)
        rows = (self.steps.get((replay_id, row.number)) for row in found)
        return [row for row in rows if row is not None and row.state in states]

    def after(self, replay_id: str, numbers: Sequence[int]) -> list[StepRow]:
        """The steps that wait for these; one that waits for several is there several times."""
        rows = self._world.tx.fetch("replay_steps_after", replay_id=replay_id, numbers=numbers)
        later = [number for (number,) in rows]
        self.steps.prefetch((replay_id, number) for number in later)
        found = (self.steps.get((replay_id, number)) for number in later)
        return [row for row in found if row is not None]

    def of_work(self, replay_id: str, keys: Iterable[str]) -> list[StepRow]:
        """The steps that are the work with these keys: a job's id and a lot."""
        wanted = {"replay_id": replay_id, "keys": list(keys)}
        return self._world.tx.rows(StepRow, "replay_steps_of_work", **wanted)

    def _fetch(self, ids: list[str]) -> dict[str, ReplayRow]:
        rows = self._world.tx.rows(ReplayRow, "replays_by_ids", ids=ids)
        return {row.id: row for row in rows}

    def _fetch_steps(self, keys: list[tuple[str, int]]) -> dict[tuple[str, int], StepRow]:
        found: dict[tuple[str, int], StepRow] = {}
        for replay_id in {replay_id for replay_id, _ in keys}:
            numbers = [number for of, number in keys if of == replay_id]
            which = {"replay_id": replay_id, "numbers": numbers}
            rows = self._world.tx.rows(StepRow, "replay_steps_by_numbers", **which)
            found |= {(row.replay_id, row.number): row for row in rows}
        return found
