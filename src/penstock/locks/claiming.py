"""Claims: taken, kept alive, completed, failed, given back, expired.

A claim is one run. Its status rows, its run and its place in the job's work are written in one
transaction, and so is its end.
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
from penstock.locks import quality, work
from penstock.locks.lock_rules import usable
from penstock.locks.quality import NO_CHECKS, Checks
from penstock.locks.queries.hold_reasons import drop_reasons
from penstock.locks.rows import LotJobRow, StatusRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.lots.tables import NO_NOTES, LotTables, Notes
from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status
from penstock.states import RunState, WorkState

Shape = tuple[tuple[DatasetName, ...], tuple[DatasetName, ...]]

PENSTOCK = "penstock"  # who acts when a lease runs out


class Ref(Struct, frozen=True, gc=False):
    """A claim as its holder names it."""

    id: str
    token: int


def take(
    uow: UnitOfWork,
    job: LotJobRow,
    rows: Sequence[WorkRow],
    owner: str,
    lease_seconds: int,
    now: Micros,
    key: str | None = None,
) -> list[WorkRow]:
    """Claim lots that are READY; the runs of one key always have the same ids."""
    room = uow.tables(LockTables)
    inputs, outputs = job.input_ids, job.output_ids
    lots = [row.lot for row in rows]
    room.outputs.prefetch((dataset, lot) for dataset in (*inputs, *outputs) for lot in lots)
    claimed: list[WorkRow] = []
    runs: list[NewRun] = []
    for number, row in enumerate(rows):
        run_id = ids.new_id() if key is None else keyed_run(job.job_id, key, number)
        claim = begun(row, run_id, owner, lease_seconds, now)
        pinned = {}
        for dataset in inputs:
            source = room.outputs.get((dataset, row.lot))
            version_id = source.version_id if source is not None else None
            assert version_id is not None, "a lot is READY only when its inputs are there"
            pinned[dataset] = version_id
        runs.append(NewRun(run_id, row.lot, claim.tries, pinned))
        lock(room, claim, pinned, outputs, now)
        work.moved(room, claim, row, "claim", owner, now)
        claimed.append(claim)
    if runs:
        begin_runs(uow, _job_row(uow, job.job_id), shape_of(uow, job), runs, now)
        work.refresh_others(room, job, lots, now, readers=False)
    return claimed


def keyed_run(job_id: str, key: str, number: int) -> str:
    """The id of the n-th run that a job claims with a key."""
    return ids.keyed_id(key, "claim", job_id, str(number))


def shape_of(uow: UnitOfWork, job: LotJobRow) -> Shape:
    """What a job reads and what it writes, by name."""
    return _names(uow, job.input_ids), _names(uow, job.output_ids)


def _names(uow: UnitOfWork, dataset_ids: Iterable[str]) -> tuple[DatasetName, ...]:
    rows = map(uow.datasets.get, dataset_ids)
    return tuple(sorted(DatasetName(row.namespace, row.name) for row in rows if row is not None))


def begun(row: WorkRow, run_id: str, owner: str, lease_seconds: int, now: Micros) -> WorkRow:
    """A job's work on a lot as a new claim has it."""
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


def lock(
    room: LockTables,
    claim: WorkRow,
    pinned: Mapping[str, str | None],
    outputs: Iterable[str],
    now: Micros,
) -> None:
    """Write the status rows of a new claim: what it reads, with versions, and what it writes."""
    lot, job_id, run_id, running = claim.lot, claim.job_id, claim.run_id, Status.RUNNING
    for dataset, version in pinned.items():
        row = StatusRow(dataset, lot, DatasetRole.INPUT, job_id, running, "", run_id, version, now)
        room.put_status(row)
    for dataset in outputs:
        held = room.outputs.get((dataset, lot))
        kept = held.version_id if held is not None else None
        row = StatusRow(dataset, lot, DatasetRole.OUTPUT, job_id, running, "", run_id, kept, now)
        room.put_status(row)


def forget_failed(room: LockTables, job: LotJobRow, claim: WorkRow) -> None:
    """What a run before a new claim failed to read, and this one does not read, is not open now."""
    for dataset in job.input_ids:
        key = (dataset, job.job_id, claim.lot)
        own = room.inputs.get(key)
        if own is not None and own.run_id != claim.run_id and usable(Status(own.status)):
            room.inputs.put(key, None)


def unlock(
    room: LockTables,
    job: LotJobRow,
    claim: WorkRow,
    of_inputs: Status,
    of_outputs: Status,
    made: Mapping[str, str],
    now: Micros,
) -> None:
    """Give the status rows that a claim holds these statuses."""
    lot, run_id = claim.lot, claim.run_id
    for dataset in job.input_ids:
        held = room.inputs.get((dataset, claim.job_id, lot))
        if held is not None and held.run_id == run_id:
            room.put_status(replace(held, status=of_inputs, since=now))
    for dataset in job.output_ids:
        held = room.outputs.get((dataset, lot))
        if held is not None and held.run_id == run_id:
            version = made.get(dataset) or held.version_id
            # What it was made from may have been held meanwhile: then it is held as well.
            is_held = bool(held.held_from) and of_outputs is Status.READY
            if held.held_from and not is_held:
                drop_reasons(room, dataset, lot)
            room.put_status(
                replace(
                    held,
                    status=Status.HOLD if is_held else of_outputs,
                    held_from=of_outputs if is_held else "",
                    version_id=version,
                    since=now,
                )
            )


def live(uow: UnitOfWork, ref: Ref) -> WorkRow:
    """The claim, or a Conflict that says who holds the lot now."""
    room = uow.tables(LockTables)
    row = room.claimed(ref.id)
    run = uow.runs.get(ref.id)
    if row is not None and row.token == ref.token:
        # Only facets of several lots have this word, and to read them all would cost each claim.
        if run is not None and '"lots"' in run.facets and len(room.claims_of(ref.id)) > 1:
            raise Conflict(
                f"run {ref.id} works on several lots, as its events tell; let them tell its end too"
            )
        return row
    lot = lot_of(run) if run is not None else None
    if run is None or lot is None:
        raise NotFound(f"there is no claim {ref.id}")
    now = row or room.work.get((run.job_id, lot))
    if now is None:
        raise NotFound(f"there is no claim {ref.id}")
    job = _job_row(uow, run.job_id)
    where = f"lot {lot} of job {job.namespace}/{job.name}"
    if now.state == WorkState.RUNNING and now.run_id == run.id and run.ended_at is not None:
        raise Conflict(
            f"claim {ref.id} is over: its run has ended as {run.state}; nothing was changed"
        )
    if now.state == WorkState.RUNNING:
        raise Conflict(
            f"claim {ref.id} with token {ref.token} is over: {where} is held by {now.owner!r} "
            f"since {say_time(now.since)}, with token {now.token}; nothing was changed"
        )
    raise Conflict(
        f"claim {ref.id} with token {ref.token} is over: {where} is {now.state} since "
        f"{say_time(now.since)}; nothing was changed"
    )


def keep(uow: UnitOfWork, ref: Ref, lease_seconds: int | None, now: Micros) -> WorkRow:
    """Extend a claim's lease from now on."""
    row = live(uow, ref)
    seconds = lease_seconds or row.lease_seconds
    kept = replace(row, lease_seconds=seconds, lease_until=now + seconds * SECOND)
    uow.tables(LockTables).put_work(kept)
    return kept


def complete(
    uow: UnitOfWork,
    rows: Sequence[WorkRow],
    now: Micros,
    notes: Notes = NO_NOTES,
    checks: Checks = NO_CHECKS,
) -> list[dict[str, str]]:
    """Publish what claims of one job have made; returned are the versions, by dataset.

    `notes` are the manifests of what one claim has made, and `checks` what was said about it, by
    dataset.
    """
    room = uow.tables(LockTables)
    job = _lot_job(room, rows[0].job_id)
    run_ids = [_run_of(row) for row in rows]
    uow.runs.prefetch(run_ids)
    uow.io.prefetch(run_ids)
    room.outputs.prefetch((dataset, row.lot) for dataset in job.output_ids for row in rows)
    written: list[dict[str, str]] = []
    for outputs, group in groupby(rows, key=lambda row: _locked_outputs(room, job, row)):
        runs = [_run_of(row) for row in group]
        written += complete_runs(uow, _job_row(uow, job.job_id), runs, outputs, now)
    outbox = uow.tables(LotTables)
    for run_id in run_ids:
        outbox.tell_end(run_id, now)
    publish(uow, job, rows, written, now, notes, checks)
    return written


def _locked_outputs(room: LockTables, job: LotJobRow, row: WorkRow) -> tuple[str, ...]:
    """What a claim may publish: a job can have been wired to more since."""
    rows = [room.outputs.get((dataset, row.lot)) for dataset in job.output_ids]
    return tuple(held.dataset_id for held in rows if held and held.run_id == row.run_id)


def publish(
    uow: UnitOfWork,
    job: LotJobRow,
    rows: Sequence[WorkRow],
    made: Sequence[Mapping[str, str]],
    now: Micros,
    notes: Notes = NO_NOTES,
    checks: Checks = NO_CHECKS,
) -> None:
    """Claims are done, and what each made, by dataset, is there to be read, unless checks fail."""
    room, outbox = uow.tables(LockTables), uow.tables(LotTables)
    lots = [row.lot for row in rows]
    datasets = (*job.input_ids, *job.output_ids)
    room.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)
    room.inputs.prefetch((dataset, job.job_id, lot) for dataset in job.input_ids for lot in lots)
    for row, versions in zip(rows, made, strict=True):
        done = replace(row, state=WorkState.DONE, lease_until=0, since=now)
        unlock(room, job, done, Status.DONE, Status.READY, versions, now)
        done = replace(done, unmade=work.is_unmade(room, job, row.lot))
        work.moved(room, done, row, "complete", row.owner, now)
        _check(room, row, versions, checks, now)
        is_stale = work.follow_inputs(room, job, done, now) is not done
        if is_stale or _unreadable(room, row.lot, versions):
            work.refresh(room, job, [row.lot], now)
        held = _unreadable(room, row.lot, versions)
        outbox.published(
            row.lot, versions, now, notes=notes, job_id=row.job_id, run_id=row.run_id, held=held
        )
    ranks = {row.lot: row.rank for row in rows}
    work.refresh_others(room, job, lots, now, ranks, readers=True)


def _check(
    room: LockTables, row: WorkRow, versions: Mapping[str, str], checks: Checks, now: Micros
) -> None:
    """Note what was said about what a claim made; it is held where a check failed."""
    for dataset, said in checks.items():
        made = room.outputs.get((dataset, row.lot))
        if made is not None and dataset in versions:
            quality.judge(room, made, versions[dataset], said, row.run_id, now)


def _unreadable(room: LockTables, lot: str, datasets: Iterable[str]) -> list[str]:
    """Of which of these datasets the lot cannot be read."""
    rows = [room.outputs.get((dataset, lot)) for dataset in datasets]
    return [row.dataset_id for row in rows if row is not None and row.status != Status.READY]


def fail(
    uow: UnitOfWork, row: WorkRow, error: str, now: Micros, *, expired: bool = False
) -> WorkRow:
    """End a claim badly: it is tried again, after a while unless its worker died, or held."""
    room = uow.tables(LockTables)
    job = _lot_job(room, row.job_id)
    spent = row.tries >= job.tries_max
    status = Status.HOLD if spent else Status.ERROR
    not_before = 0 if expired or spent else now + work.back_off(job, row.tries)
    who = PENSTOCK if expired else row.owner
    action = "expire" if expired else "fail"
    return _stop(uow, job, row, status, RunState.FAILED, action, who, error, now, not_before)


def give_back(
    uow: UnitOfWork,
    row: WorkRow,
    action: str,
    who: str,
    why: str,
    now: Micros,
    pause_seconds: int = 0,
) -> WorkRow:
    """End a claim without a result; it does not count as a try, and may have to wait."""
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
    room = uow.tables(LockTables)
    run_id = _run_of(row)
    if any(other.lot != row.lot for other in room.claims_of(run_id)):
        lose_lot(uow, run_id, row.lot)
    else:  # its last lot ends a run
        stop_runs(uow, _job_row(uow, row.job_id), [run_id], state, why, now)
        uow.tables(LotTables).tell_end(run_id, now)
    room.outputs.prefetch((dataset, row.lot) for dataset in (*job.input_ids, *job.output_ids))
    room.inputs.prefetch((dataset, row.job_id, row.lot) for dataset in job.input_ids)
    unlock(room, job, row, status, status, {}, now)
    after = work.standing(room, job, row.lot, later=not_before > now)
    ended = replace(row, lease_until=0, not_before=not_before, error=why)
    stopped = work.standing_at(ended, after, now)
    work.moved(room, stopped, row, action, who, now, why)
    work.refresh_others(room, job, [row.lot], now, readers=False)
    return stopped


def _run_of(row: WorkRow) -> str:
    assert row.run_id is not None, "a live claim is a run"
    return row.run_id


def _job_row(uow: UnitOfWork, job_id: str) -> JobRow:
    job = uow.jobs.get(job_id)
    assert job is not None, "a job that claims lots exists"
    return job


def _lot_job(room: LockTables, job_id: str) -> LotJobRow:
    job = room.jobs.get(job_id)
    assert job is not None, "a job that claims lots was wired"
    return job
