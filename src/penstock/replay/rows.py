"""The rows of replays, and those rows as a batch of writes sees them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.catalog.rows import Row, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import NotFound
from penstock.locks.rows import GateOwnerRow
from penstock.replay.target import Target
from penstock.states import REPLAY_STEP, ReplayState, StepState
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes


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
    def keeper(self) -> GateOwnerRow:
        """It, as who keeps the turns of its steps."""
        return GateOwnerRow(self.id, f"replay {self.id}", int(self.state == ReplayState.PAUSED))

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


class ReplayTables:
    """Replays by id; steps by replay and number, for writes that are alone."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self.replays: TableCache[ReplayRow] = TableCache(self._fetch, uow.undo)
        self.steps: TableCache[StepRow] = TableCache(self._fetch_steps, uow.undo)
        self.edges: TableCache[EdgeRow] = TableCache(write_only, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self.replays,)
        self.append_only: tuple[TableCache[Any], ...] = (self.steps, self.edges)

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
        found = self._uow.tx.rows(StepRow, "replay_steps_in_state", **which)
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
            for row in self._uow.tx.rows(StepRow, "replay_steps_in_state", state=state, **which)
        ]
        for row in found:
            self.steps.learn((replay_id, row.number), row)
        rows = (self.steps.get((replay_id, row.number)) for row in found)
        return [row for row in rows if row is not None and row.state in states]

    def after(self, replay_id: str, numbers: Sequence[int]) -> list[StepRow]:
        """The steps that wait for these; one that waits for several is there several times."""
        rows = self._uow.tx.fetch("replay_steps_after", replay_id=replay_id, numbers=numbers)
        later = [number for (number,) in rows]
        self.steps.prefetch((replay_id, number) for number in later)
        found = (self.steps.get((replay_id, number)) for number in later)
        return [row for row in found if row is not None]

    def of_work(self, replay_id: str, keys: Iterable[str]) -> list[StepRow]:
        """The steps that are the work with these keys: a job's id and a lot."""
        wanted = {"replay_id": replay_id, "keys": list(keys)}
        return self._uow.tx.rows(StepRow, "replay_steps_of_work", **wanted)

    def _fetch(self, ids: list[str]) -> dict[str, ReplayRow]:
        rows = self._uow.tx.rows(ReplayRow, "replays_by_ids", ids=ids)
        return {row.id: row for row in rows}

    def _fetch_steps(self, keys: list[tuple[str, int]]) -> dict[tuple[str, int], StepRow]:
        found: dict[tuple[str, int], StepRow] = {}
        for replay_id in {replay_id for replay_id, _ in keys}:
            numbers = [number for of, number in keys if of == replay_id]
            which = {"replay_id": replay_id, "numbers": numbers}
            rows = self._uow.tx.rows(StepRow, "replay_steps_by_numbers", **which)
            found |= {(row.replay_id, row.number): row for row in rows}
        return found


class NewStep(Struct, frozen=True):
    """A step to be: `before` are the places, among the others, of those it waits for."""

    job_id: str
    lot: str
    depth: int
    before: tuple[int, ...]
    run_before: str | None
    micros: Micros

    @property
    def key(self) -> str:
        """The work that it is, as one text."""
        return self.job_id + self.lot


def step_row(room: ReplayTables, replay_id: str, number: int) -> StepRow:
    """A step of a replay, or NotFound."""
    step = room.steps.get((ids.run_id(replay_id), number))
    if step is None:
        raise NotFound(f"replay {replay_id} has no step {number}")
    return step


def moved_step(
    step: StepRow,
    state: StepState,
    now: Micros,
    *,
    run_before: str | None = None,
    run_id: str | None = None,
    note: str = "",
) -> StepRow:
    """A step in another state."""
    REPLAY_STEP.check(StepState(step.state), state, f"{step.number} of {step.replay_id}")
    run_before = run_before or step.run_before
    return replace(step, state=state, run_before=run_before, run_id=run_id, note=note, at=now)


def write_steps(
    room: ReplayTables, counts: Counts, changed: Iterable[tuple[StepRow, StepRow]], now: Micros
) -> Counts:
    """Write steps that have changed, and what follows for those after them: the counts then."""
    done: list[StepRow] = []
    failed: list[StepRow] = []
    for was, step in changed:
        room.put_step(step)
        counts = _shift(counts, was, step)
        if step.state == StepState.DONE:
            done.append(step)
        elif step.state == StepState.FAILED:
            failed.append(step)
    _let_go(room, done)
    return _block(room, counts, failed, now)


def _let_go(room: ReplayTables, done: Sequence[StepRow]) -> None:
    if not done:
        return
    replay_id = done[0].replay_id
    waited = Counter(step.number for step in room.after(replay_id, [s.number for s in done]))
    for number, count in waited.items():
        step = step_row(room, replay_id, number)
        room.put_step(replace(step, waits_for=step.waits_for - count))


def _block(room: ReplayTables, counts: Counts, failed: Sequence[StepRow], now: Micros) -> Counts:
    """What is after steps that failed, near or far, is not begun."""
    while failed:
        numbers = [step.number for step in failed]
        after = {step.number: step for step in room.after(failed[0].replay_id, numbers)}
        said = f"step {min(numbers)} has failed" if len(numbers) == 1 else "steps before it failed"
        waiting = [step for step in after.values() if step.state == StepState.PENDING]
        failed = [moved_step(step, StepState.BLOCKED, now, note=said) for step in waiting]
        for was, step in zip(waiting, failed, strict=True):
            room.put_step(step)
            counts = _shift(counts, was, step)
    return counts


def add_steps(
    room: ReplayTables,
    row: ReplayRow,
    steps: Sequence[NewStep],
    known: Sequence[StepRow],
    now: Micros,
) -> Counts:
    """Write new steps after those there are; `known` are among the steps already."""
    counts = row.counted
    first = counts.steps + 1
    states = {step.job_id + step.lot: StepState(step.state) for step in known}
    fresh = [place for place, step in enumerate(steps) if step.key not in states]
    numbers = {place: first + at for at, place in enumerate(fresh)}
    for place in fresh:
        new = steps[place]
        before = [states.get(steps[earlier].key) for earlier in new.before]
        open_before = [numbers[earlier] for earlier in new.before if earlier in numbers]
        is_blocked = StepState.FAILED in before or StepState.BLOCKED in before
        state = StepState.BLOCKED if is_blocked else StepState.PENDING
        states[new.key] = state
        step = StepRow(
            replay_id=row.id,
            number=numbers[place],
            job_id=new.job_id,
            lot=new.lot,
            depth=new.depth,
            state=state,
            waits_for=len(open_before),
            run_before=new.run_before,
            run_id=None,
            micros=new.micros,
            note="steps before it failed" if is_blocked else "",
            at=now,
        )
        room.put_step(step)
        for earlier in open_before:
            room.put_edge(EdgeRow(row.id, earlier, step.number))
        counts = _shift(replace(counts, micros=counts.micros + new.micros), None, step)
    return counts


def _shift(counts: Counts, was: StepRow | None, step: StepRow) -> Counts:
    """The counts after a step has changed."""
    numbers = msgspec.structs.asdict(counts)
    if was is not None:
        numbers[was.state] -= 1
    numbers[step.state] += 1
    if step.state == StepState.DONE:
        numbers["micros_done"] += step.micros
    return Counts(**numbers)


def counted(row: ReplayRow, counts: Counts) -> ReplayRow:
    """A replay with other counts."""
    row = replace(row, counts=counts_text(counts))
    return replace(row, is_open=int(_is_open(row)))


def _is_open(row: ReplayRow) -> bool:
    is_active = row.state in (ReplayState.RUNNING, ReplayState.PAUSED)
    return is_active or row.counted.going > 0


def counts_text(counts: Counts) -> str:
    """Counts as they are stored."""
    return msgspec.json.encode(counts).decode()


def moved(row: ReplayRow, state: ReplayState, now: Micros) -> ReplayRow:
    """A replay in another state."""
    ran = row.ran + (now - row.since if row.state == ReplayState.RUNNING else 0)
    row = replace(row, state=state, ran=ran, since=now)
    return replace(row, is_open=int(_is_open(row)))
