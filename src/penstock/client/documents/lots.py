"""What a server answers about lots, locks and claims, as values."""

from msgspec import Struct

from penstock.client.documents.catalog import Document, EntityId, VersionId


class Held(Document, frozen=True):
    """That an administrator has stopped something."""

    who: str
    why: str
    since: str


class Wiring(Document, frozen=True):
    """Which datasets a job reads and writes lot by lot, and how its lots are worked on.

    A hold that follows that of a dataset upstream names the dataset as `held_through`.
    """

    namespace: str
    job: str
    inputs: tuple[EntityId, ...]
    outputs: tuple[EntityId, ...]
    lease_seconds: int
    tries_max: int
    back_off_seconds: int
    enforced: bool
    stale: str
    held: Held | None
    created_at: str
    updated_at: str
    held_through: EntityId | None


class PinnedInput(Document, frozen=True):
    """A dataset that a claim reads, at the version that it had when the claim was taken."""

    namespace: str
    name: str
    version: str | None


class Claim(Document, frozen=True):
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
    inputs: tuple[PinnedInput, ...]
    outputs: tuple[EntityId, ...]


class ShownClaim(Document, frozen=True):
    """A claim, live or over; of one that is over and followed by another the token is not kept."""

    id: str
    state: str
    token: int | None
    namespace: str
    job: str
    lot: str
    owner: str
    attempt: int
    attempts_max: int
    lease_seconds: int | None
    lease_until: str | None
    inputs: tuple[PinnedInput, ...]
    outputs: tuple[EntityId, ...]


class HeldWhole(Document, frozen=True):
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


class NoWorkReason(Document, frozen=True):
    """Why a job found nothing to claim; lots are counted up to a thousand of each kind."""

    summary: str
    held: HeldWhole | None
    waiting: int
    running: int
    later: int
    held_lots: int
    next_at: str | None


class HeldDataset(Document, frozen=True):
    """Whether a dataset is held."""

    namespace: str
    name: str
    held: Held | None


class ReleasedJob(Wiring, frozen=True, kw_only=True):
    """A job whose hold has ended, and the holds that still stop it."""

    stopped_by: tuple[HeldWhole, ...]


class ReleasedDataset(HeldDataset, frozen=True, kw_only=True):
    """A dataset whose hold has ended, and the holds that still stop jobs that read or write it."""

    stopped_by: tuple[HeldWhole, ...]


class Lease(Document, frozen=True):
    """Until when a claim holds."""

    id: str
    lease_until: str


class Completed(Document, frozen=True):
    """The versions that a claim has published."""

    id: str
    versions: tuple[VersionId, ...]


class Stopped(Document, frozen=True):
    """What became of the work of a claim that ended without a result."""

    id: str
    state: str
    not_before: str | None


class Refusal(Struct, frozen=True):
    """Why one of several claims was refused."""

    code: int
    message: str


class EndedClaim(Document, frozen=True):
    """What became of one claim of several: the versions it published, or why it was refused."""

    id: str
    versions: tuple[VersionId, ...]
    error: Refusal | None


class EndedClaims(Document, frozen=True):
    """What became of each claim, in the order they were given."""

    ended: tuple[EndedClaim, ...]


class Claims(Document, frozen=True):
    """What was claimed, or why there was nothing; and what became of claims to complete."""

    claims: tuple[Claim, ...]
    why: NoWorkReason | None
    ended: tuple[EndedClaim, ...]


class LockedDataset(Document, frozen=True):
    """A dataset of a live claim, and what the claim locks of it."""

    namespace: str
    name: str
    role: str
    status: str
    locks: tuple[str, ...]


class Lock(Document, frozen=True):
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
    datasets: tuple[LockedDataset, ...]


class Locks(Document, frozen=True):
    """A part of the live claims, and how many there are, counted up to ten thousand."""

    locks: tuple[Lock, ...]
    total_count: int


class Work(Document, frozen=True):
    """What a job has to do with one lot, and its claim on it."""

    namespace: str
    job: str
    lot: str
    state: str
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


class WorkPage(Document, frozen=True):
    """Some of what jobs have done or have to do."""

    lots: tuple[Work, ...]


class CheckResult(Document, frozen=True):
    """What a check said about a version of a lot."""

    version: str
    name: str
    field: str | None
    success: bool
    detail: str | None
    run: str | None
    at: str


class LotChecks(Document, frozen=True):
    """What checks said about a lot, the newest version first."""

    checks: tuple[CheckResult, ...]


class CheckOfLot(CheckResult, frozen=True):
    """What a check said about a version of a lot, with the lot."""

    lot: str


class DatasetChecks(Document, frozen=True):
    """A part of what checks said about the lots of a dataset, newest first."""

    checks: tuple[CheckOfLot, ...]


class HeldLot(Document, frozen=True):
    """A lot that is held; `for_checks`: it can be accepted, `by_hand`: it can be let go.

    If neither, what it was made from is held.
    """

    namespace: str
    dataset: str
    lot: str
    for_checks: bool
    by_hand: bool
    version: str | None
    run: str | None
    job: EntityId | None
    who: str
    why: str
    since: str


class HeldLots(Document, frozen=True):
    """A part of the lots that are held, and how many there are, up to ten thousand."""

    lots: tuple[HeldLot, ...]
    total_count: int


class WorkList(Document, frozen=True):
    """A part of what a job has to do, and how much there is, counted up to ten thousand."""

    lots: tuple[Work, ...]
    total_count: int


class Consumer(Document, frozen=True):
    """A job that reads, or has read, a lot; the version is the one it took."""

    namespace: str
    job: str
    status: str
    version: str | None
    since: str


class Lot(Document, frozen=True):
    """One lot of a dataset: who made it, what is locked, who reads it.

    A hold that is lifted may leave nothing behind; only then there is no status.
    """

    namespace: str
    dataset: str
    lot: str
    status: str | None
    version: str | None
    job: EntityId | None
    run: str | None
    since: str | None
    locks: tuple[str, ...]
    consumers: tuple[Consumer, ...]


class LotOnHold(Lot, frozen=True, kw_only=True):
    """A lot that somebody holds, and what had held it already, if something had."""

    held_before: Held | None


class LotHold(Document, frozen=True):
    """What holds a lot; no kind if nothing does: PERSON, CHECKS, UPSTREAM or ATTEMPTS.

    `source` is the dataset whose lot is held for UPSTREAM, `job` the job that is out of tries for
    ATTEMPTS. `command` is what a person can type to end the hold.
    """

    kind: str | None
    who: str | None
    why: str | None
    since: str | None
    source: EntityId | None
    job: EntityId | None
    command: str | None


class Lots(Document, frozen=True):
    """A part of a dataset's lots, and how many there are, counted up to ten thousand."""

    lots: tuple[Lot, ...]
    total_count: int


class Registered(Document, frozen=True):
    """How many lots were new."""

    registered: int


class Transition(Document, frozen=True):
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


class Log(Document, frozen=True):
    """A part of the log of a lot, a job or a run, newest first."""

    entries: tuple[Transition, ...]


class Reason(Document, frozen=True, omit_defaults=True):
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


class RootCause(Document, frozen=True):
    """A job at which a chain of causes ends, and the reasons that no other job explains.

    There are no reasons if nothing stops the job any more.
    """

    namespace: str
    job: str
    lot: str
    sentence: str
    reasons: tuple[Reason, ...]


class Why(Document, frozen=True):
    """Why a job does not, or does, work on a lot; causes are the same of the jobs it waits for.

    `roots` is filled for the job that was asked for: the most useful first. Where a job was not
    `followed`, it waits for jobs that are shown with the same job elsewhere in the answer, or are
    too far away.
    """

    namespace: str
    job: str
    lot: str
    state: str | None
    runnable: bool
    sentence: str
    reasons: tuple[Reason, ...]
    causes: tuple["Why", ...]
    followed: bool = True
    roots: tuple[RootCause, ...] = ()
