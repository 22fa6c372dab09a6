"""Decisions about a step when its turn has come, from the rows of its lot."""

from enum import StrEnum
from typing import NamedTuple

from penstock.catalog.unit_of_work import UnitOfWork
from penstock.locks import work_state as rules
from penstock.locks.hold_reasons import QUALITY, is_for_quality_alone
from penstock.locks.lock_rules import readable
from penstock.locks.rows import LotJobRow, StatusRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.operations.replays.rows import StepRow
from penstock.schema.lots import Status
from penstock.states import StepState, WorkState

ON_HOLD = "this job is on hold for this lot; release it with `penstock work release`"


class StepTurn(StrEnum):
    """The decision about a step."""

    WAIT = "wait"  # not yet
    RERUN = "rerun"
    FOLLOW = "follow"  # the work is ready or running already
    DONE = "done"  # the work was done meanwhile
    FAIL = "fail"


class StepVerdict(NamedTuple):
    """The decision about a step, and its reason."""

    turn: StepTurn
    note: str = ""


def judge(uow: UnitOfWork, job: LotJobRow, step: StepRow, work: WorkRow | None) -> StepVerdict:
    """Decide about a step that waits for no other.

    A person starts a replay, so it retries work that is out of tries or held for a newer input.
    A step on a lot that a person holds fails: no replay waits for people.
    """
    locks = uow.tables(LockTables)
    if work is None:
        return StepVerdict(StepTurn.FAIL, "the job has no work on this lot")
    is_current = _is_current(locks, job, work)
    if work.state == WorkState.RUNNING:
        if is_current:
            return StepVerdict(StepTurn.FOLLOW, f"{work.owner} was running it already")
        return StepVerdict(StepTurn.WAIT, f"{work.owner} is running it with earlier inputs")
    if work.state == WorkState.DONE and work.run_id != step.run_before and is_current:
        return StepVerdict(StepTurn.DONE, "a newer run was completed meanwhile")
    if hold := _held(uow, job, work.lot):
        return StepVerdict(StepTurn.FAIL, hold)
    if work.state not in (WorkState.DONE, WorkState.HELD):
        return StepVerdict(StepTurn.FOLLOW, "it was ready or retryable already")
    obstacle = _obstacle(locks, job, work.lot)
    return StepVerdict(StepTurn.WAIT, obstacle) if obstacle else StepVerdict(StepTurn.RERUN)


def outcome(step: StepRow, work: WorkRow | None) -> StepState | None:
    """Return how a step that was set going has ended; None if it has not."""
    if work is None:
        return StepState.FAILED
    is_new = work.run_id != step.run_before
    # A newer input may hold work that was done: then the step is done.
    was_done = work.state == WorkState.HELD and bool(work.stale_since) and not work.error
    if is_new and (work.state == WorkState.DONE or was_done):
        return StepState.DONE
    return StepState.FAILED if work.state == WorkState.HELD else None


def held_note(lot: str, namespace: str, dataset: str) -> str:
    """Explain that a lot on hold stops a step."""
    return f"lot {lot} of {namespace}/{dataset} is on hold; release it with `penstock lots release`"


def _held(uow: UnitOfWork, job: LotJobRow, lot: str) -> str:
    """Return the hold that a person must release before the step can run; empty if none."""
    locks = uow.tables(LockTables)
    if locks.is_work_held(job.job_id, lot):
        return ON_HOLD
    outputs = [locks.outputs.get((dataset_id, lot)) for dataset_id in job.output_ids]
    rows = [row for row in outputs if row is not None and row.held_from]
    rows = [row for row in rows if not is_for_quality_alone(locks, row)]
    inputs = [locks.outputs.get((dataset_id, lot)) for dataset_id in job.input_ids]
    for row in (*rows, *(row for row in inputs if row is not None)):
        if row.status == Status.HOLD:
            source = uow.datasets.get(_cause(locks, row))
            assert source is not None, "a lot that is held is one of a dataset"
            return held_note(lot, source.namespace, source.name)
    return ""


def _cause(locks: LockTables, row: StatusRow) -> str:
    """Return the dataset whose hold is the cause of a hold on a lot."""
    reasons_row = locks.reasons.get((row.dataset_id, row.lot))
    causes = [
        dataset_id
        for dataset_id in (reasons_row.reasons if reasons_row else ())
        if dataset_id != QUALITY
    ]
    return causes[0] if causes else row.dataset_id


def _is_current(locks: LockTables, job: LotJobRow, work: WorkRow) -> bool:
    """Whether the last claim read the current versions of all inputs."""
    for dataset_id in job.input_ids:
        consumed = locks.inputs.get((dataset_id, work.job_id, work.lot))
        current = locks.outputs.get((dataset_id, work.lot))
        if consumed is None or current is None or consumed.version_id != current.version_id:
            return False
    return True


def _obstacle(locks: LockTables, job: LotJobRow, lot: str) -> str:
    """Return why a lot must not be resubmitted yet: its data would go and not come again."""
    if rules.find_hold(locks, job) is not None:
        return "the job, or a dataset of it, is on hold"
    for dataset_id in job.input_ids:
        input_row = locks.outputs.get((dataset_id, lot))
        if input_row is None:
            return "an input has no such lot"
        if not readable(Status(input_row.status)):
            return f"an input is {input_row.status}"
    return ""
