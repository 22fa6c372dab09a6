"""What a lot is to an arc, and what a backfill would do about it; no SQL here."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from penstock.locks.rows import NOWHERE, LotJobRow, StatusRow, WorkRow
from penstock.locks.table import Status, readable
from penstock.lots.rows import ManifestRow
from penstock.states import ManifestState, WorkState


class Standing(StrEnum):
    """What a lot is to an arc."""

    GOOD = "good"  # made, and there
    STALE = "stale"  # made, but of inputs that have been made anew since
    REMOVED = "removed"  # made, but its data was cleaned away, or is not all there
    MISSING = "missing"  # an output of it is not there, though the arc is done with it
    READY = "ready"  # can be worked on, and will be
    RUNNING = "running"
    FAILED = "failed"  # is tried again later
    OUT_OF_TRIES = "out of tries"
    HELD = "held"  # by a person
    WAITING = "waiting"  # an input is not there, or an output must not be written


class Action(StrEnum):
    """What a backfill does about a lot."""

    LEAVE = "leave"
    WAIT = "wait"  # nothing can be done here: something else has to come first
    FOLLOW = "follow"  # it is under way: see how it ends
    RUN = "run"  # let it come after fresh lots
    RETRY = "retry"  # now, with all its tries
    UNHOLD = "unhold"  # let it try again, with all its tries
    RERUN = "rerun"  # make it anew


class Scope(StrEnum):
    """Which lots a backfill is for."""

    FAILED_AND_MISSING = "failed and missing"
    NOT_GOOD = "not good"  # those that are stale, too
    ALL = "all"  # good ones, too


UNDER_WAY = frozenset({Action.FOLLOW, Action.RUN, Action.RETRY, Action.UNHOLD, Action.RERUN})
_PLAIN = {
    Standing.READY: Action.RUN,
    Standing.RUNNING: Action.FOLLOW,
    Standing.FAILED: Action.RETRY,
    Standing.OUT_OF_TRIES: Action.UNHOLD,
    Standing.HELD: Action.LEAVE,
    Standing.WAITING: Action.WAIT,
}
_RERUN = {
    Scope.FAILED_AND_MISSING: {Standing.REMOVED, Standing.MISSING},
    Scope.NOT_GOOD: {Standing.REMOVED, Standing.MISSING, Standing.STALE},
    Scope.ALL: {Standing.REMOVED, Standing.MISSING, Standing.STALE, Standing.GOOD},
}
_OF_WORK = {
    WorkState.RUNNING: Standing.RUNNING,
    WorkState.LATER: Standing.FAILED,
    WorkState.READY: Standing.READY,
    WorkState.WAITING: Standing.WAITING,
}


class Rows(NamedTuple):
    """Where the rows of lots are found: in a snapshot, or in a batch of writes."""

    work: Callable[[tuple[str, str]], WorkRow | None]  # job id, lot
    outputs: Callable[[tuple[str, str]], StatusRow | None]  # dataset id, lot
    inputs: Callable[[tuple[str, str, str]], StatusRow | None]  # dataset id, job id, lot
    manifests: Callable[[str], ManifestRow | None]  # version id


class Facts(NamedTuple):
    """All that matters of one lot to one arc, in the order of its inputs and outputs."""

    lot: str
    work: WorkRow | None
    read: tuple[StatusRow | None, ...]  # who made the lot in the inputs
    own: tuple[StatusRow | None, ...]  # how far the arc is with reading it
    is_kept: bool  # whether a person keeps the arc from it
    made: tuple[StatusRow | None, ...]  # the lot in the outputs
    manifests: tuple[ManifestRow | None, ...]  # of what the outputs have


class Verdict(NamedTuple):
    """What a lot is, and what a backfill does about it."""

    standing: Standing
    action: Action


def facts_of(job: LotJobRow, lot: str, rows: Rows) -> Facts:
    """Gather what matters of a lot."""
    made = tuple(rows.outputs((dataset, lot)) for dataset in job.output_ids)
    versions = (row.version_id if row is not None else None for row in made)
    return Facts(
        lot=lot,
        work=rows.work((job.job_id, lot)),
        read=tuple(rows.outputs((dataset, lot)) for dataset in job.input_ids),
        own=tuple(rows.inputs((dataset, job.job_id, lot)) for dataset in job.input_ids),
        is_kept=rows.inputs((NOWHERE, job.job_id, lot)) is not None,
        made=made,
        manifests=tuple(rows.manifests(v) if v is not None else None for v in versions),
    )


def judge(facts: Facts, scope: Scope) -> Verdict:
    """What a lot is, and what is to be done; a lot whose inputs are not there is not touched."""
    standing = stands(facts)
    if standing is Standing.OUT_OF_TRIES and not _has_inputs(facts):
        return Verdict(standing, Action.WAIT)
    if standing in _PLAIN:
        return Verdict(standing, _PLAIN[standing])
    if standing not in _RERUN[scope]:
        return Verdict(standing, Action.LEAVE)
    return Verdict(standing, Action.RERUN if _has_inputs(facts) else Action.WAIT)


def stands(facts: Facts) -> Standing:
    """What a lot is."""
    work = facts.work
    if work is None:
        return Standing.READY if _has_inputs(facts) else Standing.WAITING
    if work.state == WorkState.RUNNING:
        return Standing.RUNNING
    if any(row is not None and _is_held_by_hand(row) for row in facts.made):
        return Standing.HELD
    if work.state == WorkState.HELD:
        held = [row for row in facts.own if row is not None and row.status == Status.HOLD]
        # One that is held because an input was made anew remembers what was before.
        spent = bool(held) and not facts.is_kept and not any(row.held_from for row in held)
        return Standing.OUT_OF_TRIES if spent else Standing.HELD
    if work.state != WorkState.DONE:
        return _OF_WORK[WorkState(work.state)]
    odd = (ManifestState.REMOVED, ManifestState.PARTIAL)
    if any(row is not None and row.state in odd for row in facts.manifests):
        return Standing.REMOVED
    if any(row is None or not readable(Status(row.status)) for row in facts.made):
        return Standing.MISSING
    return Standing.STALE if _is_stale(facts) else Standing.GOOD


def _is_held_by_hand(row: StatusRow) -> bool:
    return row.status == Status.HOLD and bool(row.held_from)


def _has_inputs(facts: Facts) -> bool:
    return all(row is not None and readable(Status(row.status)) for row in facts.read)


def _is_stale(facts: Facts) -> bool:
    """Whether an input has another version of the lot than the one that was consumed."""
    for source, own in zip(facts.read, facts.own, strict=True):
        if source is None or own is None or not readable(Status(source.status)):
            continue
        if own.status == Status.DONE and own.version_id != source.version_id:
            return True
    return False


def cause(facts: Facts, verdict: Verdict, reads: Sequence[str], writes: Sequence[str]) -> str:
    """Why a lot is not there, as far as its own rows tell; the names are those of datasets."""
    work = facts.work
    if verdict.action is not Action.WAIT:
        return work.error if work is not None else ""
    said = []
    for row, name in zip(facts.read, reads, strict=True):
        if row is None:
            said.append(f"input {name} has no lot {facts.lot}")
        elif not readable(Status(row.status)):
            said.append(f"input {name}: lot {facts.lot} is {row.status}")
    if not said:
        locked = zip(facts.made, writes, strict=True)
        said = [f"output {name}: lot {facts.lot} is {row.status}" for row, name in locked if row]
    return "; ".join(said)
