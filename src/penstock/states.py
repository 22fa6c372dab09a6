"""State machines, one table of moves for each.

The refusals of the API, the diagrams and docs/states.md derive from these tables. A test compares
the SQL checks with them. `python -m penstock.states` prints docs/states.md.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Generic, TypeVar

from penstock.errors import Conflict

S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, eq=False)
class Moves(Generic[S]):
    """The states of one kind of thing, and the permitted moves between them.

    Things begin in the first state of the table. Penstock itself makes the moves in `table`. An
    administrator makes the moves in `by_hand`. All other moves are refused.
    """

    name: str
    table: Mapping[S, frozenset[S]]
    meanings: Mapping[S, str]
    repeatable: bool = False
    remark: str = ""
    by_hand: Mapping[S, frozenset[S]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("table", "meanings", "by_hand"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        states = set(type(self.initial))
        if set(self.table) != states or set(self.meanings) != states:
            raise ValueError(f"the {self.name} table does not list every state once")

    @cached_property
    def states(self) -> tuple[S, ...]:
        """All states, in the order of the table."""
        return tuple(self.table)

    @cached_property
    def initial(self) -> S:
        """The first state of a thing."""
        return next(iter(self.table))

    @cached_property
    def terminal(self) -> frozenset[S]:
        """The states without a move to another state."""
        return frozenset(state for state in self.table if not self._following(state))

    def allows(self, current: S, target: S, *, by_hand: bool = False) -> bool:
        """Return whether the move is permitted, for an administrator or for Penstock itself."""
        moves = self.by_hand.get(current, frozenset()) if by_hand else self.table[current]
        return target in moves or (self.repeatable and current == target)

    def check(self, current: S, target: S, which: str = "", *, by_hand: bool = False) -> None:
        """Raise `Conflict` for a move that is not permitted; `which` names the thing."""
        if self.allows(current, target, by_hand=by_hand):
            return
        subject = f"{self.name} {which}" if which else f"the {self.name}"
        following = self._following(current)
        if target in following and by_hand:
            advice = "Penstock makes this move itself; administrators cannot"
        elif target in following:
            advice = "only an administrator can make this move"
        elif following:
            advice = f"from {current} it can only become {_either(following)}"
        else:
            advice = f"{current} is final"
        raise Conflict(f"{subject} is {current} and cannot become {target}: {advice}")

    def mermaid(self) -> str:
        """Return the table as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        for state in self.states:
            lines += [f"    {state} --> {self._shown(state, t)}" for t in self._following(state)]
        lines += [f"    {state} --> [*]" for state in self.states if state in self.terminal]
        return "\n".join(lines)

    def markdown(self) -> str:
        """Return the chapter of docs/states.md about this machine."""
        lines = [f"## {self.name.capitalize()}", ""]
        if self.remark:
            lines += [self.remark, ""]
        lines += ["```mermaid", self.mermaid(), "```", ""]
        lines += ["| state | meaning | may become |", "|---|---|---|"]
        for state in self.states:
            following = ", ".join(
                f"{target}{'' if target in self.table[state] else '*'}"
                for target in self._following(state)
            )
            following = following or "none: the state is final"
            lines.append(f"| {state} | {self.meanings[state]} | {following} |")
        return "\n".join(lines) + "\n"

    def _following(self, state: S) -> list[S]:
        possible = self.table[state] | self.by_hand.get(state, frozenset())
        return [target for target in self.states if target in possible]

    def _shown(self, state: S, target: S) -> str:
        """Return the target of a move, marked if only an administrator can make the move."""
        return str(target) if target in self.table[state] else f"{target} : administrator"


def _either(states: list[S]) -> str:
    *others, last = states
    return f"{', '.join(others)} or {last}" if others else str(last)


class RunState(StrEnum):
    """The states of a run."""

    NEW = "NEW"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"


_ENDED = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.ABORTED})

RUN: Moves[RunState] = Moves(
    "run",
    {
        RunState.NEW: frozenset({RunState.RUNNING}) | _ENDED,
        RunState.RUNNING: _ENDED,
        RunState.COMPLETED: frozenset(),
        RunState.FAILED: frozenset(),
        RunState.ABORTED: frozenset(),
    },
    meanings={
        RunState.NEW: "The run is known but has not started.",
        RunState.RUNNING: "The run has started. Its outputs are not current yet.",
        RunState.COMPLETED: "The run succeeded. The versions that it made become current.",
        RunState.FAILED: "The run ended with an error. It does not change the current versions.",
        RunState.ABORTED: (
            "A person or program stopped the run. It does not change the current versions."
        ),
    },
    repeatable=True,
    remark=(
        "The state of one execution of a job. Ending a NEW run implies its start. A report that "
        "repeats the current state changes nothing. A run that has ended never changes its state."
    ),
)


class WorkState(StrEnum):
    """The state of one job's work on one lot."""

    WAITING = "WAITING"
    READY = "READY"
    RETRYABLE = "RETRYABLE"
    RUNNING = "RUNNING"
    DONE = "DONE"
    HELD = "HELD"


WORK: Moves[WorkState] = Moves(
    "work",
    # Rewiring a job can turn every state but RUNNING into WAITING, READY or DONE: a lot that its
    # old inputs kept waiting may be done by the new ones, and the other way round. An OpenLineage
    # event can report that a job already runs with other datasets than those that it is held for.
    {
        WorkState.WAITING: frozenset(
            {
                WorkState.READY,
                WorkState.RETRYABLE,  # an input that was held is released before the backoff ends
                WorkState.RUNNING,
                WorkState.DONE,
                WorkState.HELD,
            }
        ),
        # Never RETRYABLE: work that is READY has no backoff, and only a claim can fail.
        WorkState.READY: frozenset(
            {WorkState.WAITING, WorkState.RUNNING, WorkState.DONE, WorkState.HELD}
        ),
        WorkState.RETRYABLE: frozenset(
            {
                WorkState.WAITING,
                WorkState.READY,
                WorkState.RUNNING,
                WorkState.DONE,
                WorkState.HELD,
            }
        ),
        WorkState.RUNNING: frozenset(
            {
                WorkState.WAITING,
                WorkState.READY,
                WorkState.RETRYABLE,
                WorkState.DONE,
                WorkState.HELD,
            }
        ),
        # Never RETRYABLE: work that is DONE has no backoff either.
        WorkState.DONE: frozenset(
            {WorkState.WAITING, WorkState.READY, WorkState.RUNNING, WorkState.HELD}
        ),
        WorkState.HELD: frozenset(
            {
                WorkState.WAITING,
                WorkState.READY,
                WorkState.RETRYABLE,  # a failed output was held, and is released during the backoff
                WorkState.RUNNING,
                WorkState.DONE,
            }
        ),
    },
    meanings={
        WorkState.WAITING: "An input is not ready, or an output may not be written.",
        WorkState.READY: "A worker can claim the lot.",
        WorkState.RETRYABLE: (
            "The last attempt failed, or a system that it needs is unavailable. Penstock retries "
            "it later."
        ),
        WorkState.RUNNING: "A worker has claimed the lot and holds a lease on it.",
        WorkState.DONE: "The work is complete. An administrator can resubmit it.",
        WorkState.HELD: (
            "All tries have failed, or a hold stops the work. A person has to retry it or release "
            "the hold."
        ),
    },
    repeatable=True,
    remark=(
        "The work of one job on one lot. The state is derived from the status rows of the lot and "
        "written with them; every write checks this table. A worker claims READY work. An "
        "OpenLineage event can report that work is already running. Rewiring a job derives its "
        "states again. READY and DONE end a backoff, so they never become RETRYABLE without a "
        "claim."
    ),
)


class IngestState(StrEnum):
    """The state of an ingest job; all but the last four are stages."""

    PENDING = "pending"
    ESTIMATING = "estimating"
    PROVISIONING = "provisioning"
    DOWNLOADING = "downloading"
    PROCESSING = "processing"
    RECORDING = "recording"
    NOTIFY = "notify"
    COMPLETED = "completed"
    FAILED = "failed"
    HELD = "held"
    DELETED = "deleted"


_GONE = frozenset({IngestState.DELETED})
_BROKEN = frozenset({IngestState.FAILED})
INGEST_STAGES = (
    IngestState.PENDING,
    IngestState.ESTIMATING,
    IngestState.PROVISIONING,
    IngestState.DOWNLOADING,
    IngestState.PROCESSING,
    IngestState.RECORDING,
    IngestState.NOTIFY,
)

INGEST_JOB: Moves[IngestState] = Moves(
    "ingest job",
    {
        IngestState.PENDING: frozenset({IngestState.ESTIMATING, IngestState.HELD}) | _BROKEN,
        IngestState.ESTIMATING: frozenset({IngestState.PROVISIONING}),
        IngestState.PROVISIONING: frozenset({IngestState.DOWNLOADING}),
        IngestState.DOWNLOADING: frozenset({IngestState.PROCESSING}) | _BROKEN,
        IngestState.PROCESSING: frozenset({IngestState.RECORDING}) | _BROKEN,
        IngestState.RECORDING: frozenset({IngestState.NOTIFY}) | _BROKEN,
        IngestState.NOTIFY: frozenset({IngestState.COMPLETED}) | _BROKEN,
        IngestState.COMPLETED: _GONE,
        IngestState.FAILED: frozenset(),
        IngestState.HELD: frozenset(),
        IngestState.DELETED: frozenset(),
    },
    by_hand={
        IngestState.PENDING: frozenset({IngestState.HELD}) | _BROKEN,
        **dict.fromkeys(INGEST_STAGES[1:], _BROKEN),
        IngestState.HELD: frozenset({IngestState.PENDING}) | _GONE,
        IngestState.FAILED: _GONE | frozenset(INGEST_STAGES) - {IngestState.ESTIMATING},
    },
    meanings={
        IngestState.PENDING: "The job waits for its payload to be checked.",
        IngestState.ESTIMATING: "The job waits for an estimate of the space that it needs.",
        IngestState.PROVISIONING: "The job waits until the disk has enough free space.",
        IngestState.DOWNLOADING: (
            "The job waits for its files to be fetched and their digests checked."
        ),
        IngestState.PROCESSING: "The object waits to be identified, described and stored.",
        IngestState.RECORDING: "The object waits to be recorded in the catalog.",
        IngestState.NOTIFY: "The job waits for the callback to its depositor.",
        IngestState.COMPLETED: "The job is complete. Penstock removes its working files later.",
        IngestState.FAILED: "The job failed. An administrator has to resume or delete it.",
        IngestState.HELD: "The job is on hold. An administrator has to release or delete it.",
        IngestState.DELETED: "The job and its working folder are deleted.",
    },
    remark=(
        "The state of one object of a batch. Only an administrator can make moves marked *. "
        "Resuming a job returns it to the stage after the last successful one. If no stage "
        "succeeded, the job begins again, unless its payload is wrong. A wrong payload needs a new "
        "submission. A job that lacks disk space stays in provisioning, or in pending if there is "
        "no space for its manifest."
    ),
)


class BatchState(StrEnum):
    """The state of a batch."""

    PENDING = "pending"
    PROCESSING = "processing"
    REPORTING = "reporting"
    UPDATE_REPORTING = "update-reporting"
    COMPLETED = "completed"
    FAILED = "failed"
    HELD = "held"
    DELETED = "deleted"


_REPORTED = frozenset({BatchState.COMPLETED, BatchState.FAILED})

BATCH: Moves[BatchState] = Moves(
    "batch",
    {
        BatchState.PENDING: frozenset({BatchState.PROCESSING, BatchState.HELD, BatchState.FAILED}),
        BatchState.PROCESSING: frozenset({BatchState.REPORTING}),
        BatchState.REPORTING: _REPORTED,
        BatchState.UPDATE_REPORTING: _REPORTED,
        BatchState.COMPLETED: frozenset({BatchState.DELETED}),
        BatchState.FAILED: frozenset(),
        BatchState.HELD: frozenset(),
        BatchState.DELETED: frozenset(),
    },
    by_hand={
        BatchState.PENDING: frozenset({BatchState.HELD}),
        BatchState.PROCESSING: frozenset({BatchState.FAILED}),
        BatchState.HELD: frozenset({BatchState.PENDING, BatchState.DELETED}),
        BatchState.FAILED: frozenset(
            {BatchState.PENDING, BatchState.UPDATE_REPORTING, BatchState.DELETED}
        ),
    },
    meanings={
        BatchState.PENDING: (
            "The batch waits. Penstock then reads its payload and creates a job for each object."
        ),
        BatchState.PROCESSING: "Some jobs of the batch are in a stage or on hold.",
        BatchState.REPORTING: "No job of the batch is open. Penstock prepares the report.",
        BatchState.UPDATE_REPORTING: (
            "An administrator requested an update report. Penstock prepares it."
        ),
        BatchState.COMPLETED: "The batch is reported and every job is complete.",
        BatchState.FAILED: (
            "The batch is reported with failed jobs, or its payload could not be read."
        ),
        BatchState.HELD: "The batch is on hold. An administrator has to release or delete it.",
        BatchState.DELETED: "The batch and its jobs are deleted.",
    },
    remark=(
        "The state of one submission. Only an administrator can make moves marked *. An update "
        "report follows for a failed batch that was reported. If the payload could not be read, an "
        "administrator resumes the batch and it becomes pending. A batch whose open jobs are all "
        "on hold can be deleted: it first becomes failed."
    ),
)


class ManifestState(StrEnum):
    """The state in the manifest of a lot or of a part."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    EMPTY = "empty"
    REMOVED = "removed"


MANIFEST: Moves[ManifestState] = Moves(
    "manifest",
    {
        ManifestState.COMPLETE: frozenset({ManifestState.REMOVED}),
        ManifestState.PARTIAL: frozenset({ManifestState.REMOVED}),
        ManifestState.EMPTY: frozenset(),
        ManifestState.REMOVED: frozenset(),
    },
    meanings={
        ManifestState.COMPLETE: "The manifest lists all data of the lot.",
        ManifestState.PARTIAL: (
            "The workload or a check failed. The manifest lists the data of the failed attempt."
        ),
        ManifestState.EMPTY: "The lot has no data, as its producer declared.",
        ManifestState.REMOVED: "All data in the list was removed.",
    },
    remark="A manifest is written once. A new state is a new manifest beside the old one.",
)


class ArcState(StrEnum):
    """The state of an arc for one lot."""

    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"


ARC: Moves[ArcState] = Moves(
    "arc",
    {
        # MISSING: the lease expired after all earlier attempts were cleaned, or the arc got a new
        # output during the claim.
        ArcState.RUNNING: frozenset({ArcState.COMPLETE, ArcState.PARTIAL, ArcState.MISSING}),
        ArcState.COMPLETE: frozenset({ArcState.RUNNING, ArcState.MISSING}),
        ArcState.PARTIAL: frozenset({ArcState.RUNNING, ArcState.MISSING}),
        # PARTIAL: leftovers of an attempt are recorded late. COMPLETE: the arc lost its new output.
        ArcState.MISSING: frozenset({ArcState.RUNNING, ArcState.COMPLETE, ArcState.PARTIAL}),
    },
    by_hand={ArcState.PARTIAL: frozenset({ArcState.COMPLETE})},
    meanings={
        ArcState.RUNNING: "A workload processes the lot. No other worker can claim it.",
        ArcState.COMPLETE: (
            "The lot is published. The arc processes it again only after a resubmit."
        ),
        ArcState.PARTIAL: (
            "The workload or a check of its output failed. Readers do not see the lot. Retry it, "
            "or accept a lot whose check failed."
        ),
        ArcState.MISSING: (
            "The failed attempt was cleaned, or the arc has a new output without this lot. "
            "Backfill it."
        ),
    },
    remark=(
        "Derived from the status rows and manifests of a lot on each read, and never stored: the "
        "table lists the moves that the derivation yields. A lot that was not tried yet, or not "
        "since it was resubmitted, has no state."
    ),
)


class BackfillState(StrEnum):
    """The state of a backfill."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"


BACKFILL: Moves[BackfillState] = Moves(
    "backfill",
    {
        BackfillState.RUNNING: frozenset(
            {BackfillState.PAUSED, BackfillState.DONE, BackfillState.CANCELLED}
        ),
        BackfillState.PAUSED: frozenset({BackfillState.RUNNING, BackfillState.CANCELLED}),
        BackfillState.DONE: frozenset(),
        BackfillState.CANCELLED: frozenset(),
    },
    meanings={
        BackfillState.RUNNING: "The backfill starts lots, a few at a time.",
        BackfillState.PAUSED: "The backfill starts no more lots. Running lots finish.",
        BackfillState.DONE: (
            "The backfill has examined every lot, and all lots that it started have ended."
        ),
        BackfillState.CANCELLED: "The backfill is stopped for good. Running lots finish.",
    },
    repeatable=True,
    remark=(
        "An administrator pauses, resumes and cancels a backfill. All other moves are automatic."
    ),
)


class ReplayState(StrEnum):
    """The state of a replay."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


REPLAY: Moves[ReplayState] = Moves(
    "replay",
    {
        ReplayState.RUNNING: frozenset(
            {ReplayState.PAUSED, ReplayState.DONE, ReplayState.FAILED, ReplayState.CANCELLED}
        ),
        ReplayState.PAUSED: frozenset({ReplayState.RUNNING, ReplayState.CANCELLED}),
        ReplayState.DONE: frozenset(),
        ReplayState.FAILED: frozenset(),
        ReplayState.CANCELLED: frozenset(),
    },
    meanings={
        ReplayState.RUNNING: "The replay starts each step when the steps before it are done.",
        ReplayState.PAUSED: "The replay starts no more steps. Running steps finish.",
        ReplayState.DONE: "Every step is done. No current lot depends on the bad version.",
        ReplayState.FAILED: "Some steps failed. The steps after them did not start.",
        ReplayState.CANCELLED: (
            "The replay is stopped for good. The stale rule of each job decides about the other "
            "steps."
        ),
    },
    repeatable=True,
    remark="An administrator pauses, resumes and cancels a replay. All other moves are automatic.",
)


class StepState(StrEnum):
    """The state of a step of a replay."""

    PENDING = "pending"
    GOING = "going"
    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"


REPLAY_STEP: Moves[StepState] = Moves(
    "replay step",
    {
        StepState.PENDING: frozenset(
            {StepState.GOING, StepState.DONE, StepState.FAILED, StepState.BLOCKED}
        ),
        StepState.GOING: frozenset({StepState.DONE, StepState.FAILED}),
        StepState.DONE: frozenset(),
        StepState.FAILED: frozenset(),
        StepState.BLOCKED: frozenset(),
    },
    meanings={
        StepState.PENDING: "The step has not started. The lot is unchanged.",
        StepState.GOING: (
            "The replay has resubmitted the lot, or the job was already working on it."
        ),
        StepState.DONE: "A newer run has succeeded.",
        StepState.FAILED: "The work is on hold, or all tries have failed.",
        StepState.BLOCKED: "An earlier step has failed. The lot is unchanged.",
    },
    remark="The state of one job's work on one lot in a replay.",
)

MACHINES = (RUN, WORK, INGEST_JOB, BATCH, ARC, MANIFEST, BACKFILL, REPLAY, REPLAY_STEP)


def document() -> str:
    """Return the text of docs/states.md."""
    opening = (
        "# States\n\n"
        "Generated by `python -m penstock.states > docs/states.md` from the tables in "
        "`src/penstock/states.py`. Change the tables, not this page.\n\n"
        "A move that is not in a table is refused with a conflict (409) that names both states.\n"
    )
    return "\n".join([opening, *(machine.markdown() for machine in MACHINES)])


if __name__ == "__main__":
    sys.stdout.write(document())
