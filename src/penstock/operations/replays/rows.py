"""The rows of replays, and their tables in a unit of work."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.catalog.rows import Row, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import NotFound
from penstock.locks.rows import GateOwnerRow
from penstock.operations.replays.target import ReplayTarget
from penstock.states import REPLAY_STEP, ReplayState, StepState
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes

STEPS_MAX = 100_000


class StepCounts(Struct, frozen=True):
    """The number of steps in each state, and how long their last good runs took."""

    pending: int = 0
    going: int = 0
    done: int = 0
    failed: int = 0
    blocked: int = 0
    micros: Micros = 0  # of all steps
    micros_done: Micros = 0
    stale: int = 0  # steps that were stale and not begun when the replay ended

    @property
    def steps(self) -> int:
        """The number of all steps."""
        return self.pending + self.going + self.done + self.failed + self.blocked

    @property
    def is_over(self) -> bool:
        """Whether no step is pending or going."""
        return not self.pending and not self.going


class ReplayRequest(Struct, frozen=True):
    """The target of a replay, and the same target pinned to the versions of that time."""

    target: ReplayTarget
    pinned: ReplayTarget


_decode_request = msgspec.json.Decoder(ReplayRequest).decode
_decode_counts = msgspec.json.Decoder(StepCounts).decode


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
        """The replay as the owner of the gate of its steps."""
        return GateOwnerRow(self.id, f"replay {self.id}", int(self.state == ReplayState.PAUSED))

    @property
    def request(self) -> ReplayRequest:
        """The request."""
        return _decode_request(self.target)

    @property
    def step_counts(self) -> StepCounts:
        """The counts of its steps."""
        return _decode_counts(self.counts)


class StepRow(Row, frozen=True):
    """A step: one job's work on one lot, to be done again."""

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
        """The key of its work."""
        return self.job_id, self.lot


class StepEdgeRow(Row, frozen=True):
    """A step that must be done before another."""

    replay_id: str
    earlier: int
    later: int


class ReplayTables:
    """Replays by id, and steps by replay and number; for exclusive writes only."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self.replays: TableCache[ReplayRow] = TableCache(self._fetch, uow.undo)
        self.steps: TableCache[StepRow] = TableCache(self._fetch_steps, uow.undo)
        self.edges: TableCache[StepEdgeRow] = TableCache(write_only, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self.replays,)
        self.append_only: tuple[TableCache[Any], ...] = (self.steps, self.edges)

    def changes(self) -> Changes:
        """Return the rows to write, by statement."""
        return [
            ("put_replays", self.replays.changed()),
            ("put_replay_steps", self.steps.changed()),
            ("put_replay_edges", self.edges.changed()),
        ]

    def put_replay(self, row: ReplayRow) -> None:
        """Write a replay; it stays open until its last step has ended."""
        is_active = row.state in (ReplayState.RUNNING, ReplayState.PAUSED)
        is_open = is_active or row.step_counts.going > 0
        self.replays.put(row.id, replace(row, is_open=int(is_open)))

    def put_step(self, row: StepRow) -> None:
        """Write a step."""
        self.steps.put((row.replay_id, row.number), row)

    def put_edge(self, row: StepEdgeRow) -> None:
        """Write that a step must be done before another."""
        self.edges.put((row.replay_id, row.earlier, row.later), row)

    def steps_going(self, replay_id: str, most: int) -> list[StepRow]:
        """Read the steps that were set going and have not ended."""
        which = {"replay_id": replay_id, "state": StepState.GOING, "most": most}
        stored = self._uow.tx.rows(StepRow, "replay_steps_in_state", **which)
        return [row for row in self._cached(stored) if row.state == StepState.GOING]

    def unbegun_steps(self, replay_id: str, most: int) -> list[StepRow]:
        """Read the steps that were not set going and are not done."""
        states = (StepState.PENDING, StepState.BLOCKED)
        which = {"replay_id": replay_id, "most": most}
        stored = [
            row
            for state in states
            for row in self._uow.tx.rows(StepRow, "replay_steps_in_state", state=state, **which)
        ]
        return [row for row in self._cached(stored) if row.state in states]

    def _cached(self, stored: Sequence[StepRow]) -> Iterator[StepRow]:
        """Yield the steps with the changes of this unit of work."""
        for row in stored:
            self.steps.learn((row.replay_id, row.number), row)
        for row in stored:
            cached = self.steps.get((row.replay_id, row.number))
            if cached is not None:
                yield cached

    def steps_after(self, replay_id: str, numbers: Sequence[int]) -> list[StepRow]:
        """Read the steps that wait for these, once for each step that they wait for."""
        rows = self._uow.tx.fetch("replay_steps_after", replay_id=replay_id, numbers=numbers)
        later = [number for (number,) in rows]
        self.steps.prefetch((replay_id, number) for number in later)
        steps = (self.steps.get((replay_id, number)) for number in later)
        return [step for step in steps if step is not None]

    def steps_of_work(self, replay_id: str, keys: Iterable[str]) -> list[StepRow]:
        """Read the steps of work with these keys: a job's id and a lot in one text."""
        wanted = {"replay_id": replay_id, "keys": list(keys)}
        return self._uow.tx.rows(StepRow, "replay_steps_of_work", **wanted)

    def _fetch(self, ids: list[str]) -> dict[str, ReplayRow]:
        rows = self._uow.tx.rows(ReplayRow, "replays_by_ids", ids=ids)
        return {row.id: row for row in rows}

    def _fetch_steps(self, keys: list[tuple[str, int]]) -> dict[tuple[str, int], StepRow]:
        steps: dict[tuple[str, int], StepRow] = {}
        for replay_id in {replay_id for replay_id, _ in keys}:
            numbers = [number for each, number in keys if each == replay_id]
            which = {"replay_id": replay_id, "numbers": numbers}
            rows = self._uow.tx.rows(StepRow, "replay_steps_by_numbers", **which)
            steps |= {(row.replay_id, row.number): row for row in rows}
        return steps


class NewStep(Struct, frozen=True):
    """A new step; `before` are the positions of the steps that it waits for."""

    job_id: str
    lot: str
    depth: int
    before: tuple[int, ...]
    run_before: str | None
    micros: Micros

    @property
    def key(self) -> str:
        """The key of its work, as one text."""
        return self.job_id + self.lot


def step_row(tables: ReplayTables, replay_id: str, number: int) -> StepRow:
    """Return a step of a replay, or raise NotFound."""
    step = tables.steps.get((ids.run_id(replay_id), number))
    if step is None:
        raise NotFound(f"replay {replay_id} has no step {number}")
    return step


def move_step(
    step: StepRow,
    state: StepState,
    now: Micros,
    *,
    run_before: str | None = None,
    run_id: str | None = None,
    note: str = "",
) -> StepRow:
    """Return a step in another state, or refuse the move."""
    REPLAY_STEP.check(StepState(step.state), state, f"{step.number} of {step.replay_id}")
    run_before = run_before or step.run_before
    return replace(step, state=state, run_before=run_before, run_id=run_id, note=note, at=now)


def write_steps(
    tables: ReplayTables,
    counts: StepCounts,
    changed: Iterable[tuple[StepRow, StepRow]],
    now: Micros,
) -> StepCounts:
    """Write changed steps and the effects on later steps; return the new counts."""
    done: list[StepRow] = []
    failed: list[StepRow] = []
    for was, step in changed:
        tables.put_step(step)
        counts = _shift(counts, was, step)
        if step.state == StepState.DONE:
            done.append(step)
        elif step.state == StepState.FAILED:
            failed.append(step)
    _unblock(tables, done)
    return _block(tables, counts, failed, now)


def _unblock(tables: ReplayTables, done: Sequence[StepRow]) -> None:
    if not done:
        return
    replay_id = done[0].replay_id
    waited = Counter(
        step.number for step in tables.steps_after(replay_id, [s.number for s in done])
    )
    for number, count in waited.items():
        step = step_row(tables, replay_id, number)
        tables.put_step(replace(step, waits_for=step.waits_for - count))


def _block(
    tables: ReplayTables, counts: StepCounts, failed: Sequence[StepRow], now: Micros
) -> StepCounts:
    while failed:
        numbers = [step.number for step in failed]
        after = {step.number: step for step in tables.steps_after(failed[0].replay_id, numbers)}
        note = f"step {min(numbers)} has failed" if len(numbers) == 1 else "steps before it failed"
        waiting = [step for step in after.values() if step.state == StepState.PENDING]
        failed = [move_step(step, StepState.BLOCKED, now, note=note) for step in waiting]
        for was, step in zip(waiting, failed, strict=True):
            tables.put_step(step)
            counts = _shift(counts, was, step)
    return counts


def add_steps(
    tables: ReplayTables,
    row: ReplayRow,
    steps: Sequence[NewStep],
    existing: Sequence[StepRow],
    now: Micros,
) -> StepCounts:
    """Append new steps; the work of `existing` steps is in the replay already."""
    counts = row.step_counts
    first = counts.steps + 1
    states = {step.job_id + step.lot: StepState(step.state) for step in existing}
    fresh = [position for position, step in enumerate(steps) if step.key not in states]
    numbers = {position: first + at for at, position in enumerate(fresh)}
    for position in fresh:
        new = steps[position]
        before = [states.get(steps[earlier].key) for earlier in new.before]
        open_before = [numbers[earlier] for earlier in new.before if earlier in numbers]
        is_blocked = StepState.FAILED in before or StepState.BLOCKED in before
        state = StepState.BLOCKED if is_blocked else StepState.PENDING
        states[new.key] = state
        step = StepRow(
            replay_id=row.id,
            number=numbers[position],
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
        tables.put_step(step)
        for earlier in open_before:
            tables.put_edge(StepEdgeRow(row.id, earlier, step.number))
        counts = _shift(replace(counts, micros=counts.micros + new.micros), None, step)
    return counts


def _shift(counts: StepCounts, was: StepRow | None, step: StepRow) -> StepCounts:
    numbers = msgspec.structs.asdict(counts)
    if was is not None:
        numbers[was.state] -= 1
    numbers[step.state] += 1
    if step.state == StepState.DONE:
        numbers["micros_done"] += step.micros
    return StepCounts(**numbers)


def with_counts(row: ReplayRow, counts: StepCounts) -> ReplayRow:
    """Return a replay with other counts."""
    return replace(row, counts=encode_counts(counts))


def encode_counts(counts: StepCounts) -> str:
    """Encode counts as they are stored."""
    return msgspec.json.encode(counts).decode()
