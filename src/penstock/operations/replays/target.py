"""The target of a replay: bad lots, and the runs of our jobs that made them."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from penstock import ids
from penstock.catalog.entities.runs import lot_facet
from penstock.catalog.rows import Row
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound
from penstock.locks.queries.claims import find_dataset, get_lot_job
from penstock.operations.replays.walk import Node, PastRun, fetch_runs, find_outputs, past_runs
from penstock.schema.lot_ids import check_lot

FOREVER: Micros = (1 << 63) - 1


class ReplayTarget(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bad data: a lot of a dataset, the outputs of a job, or the lots of some time.

    A lot is bad in its current version, unless another is named or `any_version` is bad. Times are
    half-open: [start, end).
    """

    namespace: str = ""
    dataset: str | None = None
    lot: str | None = None
    version: str | None = None
    any_version: bool = False
    versions: tuple[str, ...] = ()  # filled when the target is pinned
    job: str | None = None
    job_version: str | None = None
    start: Micros | None = None
    end: Micros | None = None
    batch: str | None = None
    downstream_only: bool = False

    @property
    def has_range(self) -> bool:
        """Whether it has a range of time."""
        return self.start is not None or self.end is not None

    def check(self) -> None:
        """Refuse contradictory fields."""
        chosen = [self.dataset is not None, self.job is not None, self.batch is not None]
        if sum(chosen) != 1:
            raise Invalid("name what is bad: a dataset with a lot or a time, a job, or a batch")
        if self.dataset is not None and (self.lot is None) == (not self.has_range):
            raise Invalid("name the bad lots of the dataset: one lot, or a range of time")
        if self.lot is not None and self.dataset is None:
            raise Invalid("a lot needs its dataset; name that too")
        if (self.version is not None or self.any_version) and self.lot is None:
            raise Invalid("a version needs its lot; name that too")
        if self.version is not None and self.any_version:
            raise Invalid("name one bad version or all versions of the lot, not both")
        if self.job_version is not None and self.job is None:
            raise Invalid("a job version needs its job; name that too")
        if self.batch is not None and self.has_range:
            raise Invalid("a batch is one lot; leave the range of time out")
        if self.has_range and not self.first < self.last:
            raise Invalid("the range of time ends before it begins")

    @property
    def first(self) -> Micros:
        """The start of the range."""
        return self.start if self.start is not None else 0

    @property
    def last(self) -> Micros:
        """The end of the range."""
        return self.end if self.end is not None else FOREVER

    @property
    def sentence(self) -> str:
        """The target in words."""
        if self.batch is not None:
            text = f"the lot of batch {self.batch}"
        elif self.job is not None:
            text = f"outputs of job {self.namespace}/{self.job}"
            text += f" as version {self.job_version}" if self.job_version else ""
        elif self.lot is not None:
            text = f"lot {self.lot} of dataset {self.namespace}/{self.dataset}"
            text += f" in version {self.version}" if self.version else ""
            text += " in any version" if self.any_version else ""
        else:
            text = f"lots of dataset {self.namespace}/{self.dataset}"
        text += f" from {format_time(self.start)}" if self.start is not None else ""
        text += f" to {format_time(self.end)}" if self.end is not None else ""
        return text + (", downstream only" if self.downstream_only else "")


class BadVersions(NamedTuple):
    """Bad versions of lots, and the runs that made them, if jobs of Penstock did.

    `target` is pinned: it names the same versions later, whatever is made meanwhile.
    """

    target: ReplayTarget
    nodes: frozenset[Node]
    roots: tuple[PastRun, ...]


class _Version(Row, frozen=True):
    id: str
    dataset_id: str
    run_id: str | None
    published_at: Micros | None
    facets: str
    facets_of_run: str | None

    def lots(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return the wanted lots that it is a version of, or all if none are wanted."""
        facet = lot_facet(self.facets_of_run or "") or lot_facet(self.facets)
        if facet is None:
            return wanted
        lots = frozenset(facet.all_lots)
        return lots & wanted if wanted else lots


def find_bad(tx: Transaction, target: ReplayTarget) -> BadVersions:
    """Return the versions of a target; raise NotFound for an unknown name."""
    if target.job is not None:
        return _made_by_job(tx, target)
    if target.lot is None and target.batch is None:
        return _published(tx, target)
    return _lot(tx, target)


def _made_by_job(tx: Transaction, target: ReplayTarget) -> BadVersions:
    """Return all outputs of a job, even replaced ones: other data may be derived from them."""
    job = get_lot_job(tx, target.namespace, str(target.job))
    first = target.first
    if target.job_version is not None:
        version = tx.fetch_one("replay_job_version", id=ids.run_id(target.job_version))
        if version is None or version[0] != job.job_id:
            raise NotFound(
                f"job {target.namespace}/{target.job} has no version {target.job_version}; "
                "`penstock jobs versions` lists those it has"
            )
        first = max(first, version[1])
    span = {"start": first, "end": target.last}
    runs = past_runs(tx.fetch("replay_runs_ended", job_id=job.job_id, **span))
    matching = tuple(run for run in runs if target.job_version in (None, run.job_version_id))
    ended = max((run.ended_at or 0 for run in matching), default=0)
    return BadVersions(_until(target, ended), frozenset(find_outputs(tx, matching)), matching)


def _published(tx: Transaction, target: ReplayTarget) -> BadVersions:
    """Return what was published to a dataset in some time."""
    dataset_id = find_dataset(tx, target.namespace, str(target.dataset))
    span = {"start": target.first, "end": target.last}
    versions = tx.rows(_Version, "replay_published", dataset_id=dataset_id, **span)
    published = max((version.published_at or 0 for version in versions), default=0)
    return _with_makers(tx, _until(target, published), versions, frozenset())


def _until(target: ReplayTarget, last: Micros) -> ReplayTarget:
    return replace(target, end=min(target.last, last + 1))


def _lot(tx: Transaction, target: ReplayTarget) -> BadVersions:
    if target.batch is not None:
        target = _of_batch(tx, target)
    dataset_id = find_dataset(tx, target.namespace, str(target.dataset))
    where = {"dataset_id": dataset_id, "lot": check_lot(str(target.lot))}
    if target.version is not None:
        wanted = [ids.run_id(target.version)]
    elif target.versions:
        wanted = list(target.versions)
    else:
        which = "replay_versions_of_lot" if target.any_version else "replay_lot"
        wanted = [version for (version,) in tx.fetch(which, **where)]
    lots = frozenset((str(target.lot),))
    rows = tx.rows(_Version, "replay_versions", ids=wanted)
    versions = [row for row in rows if row.dataset_id == dataset_id and row.lots(lots)]
    if not versions:
        which = f"version {target.version} of lot" if target.version else "lot"
        raise NotFound(
            f"dataset {target.namespace}/{target.dataset} has no {which} {target.lot}; "
            "`penstock lots list` lists what it has"
        )
    pinned = replace(target, versions=tuple(sorted(row.id for row in versions)))
    return _with_makers(tx, pinned, versions, lots)


def _of_batch(tx: Transaction, target: ReplayTarget) -> ReplayTarget:
    row = tx.fetch_one("replay_lot_of_batch", batch=target.batch)
    if row is None:
        raise NotFound(
            f"batch {target.batch} has no lot: it gets one when it is reported, if its "
            "collection has a dataset; where lots are intervals, when no job of it is failed any "
            "more"
        )
    namespace, dataset, lot = row
    return replace(target, batch=None, namespace=namespace, dataset=dataset, lot=lot)


def _with_makers(
    tx: Transaction, target: ReplayTarget, versions: Sequence[_Version], lots: frozenset[str]
) -> BadVersions:
    nodes = frozenset((row.id, lot) for row in versions for lot in row.lots(lots))
    makers = fetch_runs(tx, [row.run_id for row in versions if row.run_id is not None])
    return BadVersions(target, nodes, tuple(makers.values()))
