"""What locks show: claims, work, lots, wiring, transitions, and why something does not run.

Attributes are camelCase on the wire and nulls are kept. Times are ISO-8601 texts.
"""

from collections.abc import Sequence

from penstock.catalog.rows import Role
from penstock.catalog.shapes import EntityId, Shape
from penstock.locks.lock_rules import Status
from penstock.locks.rows import Stale
from penstock.states import RunState, WorkState


class Held(Shape, frozen=True):
    """That an administrator has stopped something."""

    who: str
    why: str
    since: str


class Wiring(Shape, frozen=True):
    """Which datasets a job reads and writes lot by lot, and how its lots are worked on.

    A hold that follows that of a dataset upstream names the dataset as `held_through`.
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
    """A dataset that a claim reads, at the version that it had when the claim was taken."""

    namespace: str
    name: str
    version: str | None


class Claim(Shape, frozen=True):
    """One job's hold on one lot; its id is that of its run."""

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
    """A claim, live or over; of one that is over and followed by another the token is not kept."""

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
    """The dataset or job whose hold stops a job.

    A hold of kind LINEAGE follows that of a dataset upstream, its `source`, and ends with it.
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
    """Why a job found nothing to claim; lots are counted up to a thousand of each kind."""

    summary: str
    held: HeldWhole | None
    waiting: int
    running: int
    later: int
    held_lots: int
    next_at: str | None


class HeldDataset(Shape, frozen=True):
    """Whether a dataset is held."""

    namespace: str
    name: str
    held: Held | None


class ReleasedJob(Wiring, frozen=True, kw_only=True):
    """A job whose hold has ended, and the holds that still stop it."""

    stopped_by: Sequence[HeldWhole]


class ReleasedDataset(HeldDataset, frozen=True, kw_only=True):
    """A dataset whose hold has ended, and the holds that still stop jobs that read or write it."""

    stopped_by: Sequence[HeldWhole]


class Stopped(Shape, frozen=True):
    """What became of the work of a claim that ended without a result."""

    id: str
    state: WorkState
    not_before: str | None


class LockedDataset(Shape, frozen=True):
    """A dataset of a live claim, and what the claim locks of it."""

    namespace: str
    name: str
    role: Role
    status: Status
    locks: Sequence[str]


class Lock(Shape, frozen=True):
    """A live claim, and what it locks."""

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
    """What a job has to do with one lot, and its claim on it."""

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
    """Some of what jobs have done or have to do."""

    lots: Sequence[Work]


class CheckResult(Shape, frozen=True):
    """What a check said about a version of a lot."""

    version: str
    name: str
    field: str | None
    success: bool
    detail: str | None
    run: str | None
    at: str


class LotChecks(Shape, frozen=True):
    """What checks said about a lot, the newest version first."""

    checks: Sequence[CheckResult]


class CheckOfLot(CheckResult, frozen=True):
    """What a check said about a version of a lot, with the lot."""

    lot: str


class DatasetChecks(Shape, frozen=True):
    """A part of what checks said about the lots of a dataset, newest first."""

    checks: Sequence[CheckOfLot]


class Consumer(Shape, frozen=True):
    """A job that reads, or has read, a lot; the version is the one it took."""

    namespace: str
    job: str
    status: Status
    version: str | None
    since: str


class Lot(Shape, frozen=True):
    """One lot of a dataset: who made it, what is locked, who reads it.

    A hold that is lifted may leave nothing behind; only then there is no status.
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
    """A lot that somebody holds, and what had held it already, if something had."""

    held_before: Held | None


class Transition(Shape, frozen=True):
    """One entry of the log of lots."""

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
    """One thing that stops a job from working on a lot, in words and as data.

    `command` is what a person can type to end it, if there is such a command.
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
    """A job at which a chain of causes ends, and the reasons that no other job explains.

    There are no reasons if nothing stops the job any more.
    """

    namespace: str
    job: str
    lot: str
    sentence: str
    reasons: Sequence[Reason]


class Why(Shape, frozen=True):
    """Why a job does not, or does, work on a lot; causes are the same of the jobs it waits for.

    `roots` is filled for the job that was asked for: the most useful first. Where a job was not
    `followed`, it waits for jobs that are shown with the same job elsewhere in the answer, or are
    too far away.
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
