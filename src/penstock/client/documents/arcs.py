"""What a server answers about arcs, manifests, gaps and backfills, as values."""

from penstock.client.documents.catalog import Document, EntityId
from penstock.client.documents.lots import Why


class ArcCounts(Document, frozen=True):
    """How many lots stand where; of those that `at_least` names there may be more."""

    running: int
    complete: int
    partial: int
    missing: int
    ready: int
    waiting: int
    later: int
    held: int
    at_least: tuple[str, ...]

    def shown(self, name: str) -> str:
        """One of the counts as people read it."""
        more = "+" if name in self.at_least else ""
        return f"{getattr(self, name):,}{more}"


class ArcInput(Document, frozen=True):
    """A dataset that an arc reads; one that does not subscribe only joins."""

    dataset: str
    namespace: str
    subscribe: bool
    running_max: int | None


class ArcOutput(Document, frozen=True):
    """A dataset that an arc writes."""

    dataset: str
    namespace: str
    version: str
    interval: str
    running_max: int | None
    empty: str


class ArcWorkload(Document, frozen=True):
    """What is run: a Python function, or a command."""

    function: str | None
    command: tuple[str, ...]
    environment: dict[str, str]
    pass_environment: tuple[str, ...]
    timeout_seconds: int | None
    fetch: bool


class ArcParts(Document, frozen=True):
    """How a lot is split."""

    pattern: str | None
    bytes_max: int | None
    function: str | None
    running_max: int


class ArcRetry(Document, frozen=True):
    """How often a lot is tried, and how long after a failure."""

    tries: int
    back_off_seconds: int
    lease_seconds: int


class Arc(Document, frozen=True):
    """An arc as it was declared, and how many of its lots stand where."""

    namespace: str
    name: str
    project: str
    version: str
    description: str
    inputs: tuple[ArcInput, ...]
    outputs: tuple[ArcOutput, ...]
    workload: ArcWorkload
    parts: ArcParts | None
    retry: ArcRetry
    running_max: int
    on_empty: str
    stale: str
    checks: tuple[str, ...]
    newest_first: bool
    created_at: str
    updated_at: str
    counts: ArcCounts


class Arcs(Document, frozen=True):
    """The arcs, by name."""

    arcs: tuple[Arc, ...]


class ArcLot(Document, frozen=True):
    """Where an arc stands with a lot; `state` is None if nothing was tried."""

    lot: str
    state: str | None
    work: str
    attempts: int
    attempts_max: int
    error: str | None
    since: str
    not_before: str | None
    run: str | None
    owner: str | None


class ArcLots(Document, frozen=True):
    """A part of an arc's lots; `next` is the lot to go on after."""

    lots: tuple[ArcLot, ...]
    next: str | None


class ArcPart(Document, frozen=True):
    """One part of a lot."""

    part: str
    state: str
    run: str | None
    attempt: str | None
    error: str | None
    uris: int
    bytes: int


class FailedAttempt(Document, frozen=True):
    """An attempt that failed, and the manifests of what it left behind."""

    run: str
    state: str
    keys: tuple[str, ...]
    at: str


class ManifestLine(Document, frozen=True):
    """The manifest of one version of a lot."""

    namespace: str
    dataset: str
    version: str
    state: str
    key: str
    uris: int
    bytes: int
    digest: str
    attempt: str
    at: str
    is_current: bool


class ArcLotDetail(ArcLot, frozen=True):
    """All there is about a lot of an arc."""

    parts: tuple[ArcPart, ...]
    failed_attempts: tuple[FailedAttempt, ...]
    manifests: tuple[ManifestLine, ...]


class Synced(Document, frozen=True):
    """What a part of a sync has done."""

    lots: int
    changed: int
    removed: int
    lost: int
    next: str | None


class ManifestPart(Document, frozen=True):
    """A part of a lot, and what its own manifest says."""

    part: str
    key: str
    state: str
    uris: int
    bytes: int


class ManifestItem(Document, frozen=True):
    """One thing that a lot consists of."""

    uri: str
    size: int | None
    digest: str | None
    created: str | None
    format: str | None
    ark: str | None
    part: str | None


class LotManifest(Document, frozen=True):
    """The bill of materials of one version of a lot."""

    namespace: str
    dataset: str
    lot: str
    version: str
    is_current: bool
    state: str
    uri_type: str
    label: str
    key: str
    url: str
    digest: str
    attempt: str
    comment: str
    created: str
    published_at: str
    total_count: int
    bytes: int
    parts: tuple[ManifestPart, ...]
    uris: tuple[ManifestItem, ...]


class RemovedLot(Document, frozen=True):
    """What became of a lot; without a manifest it is forgotten, since nothing had read it."""

    namespace: str
    dataset: str
    lot: str
    manifest: LotManifest | None


class Root(Document, frozen=True):
    """The lot upstream that has to come first; without a job, nobody there makes it."""

    namespace: str
    dataset: str
    lot: str
    job: EntityId | None
    sentence: str


class Cause(Document, frozen=True):
    """Why a lot is not there, and which lots upstream are the roots of it."""

    sentence: str
    why: Why | None
    roots: tuple[Root, ...]


class Gap(Document, frozen=True):
    """Lots in a row that are of one kind, and have one cause, told of the first of them.

    Where they are not known to be alike, lots after the first may have other causes.
    """

    first: str
    last: str
    count: int
    kind: str
    cause: Cause | None
    is_alike: bool


class Gaps(Document, frozen=True):
    """What is there of a dataset between two lots, and what is not."""

    namespace: str
    dataset: str
    interval: str
    first: str
    last: str
    count: int
    there: int
    totals: dict[str, int]
    ranges: tuple[Gap, ...]
    is_cut: bool

    @property
    def is_whole(self) -> bool:
        """Whether nothing is amiss: what is empty is rightly so."""
        return self.there + self.totals.get("empty", 0) == self.count


class PlanLine(Document, frozen=True):
    """A lot that is not good, or would be made anew: what it is, and what would be done."""

    lot: str
    now: str
    action: str
    cause: str


class Plan(Document, frozen=True):
    """What a backfill would do."""

    namespace: str
    arc: str
    interval: str | None
    first: str
    last: str
    count: int
    totals: dict[str, int]
    actions: dict[str, int]
    lines: tuple[PlanLine, ...]
    is_cut: bool


class Failure(Document, frozen=True):
    """A lot that failed again."""

    lot: str
    error: str


class Backfill(Document, frozen=True):
    """How far a backfill is."""

    id: str
    namespace: str
    arc: str
    state: str
    scope: str
    newest_first: bool
    max_running: int
    priority: int
    interval: str | None
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
    failures: tuple[Failure, ...]
    seconds: float
    lots_per_hour: float | None
    who: str
    why: str
    created_at: str
    since: str


class Begun(Document, frozen=True):
    """The backfill that was begun, or what one would do."""

    plan: Plan | None
    backfill: Backfill | None


class Backfills(Document, frozen=True):
    """The last backfills, newest first."""

    backfills: tuple[Backfill, ...]


class Changed(Document, frozen=True):
    """Which arcs and arrivals are other than before, or would be."""

    changed: tuple[str, ...]
