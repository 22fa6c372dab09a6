"""Backfills: lots of an arc, over a range of time or from a list, repaired a few at a time.

A backfill is a row: it can be stopped and gone on with by anybody, and outlives every process.
It never touches a good lot unless it was told to, nor a lot whose inputs are not there. What was
READY before it is not kept back: only the arc's own limit holds that.
"""

import logging
import time
from collections.abc import Sequence

from penstock import ids
from penstock.arcs.backfills.commands import (
    OUTCOMES,
    MoveBackfill,
    StartBackfill,
    StepBackfill,
    count_left,
)
from penstock.arcs.backfills.plan import plan, survey
from penstock.arcs.backfills.rows import BackfillRow, Counts, Spec
from penstock.arcs.backfills.rules import UNDER_WAY, LotList, Verdict, Wanted, find_range
from penstock.arcs.queries import find_arc
from penstock.clock import HOUR, SECOND, Clock, Micros, format_time
from penstock.db import Database, Transaction
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, paced_write, pages_of_ended
from penstock.errors import NotFound, PenstockError
from penstock.locks.gaps.spans import Bound, Span
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import Interval
from penstock.schema.operations import Backfill, BackfillPlan, FailedLot, Scope
from penstock.states import BackfillState
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

PRIORITY = -1000  # fresh lots have 0: they come first
MAX_RUNNING = 4
FAILURES_SHOWN_MAX = 100
_LOOKS_MAX = 5000  # of one step


class Backfills:
    """Starts backfills, moves them on, and tells how far they are."""

    def __init__(self, catalog: WriteQueue, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock

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
        """What a backfill would do now; nothing is written."""
        wanted = Wanted(first=first, last=last, interval=interval, lots=lots)
        with self._catalog.read() as tx:
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
        """Begin a backfill; the first step sets lots going."""
        with self._catalog.read() as tx:
            find_arc(tx, namespace, arc)
            job = get_lot_job(tx, namespace, arc)
            wanted = Wanted(first=first, last=last, interval=interval, lots=lots)
            span = find_range(tx, job, EntityId(namespace, arc), wanted, scope, self._clock())
        spec = Spec(
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
        row = self._catalog.submit(StartBackfill(who, why, namespace, arc, spec)).result()
        return self.status(row.id)

    def pause(self, backfill_id: str, who: str, why: str = "") -> Backfill:
        """Set no more lots going, until it is resumed."""
        return self._move(backfill_id, who, why, BackfillState.PAUSED)

    def resume(self, backfill_id: str, who: str, why: str = "") -> Backfill:
        """Go on from where it was paused."""
        return self._move(backfill_id, who, why, BackfillState.RUNNING)

    def cancel(self, backfill_id: str, who: str, why: str = "") -> Backfill:
        """Stop for good; what was set going ends by itself."""
        return self._move(backfill_id, who, why, BackfillState.CANCELLED)

    def _move(self, backfill_id: str, who: str, why: str, state: BackfillState) -> Backfill:
        self._catalog.submit(MoveBackfill(who, why, backfill_id, state)).result()
        return self.status(backfill_id)

    def step(self, backfill_id: str) -> Backfill:
        """Note what has ended and set the next lots going; safe to call from anywhere, any time."""
        with self._catalog.read() as tx:
            found = _look(tx, _row(tx, backfill_id))
        if found is not None:
            self._catalog.submit(found).result()
            for lot in found.picked:
                with logs.about(lot=lot):
                    log.info("backfill %s has picked lot %s", backfill_id, lot)
        return self.status(backfill_id)

    def step_all(self) -> int:
        """Move every backfill on that is running: how many those are."""
        with self._catalog.read() as tx:
            running = [backfill_id for (backfill_id,) in tx.fetch("running_backfills")]
        for backfill_id in running:
            with logs.about(backfill=backfill_id):
                self._move_on(backfill_id)
        return len(running)

    def _move_on(self, backfill_id: str) -> None:
        try:
            while self.step(backfill_id).has_more:
                pass
        except PenstockError as error:
            log.warning("backfill %s was not moved on, and will be: %s", backfill_id, error)

    def status(self, backfill_id: str) -> Backfill:
        """How far a backfill is."""
        with self._catalog.read() as tx:
            return self._progress(tx, _row(tx, backfill_id))

    def last(self, most: int = 100, namespace: str = "") -> list[Backfill]:
        """The last backfills, of all or of one namespace, newest first."""
        with self._catalog.read() as tx:
            rows = tx.rows(BackfillRow, "last_backfills", most=most, namespace=namespace)
            return [self._progress(tx, row) for row in rows]

    def _progress(self, tx: Transaction, row: BackfillRow) -> Backfill:
        asked, counted = row.asked, row.counted
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
        running = row.state == BackfillState.RUNNING
        micros = row.ran + (self._clock() - row.since if running else 0)
        span = asked.span
        return Backfill(
            id=row.id,
            namespace=job[0],
            arc=job[1],
            state=BackfillState(row.state),
            scope=asked.scope,
            newest_first=asked.newest_first,
            max_running=asked.max_running,
            priority=asked.priority,
            interval=asked.interval,
            first=span.first,
            last=span.last,
            count=span.count,
            is_cut=asked.is_cut,
            looked_at=span.count - asked.left(row.looked_to).count,
            good=counted.good,
            held=counted.held,
            waiting=counted.waiting,
            going=len(going),
            done=counted.done,
            failed=counted.failed,
            failures=[FailedLot(lot, error) for lot, error in failed],
            seconds=micros / SECOND,
            lots_per_hour=counted.done * HOUR / micros if micros > 0 and counted.done else None,
            who=row.who,
            why=row.why,
            created_at=format_time(row.created_at),
            since=format_time(row.since),
        )


def _row(tx: Transaction, backfill_id: str) -> BackfillRow:
    rows = tx.rows(BackfillRow, "backfills_by_ids", ids=[ids.run_id(backfill_id)])
    if not rows:
        raise NotFound(f"there is no backfill {backfill_id}; list them to see which there are")
    return rows[0]


def _look(tx: Transaction, row: BackfillRow) -> StepBackfill | None:
    """Find the lots to set going next; None if it is not running."""
    if row.state != BackfillState.RUNNING:
        return None
    asked = row.asked
    going = [lot for _, lot, *_ in tx.fetch("going_backfill_lots", backfill_id=row.id)]
    works = tx.rows(WorkRow, "lot_work_by_lots", job_id=row.job_id, lots=going)
    room = asked.max_running - sum(work.state not in OUTCOMES for work in works)
    [found] = tx.fetch("read_lot_jobs", ids=[row.job_id])
    job = LotJobRow(*found[2:])
    picked: list[str] = []
    whole, others = 0, list[Verdict]()
    looked_to = row.looked_to
    looks = survey(tx, job, asked.left(row.looked_to), asked.scope, newest_first=asked.newest_first)
    for look in looks if room > 0 else ():
        looked_to = look.start if asked.newest_first else look.end
        if look.facts is None:
            whole += look.lots
        elif look.verdict.action in UNDER_WAY:
            picked.append(look.facts.lot)
        else:
            others.append(look.verdict)
        if len(picked) == room or len(others) == _LOOKS_MAX:
            break
    left = count_left(others)
    left = Counts(good=left.good + whole, held=left.held, waiting=left.waiting)
    return StepBackfill(row.id, row.looked_to, looked_to, tuple(picked), left)


def prune_backfills(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Pause = time.sleep,
) -> int:
    """Delete backfills that ended longer ago than this, or only count them: how many there were.

    It is done in batches, with a pause as long as the batch took after each.
    """
    before = cutoff(clock, older_than)
    total = 0
    for found in pages_of_ended(database, "ended_backfills", before, BATCH_ROWS):
        total += len(found)
        for backfill_id in () if dry_run else found:
            _forget(database, backfill_id, pause)
    return total


def _forget(database: Database, backfill_id: str, pause: Pause) -> None:
    which = {"backfill_id": backfill_id}
    while True:
        with database.read() as tx:
            lots = [lot for (lot,) in tx.fetch("some_backfill_lots", **which, most=BATCH_ROWS)]
        with paced_write(database, pause) as tx:
            tx.execute("forget_backfill_lots", **which, lots=lots)
            if len(lots) < BATCH_ROWS:
                tx.execute("forget_backfill", **which)
                return
