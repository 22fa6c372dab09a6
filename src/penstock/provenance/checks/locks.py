"""Invariants of claims, status rows and work."""

from collections.abc import Iterator, Sequence
from typing import Final

from penstock.catalog.entities.runs import lot_facet
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks import work_state as rules
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.provenance.checks.invariant import NO_ID, PAGE, Grounds, Invariant, by_statement
from penstock.schema.lot_ids import sort_key
from penstock.states import WorkState


class _OpenRun(Row, frozen=True):
    id: str
    job_id: str
    facets: str
    state: str


class _LotJob(Row, frozen=True):
    job_id: str
    namespace: str | None
    name: str | None
    wires: int


def ended_claims(grounds: Grounds) -> Iterator[str]:
    """Yield runs of ended claims that have not ended."""
    after = NO_ID
    with grounds.database.read() as tx:
        while runs := tx.rows(_OpenRun, "open_runs_with_lots", after=after, most=PAGE):
            after = runs[-1].id
            for run in runs:
                facet = lot_facet(run.facets)
                # Without an attempt there was no claim: such runs are only reported.
                if facet is None or not facet.attempt:
                    continue
                lots = list(facet.all_lots)
                work = tx.rows(WorkRow, "lot_work_by_lots", job_id=run.job_id, lots=lots)
                claims = (w.state == WorkState.RUNNING and w.run_id == run.id for w in work)
                if not any(claims):
                    yield f"run {run.id} on lot {facet.lot} is {run.state}, but its claim has ended"


def work_agrees(grounds: Grounds) -> Iterator[str]:
    """Yield work that differs from the work derived from the status rows."""
    now, after = grounds.clock(), NO_ID
    with grounds.database.read() as tx:
        while jobs := tx.rows(_LotJob, "every_lot_job_from", after=after, most=PAGE):
            after = jobs[-1].job_id
            for job in jobs:
                if grounds.stop.is_set():
                    return
                yield from _work_of(tx, job, now)


def _work_of(tx: Transaction, named_job: _LotJob, now: Micros) -> Iterator[str]:
    subject = f"job {named_job.namespace}/{named_job.name}"
    [job] = tx.rows(LotJobRow, "lot_jobs_by_ids", ids=[named_job.job_id])
    if len({*job.input_ids}) + len({*job.output_ids}) != named_job.wires:
        yield f"{subject} is not listed under its datasets, or is listed under others"
    after = ""
    while page := tx.fetch("work_of_job_from", job_id=job.job_id, after=after, most=PAGE):
        lots = [lot for (lot,) in page]
        after = lots[-1]
        for row, state, unmade in _derived(tx, job, lots, now):
            if not _agrees(row, state, now):
                yield f"lot {row.lot} of {subject} is {row.state}, and should be {state}"
            if row.state == WorkState.DONE and job.stated and row.unmade != unmade:
                recorded, derived = _whole(row.unmade), _whole(unmade)
                yield f"lot {row.lot} of {subject} is recorded as {recorded}, but is {derived}"
            if row.lot_key != sort_key(row.lot):
                yield f"lot {row.lot} of {subject} has the wrong position in the order of work"


def _derived(
    tx: Transaction, job: LotJobRow, lots: Sequence[str], now: Micros
) -> Iterator[tuple[WorkRow, WorkState, int]]:
    uow = UnitOfWork()
    uow.open(tx)
    locks = uow.tables(LockTables)
    rules.prefetch_rows(locks, job, lots)
    for lot in lots:
        row = locks.work.get((job.job_id, lot))
        if row is not None and row.state != WorkState.RUNNING:
            state = rules.derive_state(locks, job, lot, is_backing_off=row.not_before > now)
            yield row, state, rules.lacks_output(locks, job, lot)


def _whole(unmade: int) -> str:
    return "missing in an output" if unmade else "in all outputs"


def _agrees(row: WorkRow, state: WorkState, now: Micros) -> bool:
    if row.state == WorkState.RETRYABLE and state == WorkState.READY:
        return 0 < row.not_before <= now  # lease expiry is due
    return row.state == state


INVARIANTS: Final[tuple[Invariant, ...]] = (
    by_statement(
        "one-writer",
        "a lot of a dataset has at most one writer",
        "broken_writers",
        "lot {2} of {0}/{1} has {3} writers",
    ),
    by_statement(
        "live-claims",
        "a live claim has one run of its job, which is RUNNING",
        "broken_claims",
        "job {}/{} works on lot {} in run {}, which is {}",
    ),
    Invariant(
        "ended-claims",
        "the run of an ended claim has ended, so a job has at most one live claim on a lot",
        ended_claims,
    ),
    by_statement(
        "locks",
        "only live claims lock lots",
        "broken_locks",
        "lot {2} of {0}/{1} is RUNNING as {3} of run {4}, which has no live claim on it",
    ),
    by_statement(
        "claimed-inputs",
        "a live claim locks the inputs of its run, in their pinned versions",
        "broken_claimed_inputs",
        "job {0}/{1} works on lot {2} without its lock on {3}/{4}, or with another version",
    ),
    by_statement(
        "ready-lots",
        "a lot that is READY has a version that a completed run, or no run, has published",
        "broken_ready_lots",
        "lot {2} of {0}/{1} is READY in version {3}, which is {4}",
    ),
    by_statement(
        "holds",
        "a lot on hold has a reason, and reasons without a hold are deleted",
        "broken_holds",
        "lot {2} of {0}/{1} is {3}, held for {4}",
    ),
    by_statement(
        "consumed-lots",
        "consumed versions exist",
        "broken_consumed_lots",
        "job {0}/{1} has consumed lot {4} of {2}/{3} in version {5}, which does not exist",
    ),
    Invariant("work", "work follows from the status rows", work_agrees),
    by_statement(
        "met-lots",
        "every READY lot has work for every job that is wired to read it",
        "broken_meetings",
        "job {0}/{1} has no work on lot {4} of {2}/{3}, which is READY",
    ),
)
