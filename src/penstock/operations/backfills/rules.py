"""The condition of a lot of an arc, and the action of a backfill; mostly without SQL."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.locks.lock_rules import readable
from penstock.locks.rows import HOLD_SENTINEL, LotJobRow, StatusRow, WorkRow
from penstock.lots.rows import ManifestRow
from penstock.schema.lots import Status
from penstock.schema.operations import BackfillAction, Scope, Standing
from penstock.states import ManifestState, WorkState

UNDER_WAY = frozenset(
    {
        BackfillAction.FOLLOW,
        BackfillAction.RUN,
        BackfillAction.RETRY,
        BackfillAction.RELEASE,
        BackfillAction.RERUN,
    }
)
_PLAIN = {
    Standing.READY: BackfillAction.RUN,
    Standing.RUNNING: BackfillAction.FOLLOW,
    Standing.FAILED: BackfillAction.RETRY,
    Standing.OUT_OF_TRIES: BackfillAction.RELEASE,
    Standing.HELD: BackfillAction.LEAVE,
    Standing.WAITING: BackfillAction.WAIT,
}
_RERUN = {
    Scope.FAILED_AND_MISSING: {Standing.REMOVED, Standing.MISSING},
    Scope.NOT_GOOD: {Standing.REMOVED, Standing.MISSING, Standing.STALE},
    Scope.ALL: {Standing.REMOVED, Standing.MISSING, Standing.STALE, Standing.GOOD},
}
_OF_WORK = {
    WorkState.RUNNING: Standing.RUNNING,
    WorkState.RETRYABLE: Standing.FAILED,
    WorkState.READY: Standing.READY,
    WorkState.WAITING: Standing.WAITING,
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

    condition: Standing
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
        is_on_hold=rows.inputs((HOLD_SENTINEL, job.job_id, lot)) is not None,
        outputs=outputs,
        manifests=tuple(rows.manifests(v) if v is not None else None for v in versions),
    )


def judge(facts: LotFacts, scope: Scope) -> LotVerdict:
    """Return the condition of a lot and the action; a lot without its inputs is not touched."""
    condition = condition_of(facts)
    if condition is Standing.OUT_OF_TRIES and not _has_inputs(facts):
        return LotVerdict(condition, BackfillAction.WAIT)
    if condition in _PLAIN:
        return LotVerdict(condition, _PLAIN[condition])
    if condition not in _RERUN[scope]:
        return LotVerdict(condition, BackfillAction.LEAVE)
    return LotVerdict(
        condition, BackfillAction.RERUN if _has_inputs(facts) else BackfillAction.WAIT
    )


def condition_of(facts: LotFacts) -> Standing:
    """Return the condition of a lot."""
    work = facts.work
    if work is None:
        return Standing.READY if _has_inputs(facts) else Standing.WAITING
    if work.state == WorkState.RUNNING:
        return Standing.RUNNING
    if any(row is not None and _is_held_by_person(row) for row in facts.outputs):
        return Standing.HELD
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
        return Standing.OUT_OF_TRIES if is_out_of_tries else Standing.HELD
    if work.state != WorkState.DONE:
        return _OF_WORK[WorkState(work.state)]
    incomplete = (ManifestState.REMOVED, ManifestState.PARTIAL)
    if any(row is not None and row.state in incomplete for row in facts.manifests):
        return Standing.REMOVED
    if any(row is None or not readable(Status(row.status)) for row in facts.outputs):
        return Standing.MISSING
    return Standing.STALE if _is_stale(facts) else Standing.GOOD


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
