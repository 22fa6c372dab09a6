"""Wire types of backfills and replays."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from penstock.schema.lot_ids import Interval
from penstock.schema.shape import Shape
from penstock.schema.texts import Time
from penstock.states import BackfillState, ReplayState, StepState, WorkState


class Standing(StrEnum):
    """The state of a lot in an arc, as a backfill sees it."""

    GOOD = "good"  # made, and its data exists
    STALE = "stale"  # made, but of inputs that have newer versions
    REMOVED = "removed"  # made, but its data was removed, or is incomplete
    MISSING = "missing"  # the arc has finished, but an output is missing
    READY = "ready"  # can be worked on, and will be
    RUNNING = "running"
    FAILED = "failed"  # is tried again later
    OUT_OF_TRIES = "out of tries"
    HELD = "held"  # by an administrator
    WAITING = "waiting"  # an input is missing, or an output must not be written


class BackfillAction(StrEnum):
    """The action of a backfill on a lot."""

    LEAVE = "leave"
    WAIT = "wait"  # other work must come first
    FOLLOW = "follow"  # it is running: wait for its end
    RUN = "run"  # run it after new lots
    RETRY = "retry"  # now, with all its tries
    RELEASE = "release"  # release the hold, with all its tries
    RERUN = "rerun"  # make a finished lot again


class Scope(StrEnum):
    """The lots of a backfill."""

    FAILED_AND_MISSING = "failed and missing"
    NOT_GOOD = "not good"  # also lots that are stale
    ALL = "all"  # also good lots


class PlanLine(Shape, frozen=True):
    """A lot that a backfill would work on, or that is not good: its state and the action."""

    lot: str
    now: Standing
    action: BackfillAction
    cause: str


class BackfillPlan(Shape, frozen=True):
    """The plan of a backfill, with at most LINES_MAX lines; with `is_cut`, more lots exist.

    Without an interval, the lots are a list.
    """

    namespace: str
    arc: str
    interval: Interval | None
    first: str
    last: str
    count: int
    totals: Mapping[Standing, int]
    actions: Mapping[BackfillAction, int]
    lines: Sequence[PlanLine]
    is_cut: bool


class FailedLot(Shape, frozen=True):
    """A lot that failed again."""

    lot: str
    error: str


class Backfill(Shape, frozen=True):
    """A backfill and its progress.

    `looked_at` of its `count` lots were looked at. Of those, `good`, `held` and `waiting` ones
    were left alone; the others are going, done or failed. `seconds` is how long it has run.
    Without an interval, its lots are a list, and `is_cut` if more lots needed it.
    """

    id: str
    namespace: str
    arc: str
    state: BackfillState
    scope: Scope
    newest_first: bool
    max_running: int
    priority: int
    interval: Interval | None
    first: str
    last: str
    count: int
    is_cut: bool
    looked_at: int
    good: int
    held: int
    waiting: int
    going: int
    done: int
    failed: int
    failures: Sequence[FailedLot]
    seconds: float
    lots_per_hour: float | None
    who: str
    why: str
    created_at: str
    since: str

    @property
    def has_more(self) -> bool:
        """Whether another step would start more lots at once."""
        running = self.state is BackfillState.RUNNING
        return running and self.looked_at < self.count and self.going < self.max_running


class Begun(Shape, frozen=True):
    """The backfill that was started or, for a dry run, its plan."""

    plan: BackfillPlan | None
    backfill: Backfill | None


class BackfillList(Shape, frozen=True):
    """The last backfills, newest first."""

    backfills: Sequence[Backfill]


class ReplayAction(StrEnum):
    """The action of a replay on a step."""

    RERUN = "rerun"
    FOLLOW = "follow"  # it will run anyway: wait for its end
    LEAVE = "leave"  # it is held, and waits for an administrator
    BLOCKED = "blocked"  # a step before it is left


class PlannedStep(Shape, frozen=True):
    """One job's work on one lot: `before` are the numbers of the steps that come first.

    `run`, with its job version and how long it took, is the last good one; `now` is where the
    work stands.
    """

    number: int
    namespace: str
    job: str
    lot: str
    depth: int
    before: Sequence[int]
    is_root: bool
    action: ReplayAction
    now: WorkState
    note: str
    run: str | None
    job_version: str | None
    ended_at: str | None
    seconds: float


class JobTotal(Shape, frozen=True):
    """The number of steps of a job in a replay, and their past duration."""

    namespace: str
    job: str
    steps: int
    seconds: float


class ReplayTotals(Shape, frozen=True):
    """The totals of a replay. Times are those of past runs, in seconds.

    `cost` is their sum, `critical_path` the longest path, and `wall` the time
    with `at_once` steps at a time.
    """

    steps: int
    actions: Mapping[ReplayAction, int]
    jobs: Sequence[JobTotal]
    cost_seconds: float
    critical_path_seconds: float
    wall_seconds: float
    at_once: int


class ReplayPlan(Shape, frozen=True):
    """The plan of a replay."""

    target: str
    totals: ReplayTotals
    steps: Sequence[PlannedStep]


class ReplayStep(Shape, frozen=True):
    """A step of a replay. `run` is its new run, `run_before` the last run before the replay."""

    number: int
    namespace: str
    job: str
    lot: str
    depth: int
    state: StepState
    run_before: str | None
    run: str | None
    seconds: float
    note: str
    at: str
    now: WorkState | None


class Replay(Shape, frozen=True):
    """A replay and its progress. For one bad lot, `versions` are its bad versions.

    `stale` is how many of those not begun were stale when it ended: their own rule decides.
    `cost_seconds` is how long its steps took before, `done_seconds` those of them that are done
    again; `seconds` is how long it has run. Of what goes or failed the first SHOWN_MAX are there.
    """

    id: str
    namespace: str
    target: str
    versions: Sequence[str]
    state: ReplayState
    max_running: int
    steps: int
    pending: int
    going: int
    done: int
    failed: int
    blocked: int
    stale: int
    cost_seconds: float
    done_seconds: float
    under_way: Sequence[ReplayStep]
    failures: Sequence[ReplayStep]
    seconds: float
    who: str
    why: str
    created_at: str
    since: str


class ReplayList(Shape, frozen=True):
    """The last replays, newest first."""

    replays: Sequence[Replay]


class ReplaySteps(Shape, frozen=True):
    """Steps of a replay, in order."""

    steps: Sequence[ReplayStep]


Bad = Annotated[str, Meta(max_length=1_000)] | None


class BadLots(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The selection of bad lots of a replay."""

    namespace: str = ""
    dataset: Bad = None
    lot: Bad = None
    version: Bad = None
    any_version: bool = False
    job: Bad = None
    job_version: Bad = None
    start: Time | None = field(name="from", default=None)
    end: Time | None = field(name="to", default=None)
    batch: Bad = None
    downstream_only: bool = False
