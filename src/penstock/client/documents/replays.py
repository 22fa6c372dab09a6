"""What a server says of replays."""

from msgspec import field

from penstock.client.documents.catalog import Document


class BadLots(Document, frozen=True, kw_only=True, omit_defaults=True):
    """What is bad: a lot of a dataset, what a job made, some time of either, or a batch.

    `first` to `last` is when lots were published. A lot is bad in the version that it has, unless
    another is named, or `any_version` of it is. The job of ours that made it is run again first,
    unless it is `downstream_only`.
    """

    namespace: str | None = None
    dataset: str | None = None
    lot: str | None = None
    version: str | None = None
    any_version: bool = False
    job: str | None = None
    job_version: str | None = None
    first: str | None = field(name="from", default=None)
    last: str | None = field(name="to", default=None)
    batch: str | None = None
    downstream_only: bool = False


class PlannedStep(Document, frozen=True):
    """One job's work on one lot that would be done again; `before` are the steps that come first.

    `run`, with its job version and how long it took, is the last good one; `now` is where the
    work stands, and `action` what would be done: rerun, follow, leave, blocked.
    """

    number: int
    namespace: str
    job: str
    lot: str
    depth: int
    before: tuple[int, ...]
    is_root: bool
    action: str
    now: str
    note: str
    run: str | None
    job_version: str | None
    ended_at: str | None
    seconds: float


class JobTotal(Document, frozen=True):
    """How many steps a job has in a replay, and how long they took."""

    namespace: str
    job: str
    steps: int
    seconds: float


class ReplayTotals(Document, frozen=True):
    """What a replay comes to, by the times of past runs."""

    steps: int
    actions: dict[str, int]
    jobs: tuple[JobTotal, ...]
    cost_seconds: float
    critical_path_seconds: float
    wall_seconds: float
    at_once: int


class ReplayPlan(Document, frozen=True):
    """What a replay would do."""

    target: str
    totals: ReplayTotals
    steps: tuple[PlannedStep, ...]


class ReplayStep(Document, frozen=True):
    """A step of a replay: `run` has done it again, `run_before` is the last that did not count."""

    number: int
    namespace: str
    job: str
    lot: str
    depth: int
    state: str
    run_before: str | None
    run: str | None
    seconds: float
    note: str
    at: str
    now: str | None


class ReplaySteps(Document, frozen=True):
    """Steps of a replay, in order."""

    steps: tuple[ReplayStep, ...]


class Replay(Document, frozen=True):
    """How far a replay is; `seconds` is how long it has run.

    `versions` are those of the lot that are bad, if it is of one lot. `stale` is how many steps
    that were not begun were stale when it ended: their jobs' own rules decide about those.
    """

    id: str
    namespace: str
    target: str
    versions: tuple[str, ...]
    state: str
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
    under_way: tuple[ReplayStep, ...]
    failures: tuple[ReplayStep, ...]
    seconds: float
    who: str
    why: str
    created_at: str
    since: str


class Replays(Document, frozen=True):
    """The last replays, newest first."""

    replays: tuple[Replay, ...]
