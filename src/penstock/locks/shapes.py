"""The wire types of locks: claims, work, lots, wiring, transitions and explanations.

Attributes are camelCase on the wire, and nulls are kept. Times are ISO 8601 texts.
"""

from collections.abc import Sequence

from penstock.catalog.rows import Role
from penstock.catalog.shapes import EntityId, Shape
from penstock.locks.lock_rules import Status
from penstock.locks.rows import Stale
from penstock.states import RunState, WorkState


class Held(Shape, frozen=True):
    """A hold by an administrator."""

    who: str
    why: str
    since: str


class Wiring(Shape, frozen=True):
    """The wiring of a job: its inputs, its outputs, and how its lots are claimed.

    A hold that follows the hold of a dataset upstream names that dataset as `held_through`.
    """

    namespace: str
    job: str
    inputs: Sequence[EntityId]
    outputs: Sequence[EntityId]
    lease_seconds: int
    tries_max: int
    back_off_seconds: int
    enforced: bool
    stale: Stale
    held: Held | None
    created_at: str
    updated_at: str
    held_through: EntityId | None


class PinnedInput(Shape, frozen=True):
    """An input of a claim, at the version that it had when the claim began."""

    namespace: str
    name: str
    version: str | None


class Claim(Shape, frozen=True):
    """A claim of one job on one lot; its id is also that of its run."""

    id: str
    token: int
    namespace: str
    job: str
    lot: str
    owner: str
    attempt: int
    attempts_max: int
    lease_seconds: int
    lease_until: str
    inputs: Sequence[PinnedInput]
    outputs: Sequence[EntityId]


class ShownClaim(Shape, frozen=True):
    """A claim, live or over; the token of an older claim on the same lot is not kept."""

    id: str
    state: RunState
    token: int | None
    namespace: str
    job: str
    lot: str
    owner: str
    attempt: int
    attempts_max: int
    lease_seconds: int | None
    lease_until: str | None
    inputs: Sequence[PinnedInput]
    outputs: Sequence[EntityId]


class HeldWhole(Shape, frozen=True):
    """The hold of a whole dataset or job.

    A hold of kind LINEAGE follows the hold of a dataset upstream, its `source`, and ends with it.
    """

    kind: str
    namespace: str
    name: str
    who: str
    why: str
    since: str
    source: EntityId | None
    command: str | None


class NoWorkReason(Shape, frozen=True):
    """Why a job has no lot to claim; lots are counted up to a thousand of each kind."""

    summary: str
    held: HeldWhole | None
    waiting: int
    running: int
    later: int
    held_lots: int
    next_at: str | None


class HeldDataset(Shape, frozen=True):
    """A dataset and its hold, if it has one."""

    namespace: str
    name: str
    held: Held | None


class ReleasedJob(Wiring, frozen=True, kw_only=True):
    """A released job, and the holds that still stop it."""

    stopped_by: Sequence[HeldWhole]


class ReleasedDataset(HeldDataset, frozen=True, kw_only=True):
    """A released dataset, and the holds that still stop jobs that read or write it."""

    stopped_by: Sequence[HeldWhole]


class Stopped(Shape, frozen=True):
    """The work of a claim that ended without a result."""

    id: str
    state: WorkState
    not_before: str | None


class LockedDataset(Shape, frozen=True):
    """A dataset of a live claim, and its locks."""

    namespace: str
    name: str
    role: Role
    status: Status
    locks: Sequence[str]


class Lock(Shape, frozen=True):
    """A live claim and its locks."""

    namespace: str
    job: str
    lot: str
    owner: str
    claim: str
    token: int
    since: str
    lease_until: str
    lease_seconds_left: float
    datasets: Sequence[LockedDataset]


class Work(Shape, frozen=True):
    """The work of a job on one lot, and its claim."""

    namespace: str
    job: str
    lot: str
    state: WorkState
    priority: int
    attempts: int
    attempts_max: int
    token: int
    claim: str | None
    owner: str | None
    lease_until: str | None
    not_before: str | None
    since: str
    error: str | None
    stale_since: str | None


class WorkPage(Shape, frozen=True):
    """A page of work."""

    lots: Sequence[Work]


class CheckResult(Shape, frozen=True):
    """The result of a check of a version of a lot."""

    version: str
    name: str
    field: str | None
    success: bool
    detail: str | None
    run: str | None
    at: str


class LotChecks(Shape, frozen=True):
    """The check results of a lot, the newest version first."""

    checks: Sequence[CheckResult]


class CheckOfLot(CheckResult, frozen=True):
    """The result of a check, with its lot."""

    lot: str


class DatasetChecks(Shape, frozen=True):
    """A page of the check results of a dataset's lots, newest first."""

    checks: Sequence[CheckOfLot]


class Consumer(Shape, frozen=True):
    """A job that reads, or has read, a lot, and the version that it read."""

    namespace: str
    job: str
    status: Status
    version: str | None
    since: str


class Lot(Shape, frozen=True):
    """One lot of a dataset: its maker, its locks and its readers.

    A lot without a row has no status, such as one whose hold was released before it was made.
    """

    namespace: str
    dataset: str
    lot: str
    status: Status | None
    version: str | None
    job: EntityId | None
    run: str | None
    since: str | None
    locks: Sequence[str]
    consumers: Sequence[Consumer]


class LotOnHold(Lot, frozen=True, kw_only=True):
    """A lot that was just held, and its earlier hold, if it had one."""

    held_before: Held | None


class Transition(Shape, frozen=True):
    """An entry in the log of lots."""

    at: str
    action: str
    lot: str
    namespace: str | None
    job: str | None
    dataset: str | None
    run: str | None
    was: str
    became: str
    who: str
    why: str


class Reason(Shape, frozen=True, omit_defaults=True):
    """A reason that stops a job from working on a lot, in words and as data.

    `command` ends it, if such a command exists.
    """

    kind: str
    sentence: str
    namespace: str | None = None
    name: str | None = None
    lot: str | None = None
    status: str | None = None
    who: str | None = None
    why: str | None = None
    since: str | None = None
    until: str | None = None
    attempt: int | None = None
    attempts_max: int | None = None
    claim: str | None = None
    command: str | None = None


class RootCause(Shape, frozen=True):
    """A job where a chain of causes ends, and the reasons that no other job explains.

    The reasons are empty if nothing stops the job any more.
    """

    namespace: str
    job: str
    lot: str
    sentence: str
    reasons: Sequence[Reason]


class Why(Shape, frozen=True):
    """Why a job does, or does not, work on a lot; `causes` explain the jobs that it waits for.

    Only the job that was asked for has `roots`, the most useful first. A job that is not `followed`
    has causes that are shown elsewhere in the answer or are too far away.
    """

    namespace: str
    job: str
    lot: str
    state: WorkState | None
    runnable: bool
    sentence: str
    reasons: Sequence[Reason]
    causes: Sequence["Why"]
    followed: bool = True
    roots: Sequence[RootCause] = ()
