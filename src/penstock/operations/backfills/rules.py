"""The condition of a lot of an arc, and the action of a backfill; mostly without SQL."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from penstock.locks.lock_rules import Status, readable
from penstock.locks.rows import NOWHERE, LotJobRow, StatusRow, WorkRow
from penstock.lots.rows import ManifestRow
from penstock.states import ManifestState, WorkState


class LotCondition(StrEnum):
    """The condition of a lot of an arc."""

    GOOD = "good"  # done, and its data is there
    STALE = "stale"  # done, with inputs that have newer versions
    REMOVED = "removed"  # done, but its data was removed or is partial
    MISSING = "missing"  # done, but an output lacks the lot
    READY = "ready"  # can be claimed
    RUNNING = "running"
    FAILED = "failed"  # retried after a backoff
    OUT_OF_TRIES = "out of tries"
    HELD = "held"  # by a person
    WAITING = "waiting"  # an input is missing, or an output must not be written


class BackfillAction(StrEnum):
    """What a backfill does with a lot."""

    LEAVE = "leave"
    WAIT = "wait"  # another lot has to come first
    FOLLOW = "follow"  # it is running: record how it ends
    RUN = "run"  # rank it after fresh lots
    RETRY = "retry"  # at once, with all its tries
    UNHOLD = "unhold"  # release it, with all its tries
    RERUN = "rerun"  # resubmit it


class Scope(StrEnum):
    """The lots that a backfill repairs."""

    FAILED_AND_MISSING = "failed and missing"
    NOT_GOOD = "not good"  # also stale lots
    ALL = "all"  # also good lots


UNDER_WAY = frozenset(
    {
        BackfillAction.FOLLOW,
        BackfillAction.RUN,
        BackfillAction.RETRY,
        BackfillAction.UNHOLD,
        BackfillAction.RERUN,
    }
)
_PLAIN = {
    LotCondition.READY: BackfillAction.RUN,
    LotCondition.RUNNING: BackfillAction.FOLLOW,
    LotCondition.FAILED: BackfillAction.RETRY,
    LotCondition.OUT_OF_TRIES: BackfillAction.UNHOLD,
    LotCondition.HELD: BackfillAction.LEAVE,
    LotCondition.WAITING: BackfillAction.WAIT,
}
_RERUN = {
    Scope.FAILED_AND_MISSING: {LotCondition.REMOVED, LotCondition.MISSING},
    Scope.NOT_GOOD: {LotCondition.REMOVED, LotCondition.MISSING, LotCondition.STALE},
    Scope.ALL: {LotCondition.REMOVED, LotCondition.MISSING, LotCondition.STALE, LotCondition.GOOD},
}
_OF_WORK = {
    WorkState.RUNNING: LotCondition.RUNNING,
    WorkState.LATER: LotCondition.FAILED,
    WorkState.READY: LotCondition.READY,
    WorkState.WAITING: LotCondition.WAITING,
}


class LotRows(NamedTuple):
    """Lookups of rows: in a snapshot, or in a unit of work."""

    work: Callable[[tuple[str, str]], WorkRow | None]  # job id, lot
    outputs: Callable[[tuple[str, str]], StatusRow | None]  # dataset id, lot
    inputs: Callable[[tuple[str, str, str]], StatusRow | None]  # dataset id, job id, lot
    manifests: Callable[[str], ManifestRow | None]  # version id


class LotFacts(NamedTuple):
    """The rows of one lot of an arc, in the order of its inputs and outputs."""

    lot: str
    work: WorkRow | None
    inputs: tuple[StatusRow | None, ...]  # the lot in the inputs, as their writers have it
    consumed: tuple[StatusRow | None, ...]  # the lot in the inputs, as the arc has read it
    is_on_hold: bool  # whether the arc's work on it is on hold
    outputs: tuple[StatusRow | None, ...]  # the lot in the outputs
    manifests: tuple[ManifestRow | None, ...]  # of the versions in the outputs


class LotVerdict(NamedTuple):
    """The condition of a lot, and the action of a backfill."""

    condition: LotCondition
    action: BackfillAction


def gather_facts(job: LotJobRow, lot: str, rows: LotRows) -> LotFacts:
    """Read the rows of a lot."""
    outputs = tuple(rows.outputs((dataset, lot)) for dataset in job.output_ids)
    versions = (row.version_id if row is not None else None for row in outputs)
    return LotFacts(
        lot=lot,
        work=rows.work((job.job_id, lot)),
        inputs=tuple(rows.outputs((dataset, lot)) for dataset in job.input_ids),
        consumed=tuple(rows.inputs((dataset, job.job_id, lot)) for dataset in job.input_ids),
        is_on_hold=rows.inputs((NOWHERE, job.job_id, lot)) is not None,
        outputs=outputs,
        manifests=tuple(rows.manifests(v) if v is not None else None for v in versions),
    )


def judge(facts: LotFacts, scope: Scope) -> LotVerdict:
    """Return the condition of a lot and the action; a lot without its inputs is not touched."""
    condition = condition_of(facts)
    if condition is LotCondition.OUT_OF_TRIES and not _has_inputs(facts):
        return LotVerdict(condition, BackfillAction.WAIT)
    if condition in _PLAIN:
        return LotVerdict(condition, _PLAIN[condition])
    if condition not in _RERUN[scope]:
        return LotVerdict(condition, BackfillAction.LEAVE)
    return LotVerdict(
        condition, BackfillAction.RERUN if _has_inputs(facts) else BackfillAction.WAIT
    )


def condition_of(facts: LotFacts) -> LotCondition:
    """Return the condition of a lot."""
    work = facts.work
    if work is None:
        return LotCondition.READY if _has_inputs(facts) else LotCondition.WAITING
    if work.state == WorkState.RUNNING:
        return LotCondition.RUNNING
    if any(row is not None and _is_held_by_person(row) for row in facts.outputs):
        return LotCondition.HELD
    if work.state == WorkState.HELD:
        held_inputs = [
            row for row in facts.consumed if row is not None and row.status == Status.HOLD
        ]
        # Work held for a newer input remembers its former status; work out of tries does not.
        is_out_of_tries = (
            bool(held_inputs)
            and not facts.is_on_hold
            and not any(row.held_from for row in held_inputs)
        )
        return LotCondition.OUT_OF_TRIES if is_out_of_tries else LotCondition.HELD
    if work.state != WorkState.DONE:
        return _OF_WORK[WorkState(work.state)]
    incomplete = (ManifestState.REMOVED, ManifestState.PARTIAL)
    if any(row is not None and row.state in incomplete for row in facts.manifests):
        return LotCondition.REMOVED
    if any(row is None or not readable(Status(row.status)) for row in facts.outputs):
        return LotCondition.MISSING
    return LotCondition.STALE if _is_stale(facts) else LotCondition.GOOD


def _is_held_by_person(row: StatusRow) -> bool:
    return row.status == Status.HOLD and bool(row.held_from)


def _has_inputs(facts: LotFacts) -> bool:
    return all(row is not None and readable(Status(row.status)) for row in facts.inputs)


def _is_stale(facts: LotFacts) -> bool:
    """Whether an input has another version of the lot than the consumed one."""
    for source, consumed in zip(facts.inputs, facts.consumed, strict=True):
        if source is None or consumed is None or not readable(Status(source.status)):
            continue
        if consumed.status == Status.DONE and consumed.version_id != source.version_id:
            return True
    return False


def cause(facts: LotFacts, verdict: LotVerdict, reads: Sequence[str], writes: Sequence[str]) -> str:
    """Explain why a lot is missing, from its own rows and the names of datasets."""
    work = facts.work
    if verdict.action is not BackfillAction.WAIT:
        return work.error if work is not None else ""
    texts = []
    for row, name in zip(facts.inputs, reads, strict=True):
        if row is None:
            texts.append(f"input {name} has no lot {facts.lot}")
        elif not readable(Status(row.status)):
            texts.append(f"input {name}: lot {facts.lot} is {row.status}")
    if not texts:
        locked = zip(facts.outputs, writes, strict=True)
        texts = [f"output {name}: lot {facts.lot} is {row.status}" for row, name in locked if row]
    return "; ".join(texts)
