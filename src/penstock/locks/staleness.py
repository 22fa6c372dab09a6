"""What becomes of work whose input got a newer version: made again, held, or only marked."""

from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks.lock_rules import readable
from penstock.locks.queries.hold_reasons import drop_reasons, is_for_quality_alone
from penstock.locks.rows import LogRow, LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.schema.locks import Stale
from penstock.schema.lots import Status
from penstock.states import WorkState

STALE = "stale"  # the action in the log
WHO = "penstock"  # who holds what is stale


def follow(room: LockTables, job: LotJobRow, row: WorkRow, now: Micros) -> WorkRow | None:
    """Do with a lot that is done what its job asks for, if an input of it has a newer version.

    Returned is the work as it is then; None if it is not stale, or was known to be. A person who
    lets go of what is held for this has decided: it is held again only for a still newer version.
    What waits for its turn is only marked: it is set going when that has come, and not before.
    """
    newest = _newest(room, job, row)
    if newest <= row.stale_since:
        return None
    policy, why = Stale(job.stale), f"lot {row.lot} of an input of it was made anew"
    turn = None if policy is Stale.IGNORE else room.turns.waiting(job.job_id, row.lot)
    if turn is not None:
        room.turns.mark(turn, row.stale_since)
        policy, why = Stale.IGNORE, f"{why}; it waits for its turn"
    after = replace(row, stale_since=max(now, newest))
    if policy is Stale.RERUN:
        _release(room, job, row.lot, now)
        after = replace(after, tries=0, not_before=0, error="")
    elif policy is Stale.HOLD:
        _hold(room, job, row.lot, now)
    room.put_work(after)
    action = "hold" if policy is Stale.HOLD else STALE
    became = {Stale.RERUN: WorkState.WAITING, Stale.HOLD: WorkState.HELD}.get(policy, row.state)
    room.append(
        LogRow(now, action, row.lot, job.job_id, None, row.run_id, row.state, became, WHO, why)
    )
    return after


def _newest(room: LockTables, job: LotJobRow, row: WorkRow) -> Micros:
    """When the newest version came that the job has not read; 0 if it has read them."""
    newest = 0
    for dataset in job.input_ids:
        own = room.inputs.get((dataset, job.job_id, row.lot))
        source = room.outputs.get((dataset, row.lot))
        if own is None or source is None or own.status != Status.DONE:
            continue
        version = source.version_id
        if version not in (None, own.version_id) and readable(Status(source.status)):
            newest = max(newest, room.arrived_at(source))
    return newest


def _release(room: LockTables, job: LotJobRow, lot: str, now: Micros) -> None:
    """Its inputs are to be read again, and its outputs to be made again."""
    for dataset in job.input_ids:
        own = room.inputs.get((dataset, job.job_id, lot))
        if own is not None and own.status == Status.DONE:
            room.put_status(replace(own, status=Status.ERROR, since=now))
    for dataset in job.output_ids:
        made = room.outputs.get((dataset, lot))
        if made is None or made.job_id != job.job_id:
            continue
        if made.status == Status.READY or is_for_quality_alone(room, made):
            drop_reasons(room, dataset, lot)
            room.put_status(replace(made, status=Status.RESUBMIT, held_from="", since=now))
        elif made.held_from == Status.READY:
            room.put_status(replace(made, held_from=Status.RESUBMIT))


def _hold(room: LockTables, job: LotJobRow, lot: str, now: Micros) -> None:
    for dataset in job.input_ids:
        own = room.inputs.get((dataset, job.job_id, lot))
        if own is not None and own.status == Status.DONE:
            room.put_status(replace(own, status=Status.HOLD, held_from=Status.DONE, since=now))
