"""The trace from versions of a lot back to everything that they were made from.

It follows the inputs that runs really pinned, never the wiring. Each version is visited once, so
cycles and diamonds cost nothing. A level takes the same few statements however wide it is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from penstock.catalog.entities.runs import LotFacet, lot_facet
from penstock.catalog.rows import Origin, Row
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.lots.rows import ManifestRow
from penstock.provenance.history import Registration, registrations

DEPOSIT_FACET = "penstock_deposit"
_decode_facets = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
VERSIONS_MAX = 10_000


class DepositFacet(Struct, frozen=True, rename="camel"):
    """The facet of a run that is a deposit."""

    batch: str
    ingest_job: str | None = None
    ark: str | None = None
    object_version: int | None = None
    location: str | None = None
    digest: str | None = None
    submitter: str | None = None


_decode_deposit = msgspec.json.Decoder(DepositFacet).decode


class FoundVersion(Row, frozen=True):
    """A version, its dataset and the run that made it."""

    id: str
    dataset_id: str
    namespace: str
    name: str
    number: int
    origin: Origin
    run_id: str | None
    facets: str
    created_at: Micros
    published_at: Micros | None


class FoundRun(Row, frozen=True):
    """A run with its job and job version."""

    id: str
    job_id: str
    namespace: str
    name: str
    job_version_id: str | None
    location: str | None
    state: str
    started_at: Micros | None
    ended_at: Micros | None
    facets: str

    @property
    def lots(self) -> LotFacet | None:
        """The lots that it works on."""
        return lot_facet(self.facets)

    @property
    def deposit(self) -> DepositFacet | None:
        """The deposit that the run is; None if it is no deposit or its facet is malformed."""
        if f'"{DEPOSIT_FACET}"' not in self.facets:
            return None
        try:
            return _decode_deposit(_decode_facets(self.facets)[DEPOSIT_FACET])
        except (msgspec.DecodeError, KeyError):
            return None


class FoundBatch(Row, frozen=True):
    """A batch that a lot consists of, or that is part of it."""

    dataset_id: str
    lot: str
    id: str
    collection: str
    submitter: str
    at: Micros


class FoundObject(Row, frozen=True):
    """A stored version of an object."""

    ark: str
    version: int
    collection: str
    batch_id: str
    job_id: str
    location: str
    digest: str
    run_id: str


@dataclass(frozen=True)
class TracedVersion:
    """A version in the trace, as far as the database knows it."""

    version: FoundVersion
    lot: str | None
    depth: int
    run: FoundRun | None
    inputs: tuple[str, ...]
    is_cut: bool

    @property
    def known_at(self) -> Micros:
        """The time since when the version is known."""
        return self.version.published_at or self.version.created_at


@dataclass
class Walk:
    """Everything behind some versions, those themselves first."""

    nodes: dict[str, TracedVersion] = field(default_factory=dict)
    beyond: dict[str, str | None] = field(default_factory=dict)  # not visited: over the limit
    manifests: dict[str, ManifestRow] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)  # by run
    parts: dict[str, int] = field(default_factory=dict)  # by run
    registered: dict[tuple[str, str], list[Registration]] = field(default_factory=dict)
    batches: dict[tuple[str, str], list[FoundBatch]] = field(default_factory=dict)

    def registration_of(self, node: TracedVersion) -> Registration | None:
        """Return the last registration of a version before its publication."""
        registrations = self.registered.get((node.version.dataset_id, node.lot or ""), ())
        return max(
            (r for r in registrations if r.at <= node.known_at), key=lambda r: r.at, default=None
        )

    def batches_of(self, node: TracedVersion) -> list[FoundBatch]:
        """Return the batches of a version: those that were reported by its time."""
        reported = self.batches.get((node.version.dataset_id, node.lot or ""), ())
        is_outside = node.version.origin == Origin.DECLARED
        return [batch for batch in reported if is_outside and batch.at <= node.known_at]


def walk_back(
    tx: Transaction,
    roots: Mapping[str, str | None],
    depth: int | None = None,
    known: Collection[str] = (),
) -> Walk:
    """Return everything behind versions, each with its lot, up to `depth` runs back.

    Versions in `known` are not visited again.
    """
    walk = Walk()
    level = {version: lot for version, lot in roots.items() if version not in known}
    number = 0
    while level:
        room = VERSIONS_MAX - len(walk.nodes)
        walk.beyond = dict(list(level.items())[room:])
        is_last = depth is not None and number >= depth
        visited = dict(list(level.items())[:room])
        level_nodes = _visit(tx, walk, visited, number, is_last=is_last)
        walk.nodes |= {node.version.id: node for node in level_nodes}
        level = {
            version: node.lot
            for node in (level_nodes if not is_last else ())
            for version in node.inputs
            if version not in walk.nodes and version not in known
        }
        if walk.beyond:
            walk.beyond |= level
            break
        number += 1
    _describe(tx, walk)
    return walk


def _visit(
    tx: Transaction,
    walk: Walk,
    level: Mapping[str, str | None],
    depth: int,
    *,
    is_last: bool,
) -> list[TracedVersion]:
    versions = tx.rows(FoundVersion, "versions_in_full", ids=list(level))
    manifests = tx.rows(ManifestRow, "lot_manifests_by_versions", ids=list(level))
    walk.manifests |= {row.version_id: row for row in manifests}
    wanted = sorted({version.run_id for version in versions if version.run_id is not None})
    runs = {run.id: run for run in tx.rows(FoundRun, "runs_in_full", ids=wanted)}
    lots = {v.id: _lot(v, runs.get(v.run_id or ""), walk, level[v.id]) for v in versions}
    read = _inputs(tx, versions, lots)
    return [
        TracedVersion(
            version=version,
            lot=lots[version.id],
            depth=depth,
            run=runs.get(version.run_id or ""),
            inputs=read.get(version.id, ()),
            is_cut=is_last and bool(read.get(version.id)),
        )
        for version in sorted(versions, key=lambda v: (v.namespace, v.name, v.number))
    ]


def _lot(version: FoundVersion, run: FoundRun | None, walk: Walk, wanted: str | None) -> str | None:
    """Return the lot of a version; of several, the one whose history is followed."""
    manifest = walk.manifests.get(version.id)
    if manifest is not None:
        return manifest.lot
    facet = run.lots if run is not None else lot_facet(version.facets)
    if facet is None:
        return None
    return wanted if wanted in facet.all_lots else facet.lot


def _inputs(
    tx: Transaction, versions: Sequence[FoundVersion], lots: Mapping[str, str | None]
) -> dict[str, tuple[str, ...]]:
    keys = [f"{v.run_id}{lots[v.id] or ''}" for v in versions if v.run_id is not None]
    by_run: dict[str, set[str]] = defaultdict(set)
    for run_id, version_id in tx.fetch("versions_read_by_runs", keys=keys):
        by_run[run_id].add(version_id)
    return {v.id: tuple(sorted(by_run[v.run_id])) for v in versions if v.run_id is not None}


def _describe(tx: Transaction, walk: Walk) -> None:
    """Read who claimed versions that runs made, in how many parts, and who registered the
    others.
    """
    nodes = walk.nodes.values()
    with_runs = [node for node in nodes if node.run is not None]
    runs = {node.run.id: node for node in with_runs if node.run is not None}
    claims = [
        f"{node.run.job_id}{node.run.id}{node.lot}"
        for node in with_runs
        if node.run is not None and node.lot is not None
    ]
    walk.owners = dict(tx.fetch("claimers_of_runs", keys=claims))
    walk.parts = dict(tx.fetch("parts_of_runs", ids=list(runs)))
    outside = _from_outside(nodes)
    for each in registrations(tx, outside):
        walk.registered.setdefault((each.dataset_id, each.lot), []).append(each)
    keys = [f"{dataset_id}{lot}" for dataset_id, lot in outside]
    for batch in tx.rows(FoundBatch, "batches_of_lots", keys=keys):
        walk.batches.setdefault((batch.dataset_id, batch.lot), []).append(batch)


def _from_outside(nodes: Iterable[TracedVersion]) -> set[tuple[str, str]]:
    return {
        (node.version.dataset_id, node.lot)
        for node in nodes
        if node.version.origin == Origin.DECLARED and node.lot is not None
    }
