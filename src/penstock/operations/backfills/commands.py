"""The writes of backfills."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from penstock import ids
from penstock.access import audit
from penstock.arcs.commands import arc_row
from penstock.catalog.rows import JobRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.locks import work_state as rules
from penstock.locks.commands.admin import ResubmitLots
from penstock.locks.commands.holds import HoldWork
from penstock.locks.rows import LotJobRow
from penstock.locks.tables import LockTables
from penstock.lots.tables import LotTables
from penstock.operations.backfills.lots import describe
from penstock.operations.backfills.rows import (
    BackfillCounts,
    BackfillLotRow,
    BackfillRequest,
    BackfillRow,
    BackfillTables,
    LotOutcome,
)
from penstock.operations.backfills.rules import UNDER_WAY, LotRows, LotVerdict, gather_facts, judge
from penstock.operations.operation import AuditedWrite, OperationKind, OperationStatements, move
from penstock.schema.operations import BackfillAction, Standing
from penstock.states import BACKFILL, BackfillState, WorkState
from penstock.store.table_cache import TableCache

_OUTCOMES = {  # of work that a backfill can bring no further
    WorkState.DONE: LotOutcome.DONE,
    WorkState.HELD: LotOutcome.FAILED,
    WorkState.WAITING: LotOutcome.WAITING,
}


class BackfillKind(OperationKind[BackfillRow]):
    """Backfills as operations."""

    name = "backfill"
    part = "lot"
    part_keys = "lots"
    states = BACKFILL
    row = BackfillRow
    statements = OperationStatements(
        by_ids="backfills_by_ids",
        latest="last_backfills",
        steppable="running_backfills",
        ended="ended_backfills",
        some_parts="some_backfill_lots",
        delete_parts=("forget_backfill_lots",),
        delete="forget_backfill",
    )

    def cache(self, uow: UnitOfWork) -> TableCache[BackfillRow]:
        """Return the backfills in a unit of work."""
        return uow.tables(BackfillTables).backfills


BACKFILLS = BackfillKind()


class StartBackfill(AuditedWrite, frozen=True):
    """Begin a backfill; no lot is touched yet."""

    who: str
    why: str
    namespace: str
    arc: str
    request: BackfillRequest

    def execute(self, uow: UnitOfWork, now: Micros) -> BackfillRow:
        """Write the backfill."""
        BACKFILLS.check_max_running(self.request.max_running)
        arc = arc_row(uow, self.namespace, self.arc)
        row = BackfillRow(
            id=ids.new_id(),
            job_id=arc.job_id,
            state=BackfillState.RUNNING,
            spec=msgspec.json.encode(self.request).decode(),
            looked_to=self.request.beginning,
            counts=_text(BackfillCounts()),
            who=self.who,
            why=self.why,
            ran=0,
            since=now,
            created_at=now,
        )
        BACKFILLS.put(uow, row)
        detail = f"{row.id}: {describe(self.request.span)}, {self.request.scope}: {self.why}"
        target = f"{self.namespace}/{self.arc}"
        audit.append(uow.tx, now, self.who, "start backfill", target, detail)
        return row


class StepBackfill(AuditedWrite, frozen=True):
    """Record which lots have ended and set the next ones going, in one transaction.

    `picked` are the lots to set going between `looked_from` and `looked_to`, as a snapshot showed
    them. They are judged again here because their rows may have changed since. If another step
    was faster, they are not used.
    """

    id: str
    looked_from: Micros
    looked_to: Micros
    picked: tuple[str, ...]
    untouched: BackfillCounts  # the other lots between

    def execute(self, uow: UnitOfWork, now: Micros) -> BackfillRow:
        """Return the backfill after the step."""
        row = BACKFILLS.get(uow, self.id)
        if row.state != BackfillState.RUNNING:
            return row
        going, counts = _record_ends(uow, row, now)
        request = row.request
        fits = going + len(self.picked) <= request.max_running
        if row.looked_to == self.looked_from and fits:
            begun, untouched = self._begin(uow, row, now)
            going += begun
            counts = _sum(_sum(counts, self.untouched), untouched)
            row = replace(row, looked_to=self.looked_to)
        row = replace(row, counts=_text(counts))
        if not going and request.remaining(row.looked_to).count == 0:
            row = move(BACKFILLS, row, BackfillState.DONE, now)
        BACKFILLS.put(uow, row)
        return row

    def _begin(self, uow: UnitOfWork, row: BackfillRow, now: Micros) -> tuple[int, BackfillCounts]:
        """Set lots going; return how many, and the counts of the others."""
        tables, locks = uow.tables(BackfillTables), uow.tables(LockTables)
        catalog_job, job = uow.jobs.get(row.job_id), locks.jobs.get(row.job_id)
        assert catalog_job is not None, "an arc is a job"
        assert job is not None, "an arc is wired"
        _prefetch(locks, job, self.picked)
        rows = LotRows(
            locks.work.get, locks.outputs.get, locks.inputs.get, uow.tables(LotTables).manifests.get
        )
        others: list[LotVerdict] = []
        for lot in self.picked:
            verdict = judge(gather_facts(job, lot, rows), row.request.scope)
            if verdict.action not in UNDER_WAY:
                others.append(verdict)
                continue
            _act(uow, row, catalog_job, job, lot, verdict.action, now)
            going = BackfillLotRow(row.id, lot, LotOutcome.GOING, verdict.action, now)
            tables.put_lot(going)
        return len(self.picked) - len(others), count_untouched(others)


def _prefetch(locks: LockTables, job: LotJobRow, lots: Sequence[str]) -> None:
    datasets = (*job.input_ids, *job.output_ids)
    locks.work.prefetch((job.job_id, lot) for lot in lots)
    locks.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)
    locks.inputs.prefetch((d, job.job_id, lot) for d in job.input_ids for lot in lots)


def _act(
    uow: UnitOfWork,
    row: BackfillRow,
    catalog_job: JobRow,
    job: LotJobRow,
    lot: str,
    action: BackfillAction,
    now: Micros,
) -> None:
    """Make a lot claimable as an administrator would, with the rank of the backfill."""
    locks, rank = uow.tables(LockTables), -row.request.priority
    why = f"backfill {row.id}{': ' if row.why else ''}{row.why}"
    if action is BackfillAction.FOLLOW:
        return
    # Jobs downstream without work on the lot get the same rank: after fresh lots.
    rules.refresh_jobs_of(locks, job.output_ids, [lot], now, {lot: rank})
    if action is BackfillAction.RELEASE:
        release = HoldWork(row.who, why, catalog_job.namespace, catalog_job.name, lot, hold=False)
        release.execute(uow, now)
    elif action is BackfillAction.RUN:
        rules.refresh(locks, job, [lot], now)
    else:
        ResubmitLots(row.who, why, catalog_job.namespace, catalog_job.name, (lot,)).execute(
            uow, now
        )
    work = locks.work.get((job.job_id, lot))
    if work is not None and work.rank != rank:
        locks.put_work(replace(work, rank=rank))


def _record_ends(uow: UnitOfWork, row: BackfillRow, now: Micros) -> tuple[int, BackfillCounts]:
    """Record which lots have ended; return how many are still going, and the counts."""
    tables, locks = uow.tables(BackfillTables), uow.tables(LockTables)
    ended: Counter[LotOutcome] = Counter()
    lots = tables.lots_going(row.id)
    locks.work.prefetch((row.job_id, each.lot) for each in lots)
    for each in lots:
        work = locks.work.get((row.job_id, each.lot))
        state = WorkState(work.state) if work is not None else WorkState.WAITING
        outcome = _OUTCOMES.get(state)
        if outcome is not None:
            ended[outcome] += 1
            tables.put_lot(replace(each, state=outcome, at=now))
    more = BackfillCounts(
        done=ended[LotOutcome.DONE],
        failed=ended[LotOutcome.FAILED],
        waiting=ended[LotOutcome.WAITING],
    )
    return len(lots) - ended.total(), _sum(row.lot_counts, more)


def count_untouched(verdicts: Sequence[LotVerdict]) -> BackfillCounts:
    """Count the lots that a backfill does not touch, by kind."""
    totals = Counter(_kind(verdict) for verdict in verdicts)
    return BackfillCounts(good=totals["good"], held=totals["held"], waiting=totals["waiting"])


def _kind(verdict: LotVerdict) -> str:
    if verdict.action is BackfillAction.WAIT:
        return "waiting"
    return "held" if verdict.condition is Standing.HELD else "good"


def _sum(one: BackfillCounts, other: BackfillCounts) -> BackfillCounts:
    names = BackfillCounts.__struct_fields__
    return BackfillCounts(**{name: getattr(one, name) + getattr(other, name) for name in names})


def _text(counts: BackfillCounts) -> str:
    return msgspec.json.encode(counts).decode()
