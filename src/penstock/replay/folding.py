"""How the rows of a replay change: steps that end, those that wait for them, and the counts."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.errors import NotFound
from penstock.replay.rows import Counts, EdgeRow, ReplayRoom, ReplayRow, StepRow
from penstock.states import REPLAY_STEP, ReplayState, StepState


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


def step_row(room: ReplayRoom, replay_id: str, number: int) -> StepRow:
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
    room: ReplayRoom, counts: Counts, changed: Iterable[tuple[StepRow, StepRow]], now: Micros
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


def _let_go(room: ReplayRoom, done: Sequence[StepRow]) -> None:
    if not done:
        return
    replay_id = done[0].replay_id
    waited = Counter(step.number for step in room.after(replay_id, [s.number for s in done]))
    for number, count in waited.items():
        step = step_row(room, replay_id, number)
        room.put_step(replace(step, waits_for=step.waits_for - count))


def _block(room: ReplayRoom, counts: Counts, failed: Sequence[StepRow], now: Micros) -> Counts:
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
    room: ReplayRoom,
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
