"""Backfills: lots of an arc, from a range of time or a list, repaired a few at a time.

A backfill never touches a lot whose inputs are missing, and a good lot only if its scope includes
good lots. `max_running` limits the lots that the backfill set going. Lots that were READY before it
are limited only by the arc.
"""

import logging
from collections.abc import Sequence

from penstock.arcs.queries import find_arc
from penstock.catalog.rows import replace
from penstock.clock import HOUR, SECOND, format_time
from penstock.db import Transaction
from penstock.locks.gaps.spans import Bound, Span
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.operations.backfills.commands import (
    BACKFILLS,
    StartBackfill,
    StepBackfill,
    count_untouched,
)
from penstock.operations.backfills.lots import LotList, WantedLots, find_range
from penstock.operations.backfills.plan import plan, survey
from penstock.operations.backfills.rows import BackfillRequest, BackfillRow
from penstock.operations.backfills.rules import UNDER_WAY, LotVerdict
from penstock.operations.operation import MAX_RUNNING, Operations, elapsed, is_active
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import Interval
from penstock.schema.operations import Backfill, BackfillPlan, FailedLot, Scope
from penstock.states import BackfillState
from penstock.telemetry import logs

log = logging.getLogger(__name__)

PRIORITY = -1000  # fresh lots have 0: they come first
FAILURES_SHOWN_MAX = 100
_UNTOUCHED_MAX = 5000  # lots in one step


class Backfills(Operations[BackfillRow, Backfill]):
    """Plans, starts and steps backfills."""

    kind = BACKFILLS

    def plan(
        self,
        namespace: str,
        arc: str,
        first: Bound = None,
        last: Bound = None,
        *,
        lots: Sequence[str] = (),
        scope: Scope = Scope.FAILED_AND_MISSING,
        newest_first: bool = False,
        interval: Interval | None = None,
    ) -> BackfillPlan:
        """Return what a backfill would do now; nothing is written."""
        wanted = WantedLots(first=first, last=last, interval=interval, lots=lots)
        with self._writes.read() as tx:
            return plan(
                tx, namespace, arc, wanted, self._clock(), scope=scope, newest_first=newest_first
            )

    def start(
        self,
        who: str,
        why: str,
        namespace: str,
        arc: str,
        first: Bound = None,
        last: Bound = None,
        *,
        lots: Sequence[str] = (),
        scope: Scope = Scope.FAILED_AND_MISSING,
        newest_first: bool = False,
        max_running: int = MAX_RUNNING,
        priority: int = PRIORITY,
        interval: Interval | None = None,
    ) -> Backfill:
        """Begin a backfill. Its first step sets lots going."""
        with self._writes.read() as tx:
            find_arc(tx, namespace, arc)
            job = get_lot_job(tx, namespace, arc)
            wanted = WantedLots(first=first, last=last, interval=interval, lots=lots)
            span = find_range(tx, job, EntityId(namespace, arc), wanted, scope, self._clock())
        request = BackfillRequest(
            interval=span.interval if isinstance(span, Span) else None,
            lots=span.lots if isinstance(span, LotList) else (),
            is_cut=isinstance(span, LotList) and span.is_cut,
            start=span.start,
            end=span.end,
            scope=scope,
            newest_first=newest_first,
            max_running=max_running,
            priority=priority,
        )
        row = self._writes.submit(StartBackfill(who, why, namespace, arc, request)).result()
        return self.status(row.id)

    def step(self, operation_id: str) -> Backfill:
        """Record what has ended and set the next lots going; safe to call at any time."""
        with self._writes.read() as tx:
            step = _next_step(tx, BACKFILLS.read(tx, operation_id))
        if step is not None:
            self._writes.submit(step).result()
            for lot in step.picked:
                with logs.about(lot=lot):
                    log.info("backfill %s has picked lot %s", operation_id, lot)
        return self.status(operation_id)

    def _advance(self, operation_id: str) -> None:
        while self.step(operation_id).has_more:
            pass

    def _progress(self, tx: Transaction, row: BackfillRow) -> Backfill:
        request, counts = row.request, row.lot_counts
        [job], going, failed = tx.fetch_many(
            [
                ("read_lot_jobs", {"ids": [row.job_id]}),
                ("going_backfill_lots", {"backfill_id": row.id}),
                (
                    "failed_backfill_lots",
                    {"backfill_id": row.id, "job_id": row.job_id, "most": FAILURES_SHOWN_MAX},
                ),
            ]
        )
        micros = elapsed(row, self._clock())
        span = request.span
        return Backfill(
            id=row.id,
            namespace=job[0],
            arc=job[1],
            state=BackfillState(row.state),
            scope=request.scope,
            newest_first=request.newest_first,
            max_running=request.max_running,
            priority=request.priority,
            interval=request.interval,
            first=span.first,
            last=span.last,
            count=span.count,
            is_cut=request.is_cut,
            looked_at=span.count - request.remaining(row.looked_to).count,
            good=counts.good,
            held=counts.held,
            waiting=counts.waiting,
            going=len(going),
            done=counts.done,
            failed=counts.failed,
            failures=[FailedLot(lot, error) for lot, error in failed],
            seconds=micros / SECOND,
            lots_per_hour=counts.done * HOUR / micros if micros > 0 and counts.done else None,
            who=row.who,
            why=row.why,
            created_at=format_time(row.created_at),
            since=format_time(row.since),
        )


def _next_step(tx: Transaction, row: BackfillRow) -> StepBackfill | None:
    """Find the lots to set going next; None if the backfill is not running."""
    if row.state != BackfillState.RUNNING:
        return None
    request = row.request
    going = [lot for _, lot, *_ in tx.fetch("going_backfill_lots", backfill_id=row.id)]
    works = tx.rows(WorkRow, "lot_work_by_lots", job_id=row.job_id, lots=going)
    free = request.max_running - sum(map(is_active, works))
    [[_, _, *columns]] = tx.fetch("read_lot_jobs", ids=[row.job_id])
    job = LotJobRow(*columns)
    picked: list[str] = []
    whole, others = 0, list[LotVerdict]()
    looked_to = row.looked_to
    remaining = request.remaining(looked_to)
    looks = survey(tx, job, remaining, request.scope, newest_first=request.newest_first)
    for look in looks if free > 0 else ():
        looked_to = look.start if request.newest_first else look.end
        if look.facts is None:
            whole += look.lots
        elif look.verdict.action in UNDER_WAY:
            picked.append(look.facts.lot)
        else:
            others.append(look.verdict)
        if len(picked) == free or len(others) == _UNTOUCHED_MAX:
            break
    counts = count_untouched(others)
    counts = replace(counts, good=counts.good + whole)
    return StepBackfill(row.id, row.looked_to, looked_to, tuple(picked), counts)
