"""The work of a job on a lot, derived from status rows.

Status rows are the truth. Whenever one of them changes, the work of the jobs around it is derived
again and written in the same transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks import hold_reasons, staleness
from penstock.locks.lock_rules import readable, usable, writable
from penstock.locks.rows import LogRow, LotJobRow, StatusRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.locks import Stale
from penstock.schema.lot_ids import sort_key
from penstock.schema.lots import Status
from penstock.states import WorkState

# A job without inputs has no INPUT rows: its outputs show its progress. The second table maps the
# status that an output had before its hold.
_PROGRESS_OF_OUTPUT: Final = {Status.READY: Status.DONE, Status.HOLD: Status.HOLD}
_PROGRESS_OF_HELD_OUTPUT: Final = {
    "": Status.HOLD,
    Status.ERROR: Status.HOLD,
    Status.READY: Status.DONE,
}


def classify(
    inputs: Sequence[Status | None],
    outputs: Sequence[Status | None],
    progress: Sequence[Status | None],
    *,
    is_backing_off: bool,
) -> WorkState:
    """Return the state of work that has no live claim.

    `inputs` and `outputs` are the OUTPUT statuses of the lot in the datasets that the job reads
    and writes. `progress` are the job's INPUT statuses.
    """
    if Status.HOLD in progress:
        return WorkState.HELD
    if not all(map(usable, progress)):
        return WorkState.DONE
    if not all(map(readable, inputs)) or not all(map(writable, outputs)):
        return WorkState.WAITING
    return WorkState.RETRYABLE if is_backing_off else WorkState.READY


def refresh(
    tables: LockTables,
    job: LotJobRow,
    lots: Sequence[str],
    now: Micros,
    ranks: Mapping[str, int] | None = None,
) -> None:
    """Derive a job's work on these lots again.

    `ranks` apply to lots that are new to the job. For other lots they can only raise the priority.
    """
    prefetch_rows(tables, job, lots)
    for lot in lots:
        row = tables.work.get((job.job_id, lot))
        if row is not None and row.state == WorkState.RUNNING:
            continue
        state = derive_state(tables, job, lot, is_backing_off=_is_backing_off(row, now))
        is_changed = False
        if row is not None and state == WorkState.DONE:
            row, before = check_staleness(tables, job, row, now), row
            is_changed = row is not before
        if hold_reasons.release_outdated(tables, job, lot, now):
            refresh_other_jobs(tables, job, [lot], now, readers=True)
            is_changed = True
        if is_changed:
            state = derive_state(tables, job, lot, is_backing_off=_is_backing_off(row, now))
        rank = ranks.get(lot, 0) if ranks else 0
        if row is None:
            tables.put_work(new_work(job.job_id, lot, rank, state, now))
            continue
        if rank < min(row.rank, 0):
            row = replace(row, rank=rank)
            tables.put_work(row)
        if row.state != state:
            # Rewiring undid the work: it starts again with all tries, unless it is held.
            if row.state == WorkState.DONE and state != WorkState.HELD:
                row = replace(row, tries=0, error="")
            row = with_state(row, state, now)
            tables.put_work(row)
        unmade = lacks_output(tables, job, lot) if state == WorkState.DONE else row.unmade
        if row.unmade != unmade:
            tables.put_work(replace(row, unmade=unmade))


def _is_backing_off(row: WorkRow | None, now: Micros) -> bool:
    return row is not None and row.not_before > now


def lacks_output(tables: LockTables, job: LotJobRow, lot: str) -> int:
    """Return 1 if an output lacks a lot that is done, because it was wired later; else 0."""
    rows = (tables.outputs.get((dataset, lot)) for dataset in job.output_ids)
    return int(any(row is None or row.version_id is None for row in rows))


def prefetch_rows(tables: LockTables, job: LotJobRow, lots: Sequence[str]) -> None:
    """Fetch the rows that decide the state of a job's work on these lots."""
    datasets = (*job.input_ids, *job.output_ids)
    tables.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)
    tables.inputs.prefetch(
        (dataset, job.job_id, lot) for dataset in job.input_row_ids for lot in lots
    )
    tables.work.prefetch((job.job_id, lot) for lot in lots)


def with_state(row: WorkRow, state: WorkState, now: Micros) -> WorkRow:
    """Return the work in a new state.

    READY and DONE end a backoff, whatever the clocks of other servers say.
    """
    not_before = 0 if state in (WorkState.READY, WorkState.DONE) else row.not_before
    return replace(row, state=state, since=now, not_before=not_before)


def check_staleness(tables: LockTables, job: LotJobRow, row: WorkRow, now: Micros) -> WorkRow:
    """Apply the job's stale policy to a lot that is done.

    A lot that is rerun is unreadable for a while, so its readers are refreshed.
    """
    stale = staleness.apply_policy(tables, job, row, now)
    if stale is None:
        return row
    if job.stale == Stale.RERUN:
        refresh_other_jobs(tables, job, [row.lot], now, readers=True)
    return stale


def derive_state(
    tables: LockTables, job: LotJobRow, lot: str, *, is_backing_off: bool
) -> WorkState:
    """Derive the state of work that has no live claim from the status rows."""
    inputs = [tables.outputs.get((dataset, lot)) for dataset in job.input_ids]
    outputs = [tables.outputs.get((dataset, lot)) for dataset in job.output_ids]
    progress = [
        _status(tables.inputs.get((dataset, job.job_id, lot))) for dataset in job.input_row_ids
    ]
    if not any(progress):
        progress = [_progress(row) for row in outputs if row and row.job_id == job.job_id]
    return classify(
        [*map(_status, inputs)],
        [*map(_status, outputs)],
        progress,
        is_backing_off=is_backing_off,
    )


def _progress(row: StatusRow) -> Status | None:
    if row.status == Status.HOLD and row.held_from:
        return _PROGRESS_OF_HELD_OUTPUT.get(row.held_from)
    return _PROGRESS_OF_OUTPUT.get(row.status)


def _status(row: StatusRow | None) -> Status | None:
    return Status(row.status) if row is not None else None


def new_work(job_id: str, lot: str, rank: int, state: WorkState, now: Micros) -> WorkRow:
    """Return the work of a job on a lot that is new to it."""
    return WorkRow(
        job_id=job_id,
        lot=lot,
        lot_key=sort_key(lot),
        rank=rank,
        state=state,
        tries=0,
        token=0,
        run_id=None,
        owner="",
        lease_seconds=0,
        lease_until=0,
        not_before=0,
        since=now,
        error="",
    )


def refresh_jobs_of(
    tables: LockTables,
    datasets: Iterable[str],
    lots: Sequence[str],
    now: Micros,
    ranks: Mapping[str, int] | None = None,
) -> None:
    """Refresh the work of every job that reads or writes these datasets."""
    job_ids = {job for dataset in datasets for _, job in tables.wires.get(dataset) or ()}
    for job_id in sorted(job_ids):
        job = tables.jobs.get(job_id)
        if job is not None:
            refresh(tables, job, lots, now, ranks)


def refresh_other_jobs(
    tables: LockTables,
    job: LotJobRow,
    lots: Sequence[str],
    now: Micros,
    ranks: Mapping[str, int] | None = None,
    *,
    readers: bool,
) -> None:
    """Refresh the work of the other jobs that write, or also read, the outputs of a job.

    Readers need it only when lots became READY or are READY no longer.
    """
    wires = [wire for dataset in job.output_ids for wire in tables.wires.get(dataset) or ()]
    job_ids = {other for role, other in wires if readers or role == DatasetRole.OUTPUT}
    for job_id in sorted(job_ids - {job.job_id}):
        if (other := tables.jobs.get(job_id)) is not None:
            refresh(tables, other, lots, now, ranks)


def find_hold(tables: LockTables, job: LotJobRow) -> str | None:
    """Return the id of the job or dataset whose hold stops all work of a job."""
    keys = (job.job_id, *job.input_ids, *job.output_ids)
    tables.holds.prefetch(keys)
    return next((key for key in keys if tables.holds.get(key) is not None), None)


def record_transition(
    tables: LockTables,
    row: WorkRow,
    was: WorkRow,
    action: str,
    who: str,
    now: Micros,
    why: str = "",
) -> None:
    """Write a job's work on a lot and log the transition."""
    tables.put_work(row)
    tables.append(
        LogRow(
            at=now,
            action=action,
            lot=row.lot,
            job_id=row.job_id,
            dataset_id=None,
            run_id=was.run_id if was.state == WorkState.RUNNING else row.run_id,
            was=was.state,
            became=row.state,
            who=who,
            why=why,
        )
    )
