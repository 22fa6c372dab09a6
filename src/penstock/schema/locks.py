"""Wire types of claims, work and wiring, and of the reasons why a job does not run."""

from collections.abc import Sequence
from enum import StrEnum

from penstock.schema.catalog import DatasetRole, EntityId, VersionId
from penstock.schema.lot_ids import Interval
from penstock.schema.lots import Held, Status
from penstock.schema.shape import Refusal, Shape
from penstock.states import RunState, WorkState

LEASE_SECONDS_MAX = 7 * 24 * 3600


class Stale(StrEnum):
    """The policy for a finished lot when an input gets a newer version."""

    RERUN = "rerun"  # make it again
    HOLD = "hold"  # wait for a person to decide
    IGNORE = "ignore"  # only report it


class Wiring(Shape, frozen=True):
    """The datasets that a job reads and writes lot by lot, and its lease and retry policy.

    If the hold of a dataset upstream stops the job, `held_through` names that dataset.
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
    """A claim, live or ended. The token of an ended claim is lost once another one follows."""

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
    """The reason why a job has nothing to claim. Each count ends at a thousand."""

    summary: str
    held: HeldWhole | None
    waiting: int
    running: int
    retryable: int
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
    """The state of the work of a claim that ended without a result."""

    id: str
    state: WorkState
    not_before: str | None


class LockedDataset(Shape, frozen=True):
    """A dataset of a live claim, and its locks."""

    namespace: str
    name: str
    role: DatasetRole
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
    """A page of the work of jobs."""

    lots: Sequence[Work]


class Reason(Shape, frozen=True, omit_defaults=True):
    """A reason why a job does not work on a lot, as a sentence and as data.

    `command` ends it, if a command can.
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
    """The explanation why a job does, or does not, work on a lot.

    `causes` explain the jobs it waits for. Only the job of the request has `roots`, the most useful
    first. If a job was not `followed`, the answer explains it elsewhere, or the jobs behind it are
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


class Locks(Shape, frozen=True):
    """A page of the live claims, and the total, counted up to ten thousand."""

    locks: Sequence[Lock]
    total_count: int


class Lease(Shape, frozen=True):
    """The end of the lease of a claim."""

    id: str
    lease_until: str


class Completed(Shape, frozen=True):
    """The versions that a claim has published."""

    id: str
    versions: Sequence[VersionId]


class EndedClaim(Shape, frozen=True):
    """The result of one claim of several: its new versions, or the refusal."""

    id: str
    versions: Sequence[VersionId]
    error: Refusal | None


class Claims(Shape, frozen=True):
    """New claims, or the reason for none, and the results of the claims to complete."""

    claims: Sequence[Claim]
    why: NoWorkReason | None
    ended: Sequence[EndedClaim]


class EndedClaims(Shape, frozen=True):
    """The result of each claim, in the order of the request."""

    ended: Sequence[EndedClaim]


class WorkList(Shape, frozen=True):
    """A page of the work of a job, and its total, counted up to ten thousand."""

    lots: Sequence[Work]
    total_count: int


class DatasetPartitioning(Shape, frozen=True):
    """The hold of a dataset, and the interval of its gaps, if it has one."""

    held: Held | None
    interval: Interval | None


class JobPartitioning(Shape, frozen=True):
    """The wiring of a job; null if it does not work lot by lot."""

    wiring: Wiring | None
    is_arc: bool
