"""What is to be done about a step when its turn has come, by the rows of its lot."""

from enum import StrEnum
from typing import NamedTuple

from penstock.locks import rules
from penstock.locks.room import LockRoom
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.locks.table import Status, readable
from penstock.replay.rows import StepRow
from penstock.states import StepState, WorkState


class Turn(StrEnum):
    """What to do about a step."""

    WAIT = "wait"  # not yet
    RERUN = "rerun"
    FOLLOW = "follow"  # it is to be done, or is being done, already
    DONE = "done"  # somebody has done it already
    FAIL = "fail"


class Verdict(NamedTuple):
    """What to do about a step, and why."""

    turn: Turn
    note: str = ""


def judge(room: LockRoom, job: LotJobRow, step: StepRow, work: WorkRow | None) -> Verdict:
    """What to do about a step that waits for no other."""
    if work is None:
        return Verdict(Turn.FAIL, "the job has never met this lot")
    if work.state == WorkState.HELD and not _is_held_for_newer(room, job, work):
        why = f": {work.error}" if work.error else ""
        return Verdict(Turn.FAIL, f"it was held before its turn came{why}; release it")
    is_current = _is_current(room, job, work)
    if work.state == WorkState.RUNNING and not is_current:
        return Verdict(Turn.WAIT, f"{work.owner} is at it, with what was there before")
    if work.state not in (WorkState.DONE, WorkState.HELD):
        return Verdict(Turn.FOLLOW, f"it was {work.state} already")
    if work.run_id != step.run_before and is_current:
        return Verdict(Turn.DONE, "it was done again meanwhile")
    hindrance = _hindrance(room, job, work.lot)
    return Verdict(Turn.WAIT, hindrance) if hindrance else Verdict(Turn.RERUN)


def outcome(step: StepRow, work: WorkRow | None) -> StepState | None:
    """How a step that was set going has ended; None, if it has not."""
    if work is None:
        return StepState.FAILED
    is_new = work.run_id != step.run_before
    # An input that was made anew since may have it held: then it was done before.
    was_done = work.state == WorkState.HELD and bool(work.stale_since) and not work.error
    if is_new and (work.state == WorkState.DONE or was_done):
        return StepState.DONE
    return StepState.FAILED if work.state == WorkState.HELD else None


def takes_part(work: WorkRow | None) -> bool:
    """Whether a step that was set going is one of those that run, or will as soon as they can."""
    return work is not None and work.state in (WorkState.READY, WorkState.RUNNING, WorkState.LATER)


def _is_held_for_newer(room: LockRoom, job: LotJobRow, work: WorkRow) -> bool:
    """Whether a lot is held only because an input was made anew, as a replay has others do."""
    rows = [room.inputs.get((dataset_id, work.job_id, work.lot)) for dataset_id in job.own_ids]
    held = [row for row in rows if row is not None and row.status == Status.HOLD]
    return bool(held) and all(
        row.held_from == Status.DONE and row.since == work.stale_since for row in held
    )


def _is_current(room: LockRoom, job: LotJobRow, work: WorkRow) -> bool:
    """Whether the last claim read what is there now."""
    for dataset_id in job.input_ids:
        own = room.inputs.get((dataset_id, work.job_id, work.lot))
        there = room.outputs.get((dataset_id, work.lot))
        if own is None or there is None or own.version_id != there.version_id:
            return False
    return True


def _hindrance(room: LockRoom, job: LotJobRow, lot: str) -> str:
    """Why a lot must not be resubmitted yet: it could not be made anew, and would be gone."""
    if rules.held_gate(room, job) is not None:
        return "the job, or a dataset of it, is held"
    for dataset_id in job.input_ids:
        there = room.outputs.get((dataset_id, lot))
        if there is None:
            return "an input of it is not there"
        if not readable(Status(there.status)):
            return f"an input of it is {there.status}"
    made = (room.outputs.get((dataset_id, lot)) for dataset_id in job.output_ids)
    if any(row is not None and row.status == Status.HOLD and row.held_from for row in made):
        return "what it made is held"
    return ""
