"""What follows for a job from the status rows of a lot, and how rows move with a claim.

Status rows are the truth. What a job has to do with a lot is worked out from them whenever one
of them changes, and written in the same transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from penstock.catalog.rows import replace
from penstock.clock import HOUR, SECOND, Micros
from penstock.locks import staleness
from penstock.locks.lock_rules import readable, usable, writable
from penstock.locks.queries import hold_reasons
from penstock.locks.rows import LogRow, LotJobRow, StatusRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.locks import Stale
from penstock.schema.lot_ids import sort_key
from penstock.schema.lots import Status
from penstock.states import WorkState

BACK_OFF_MAX: Micros = HOUR
# What is further ahead than this was said by a clock that was wrong; clocks differ by some seconds.
AHEAD_MAX: Micros = HOUR
# What a job that reads nothing has written tells how far it is; one that is held, what it was.
_WROTE: Final = {Status.READY: Status.DONE, Status.HOLD: Status.HOLD}
_WROTE_HELD: Final = {"": Status.HOLD, Status.ERROR: Status.HOLD, Status.READY: Status.DONE}


def work_state(
    inputs: Sequence[Status | None],
    outputs: Sequence[Status | None],
    own: Sequence[Status | None],
    *,
    later: bool,
) -> WorkState:
    """Where a job stands with a lot that nobody works on for it.

    `inputs` and `outputs` are the OUTPUT statuses of the lot in the datasets it reads and writes,
    `own` its INPUT statuses; `later` says that it must not be tried again yet.
    """
    if Status.HOLD in own:
        return WorkState.HELD
    if not all(map(usable, own)):
        return WorkState.DONE
    if not all(map(readable, inputs)) or not all(map(writable, outputs)):
        return WorkState.WAITING
    return WorkState.LATER if later else WorkState.READY


def refresh(
    room: LockTables,
    job: LotJobRow,
    lots: Sequence[str],
    now: Micros,
    ranks: Mapping[str, int] | None = None,
) -> None:
    """Bring a job's work on these lots in line with their status rows.

    `ranks` are for lots that are new to the job; of others they can only raise the priority.
    """
    prefetch(room, job, lots)
    for lot in lots:
        row = room.work.get((job.job_id, lot))
        if row is not None and row.state == WorkState.RUNNING:
            continue
        later = row is not None and row.not_before > now
        state = standing(room, job, lot, later=later)
        is_changed = False
        if row is not None and state == WorkState.DONE:
            row, before = follow_inputs(room, job, row, now), row
            is_changed = row is not before
        if hold_reasons.free_outlived(room, job, lot, now):
            refresh_others(room, job, [lot], now, readers=True)
            is_changed = True
        if is_changed:
            state = standing(room, job, lot, later=row is not None and row.not_before > now)
        rank = ranks.get(lot, 0) if ranks else 0
        if row is None:
            room.put_work(new_work(job.job_id, lot, rank, state, now))
            continue
        if rank < min(row.rank, 0):
            row = replace(row, rank=rank)
            room.put_work(row)
        if row.state != state:
            # What was done by what the job was wired to before begins anew; what is held does not.
            if row.state == WorkState.DONE and state != WorkState.HELD:
                row = replace(row, tries=0, error="")
            row = standing_at(row, state, now)
            room.put_work(row)
        unmade = is_unmade(room, job, lot) if state == WorkState.DONE else row.unmade
        if row.unmade != unmade:
            room.put_work(replace(row, unmade=unmade))


def is_unmade(room: LockTables, job: LotJobRow, lot: str) -> int:
    """1 if an output of the job lacks a lot that is done: it was wired to more since; else 0."""
    made = (room.outputs.get((dataset, lot)) for dataset in job.output_ids)
    return int(any(row is None or row.version_id is None for row in made))


def prefetch(room: LockTables, job: LotJobRow, lots: Sequence[str]) -> None:
    """Fetch what tells where a job stands with these lots."""
    datasets = (*job.input_ids, *job.output_ids)
    room.outputs.prefetch((dataset, lot) for dataset in datasets for lot in lots)
    room.inputs.prefetch((dataset, job.job_id, lot) for dataset in job.own_ids for lot in lots)
    room.work.prefetch((job.job_id, lot) for lot in lots)


def standing_at(row: WorkRow, state: WorkState, now: Micros) -> WorkRow:
    """A job's work on a lot that stands elsewhere from now on.

    Once it is READY there is nothing to wait for, whatever the clocks of other servers say.
    """
    not_before = 0 if state == WorkState.READY else row.not_before
    return replace(row, state=state, since=now, not_before=not_before)


def follow_inputs(room: LockTables, job: LotJobRow, row: WorkRow, now: Micros) -> WorkRow:
    """Look whether a lot that is done has become stale; then others cannot read it for a while."""
    stale = staleness.follow(room, job, row, now)
    if stale is None:
        return row
    if job.stale == Stale.RERUN:
        refresh_others(room, job, [row.lot], now, readers=True)
    return stale


def standing(room: LockTables, job: LotJobRow, lot: str, *, later: bool) -> WorkState:
    """Where a job stands with a lot that nobody works on for it, by the status rows."""
    inputs = [room.outputs.get((dataset, lot)) for dataset in job.input_ids]
    outputs = [room.outputs.get((dataset, lot)) for dataset in job.output_ids]
    own = [_status(room.inputs.get((dataset, job.job_id, lot))) for dataset in job.own_ids]
    if not any(own):
        own = [_wrote(row) for row in outputs if row and row.job_id == job.job_id]
    return work_state([*map(_status, inputs)], [*map(_status, outputs)], own, later=later)


def _wrote(row: StatusRow) -> Status | None:
    is_held_by_hand = row.status == Status.HOLD and row.held_from
    return _WROTE_HELD.get(row.held_from) if is_held_by_hand else _WROTE.get(row.status)


def _status(row: StatusRow | None) -> Status | None:
    return Status(row.status) if row is not None else None


def new_work(job_id: str, lot: str, rank: int, state: WorkState, now: Micros) -> WorkRow:
    """What a job has to do with a lot that it never met."""
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


def refresh_around(
    room: LockTables,
    datasets: Iterable[str],
    lots: Sequence[str],
    now: Micros,
    ranks: Mapping[str, int] | None = None,
) -> None:
    """Lots of these datasets have changed: look again at everybody who reads or writes them."""
    touched = {job for dataset in datasets for _, job in room.wires.get(dataset) or ()}
    for job_id in sorted(touched):
        job = room.jobs.get(job_id)
        if job is not None:
            refresh(room, job, lots, now, ranks)


def refresh_others(
    room: LockTables,
    job: LotJobRow,
    lots: Sequence[str],
    now: Micros,
    ranks: Mapping[str, int] | None = None,
    *,
    readers: bool,
) -> None:
    """A job has changed lots of its outputs: look again at others who write or read them.

    Readers care only for what is READY: it was not before, or is not any more.
    """
    wires = [wire for dataset in job.output_ids for wire in room.wires.get(dataset) or ()]
    touched = {other for role, other in wires if readers or role == DatasetRole.OUTPUT}
    for other in sorted(touched - {job.job_id}):
        if (found := room.jobs.get(other)) is not None:
            refresh(room, found, lots, now, ranks)


def back_off(job: LotJobRow, tries: int) -> Micros:
    """How long to wait after so many tries: twice as long each time, an hour at most."""
    return min((job.back_off_seconds * SECOND) << min(tries - 1, 30), BACK_OFF_MAX)


def held_gate(room: LockTables, job: LotJobRow) -> str | None:
    """Which hold stops a job whole: its own, or that of a dataset of its."""
    gates = (job.job_id, *job.input_ids, *job.output_ids)
    room.holds.prefetch(gates)
    return next((gate for gate in gates if room.holds.get(gate) is not None), None)


def moved(
    room: LockTables, row: WorkRow, was: WorkRow, action: str, who: str, now: Micros, why: str = ""
) -> None:
    """Write a job's work on a lot, and the transition into the log."""
    room.put_work(row)
    room.append(
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
