"""What is to be done about a step when its turn has come, by the rows of its lot."""

from enum import StrEnum
from typing import NamedTuple

from penstock.catalog.unit_of_work import UnitOfWork
from penstock.locks import work as rules
from penstock.locks.hold_reasons import QUALITY, is_for_quality_alone
from penstock.locks.lock_rules import readable
from penstock.locks.rows import LotJobRow, StatusRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.replay.rows import StepRow
from penstock.schema.lots import Status
from penstock.states import StepState, WorkState

KEPT = "somebody keeps the job from this lot: let it go first"


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


def judge(uow: UnitOfWork, job: LotJobRow, step: StepRow, work: WorkRow | None) -> Verdict:
    """What to do about a step that waits for no other.

    What a job is out of tries with, or holds for a newer input, is tried again: a replay is begun
    by a person. What somebody holds waits for that person, and no replay waits for people.
    """
    room = uow.tables(LockTables)
    if work is None:
        return Verdict(Turn.FAIL, "the job has never met this lot")
    is_current = _is_current(room, job, work)
    if work.state == WorkState.RUNNING:
        if is_current:
            return Verdict(Turn.FOLLOW, f"{work.owner} was at it already")
        return Verdict(Turn.WAIT, f"{work.owner} is at it, with what was there before")
    if work.state == WorkState.DONE and work.run_id != step.run_before and is_current:
        return Verdict(Turn.DONE, "it was done again meanwhile")
    if held := _held(uow, job, work.lot):
        return Verdict(Turn.FAIL, held)
    if work.state not in (WorkState.DONE, WorkState.HELD):
        return Verdict(Turn.FOLLOW, "it was to be done already")
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


def said_of_held(lot: str, namespace: str, dataset: str) -> str:
    """What is said of a step that a lot which is held stops."""
    return f"lot {lot} of {namespace}/{dataset} is held: let it go first"


def _held(uow: UnitOfWork, job: LotJobRow, lot: str) -> str:
    """What somebody has to let go before a step can be done."""
    room = uow.tables(LockTables)
    if room.is_work_held(job.job_id, lot):
        return KEPT
    made = [room.outputs.get((dataset_id, lot)) for dataset_id in job.output_ids]
    rows = [row for row in made if row is not None and row.held_from]
    rows = [row for row in rows if not is_for_quality_alone(room, row)]
    read = [room.outputs.get((dataset_id, lot)) for dataset_id in job.input_ids]
    for row in (*rows, *(row for row in read if row is not None)):
        if row.status == Status.HOLD:
            source = uow.datasets.get(_cause(room, row))
            assert source is not None, "a lot that is held is one of a dataset"
            return said_of_held(lot, source.namespace, source.name)
    return ""


def _cause(room: LockTables, row: StatusRow) -> str:
    """The dataset whose lot is to be let go, for another to be."""
    held = room.reasons.get((row.dataset_id, row.lot))
    causes = [reason for reason in (held.reasons if held else ()) if reason != QUALITY]
    return causes[0] if causes else row.dataset_id


def _is_current(room: LockTables, job: LotJobRow, work: WorkRow) -> bool:
    """Whether the last claim read what is there now."""
    for dataset_id in job.input_ids:
        own = room.inputs.get((dataset_id, work.job_id, work.lot))
        there = room.outputs.get((dataset_id, work.lot))
        if own is None or there is None or own.version_id != there.version_id:
            return False
    return True


def _hindrance(room: LockTables, job: LotJobRow, lot: str) -> str:
    """Why a lot must not be resubmitted yet: it could not be made anew, and would be gone."""
    if rules.find_hold(room, job) is not None:
        return "the job, or a dataset of it, is held"
    for dataset_id in job.input_ids:
        there = room.outputs.get((dataset_id, lot))
        if there is None:
            return "an input of it is not there"
        if not readable(Status(there.status)):
            return f"an input of it is {there.status}"
    return ""
