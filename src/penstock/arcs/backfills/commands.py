"""The writes of backfills: started, moved on, paused, resumed, cancelled."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from penstock import ids
from penstock.access import audit
from penstock.arcs.backfills.rows import (
    BackfillLotRow,
    BackfillRow,
    BackfillTables,
    Counts,
    LotOutcome,
    Spec,
)
from penstock.arcs.backfills.rules import UNDER_WAY, Rows, Verdict, describe, facts_of, judge
from penstock.arcs.commands import arc_row
from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import JobRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Invalid, NotFound
from penstock.locks import work as rules
from penstock.locks.commands.admin import ResubmitLots
from penstock.locks.commands.holds import HoldWork
from penstock.locks.rows import LotJobRow
from penstock.locks.tables import LockTables
from penstock.lots.tables import LotTables
from penstock.schema.operations import BackfillAction, Standing
from penstock.states import BACKFILL, BackfillState, WorkState

OUTCOMES = {  # the work that has ended, as far as a backfill can bring it
    WorkState.DONE: LotOutcome.DONE,
    WorkState.HELD: LotOutcome.FAILED,
    WorkState.WAITING: LotOutcome.WAITING,
}


class _Alone(Write, frozen=True):
    """It writes to the audit log, and reads what was committed before it."""

    exclusive: ClassVar[bool] = True


class StartBackfill(_Alone, frozen=True):
    """Begin a backfill; no lot is touched yet."""

    who: str
    why: str
    namespace: str
    arc: str
    spec: Spec

    def execute(self, uow: UnitOfWork, now: Micros) -> BackfillRow:
        """Write it down."""
        if self.spec.max_running < 1:
            raise Invalid("a backfill has at least one lot running at a time")
        arc = arc_row(uow, self.namespace, self.arc)
        row = BackfillRow(
            id=ids.new_id(),
            job_id=arc.job_id,
            state=BackfillState.RUNNING,
            spec=msgspec.json.encode(self.spec).decode(),
            looked_to=self.spec.beginning,
            counts=_text(Counts()),
            who=self.who,
            why=self.why,
            ran=0,
            since=now,
            created_at=now,
        )
        uow.tables(BackfillTables).backfills.put(row.id, row)
        what = f"{row.id}: {describe(self.spec.span)}, {self.spec.scope}: {self.why}"
        target = f"{self.namespace}/{self.arc}"
        audit.append(uow.tx, now, self.who, "start backfill", target, what)
        return row


class MoveBackfill(_Alone, frozen=True):
    """Pause a backfill, resume it, or cancel it."""

    who: str
    why: str
    id: str
    state: BackfillState

    def execute(self, uow: UnitOfWork, now: Micros) -> BackfillRow:
        """What was set going ends by itself in any case."""
        row = backfill_row(uow, self.id)
        BACKFILL.check(BackfillState(row.state), self.state, row.id)
        if row.state == self.state:
            return row
        moved = _moved(row, self.state, now)
        uow.tables(BackfillTables).backfills.put(row.id, moved)
        audit.append(uow.tx, now, self.who, f"{self.state} backfill", row.id, self.why)
        return moved


class StepBackfill(_Alone, frozen=True):
    """Note which lots have ended, and set the next ones going: one transaction, or nothing.

    `picked` are the lots that somebody found by looking from `looked_from` to `looked_to`. They
    are judged again here, for much can have happened since. If another step was quicker, they
    are not used.
    """

    id: str
    looked_from: Micros
    looked_to: Micros
    picked: tuple[str, ...]
    left: Counts  # the lots between, which are not to be touched

    def execute(self, uow: UnitOfWork, now: Micros) -> BackfillRow:
        """The backfill after it."""
        room = uow.tables(BackfillTables)
        row = backfill_row(uow, self.id)
        if row.state != BackfillState.RUNNING:
            return row
        going, counts = _settle(uow, row, now)
        asked = row.asked
        fits = going + len(self.picked) <= asked.max_running
        if row.looked_to == self.looked_from and fits:
            begun, left = self._begin(uow, row, now)
            going += begun
            counts = _sum(_sum(counts, self.left), left)
            row = replace(row, looked_to=self.looked_to)
        row = replace(row, counts=_text(counts))
        if not going and asked.left(row.looked_to).count == 0:
            row = _moved(row, BackfillState.DONE, now)
        room.backfills.put(row.id, row)
        return row

    def _begin(self, uow: UnitOfWork, row: BackfillRow, now: Micros) -> tuple[int, Counts]:
        """Set lots going: how many those are, and what the others are."""
        room, locks = uow.tables(BackfillTables), uow.tables(LockTables)
        named, job = uow.jobs.get(row.job_id), locks.jobs.get(row.job_id)
        assert named is not None, "an arc is a job"
        assert job is not None, "an arc is wired"
        _prefetch(locks, job, self.picked)
        found = Rows(
            locks.work.get, locks.outputs.get, locks.inputs.get, uow.tables(LotTables).manifests.get
        )
        others: list[Verdict] = []
        for lot in self.picked:
            verdict = judge(facts_of(job, lot, found), row.asked.scope)
            if verdict.action not in UNDER_WAY:
                others.append(verdict)
                continue
            _act(uow, row, named, job, lot, verdict.action, now)
            going = BackfillLotRow(row.id, lot, LotOutcome.GOING, verdict.action, now)
            room.put_lot(going)
        return len(self.picked) - len(others), count_left(others)


def _prefetch(locks: LockTables, job: LotJobRow, lots: Sequence[str]) -> None:
    datasets = (*job.input_ids, *job.output_ids)
    locks.work.prefetch((job.job_id, lot) for lot in lots)
    locks.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)
    locks.inputs.prefetch((d, job.job_id, lot) for d in job.input_ids for lot in lots)


def _act(
    uow: UnitOfWork,
    row: BackfillRow,
    named: JobRow,
    job: LotJobRow,
    lot: str,
    action: BackfillAction,
    now: Micros,
) -> None:
    """Do what an administrator would do by hand, and let the lot come in its turn."""
    locks, rank = uow.tables(LockTables), -row.asked.priority
    why = f"backfill {row.id}{': ' if row.why else ''}{row.why}"
    if action is BackfillAction.FOLLOW:
        return
    # Whoever reads what it makes and never met the lot comes after fresh lots with it, too.
    rules.refresh_jobs_of(locks, job.output_ids, [lot], now, {lot: rank})
    if action is BackfillAction.UNHOLD:
        unhold = HoldWork(row.who, why, named.namespace, named.name, lot, hold=False)
        unhold.execute(uow, now)
    elif action is BackfillAction.RUN:
        rules.refresh(locks, job, [lot], now)
    else:
        ResubmitLots(row.who, why, named.namespace, named.name, (lot,)).execute(uow, now)
    work = locks.work.get((job.job_id, lot))
    if work is not None and work.rank != rank:
        locks.put_work(replace(work, rank=rank))


def _settle(uow: UnitOfWork, row: BackfillRow, now: Micros) -> tuple[int, Counts]:
    """Note what has ended: how many lots are still going, and the counts."""
    room, locks = uow.tables(BackfillTables), uow.tables(LockTables)
    ended: Counter[LotOutcome] = Counter()
    lots = room.going(row.id)
    locks.work.prefetch((row.job_id, each.lot) for each in lots)
    for each in lots:
        work = locks.work.get((row.job_id, each.lot))
        state = WorkState(work.state) if work is not None else WorkState.WAITING
        outcome = OUTCOMES.get(state)
        if outcome is not None:
            ended[outcome] += 1
            room.put_lot(replace(each, state=outcome, at=now))
    more = Counts(
        done=ended[LotOutcome.DONE],
        failed=ended[LotOutcome.FAILED],
        waiting=ended[LotOutcome.WAITING],
    )
    return len(lots) - ended.total(), _sum(row.counted, more)


def count_left(verdicts: Sequence[Verdict]) -> Counts:
    """How many lots of each kind are not touched."""
    found = Counter(_kind(verdict) for verdict in verdicts)
    return Counts(good=found["good"], held=found["held"], waiting=found["waiting"])


def _kind(verdict: Verdict) -> str:
    if verdict.action is BackfillAction.WAIT:
        return "waiting"
    return "held" if verdict.standing is Standing.HELD else "good"


def _sum(one: Counts, other: Counts) -> Counts:
    names = Counts.__struct_fields__
    return Counts(**{name: getattr(one, name) + getattr(other, name) for name in names})


def _text(counts: Counts) -> str:
    return msgspec.json.encode(counts).decode()


def _moved(row: BackfillRow, state: BackfillState, now: Micros) -> BackfillRow:
    ran = row.ran + (now - row.since if row.state == BackfillState.RUNNING else 0)
    return replace(row, state=state, ran=ran, since=now)


def backfill_row(uow: UnitOfWork, backfill_id: str) -> BackfillRow:
    """A backfill, or NotFound."""
    row = uow.tables(BackfillTables).backfills.get(ids.run_id(backfill_id))
    if row is None:
        raise NotFound(f"there is no backfill {backfill_id}; list them to see which there are")
    return row
