"""The writes of replays: started, moved on, paused, resumed, cancelled."""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from penstock import ids
from penstock.access import audit
from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, NotFound
from penstock.locks import replay_gate
from penstock.locks.commands.admin import ResubmitLots
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.replay import rules
from penstock.replay.plan import STEPS_MAX
from penstock.replay.rows import (
    Asked,
    Counts,
    NewStep,
    ReplayRow,
    ReplayTables,
    StepRow,
    add_steps,
    counted,
    counts_text,
    moved,
    moved_step,
    step_row,
    write_steps,
)
from penstock.replay.rules import Turn, Verdict
from penstock.states import REPLAY, ReplayState, StepState, WorkState


class _Alone(Write, frozen=True):
    """It writes to the audit log, and reads what was committed before it."""

    exclusive: ClassVar[bool] = True


class StartReplay(_Alone, frozen=True):
    """Begin a replay; no lot is touched yet. Doing so twice does it once."""

    id: str
    who: str
    why: str
    asked: Asked
    max_running: int
    steps: tuple[NewStep, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> ReplayRow:
        """Write it down with all its steps."""
        if self.max_running < 1:
            raise Invalid("a replay has at least one step running at a time")
        room = uow.tables(ReplayTables)
        held = room.replays.get(self.id)
        if held is not None:
            return self._same(held)
        row = ReplayRow(
            id=self.id,
            namespace=self.asked.pinned.namespace,
            target=msgspec.json.encode(self.asked).decode(),
            state=ReplayState.RUNNING,
            is_open=1,
            counts=counts_text(Counts()),
            max_running=self.max_running,
            who=self.who,
            why=self.why,
            ran=0,
            since=now,
            created_at=now,
        )
        row = counted(row, add_steps(room, row, self.steps, (), now))
        if self.steps:
            _let_wait(uow, row, self.steps)
        else:
            row = moved(row, ReplayState.DONE, now)
        room.replays.put(row.id, row)
        said = f"{row.id}: {len(self.steps)} steps: {self.why}"
        audit.append(uow.tx, now, self.who, "start replay", self.asked.target.sentence, said)
        return row

    def _same(self, held: ReplayRow) -> ReplayRow:
        if held.asked.target != self.asked.target or held.max_running != self.max_running:
            raise Conflict(
                f"replay {held.id} is of {held.asked.target.sentence}, {held.max_running} steps at "
                "a time; choose another id for another replay"
            )
        return held


class MoveReplay(_Alone, frozen=True):
    """Pause a replay, resume it, or cancel it."""

    who: str
    why: str
    id: str
    state: ReplayState

    def execute(self, uow: UnitOfWork, now: Micros) -> ReplayRow:
        """What was set going ends by itself in any case; what was not waits, unless it is over."""
        row = replay_row(uow, self.id)
        REPLAY.check(ReplayState(row.state), self.state, row.id)
        if row.state == self.state:
            return row
        row = moved(row, self.state, now)
        if self.state == ReplayState.CANCELLED:
            row = _wait_no_more(uow, row, now)
        else:
            uow.tables(LockTables).gate.put_owner(row.keeper)
        uow.tables(ReplayTables).replays.put(row.id, row)
        audit.append(uow.tx, now, self.who, f"{self.state} replay", row.id, self.why)
        return row


class BeginStep(_Alone, frozen=True):
    """Set a step going, if its turn has come: with its lot's rows in one transaction."""

    id: str
    number: int

    def execute(self, uow: UnitOfWork, now: Micros) -> StepRow:
        """The step after it."""
        room, locks = uow.tables(ReplayTables), uow.tables(LockTables)
        row, step = replay_row(uow, self.id), step_row(room, self.id, self.number)
        if row.state != ReplayState.RUNNING or step.state != StepState.PENDING or step.waits_for:
            return step
        if _taking_part(uow, row) >= row.max_running:
            return step
        job, work = locks.jobs.get(step.job_id), locks.work.get(step.work)
        assert job is not None, "a step is work of a job that was wired"
        verdict = rules.judge(uow, job, step, work)
        if verdict.turn is Turn.RERUN:
            self._resubmit(uow, row, job, step, now)
        changed = _turned(step, work, verdict, now)
        if changed.state != StepState.PENDING:
            replay_gate.release(locks, row.id, [step.work], now)
        counts = write_steps(room, row.counted, [(step, changed)], now)
        room.replays.put(row.id, counted(row, counts))
        return changed

    def _resubmit(
        self, uow: UnitOfWork, row: ReplayRow, job: LotJobRow, step: StepRow, now: Micros
    ) -> None:
        named = uow.jobs.get(job.job_id)
        assert named is not None, "a job that was wired is in the catalog"
        why = f"replay {row.id}{': ' if row.why else ''}{row.why}"
        ResubmitLots(row.who, why, named.namespace, named.name, (step.lot,)).execute(uow, now)


class FailStep(_Alone, frozen=True):
    """Note that a step could not be set going."""

    id: str
    number: int
    note: str

    def execute(self, uow: UnitOfWork, now: Micros) -> StepRow:
        """The step after it; what waits for it is blocked."""
        room = uow.tables(ReplayTables)
        row, step = replay_row(uow, self.id), step_row(room, self.id, self.number)
        if row.state != ReplayState.RUNNING or step.state != StepState.PENDING:
            return step
        failed = moved_step(step, StepState.FAILED, now, note=self.note)
        replay_gate.release(uow.tables(LockTables), row.id, [step.work], now)
        counts = write_steps(room, row.counted, [(step, failed)], now)
        room.replays.put(row.id, counted(row, counts))
        return failed


class SettleReplay(_Alone, frozen=True):
    """Note which steps have ended, and let go what waited for them."""

    id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> list[int]:
        """The numbers of those that have ended."""
        room, locks = uow.tables(ReplayTables), uow.tables(LockTables)
        row = replay_row(uow, self.id)
        going = room.going(row.id, STEPS_MAX)
        locks.work.prefetch(step.work for step in going)
        changed = []
        for step in going:
            work = locks.work.get(step.work)
            state = rules.outcome(step, work)
            if state is StepState.DONE:
                run_id = work.run_id if work is not None else None
                changed.append((step, moved_step(step, state, now, run_id=run_id)))
            elif state is not None:
                error = (work.error if work is not None else "") or "it is held"
                changed.append((step, moved_step(step, state, now, note=error)))
        row = counted(row, write_steps(room, row.counted, changed, now))
        room.replays.put(row.id, row)
        return [step.number for step, _ in changed]


class EndReplay(_Alone, frozen=True):
    """End a replay all of whose steps have ended, unless more came to stand on what was bad.

    `late` is what does so, found after all steps had ended: it is done again, too.
    """

    id: str
    late: tuple[NewStep, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> ReplayRow:
        """The replay after it."""
        room = uow.tables(ReplayTables)
        row = replay_row(uow, self.id)
        if row.state != ReplayState.RUNNING or not row.counted.is_over:
            return row
        steps = room.of_work(row.id, [step.key for step in self.late])
        known = {step.job_id + step.lot for step in steps}
        counts = add_steps(room, row, self.late, steps, now)
        row = counted(row, counts)
        if counts.is_over:
            is_good = not counts.failed and not counts.blocked
            row = moved(row, ReplayState.DONE if is_good else ReplayState.FAILED, now)
            row = _wait_no_more(uow, row, now)
        else:
            _let_wait(uow, row, [step for step in self.late if step.key not in known])
        room.replays.put(row.id, row)
        return row


def replay_row(uow: UnitOfWork, replay_id: str) -> ReplayRow:
    """A replay, or NotFound."""
    row = uow.tables(ReplayTables).replays.get(ids.run_id(replay_id))
    if row is None:
        raise NotFound(f"there is no replay {replay_id}; list them to see which there are")
    return row


def _let_wait(uow: UnitOfWork, row: ReplayRow, steps: Iterable[NewStep]) -> None:
    """Let the work of new steps wait for its turn."""
    keys = [(step.job_id, step.lot) for step in steps]
    uow.tables(LockTables).gate.add(row.keeper, keys)


def _wait_no_more(uow: UnitOfWork, row: ReplayRow, now: Micros) -> ReplayRow:
    """A replay that is over, after what it has not begun was left to its own rule."""
    unbegun = uow.tables(ReplayTables).unbegun(row.id, STEPS_MAX)
    stale = replay_gate.close(uow.tables(LockTables), row.id, [step.work for step in unbegun], now)
    return counted(row, replace(row.counted, stale=stale))


def _taking_part(uow: UnitOfWork, row: ReplayRow) -> int:
    """How many of a replay's steps run, or will as soon as they can."""
    room, locks = uow.tables(ReplayTables), uow.tables(LockTables)
    going = room.going(row.id, STEPS_MAX)
    locks.work.prefetch(step.work for step in going)
    return sum(rules.takes_part(locks.work.get(step.work)) for step in going)


def _turned(step: StepRow, work: WorkRow | None, verdict: Verdict, now: Micros) -> StepRow:
    """A step after its turn."""
    last = work.run_id if work is not None else None
    is_live = work is not None and work.state == WorkState.RUNNING
    match verdict.turn:
        case Turn.WAIT:
            return replace(step, note=verdict.note, at=now)
        case Turn.FAIL:
            return moved_step(step, StepState.FAILED, now, note=verdict.note)
        case Turn.DONE:
            return moved_step(step, StepState.DONE, now, run_id=last, note=verdict.note)
    # A run that is at it counts; any before it does not.
    run_before = step.run_before if is_live else last
    return moved_step(step, StepState.GOING, now, run_before=run_before, note=verdict.note)
