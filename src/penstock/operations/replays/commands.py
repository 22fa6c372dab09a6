"""The writes of replays."""

from collections.abc import Iterable

import msgspec

from penstock.access import audit
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.locks import replay_gate
from penstock.locks.commands.admin import ResubmitLots
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.operations.operation import (
    AuditedWrite,
    OperationKind,
    OperationStatements,
    is_active,
    move,
)
from penstock.operations.replays import rules
from penstock.operations.replays.rows import (
    STEPS_MAX,
    NewStep,
    ReplayRequest,
    ReplayRow,
    ReplayTables,
    StepCounts,
    StepRow,
    add_steps,
    encode_counts,
    move_step,
    step_row,
    with_counts,
    write_steps,
)
from penstock.operations.replays.rules import StepTurn, StepVerdict
from penstock.states import REPLAY, ReplayState, StepState, WorkState
from penstock.store.table_cache import TableCache


class ReplayKind(OperationKind[ReplayRow]):
    """Replays as operations."""

    name = "replay"
    part = "step"
    part_keys = "numbers"
    states = REPLAY
    row = ReplayRow
    statements = OperationStatements(
        by_ids="replays_by_ids",
        latest="last_replays",
        steppable="open_replays",
        ended="ended_replays",
        some_parts="some_replay_steps",
        delete_parts=("forget_replay_edges", "forget_replay_steps"),
        delete="forget_replay",
    )

    def cache(self, uow: UnitOfWork) -> TableCache[ReplayRow]:
        """Return the replays in a unit of work."""
        return uow.tables(ReplayTables).replays

    def put(self, uow: UnitOfWork, row: ReplayRow) -> None:
        """Write a replay."""
        uow.tables(ReplayTables).put_replay(row)

    def on_move(self, uow: UnitOfWork, row: ReplayRow, now: Micros) -> ReplayRow:
        """Open the gate of the remaining steps after a cancel; else show the move at the gate."""
        if row.state == ReplayState.CANCELLED:
            return _open_gate(uow, row, now)
        uow.tables(LockTables).gate.put_owner(row.keeper)
        return row


REPLAYS = ReplayKind()


class StartReplay(AuditedWrite, frozen=True):
    """Begin a replay; no lot is touched yet. The same start again changes nothing."""

    id: str
    who: str
    why: str
    request: ReplayRequest
    max_running: int
    steps: tuple[NewStep, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> ReplayRow:
        """Write the replay with all its steps."""
        REPLAYS.check_max_running(self.max_running)
        tables = uow.tables(ReplayTables)
        stored = tables.replays.get(self.id)
        if stored is not None:
            return self._same(stored)
        row = ReplayRow(
            id=self.id,
            namespace=self.request.pinned.namespace,
            target=msgspec.json.encode(self.request).decode(),
            state=ReplayState.RUNNING,
            is_open=1,
            counts=encode_counts(StepCounts()),
            max_running=self.max_running,
            who=self.who,
            why=self.why,
            ran=0,
            since=now,
            created_at=now,
        )
        row = with_counts(row, add_steps(tables, row, self.steps, (), now))
        if self.steps:
            _close_gate(uow, row, self.steps)
        else:
            row = move(REPLAYS, row, ReplayState.DONE, now)
        REPLAYS.put(uow, row)
        detail = f"{row.id}: {len(self.steps)} steps: {self.why}"
        audit.append(uow.tx, now, self.who, "start replay", self.request.target.sentence, detail)
        return row

    def _same(self, stored: ReplayRow) -> ReplayRow:
        target = stored.request.target
        if target != self.request.target or stored.max_running != self.max_running:
            raise Conflict(
                f"replay {stored.id} is of {target.sentence}, {stored.max_running} steps "
                "at a time; choose another id for another replay"
            )
        return stored


class BeginStep(AuditedWrite, frozen=True):
    """Set a step going if its turn has come, in one transaction with the rows of its lot."""

    id: str
    number: int

    def execute(self, uow: UnitOfWork, now: Micros) -> StepRow:
        """Return the step after the write."""
        tables, locks = uow.tables(ReplayTables), uow.tables(LockTables)
        row, step = REPLAYS.get(uow, self.id), step_row(tables, self.id, self.number)
        if row.state != ReplayState.RUNNING or step.state != StepState.PENDING or step.waits_for:
            return step
        if _active_steps(uow, row) >= row.max_running:
            return step
        job, work = locks.jobs.get(step.job_id), locks.work.get(step.work)
        assert job is not None, "a step is work of a job that was wired"
        verdict = rules.judge(uow, job, step, work)
        if verdict.turn is StepTurn.RERUN:
            self._resubmit(uow, row, job, step, now)
        changed = _apply(step, work, verdict, now)
        if changed.state != StepState.PENDING:
            replay_gate.release(locks, row.id, [step.work], now)
        counts = write_steps(tables, row.step_counts, [(step, changed)], now)
        tables.replays.put(row.id, with_counts(row, counts))
        return changed

    def _resubmit(
        self, uow: UnitOfWork, row: ReplayRow, job: LotJobRow, step: StepRow, now: Micros
    ) -> None:
        catalog_job = uow.jobs.get(job.job_id)
        assert catalog_job is not None, "a job that was wired is in the catalog"
        why = f"replay {row.id}{': ' if row.why else ''}{row.why}"
        ResubmitLots(row.who, why, catalog_job.namespace, catalog_job.name, (step.lot,)).execute(
            uow, now
        )


class FailStep(AuditedWrite, frozen=True):
    """Record that a step could not be set going."""

    id: str
    number: int
    note: str

    def execute(self, uow: UnitOfWork, now: Micros) -> StepRow:
        """Return the failed step. Steps that wait for it are blocked."""
        tables = uow.tables(ReplayTables)
        row, step = REPLAYS.get(uow, self.id), step_row(tables, self.id, self.number)
        if row.state != ReplayState.RUNNING or step.state != StepState.PENDING:
            return step
        failed = move_step(step, StepState.FAILED, now, note=self.note)
        replay_gate.release(uow.tables(LockTables), row.id, [step.work], now)
        counts = write_steps(tables, row.step_counts, [(step, failed)], now)
        tables.replays.put(row.id, with_counts(row, counts))
        return failed


class RecordStepEnds(AuditedWrite, frozen=True):
    """Record which steps have ended, and unblock the steps after them."""

    id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> list[int]:
        """Return the numbers of the steps that have ended."""
        tables, locks = uow.tables(ReplayTables), uow.tables(LockTables)
        row = REPLAYS.get(uow, self.id)
        going = tables.steps_going(row.id, STEPS_MAX)
        locks.work.prefetch(step.work for step in going)
        changed = []
        for step in going:
            work = locks.work.get(step.work)
            state = rules.outcome(step, work)
            if state is StepState.DONE:
                run_id = work.run_id if work is not None else None
                changed.append((step, move_step(step, state, now, run_id=run_id)))
            elif state is not None:
                error = (work.error if work is not None else "") or "it is held"
                changed.append((step, move_step(step, state, now, note=error)))
        row = with_counts(row, write_steps(tables, row.step_counts, changed, now))
        REPLAYS.put(uow, row)
        return [step.number for step, _ in changed]


class EndReplay(AuditedWrite, frozen=True):
    """End a replay whose steps have all ended.

    `late` is work that read something bad meanwhile. Then the replay continues with it.
    """

    id: str
    late: tuple[NewStep, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> ReplayRow:
        """Return the replay after the write."""
        tables = uow.tables(ReplayTables)
        row = REPLAYS.get(uow, self.id)
        if row.state != ReplayState.RUNNING or not row.step_counts.is_over:
            return row
        steps = tables.steps_of_work(row.id, [step.key for step in self.late])
        existing = {step.job_id + step.lot for step in steps}
        counts = add_steps(tables, row, self.late, steps, now)
        row = with_counts(row, counts)
        if counts.is_over:
            is_good = not counts.failed and not counts.blocked
            row = move(REPLAYS, row, ReplayState.DONE if is_good else ReplayState.FAILED, now)
            row = _open_gate(uow, row, now)
        else:
            _close_gate(uow, row, [step for step in self.late if step.key not in existing])
        REPLAYS.put(uow, row)
        return row


def _close_gate(uow: UnitOfWork, row: ReplayRow, steps: Iterable[NewStep]) -> None:
    """Reserve the work of new steps for the replay."""
    keys = [(step.job_id, step.lot) for step in steps]
    uow.tables(LockTables).gate.add(row.keeper, keys)


def _open_gate(uow: UnitOfWork, row: ReplayRow, now: Micros) -> ReplayRow:
    """Leave work that was not begun to its own stale rule; return the replay with its counts."""
    unbegun = uow.tables(ReplayTables).unbegun_steps(row.id, STEPS_MAX)
    stale = replay_gate.close(uow.tables(LockTables), row.id, [step.work for step in unbegun], now)
    return with_counts(row, replace(row.step_counts, stale=stale))


def _active_steps(uow: UnitOfWork, row: ReplayRow) -> int:
    tables, locks = uow.tables(ReplayTables), uow.tables(LockTables)
    going = tables.steps_going(row.id, STEPS_MAX)
    locks.work.prefetch(step.work for step in going)
    return sum(is_active(locks.work.get(step.work)) for step in going)


def _apply(step: StepRow, work: WorkRow | None, verdict: StepVerdict, now: Micros) -> StepRow:
    last = work.run_id if work is not None else None
    is_live = work is not None and work.state == WorkState.RUNNING
    match verdict.turn:
        case StepTurn.WAIT:
            return replace(step, note=verdict.note, at=now)
        case StepTurn.FAIL:
            return move_step(step, StepState.FAILED, now, note=verdict.note)
        case StepTurn.DONE:
            return move_step(step, StepState.DONE, now, run_id=last, note=verdict.note)
    # The run that is under way counts as the new one; an earlier run does not.
    run_before = step.run_before if is_live else last
    return move_step(step, StepState.GOING, now, run_before=run_before, note=verdict.note)
