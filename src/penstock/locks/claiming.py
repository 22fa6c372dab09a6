"""The life of a claim: acquired, renewed, completed, failed, released or expired.

A claim is one run. Its status rows, its run and the job's work are written in one transaction, and
so is its end.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from penstock import ids
from penstock.catalog.entities.runs import (
    NewRun,
    begin_runs,
    complete_runs,
    lose_lot,
    lot_of,
    stop_runs,
)
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.rows import JobRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import SECOND, Micros, say_time
from penstock.errors import Conflict, NotFound
from penstock.locks import quality, retry, work_state
from penstock.locks.hold_reasons import drop_reasons
from penstock.locks.lock_rules import usable
from penstock.locks.quality import NO_CHECKS, Checks
from penstock.locks.rows import LotJobRow, StatusRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.lots.tables import NO_NOTES, LotTables, Notes
from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status
from penstock.states import RunState, WorkState

DatasetNames = tuple[tuple[DatasetName, ...], tuple[DatasetName, ...]]

PENSTOCK = "penstock"  # the actor in the log when a lease expires


class ClaimRef(Struct, frozen=True, gc=False):
    """A claim by id and fencing token."""

    id: str
    token: int


def acquire(
    uow: UnitOfWork,
    job: LotJobRow,
    rows: Sequence[WorkRow],
    owner: str,
    lease_seconds: int,
    now: Micros,
    key: str | None = None,
) -> list[WorkRow]:
    """Claim lots that are READY; runs that are claimed with one key always have the same ids."""
    tables = uow.tables(LockTables)
    inputs, outputs = job.input_ids, job.output_ids
    lots = [row.lot for row in rows]
    tables.outputs.prefetch((dataset, lot) for dataset in (*inputs, *outputs) for lot in lots)
    claimed: list[WorkRow] = []
    runs: list[NewRun] = []
    for number, row in enumerate(rows):
        run_id = ids.new_id() if key is None else keyed_run(job.job_id, key, number)
        claim = with_claim(row, run_id, owner, lease_seconds, now)
        pinned = {}
        for dataset in inputs:
            source = tables.outputs.get((dataset, row.lot))
            version_id = source.version_id if source is not None else None
            assert version_id is not None, "a lot is READY only when its inputs are there"
            pinned[dataset] = version_id
        runs.append(NewRun(run_id, row.lot, claim.tries, pinned))
        lock_rows(tables, claim, pinned, outputs, now)
        work_state.record_transition(tables, claim, row, "claim", owner, now)
        claimed.append(claim)
    if runs:
        begin_runs(uow, _job_row(uow, job.job_id), find_dataset_names(uow, job), runs, now)
        work_state.refresh_other_jobs(tables, job, lots, now, readers=False)
    return claimed


def keyed_run(job_id: str, key: str, number: int) -> str:
    """Return the id of the n-th run that a job claims with a key."""
    return ids.keyed_id(key, "claim", job_id, str(number))


def find_dataset_names(uow: UnitOfWork, job: LotJobRow) -> DatasetNames:
    """Return the names of the datasets that a job reads and writes."""
    return _names(uow, job.input_ids), _names(uow, job.output_ids)


def _names(uow: UnitOfWork, dataset_ids: Iterable[str]) -> tuple[DatasetName, ...]:
    rows = map(uow.datasets.get, dataset_ids)
    return tuple(sorted(DatasetName(row.namespace, row.name) for row in rows if row is not None))


def with_claim(row: WorkRow, run_id: str, owner: str, lease_seconds: int, now: Micros) -> WorkRow:
    """Return the work with a new claim: one more try, and the next fencing token."""
    return replace(
        row,
        state=WorkState.RUNNING,
        tries=row.tries + 1,
        token=row.token + 1,
        run_id=run_id,
        owner=owner,
        lease_seconds=lease_seconds,
        lease_until=now + lease_seconds * SECOND,
        not_before=0,
        since=now,
        error="",
        stale_since=0,
        unmade=0,
    )


def lock_rows(
    tables: LockTables,
    claim: WorkRow,
    pinned: Mapping[str, str | None],
    outputs: Iterable[str],
    now: Micros,
) -> None:
    """Write the status rows of a new claim; `pinned` are its inputs with their versions."""
    lot, job_id, run_id, running = claim.lot, claim.job_id, claim.run_id, Status.RUNNING
    for dataset, version in pinned.items():
        row = StatusRow(dataset, lot, DatasetRole.INPUT, job_id, running, "", run_id, version, now)
        tables.put_status(row)
    for dataset in outputs:
        before = tables.outputs.get((dataset, lot))
        version = before.version_id if before is not None else None
        row = StatusRow(dataset, lot, DatasetRole.OUTPUT, job_id, running, "", run_id, version, now)
        tables.put_status(row)


def drop_failed_inputs(tables: LockTables, job: LotJobRow, claim: WorkRow) -> None:
    """Delete INPUT rows that an earlier run failed with and that a new claim does not read."""
    for dataset in job.input_ids:
        key = (dataset, job.job_id, claim.lot)
        row = tables.inputs.get(key)
        if row is not None and row.run_id != claim.run_id and usable(Status(row.status)):
            tables.inputs.put(key, None)


def unlock_rows(
    tables: LockTables,
    job: LotJobRow,
    claim: WorkRow,
    of_inputs: Status,
    of_outputs: Status,
    versions: Mapping[str, str],
    now: Micros,
) -> None:
    """Set the status rows of a claim to these statuses; `versions` are new ones, by dataset."""
    lot, run_id = claim.lot, claim.run_id
    for dataset in job.input_ids:
        row = tables.inputs.get((dataset, claim.job_id, lot))
        if row is not None and row.run_id == run_id:
            tables.put_status(replace(row, status=of_inputs, since=now))
    for dataset in job.output_ids:
        row = tables.outputs.get((dataset, lot))
        if row is not None and row.run_id == run_id:
            # If an input was held during the claim, the output is held as soon as it exists.
            is_held = bool(row.held_from) and of_outputs is Status.READY
            if row.held_from and not is_held:
                drop_reasons(tables, dataset, lot)
            tables.put_status(
                replace(
                    row,
                    status=Status.HOLD if is_held else of_outputs,
                    held_from=of_outputs if is_held else "",
                    version_id=versions.get(dataset) or row.version_id,
                    since=now,
                )
            )


def find_live(uow: UnitOfWork, ref: ClaimRef) -> WorkRow:
    """Return the work of a live claim, or raise a Conflict that names the current holder."""
    tables = uow.tables(LockTables)
    row = tables.find_live_claim(ref.id)
    run = uow.runs.get(ref.id)
    if row is not None and row.token == ref.token:
        # The text search avoids decoding the facets of every claim.
        if run is not None and '"lots"' in run.facets and len(tables.list_live_claims(ref.id)) > 1:
            raise Conflict(
                f"run {ref.id} works on several lots that its events reported; report its end with "
                "an event too"
            )
        return row
    lot = lot_of(run) if run is not None else None
    if run is None or lot is None:
        raise NotFound(f"there is no claim {ref.id}")
    current = row or tables.work.get((run.job_id, lot))
    if current is None:
        raise NotFound(f"there is no claim {ref.id}")
    job = _job_row(uow, run.job_id)
    where = f"lot {lot} of job {job.namespace}/{job.name}"
    is_running = current.state == WorkState.RUNNING
    if is_running and current.run_id == run.id and run.ended_at is not None:
        raise Conflict(
            f"claim {ref.id} is over: its run has ended as {run.state}; nothing was changed"
        )
    if is_running:
        raise Conflict(
            f"claim {ref.id} with token {ref.token} is over: {where} is held by {current.owner!r} "
            f"since {say_time(current.since)}, with token {current.token}; nothing was changed"
        )
    raise Conflict(
        f"claim {ref.id} with token {ref.token} is over: {where} is {current.state} since "
        f"{say_time(current.since)}; nothing was changed"
    )


def renew(uow: UnitOfWork, ref: ClaimRef, lease_seconds: int | None, now: Micros) -> WorkRow:
    """Renew the lease of a claim."""
    row = find_live(uow, ref)
    seconds = lease_seconds or row.lease_seconds
    renewed = replace(row, lease_seconds=seconds, lease_until=now + seconds * SECOND)
    uow.tables(LockTables).put_work(renewed)
    return renewed


def complete(
    uow: UnitOfWork,
    rows: Sequence[WorkRow],
    now: Micros,
    notes: Notes = NO_NOTES,
    checks: Checks = NO_CHECKS,
) -> list[dict[str, str]]:
    """Publish the outputs of claims of one job; return the versions of each, by dataset.

    `notes` and `checks` are the manifests and check results of one claim, by dataset.
    """
    tables = uow.tables(LockTables)
    job = _lot_job(tables, rows[0].job_id)
    run_ids = [_run_of(row) for row in rows]
    uow.runs.prefetch(run_ids)
    uow.io.prefetch(run_ids)
    tables.outputs.prefetch((dataset, row.lot) for dataset in job.output_ids for row in rows)
    versions: list[dict[str, str]] = []
    for outputs, group in groupby(rows, key=lambda row: _locked_outputs(tables, job, row)):
        runs = [_run_of(row) for row in group]
        versions += complete_runs(uow, _job_row(uow, job.job_id), runs, outputs, now)
    outbox = uow.tables(LotTables)
    for run_id in run_ids:
        outbox.add_run_end(run_id, now)
    publish(uow, job, rows, versions, now, notes, checks)
    return versions


def _locked_outputs(tables: LockTables, job: LotJobRow, row: WorkRow) -> tuple[str, ...]:
    """Return the outputs that a claim locked: the job may have been wired to more since."""
    outputs = [tables.outputs.get((dataset, row.lot)) for dataset in job.output_ids]
    return tuple(each.dataset_id for each in outputs if each and each.run_id == row.run_id)


def publish(
    uow: UnitOfWork,
    job: LotJobRow,
    rows: Sequence[WorkRow],
    versions: Sequence[Mapping[str, str]],
    now: Micros,
    notes: Notes = NO_NOTES,
    checks: Checks = NO_CHECKS,
) -> None:
    """End claims as DONE and make their outputs READY, unless checks of them failed.

    `versions` are the new versions of each claim, by dataset.
    """
    tables, outbox = uow.tables(LockTables), uow.tables(LotTables)
    lots = [row.lot for row in rows]
    datasets = (*job.input_ids, *job.output_ids)
    tables.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)
    tables.inputs.prefetch((dataset, job.job_id, lot) for dataset in job.input_ids for lot in lots)
    for row, of_claim in zip(rows, versions, strict=True):
        done = replace(row, state=WorkState.DONE, lease_until=0, since=now)
        unlock_rows(tables, job, done, Status.DONE, Status.READY, of_claim, now)
        done = replace(done, unmade=work_state.lacks_output(tables, job, row.lot))
        work_state.record_transition(tables, done, row, "complete", row.owner, now)
        _apply_checks(tables, row, of_claim, checks, now)
        is_stale = work_state.check_staleness(tables, job, done, now) is not done
        if is_stale or _unreadable(tables, row.lot, of_claim):
            work_state.refresh(tables, job, [row.lot], now)
        held = _unreadable(tables, row.lot, of_claim)
        outbox.publish(
            row.lot, of_claim, now, notes=notes, job_id=row.job_id, run_id=row.run_id, held=held
        )
    ranks = {row.lot: row.rank for row in rows}
    work_state.refresh_other_jobs(tables, job, lots, now, ranks, readers=True)


def _apply_checks(
    tables: LockTables, row: WorkRow, versions: Mapping[str, str], checks: Checks, now: Micros
) -> None:
    for dataset, results in checks.items():
        output = tables.outputs.get((dataset, row.lot))
        if output is not None and dataset in versions:
            quality.apply_checks(tables, output, versions[dataset], results, row.run_id, now)


def _unreadable(tables: LockTables, lot: str, datasets: Iterable[str]) -> list[str]:
    """Return the datasets of which the lot is not READY."""
    rows = [tables.outputs.get((dataset, lot)) for dataset in datasets]
    return [row.dataset_id for row in rows if row is not None and row.status != Status.READY]


def fail(
    uow: UnitOfWork, row: WorkRow, error: str, now: Micros, *, expired: bool = False
) -> WorkRow:
    """Fail a claim: retry its work after a backoff, or hold it if it is out of tries.

    Work whose lease expired is retried at once: its worker died, so the work itself may be fine.
    """
    tables = uow.tables(LockTables)
    job = _lot_job(tables, row.job_id)
    is_held = retry.is_out_of_tries(job, row)
    status = Status.HOLD if is_held else Status.ERROR
    not_before = 0 if expired or is_held else now + retry.backoff(job, row.tries)
    who = PENSTOCK if expired else row.owner
    action = "expire" if expired else "fail"
    return _stop(uow, job, row, status, RunState.FAILED, action, who, error, now, not_before)


def release(
    uow: UnitOfWork,
    row: WorkRow,
    action: str,
    who: str,
    why: str,
    now: Micros,
    pause_seconds: int = 0,
) -> WorkRow:
    """Release a claim unfinished: it does not count as a try, and may pause before the next."""
    job = _lot_job(uow.tables(LockTables), row.job_id)
    row = replace(row, tries=row.tries - 1)
    not_before = now + pause_seconds * SECOND if pause_seconds else 0
    return _stop(uow, job, row, Status.ERROR, RunState.ABORTED, action, who, why, now, not_before)


def _stop(
    uow: UnitOfWork,
    job: LotJobRow,
    row: WorkRow,
    status: Status,
    state: RunState,
    action: str,
    who: str,
    why: str,
    now: Micros,
    not_before: Micros,
) -> WorkRow:
    tables = uow.tables(LockTables)
    run_id = _run_of(row)
    if any(other.lot != row.lot for other in tables.list_live_claims(run_id)):
        lose_lot(uow, run_id, row.lot)
    else:  # the last lot of a run ends the run
        stop_runs(uow, _job_row(uow, row.job_id), [run_id], state, why, now)
        uow.tables(LotTables).add_run_end(run_id, now)
    tables.outputs.prefetch((dataset, row.lot) for dataset in (*job.input_ids, *job.output_ids))
    tables.inputs.prefetch((dataset, row.job_id, row.lot) for dataset in job.input_ids)
    unlock_rows(tables, job, row, status, status, {}, now)
    after = work_state.derive_state(tables, job, row.lot, is_backing_off=not_before > now)
    ended = replace(row, lease_until=0, not_before=not_before, error=why)
    stopped = work_state.with_state(ended, after, now)
    work_state.record_transition(tables, stopped, row, action, who, now, why)
    work_state.refresh_other_jobs(tables, job, [row.lot], now, readers=False)
    return stopped


def _run_of(row: WorkRow) -> str:
    assert row.run_id is not None, "a live claim is a run"
    return row.run_id


def _job_row(uow: UnitOfWork, job_id: str) -> JobRow:
    job = uow.jobs.get(job_id)
    assert job is not None, "a job that claims lots exists"
    return job


def _lot_job(tables: LockTables, job_id: str) -> LotJobRow:
    job = tables.jobs.get(job_id)
    assert job is not None, "a job that claims lots was wired"
    return job
