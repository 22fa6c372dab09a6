"""Forgetting replays that ended long ago; what they did to lots is in the log and the audit."""

import logging
import time
from collections.abc import Callable

from penstock import ids
from penstock.clock import SECOND, Clock, Micros, format_time
from penstock.db import Database, Transaction
from penstock.db.database import Row
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, paced_write, pages_of_ended
from penstock.errors import Busy, Conflict, NotFound, PenstockError, Unavailable
from penstock.locks.rows import WorkRow
from penstock.replay import rules
from penstock.replay.commands import (
    BeginStep,
    EndReplay,
    FailStep,
    MoveReplay,
    SettleReplay,
    StartReplay,
)
from penstock.replay.plan import STEPS_MAX, Ordered, find_steps, make_plan
from penstock.replay.rows import Asked, NewStep, ReplayRow, StepRow
from penstock.replay.target import Target
from penstock.schema.operations import Replay, ReplayPlan, ReplayStep
from penstock.schema.shape import time_or_none
from penstock.states import ReplayState, StepState, WorkState
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs


def prune_replays(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Pause = time.sleep,
) -> int:
    """Delete replays that ended longer ago than this, or only count them: how many there were.

    It is done in batches, with a pause as long as the batch took after each.
    """
    before = cutoff(clock, older_than)
    total = 0
    for found in pages_of_ended(database, "ended_replays", before, BATCH_ROWS):
        total += len(found)
        for replay_id in () if dry_run else found:
            while _forget_some(database, replay_id, pause):
                pass
    return total


def _forget_some(database: Database, replay_id: str, pause: Pause) -> bool:
    """Delete some steps of a replay, and itself with the last: whether there is more."""
    which = {"replay_id": replay_id}
    with database.read() as tx:
        rows = tx.fetch("some_replay_steps", **which, most=BATCH_ROWS)
    numbers = [number for (number,) in rows]
    with paced_write(database, pause) as tx:
        tx.execute("forget_replay_edges", **which, numbers=numbers)
        tx.execute("forget_replay_steps", **which, numbers=numbers)
        if len(numbers) < BATCH_ROWS:
            tx.execute("forget_replay", **which)
    return len(numbers) == BATCH_ROWS


log = logging.getLogger(__name__)

MAX_RUNNING = 4
SHOWN_MAX = 100  # of the steps that go or have failed

Allowed = Callable[[str], None]  # refuses a namespace, or does nothing


class Replays:
    """Plans replays, begins them, moves them on, and tells how far they are."""

    def __init__(self, catalog: WriteQueue, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock

    def plan(
        self, target: Target, *, at_once: int = MAX_RUNNING, may: Allowed = lambda namespace: None
    ) -> ReplayPlan:
        """What a replay would do now; nothing is written.

        `may` refuses who must not see the jobs of a namespace.
        """
        with self._catalog.read() as tx:
            found, plan = make_plan(tx, target, at_once)
        _allow(found, may)
        return plan

    def start(
        self,
        replay_id: str,
        who: str,
        why: str,
        target: Target,
        *,
        max_running: int = MAX_RUNNING,
        may: Allowed = lambda namespace: None,
    ) -> Replay:
        """Begin a replay, once: the same again under the same id only tells how far it is.

        `may` refuses who must not rerun the jobs of a namespace.
        """
        target.check()
        row_id = ids.run_id(replay_id)
        with self._catalog.read() as tx:
            known = tx.rows(ReplayRow, "replays_by_ids", ids=[row_id])
            found = Ordered(target, (), ()) if known else find_steps(tx, target)
        for namespace in [row.namespace for row in known]:
            may(namespace)
        _allow(found, may)
        asked = Asked(target, found.target)
        command = StartReplay(row_id, who, why, asked, max_running, _new_steps(found))
        self._catalog.submit(command).result()
        return self.status(row_id)

    def pause(self, replay_id: str, who: str, why: str = "") -> Replay:
        """Set no more steps going, until it is resumed."""
        return self._move(replay_id, who, why, ReplayState.PAUSED)

    def resume(self, replay_id: str, who: str, why: str = "") -> Replay:
        """Go on from where it was paused."""
        return self._move(replay_id, who, why, ReplayState.RUNNING)

    def cancel(self, replay_id: str, who: str, why: str = "") -> Replay:
        """Stop for good; what was set going ends by itself, the rest is left to its own rule."""
        return self._move(replay_id, who, why, ReplayState.CANCELLED)

    def _move(self, replay_id: str, who: str, why: str, state: ReplayState) -> Replay:
        self._catalog.submit(MoveReplay(who, why, replay_id, state)).result()
        return self.status(replay_id)

    def step(self, replay_id: str) -> Replay:
        """Note what has ended and set the next steps going; safe to call from anywhere, any time.

        A step that ends at once, because somebody has done it already, lets others go.
        """
        row_id = ids.run_id(replay_id)
        if self._has_news(row_id):
            for number in self._catalog.submit(SettleReplay(row_id)).result():
                self._log_step(row_id, number)
        self._begin(row_id)
        with self._catalog.read() as tx:
            row = _row(tx, row_id)
            is_over = row.state == ReplayState.RUNNING and row.counted.is_over
            late = find_steps(tx, row.asked.pinned) if is_over else None
        if late is not None:
            self._catalog.submit(EndReplay(row_id, _new_steps(late))).result()
        return self.status(row_id)

    def step_all(self) -> int:
        """Move every replay on that is not over: how many those are."""
        with self._catalog.read() as tx:
            found = [replay_id for (replay_id,) in tx.fetch("open_replays")]
        for replay_id in found:
            with logs.about(replay=replay_id):
                try:
                    self.step(replay_id)
                except PenstockError as error:
                    log.warning("replay %s was not moved on, and will be: %s", replay_id, error)
        return len(found)

    def _has_news(self, row_id: str) -> bool:
        with self._catalog.read() as tx:
            return any(rules.outcome(step, work) for step, work in _going(tx, row_id))

    def _begin(self, row_id: str) -> None:
        """Set steps going, as many as may; each in a transaction of its own."""
        tried: set[int] = set()
        while True:
            with self._catalog.read() as tx:
                row = _row(tx, row_id)
                free = row.max_running - sum(rules.takes_part(w) for _, w in _going(tx, row_id))
                if row.state != ReplayState.RUNNING or free <= 0:
                    return
                wanted = {"replay_id": row_id, "most": free + len(tried)}
                numbers = [number for (number,) in tx.fetch("next_replay_steps", **wanted)]
            fresh = [number for number in numbers if number not in tried][:free]
            if not fresh:
                return
            tried.update(fresh)
            for number in fresh:
                self._begin_one(row_id, number)

    def _begin_one(self, row_id: str, number: int) -> None:
        try:
            step = self._catalog.submit(BeginStep(row_id, number)).result()
            if step.state != StepState.PENDING:  # one that has to wait is looked at every second
                self._log_step(row_id, number)
        except (Busy, Unavailable):
            raise
        except (Conflict, NotFound) as refusal:
            log.warning("step %d of replay %s fails: %s", number, row_id, refusal)
            self._catalog.submit(FailStep(row_id, number, str(refusal))).result()

    def _log_step(self, row_id: str, number: int) -> None:
        """Say what has become of a step, with the ids of what it is about."""
        [step] = self.steps(row_id, first=number, most=1)
        said = f": {step.note}" if step.note else ""
        with logs.about(replay=row_id, job=f"{step.namespace}/{step.job}", lot=step.lot):
            log.info("step %d of replay %s is %s%s", number, row_id, step.state, said)

    def status(self, replay_id: str) -> Replay:
        """How far a replay is."""
        with self._catalog.read() as tx:
            return self._progress(tx, _row(tx, replay_id))

    def last(self, most: int = 100, namespace: str = "") -> list[Replay]:
        """The last replays, of all or of one namespace, newest first."""
        with self._catalog.read() as tx:
            rows = tx.rows(ReplayRow, "last_replays", most=most, namespace=namespace)
            return [self._progress(tx, row) for row in rows]

    def steps(
        self, replay_id: str, *, state: StepState | None = None, first: int = 1, most: int = 100
    ) -> list[ReplayStep]:
        """Steps of a replay in order, those in a state if it is named, from a number on."""
        with self._catalog.read() as tx:
            row = _row(tx, replay_id)
            which = {"replay_id": row.id, "first": first, "most": most}
            if state is None:
                return [_shown(found) for found in tx.fetch("read_replay_steps", **which)]
            return _in_state(tx, row.id, state, first, most)

    def _progress(self, tx: Transaction, row: ReplayRow) -> Replay:
        counts = row.counted
        running = row.state == ReplayState.RUNNING
        micros = row.ran + (self._clock() - row.since if running else 0)
        going = _in_state(tx, row.id, StepState.GOING) if counts.going else []
        failed = _in_state(tx, row.id, StepState.FAILED) if counts.failed else []
        return Replay(
            id=row.id,
            namespace=row.namespace,
            target=row.asked.target.sentence,
            versions=row.asked.pinned.versions,
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


def _allow(found: Ordered, may: Allowed) -> None:
    names = {each.wired.name.namespace for each in found.work}
    for namespace in sorted(names | {found.target.namespace} - {""}):
        may(namespace)


def _row(tx: Transaction, replay_id: str) -> ReplayRow:
    rows = tx.rows(ReplayRow, "replays_by_ids", ids=[ids.run_id(replay_id)])
    if not rows:
        raise NotFound(f"there is no replay {replay_id}; list them to see which there are")
    return rows[0]


def _going(tx: Transaction, row_id: str) -> list[tuple[StepRow, WorkRow | None]]:
    """The steps that were set going and have not ended, with where their work stands."""
    which = {"replay_id": row_id, "state": StepState.GOING, "most": STEPS_MAX}
    steps = tx.rows(StepRow, "replay_steps_in_state", **which)
    keys = [step.job_id + step.lot for step in steps]
    works = tx.rows(WorkRow, "replay_work", keys=keys) if keys else ()
    found = {(work.job_id, work.lot): work for work in works}
    return [(step, found.get((step.job_id, step.lot))) for step in steps]


def _new_steps(found: Ordered) -> tuple[NewStep, ...]:
    rows = zip(found.work, found.depths, found.before, strict=True)
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
    return [_shown(found) for found in tx.fetch("read_replay_steps_in_state", **which)]


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
