"""Replays: the work that stands on bad lots, done again in order."""

import logging
from collections.abc import Callable

from penstock import ids
from penstock.clock import SECOND, format_time
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.errors import Busy, Conflict, NotFound, Unavailable
from penstock.locks.rows import WorkRow
from penstock.operations.operation import MAX_RUNNING, Operations, elapsed, is_active
from penstock.operations.replays import rules
from penstock.operations.replays.commands import (
    REPLAYS,
    BeginStep,
    EndReplay,
    FailStep,
    RecordStepEnds,
    StartReplay,
)
from penstock.operations.replays.plan import Ordered, find_steps, make_plan
from penstock.operations.replays.rows import STEPS_MAX, NewStep, ReplayRequest, ReplayRow, StepRow
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.operations import Replay, ReplayPlan, ReplayStep
from penstock.schema.shape import time_or_none
from penstock.states import ReplayState, StepState, WorkState
from penstock.telemetry import logs

log = logging.getLogger(__name__)

SHOWN_MAX = 100  # steps that are going, or that have failed

Allowed = Callable[[str], None]  # raises an error for a namespace that the caller may not use


class Replays(Operations[ReplayRow, Replay]):
    """Plans, starts and steps replays."""

    kind = REPLAYS

    def plan(
        self,
        target: ReplayTarget,
        *,
        at_once: int = MAX_RUNNING,
        may: Allowed = lambda namespace: None,
    ) -> ReplayPlan:
        """Return what a replay would do now; nothing is written.

        `may` raises an error if the caller may not see the jobs of a namespace.
        """
        with self._writes.read() as tx:
            ordered, plan = make_plan(tx, target, at_once)
        _check_namespaces(ordered, may)
        return plan

    def start(
        self,
        replay_id: str,
        who: str,
        why: str,
        target: ReplayTarget,
        *,
        max_running: int = MAX_RUNNING,
        may: Allowed = lambda namespace: None,
    ) -> Replay:
        """Begin a replay. The same start under the same id only returns its progress.

        `may` raises an error if the caller may not resubmit lots of the jobs of a namespace.
        """
        target.check()
        row_id = ids.run_id(replay_id)
        with self._writes.read() as tx:
            rows = tx.rows(ReplayRow, "replays_by_ids", ids=[row_id])
            ordered = Ordered(target, (), ()) if rows else find_steps(tx, target)
        for row in rows:
            may(row.namespace)
        _check_namespaces(ordered, may)
        request = ReplayRequest(target, ordered.target)
        command = StartReplay(row_id, who, why, request, max_running, _new_steps(ordered))
        self._writes.submit(command).result()
        return self.status(row_id)

    def step(self, operation_id: str) -> Replay:
        """Record what has ended and set the next steps going; safe to call at any time."""
        row_id = ids.run_id(operation_id)
        if self._has_ended_steps(row_id):
            for number in self._writes.submit(RecordStepEnds(row_id)).result():
                self._log_step(row_id, number)
        self._begin(row_id)
        with self._writes.read() as tx:
            row = REPLAYS.read(tx, row_id)
            is_over = row.state == ReplayState.RUNNING and row.step_counts.is_over
            late = find_steps(tx, row.request.pinned) if is_over else None
        if late is not None:
            self._writes.submit(EndReplay(row_id, _new_steps(late))).result()
        return self.status(row_id)

    def _has_ended_steps(self, row_id: str) -> bool:
        with self._writes.read() as tx:
            return any(rules.outcome(step, work) for step, work in _going(tx, row_id))

    def _begin(self, row_id: str) -> None:
        """Set steps going up to the limit, each in a transaction of its own.

        A step can end at once because its work was done meanwhile; then others may begin.
        """
        tried: set[int] = set()
        while True:
            with self._writes.read() as tx:
                row = REPLAYS.read(tx, row_id)
                free = row.max_running - sum(is_active(work) for _, work in _going(tx, row_id))
                if row.state != ReplayState.RUNNING or free <= 0:
                    return
                most = free + len(tried)
                rows = tx.fetch("next_replay_steps", replay_id=row_id, most=most)
                numbers = [number for (number,) in rows]
            fresh = [number for number in numbers if number not in tried][:free]
            if not fresh:
                return
            tried.update(fresh)
            for number in fresh:
                self._begin_one(row_id, number)

    def _begin_one(self, row_id: str, number: int) -> None:
        try:
            step = self._writes.submit(BeginStep(row_id, number)).result()
            if step.state != StepState.PENDING:  # a waiting step is tried every second
                self._log_step(row_id, number)
        except (Busy, Unavailable):
            raise
        except (Conflict, NotFound) as refusal:
            log.warning("step %d of replay %s fails: %s", number, row_id, refusal)
            self._writes.submit(FailStep(row_id, number, str(refusal))).result()

    def _log_step(self, row_id: str, number: int) -> None:
        [step] = self.steps(row_id, first=number, most=1)
        note = f": {step.note}" if step.note else ""
        with logs.about(replay=row_id, job=f"{step.namespace}/{step.job}", lot=step.lot):
            log.info("step %d of replay %s is %s%s", number, row_id, step.state, note)

    def steps(
        self, replay_id: str, *, state: StepState | None = None, first: int = 1, most: int = 100
    ) -> list[ReplayStep]:
        """Return steps of a replay in order from a number on, all or those in one state."""
        with self._writes.read() as tx:
            row = REPLAYS.read(tx, replay_id)
            which = {"replay_id": row.id, "first": first, "most": most}
            if state is None:
                return [_shown(columns) for columns in tx.fetch("read_replay_steps", **which)]
            return _in_state(tx, row.id, state, first, most)

    def _progress(self, tx: Transaction, row: ReplayRow) -> Replay:
        counts = row.step_counts
        micros = elapsed(row, self._clock())
        going = _in_state(tx, row.id, StepState.GOING) if counts.going else []
        failed = _in_state(tx, row.id, StepState.FAILED) if counts.failed else []
        return Replay(
            id=row.id,
            namespace=row.namespace,
            target=row.request.target.sentence,
            versions=row.request.pinned.versions,
            state=ReplayState(row.state),
            max_running=row.max_running,
            steps=counts.steps,
            pending=counts.pending,
            going=counts.going,
            done=counts.done,
            failed=counts.failed,
            blocked=counts.blocked,
            stale=counts.stale,
            cost_seconds=counts.micros / SECOND,
            done_seconds=counts.micros_done / SECOND,
            under_way=going,
            failures=failed,
            seconds=micros / SECOND,
            who=row.who,
            why=row.why,
            created_at=format_time(row.created_at),
            since=format_time(row.since),
        )


def _check_namespaces(ordered: Ordered, may: Allowed) -> None:
    namespaces = {each.wired.name.namespace for each in ordered.work}
    for namespace in sorted(namespaces | {ordered.target.namespace} - {""}):
        may(namespace)


def _going(tx: Transaction, row_id: str) -> list[tuple[StepRow, WorkRow | None]]:
    which = {"replay_id": row_id, "state": StepState.GOING, "most": STEPS_MAX}
    steps = tx.rows(StepRow, "replay_steps_in_state", **which)
    keys = [step.job_id + step.lot for step in steps]
    works = tx.rows(WorkRow, "replay_work", keys=keys) if keys else ()
    work_by_key = {(work.job_id, work.lot): work for work in works}
    return [(step, work_by_key.get(step.work)) for step in steps]


def _new_steps(ordered: Ordered) -> tuple[NewStep, ...]:
    rows = zip(ordered.work, ordered.depths, ordered.before, strict=True)
    return tuple(
        NewStep(
            job_id=each.row.job_id,
            lot=each.row.lot,
            depth=depth,
            before=tuple(before),
            run_before=each.run.id if each.run is not None else None,
            micros=each.micros,
        )
        for each, depth, before in rows
    )


def _in_state(
    tx: Transaction, row_id: str, state: StepState, first: int = 1, most: int = SHOWN_MAX
) -> list[ReplayStep]:
    which = {"replay_id": row_id, "state": state, "first": first, "most": most}
    return [_shown(columns) for columns in tx.fetch("read_replay_steps_in_state", **which)]


def _shown(row: Row) -> ReplayStep:
    number, namespace, job, lot, depth, state, before, run, micros, note, at, now = row
    return ReplayStep(
        number=number,
        namespace=namespace,
        job=job,
        lot=lot,
        depth=depth,
        state=StepState(state),
        run_before=before,
        run=run,
        seconds=micros / SECOND,
        note=note,
        at=time_or_none(at) or "",
        now=WorkState(now) if now is not None else None,
    )
