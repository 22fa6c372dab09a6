"""What a replay begins with: lots that are bad, and the runs of ours that made them."""

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
from penstock.lots.ids import check_lot
from penstock.operations.replays.walk import LotRun, Node, fetch_runs, lot_runs, made_by

FOREVER: Micros = (1 << 63) - 1


class Target(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is bad: a lot of a dataset, what a job made, or what was published in some time.

    A lot is bad in the version that it has, unless another is named, or `any_version` of it is.
    Times are half-open: [start, end).
    """

    namespace: str = ""
    dataset: str | None = None
    lot: str | None = None
    version: str | None = None
    any_version: bool = False
    versions: tuple[str, ...] = ()  # found, for when it is asked again
    job: str | None = None
    job_version: str | None = None
    start: Micros | None = None
    end: Micros | None = None
    batch: str | None = None
    downstream_only: bool = False

    @property
    def has_range(self) -> bool:
        """Whether it is about some time."""
        return self.start is not None or self.end is not None

    def check(self) -> None:
        """Refuse what cannot be meant."""
        named = [self.dataset is not None, self.job is not None, self.batch is not None]
        if sum(named) != 1:
            raise Invalid("say what is bad: a dataset with a lot or a time, a job, or a batch")
        if self.dataset is not None and (self.lot is None) == (not self.has_range):
            raise Invalid("say which lots of the dataset are bad: one lot, or a range of time")
        if self.lot is not None and self.dataset is None:
            raise Invalid("a lot is one of a dataset; name that too")
        if (self.version is not None or self.any_version) and self.lot is None:
            raise Invalid("a version is one of a lot; name that too")
        if self.version is not None and self.any_version:
            raise Invalid("either one version of the lot is bad, or any of them")
        if self.job_version is not None and self.job is None:
            raise Invalid("a job version is one of a job; name that too")
        if self.batch is not None and self.has_range:
            raise Invalid("a batch is one lot; leave the range of time out")
        if self.has_range and not self.first < self.last:
            raise Invalid("the range of time ends before it begins")

    @property
    def first(self) -> Micros:
        """From when on."""
        return self.start if self.start is not None else 0

    @property
    def last(self) -> Micros:
        """Until before when."""
        return self.end if self.end is not None else FOREVER

    @property
    def sentence(self) -> str:
        """What is bad, in words."""
        if self.batch is not None:
            said = f"the lot of batch {self.batch}"
        elif self.job is not None:
            said = f"what job {self.namespace}/{self.job} made"
            said += f" as version {self.job_version}" if self.job_version else ""
        elif self.lot is not None:
            said = f"lot {self.lot} of dataset {self.namespace}/{self.dataset}"
            said += f" in version {self.version}" if self.version else ""
            said += " in any version" if self.any_version else ""
        else:
            said = f"what dataset {self.namespace}/{self.dataset} was given"
        said += f" from {format_time(self.start)}" if self.start is not None else ""
        said += f" to {format_time(self.end)}" if self.end is not None else ""
        return said + (", downstream only" if self.downstream_only else "")


class Bad(NamedTuple):
    """Versions of lots that are bad, and the runs that made them, as far as those are ours.

    `target` means the same ones whenever it is asked again, whatever was made since.
    """

    target: Target
    nodes: frozenset[Node]
    roots: tuple[LotRun, ...]


class _Version(Row, frozen=True):
    id: str
    dataset_id: str
    run_id: str | None
    published_at: Micros | None
    facets: str
    facets_of_run: str | None

    def lots(self, wanted: frozenset[str]) -> frozenset[str]:
        """Which lots it is a version of; of those wanted, if any are."""
        facet = lot_facet(self.facets_of_run or "") or lot_facet(self.facets)
        if facet is None:
            return wanted
        named = frozenset(facet.all_lots)
        return named & wanted if wanted else named


def find_bad(tx: Transaction, target: Target) -> Bad:
    """The lots that a target means; a name that nobody knows is a NotFound."""
    if target.job is not None:
        return _made_by_job(tx, target)
    if target.lot is None and target.batch is None:
        return _published(tx, target)
    return _lot(tx, target)


def _made_by_job(tx: Transaction, target: Target) -> Bad:
    """All that a job has made, whether it is still there or not: something may stand on it."""
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
    found = lot_runs(tx.fetch("replay_runs_ended", job_id=job.job_id, **span))
    runs = tuple(run for run in found if target.job_version in (None, run.job_version_id))
    ended = max((run.ended_at or 0 for run in runs), default=0)
    return Bad(_until(target, ended), frozenset(made_by(tx, runs)), runs)


def _published(tx: Transaction, target: Target) -> Bad:
    """What a dataset was given in some time."""
    dataset_id = find_dataset(tx, target.namespace, str(target.dataset))
    span = {"start": target.first, "end": target.last}
    found = tx.rows(_Version, "replay_published", dataset_id=dataset_id, **span)
    published = max((version.published_at or 0 for version in found), default=0)
    return _made_by_anybody(tx, _until(target, published), found, frozenset())


def _until(target: Target, last: Micros) -> Target:
    """The same, but for what comes later."""
    return replace(target, end=min(target.last, last + 1))


def _lot(tx: Transaction, target: Target) -> Bad:
    """One lot of a dataset, in the versions that are bad."""
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
    found = [row for row in rows if row.dataset_id == dataset_id and row.lots(lots)]
    if not found:
        which = f"version {target.version} of lot" if target.version else "lot"
        raise NotFound(
            f"dataset {target.namespace}/{target.dataset} has no {which} {target.lot}; "
            "`penstock lots list` lists what it has"
        )
    pinned = replace(target, versions=tuple(sorted(row.id for row in found)))
    return _made_by_anybody(tx, pinned, found, lots)


def _of_batch(tx: Transaction, target: Target) -> Target:
    """The lot that a deposit has become."""
    found = tx.fetch_one("replay_lot_of_batch", batch=target.batch)
    if found is None:
        raise NotFound(
            f"batch {target.batch} has become no lot: it does when it is reported, if its "
            "collection has a dataset; where lots are intervals, when no job of it is failed any "
            "more"
        )
    namespace, dataset, lot = found
    return replace(target, batch=None, namespace=namespace, dataset=dataset, lot=lot)


def _made_by_anybody(
    tx: Transaction, target: Target, found: Sequence[_Version], lots: frozenset[str]
) -> Bad:
    nodes = frozenset((row.id, lot) for row in found for lot in row.lots(lots))
    makers = fetch_runs(tx, [row.run_id for row in found if row.run_id is not None])
    return Bad(target, nodes, tuple(makers.values()))
