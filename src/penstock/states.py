"""State machines, each one table of moves.

Diagrams, SQL checks, the refusals of the API and docs/states.md all derive from the tables here.
`python -m penstock.states` prints docs/states.md.
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
    """The states of one kind of thing, and which may follow which.

    The first state in the table is where things begin. A move that is not in the table is refused.
    Moves in `by_hand` are an administrator's: those alone, unless the table has them too.
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
        """Every state, in the order of the table."""
        return tuple(self.table)

    @cached_property
    def initial(self) -> S:
        """The state in which things begin."""
        return next(iter(self.table))

    @cached_property
    def terminal(self) -> frozenset[S]:
        """The states that nothing leaves."""
        return frozenset(state for state in self.table if not self._following(state))

    def allows(self, current: S, target: S, *, by_hand: bool = False) -> bool:
        """Whether this move is there, for an administrator or for what happens by itself."""
        moves = self.by_hand.get(current, frozenset()) if by_hand else self.table[current]
        return target in moves or (self.repeatable and current == target)

    def check(self, current: S, target: S, which: str = "", *, by_hand: bool = False) -> None:
        """Refuse a move that the table does not have; `which` names the thing."""
        if self.allows(current, target, by_hand=by_hand):
            return
        subject = f"{self.name} {which}" if which else f"the {self.name}"
        following = self._following(current)
        if target in following and by_hand:
            advice = "that comes by itself, and is not done by hand"
        elif target in following:
            advice = "that is an administrator's to do"
        elif following:
            advice = f"from {current} it can only become {_either(following)}"
        else:
            advice = f"{current} is final"
        raise Conflict(f"{subject} is {current} and cannot become {target}: {advice}")

    def sql_check(self, column: str) -> str:
        """The condition that a column holds one of these states."""
        quoted = ", ".join(f"'{state}'" for state in self.states)
        return f"{column} IN ({quoted})"

    def mermaid(self) -> str:
        """The table as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        for state in self.states:
            lines += [f"    {state} --> {self._shown(state, t)}" for t in self._following(state)]
        lines += [f"    {state} --> [*]" for state in self.states if state in self.terminal]
        return "\n".join(lines)

    def markdown(self) -> str:
        """The chapter of docs/states.md on this machine."""
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
            following = following or "nothing: it is final"
            lines.append(f"| {state} | {self.meanings[state]} | {following} |")
        return "\n".join(lines) + "\n"

    def _following(self, state: S) -> list[S]:
        possible = self.table[state] | self.by_hand.get(state, frozenset())
        return [target for target in self.states if target in possible]

    def _shown(self, state: S, target: S) -> str:
        """A move in the diagram, with its mark if it is an administrator's."""
        return str(target) if target in self.table[state] else f"{target} : by hand"


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
        RunState.NEW: "known, not started",
        RunState.RUNNING: "started; its outputs are not current yet",
        RunState.COMPLETED: "ended well; the versions it made become current",
        RunState.FAILED: "ended in an error; it never changes what is current",
        RunState.ABORTED: "stopped by somebody; it never changes what is current",
    },
    repeatable=True,
    remark=(
        "A mark that ends a NEW run implies its start. Repeating the state that a run is in "
        "changes nothing. A run that has ended never changes its state."
    ),
)


class WorkState(StrEnum):
    """Where a job stands with one lot."""

    WAITING = "WAITING"
    READY = "READY"
    LATER = "LATER"
    RUNNING = "RUNNING"
    DONE = "DONE"
    HELD = "HELD"


WORK: Moves[WorkState] = Moves(
    "work",
    {
        WorkState.WAITING: frozenset({WorkState.READY, WorkState.RUNNING, WorkState.HELD}),
        WorkState.READY: frozenset({WorkState.WAITING, WorkState.RUNNING, WorkState.HELD}),
        WorkState.LATER: frozenset(
            {WorkState.WAITING, WorkState.READY, WorkState.RUNNING, WorkState.HELD}
        ),
        WorkState.RUNNING: frozenset(
            {
                WorkState.DONE,
                WorkState.LATER,
                WorkState.READY,
                WorkState.WAITING,
                WorkState.HELD,
            }
        ),
        WorkState.DONE: frozenset({WorkState.WAITING, WorkState.READY, WorkState.HELD}),
        WorkState.HELD: frozenset({WorkState.WAITING, WorkState.READY, WorkState.DONE}),
    },
    meanings={
        WorkState.WAITING: "an input is not there, or an output must not be written",
        WorkState.READY: "can be claimed",
        WorkState.LATER: "failed, or what it needs is away, and is tried again after a while",
        WorkState.RUNNING: "claimed: a worker has a lease on it",
        WorkState.DONE: "completed; an administrator can resubmit it",
        WorkState.HELD: "out of tries, or stopped by an administrator: waits for a person",
    },
    remark=(
        "What one job has to do with one lot. It follows from the status rows of the lot, which "
        "are the truth, and is written with them. A worker claims what is READY; an OpenLineage "
        "event can say that something runs already."
    ),
)


class IngestState(StrEnum):
    """Where an ingest job stands; all but the last four are stages."""

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
        IngestState.PENDING: "its payload is to be checked",
        IngestState.ESTIMATING: "the space it needs is to be found out",
        IngestState.PROVISIONING: "waits for space; it stays until there is enough",
        IngestState.DOWNLOADING: "its files are to be fetched and their digests checked",
        IngestState.PROCESSING: "to be identified, described and stored",
        IngestState.RECORDING: "to be written into the catalog",
        IngestState.NOTIFY: "its depositor's callback is to be called",
        IngestState.COMPLETED: "done; cleaned up after a time",
        IngestState.FAILED: "waits for an administrator to resume or delete it",
        IngestState.HELD: "waits for an administrator to release or delete it",
        IngestState.DELETED: "gone, with its working folder",
    },
    remark=(
        "Moves marked * are an administrator's. A resume goes to the stage after the last "
        "successful one. A job that failed before any did begins again, unless its payload is at "
        "fault: then it needs a new submission. A job that has to wait for space stays in "
        "provisioning, or in pending if not even its manifest could be written."
    ),
)


class BatchState(StrEnum):
    """Where a batch stands."""

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
        BatchState.PENDING: "its payload is to be read, and a job made for each object",
        BatchState.PROCESSING: "some of its jobs are under way or held",
        BatchState.REPORTING: "no job is under way; the report is to be made",
        BatchState.UPDATE_REPORTING: "an administrator asked for a second report",
        BatchState.COMPLETED: "reported; every job completed",
        BatchState.FAILED: "reported with failed jobs, or its payload could not be read",
        BatchState.HELD: "waits for an administrator to release or delete it",
        BatchState.DELETED: "gone, with its jobs",
    },
    remark=(
        "Moves marked * are an administrator's. A failed batch that was reported is reported anew; "
        "one whose payload could not be read is resumed, and becomes pending. A batch whose open "
        "jobs are all held can be given up: it fails, and is deleted."
    ),
)


class ManifestState(StrEnum):
    """What the manifest of a lot, or of a part of it, says."""

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
        ManifestState.COMPLETE: "lists everything that the lot consists of",
        ManifestState.PARTIAL: "its workload failed; lists what was left behind, to be removed",
        ManifestState.EMPTY: "there is no data in this lot, and that is right",
        ManifestState.REMOVED: "everything it lists was removed",
    },
    remark="A manifest is written once; the next state is another manifest beside it.",
)


class ArcState(StrEnum):
    """Where an arc stands with one lot."""

    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"


ARC: Moves[ArcState] = Moves(
    "arc",
    {
        ArcState.RUNNING: frozenset({ArcState.COMPLETE, ArcState.PARTIAL}),
        ArcState.COMPLETE: frozenset(),
        ArcState.PARTIAL: frozenset({ArcState.RUNNING, ArcState.MISSING}),
        ArcState.MISSING: frozenset({ArcState.RUNNING}),
    },
    by_hand={
        ArcState.COMPLETE: frozenset({ArcState.RUNNING}),
        ArcState.PARTIAL: frozenset({ArcState.COMPLETE}),
    },
    meanings={
        ArcState.RUNNING: "a workload is at it; nobody else can begin",
        ArcState.COMPLETE: "published; it is not run again unless it is resubmitted",
        ArcState.PARTIAL: (
            "the workload failed, or a check of what it made: nobody reads it; it is tried again, "
            "or accepted"
        ),
        ArcState.MISSING: "what failed was cleaned away, or a new output lacks it; run it again",
    },
    remark=(
        "Rolled up from the status rows and manifests of a lot, never stored beside them. A lot "
        "that an arc has not met has no state."
    ),
)


class BackfillState(StrEnum):
    """Where a backfill stands."""

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
        BackfillState.RUNNING: "sets lots going, a few at a time",
        BackfillState.PAUSED: "sets no more lots going; those that are end by themselves",
        BackfillState.DONE: "every lot was looked at, and all that were set going have ended",
        BackfillState.CANCELLED: "stopped for good; what was set going ends by itself",
    },
    repeatable=True,
    remark="A person pauses, resumes and cancels it; it is done by itself.",
)


class ReplayState(StrEnum):
    """Where a replay stands."""

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
        ReplayState.RUNNING: "sets steps going, each when those before it are done",
        ReplayState.PAUSED: "sets no more steps going; those that are end by themselves",
        ReplayState.DONE: "every step is done, and nothing stands on what was bad any more",
        ReplayState.FAILED: "some steps failed, and what is after them was not begun",
        ReplayState.CANCELLED: "stopped for good; what was not begun is left to its own rule",
    },
    repeatable=True,
    remark="A person pauses, resumes and cancels it; it is done, or has failed, by itself.",
)


class StepState(StrEnum):
    """Where a step of a replay stands."""

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
        StepState.PENDING: "not begun; the lot is as it was",
        StepState.GOING: "resubmitted, or under way by itself",
        StepState.DONE: "a newer run has ended well",
        StepState.FAILED: "held, or out of tries",
        StepState.BLOCKED: "something before it has failed; the lot is as it was",
    },
)

MACHINES = (RUN, WORK, INGEST_JOB, BATCH, ARC, MANIFEST, BACKFILL, REPLAY, REPLAY_STEP)


def document() -> str:
    """The text of docs/states.md."""
    opening = (
        "# States\n\n"
        "Made by `python -m penstock.states > docs/states.md` from the tables in "
        "`src/penstock/states.py`: change them there.\n"
        "A move that is not listed is refused with a conflict that names both states.\n"
    )
    return "\n".join([opening, *(machine.markdown() for machine in MACHINES)])


if __name__ == "__main__":
    sys.stdout.write(document())
