"""Going back from versions of a lot to all that they were made from.

What runs really pinned is followed, never the wiring. A version is visited once, so that cycles
and diamonds cost nothing; a level costs the same few statements however wide it is.
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


class DepositFacet(Struct, frozen=True, rename="camel"):
    """What the run of a deposit says of it."""

    batch: str
    ingest_job: str | None = None
    ark: str | None = None
    object_version: int | None = None
    location: str | None = None
    digest: str | None = None
    submitter: str | None = None


_decode_facets = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_deposit = msgspec.json.Decoder(DepositFacet).decode


class FoundVersion(Row, frozen=True):
    """A version, what it is of and what made it."""

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
    """A run with its job and the shape that had."""

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
        """The deposit that it is the run of; None if it is of none, or if that makes no sense."""
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


VERSIONS_MAX = 10_000


@dataclass(frozen=True)
class Node:
    """One version on the way back, as far as the database knows it."""

    version: FoundVersion
    lot: str | None
    depth: int
    run: FoundRun | None
    inputs: tuple[str, ...]
    is_cut: bool

    @property
    def known_at(self) -> Micros:
        """When there was such a version."""
        return self.version.published_at or self.version.created_at


@dataclass
class Walk:
    """Everything behind versions, those themselves first."""

    nodes: dict[str, Node] = field(default_factory=dict)
    beyond: dict[str, str | None] = field(default_factory=dict)  # not visited: it was too much
    manifests: dict[str, ManifestRow] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)  # by run
    parts: dict[str, int] = field(default_factory=dict)  # by run
    registered: dict[tuple[str, str], list[Registration]] = field(default_factory=dict)
    batches: dict[tuple[str, str], list[FoundBatch]] = field(default_factory=dict)

    def registration_of(self, node: Node) -> Registration | None:
        """Who registered a version: the last who did before it was published."""
        told = self.registered.get((node.version.dataset_id, node.lot or ""), ())
        return max((r for r in told if r.at <= node.known_at), key=lambda r: r.at, default=None)

    def batches_of(self, node: Node) -> list[FoundBatch]:
        """The batches that a version consists of: those that were reported by then."""
        told = self.batches.get((node.version.dataset_id, node.lot or ""), ())
        is_outside = node.version.origin == Origin.DECLARED
        return [batch for batch in told if is_outside and batch.at <= node.known_at]


def walk_back(
    tx: Transaction,
    roots: Mapping[str, str | None],
    depth: int | None = None,
    known: Collection[str] = (),
) -> Walk:
    """Everything behind versions, each with the lot it is of; `depth` runs back at most.

    What is `known` is not visited again.
    """
    walk = Walk()
    level = {version: lot for version, lot in roots.items() if version not in known}
    number = 0
    while level:
        room = VERSIONS_MAX - len(walk.nodes)
        walk.beyond = dict(list(level.items())[room:])
        is_last = depth is not None and number >= depth
        visited = dict(list(level.items())[:room])
        found = _visit(tx, walk, visited, number, is_last=is_last)
        walk.nodes |= {node.version.id: node for node in found}
        level = {
            version: node.lot
            for node in (found if not is_last else ())
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
) -> list[Node]:
    versions = tx.rows(FoundVersion, "versions_in_full", ids=list(level))
    manifests = tx.rows(ManifestRow, "lot_manifests_by_versions", ids=list(level))
    walk.manifests |= {row.version_id: row for row in manifests}
    wanted = sorted({version.run_id for version in versions if version.run_id is not None})
    runs = {run.id: run for run in tx.rows(FoundRun, "runs_in_full", ids=wanted)}
    named = {v.id: _lot(v, runs.get(v.run_id or ""), walk, level[v.id]) for v in versions}
    read = _inputs(tx, versions, named)
    return [
        Node(
            version=version,
            lot=named[version.id],
            depth=depth,
            run=runs.get(version.run_id or ""),
            inputs=read.get(version.id, ()),
            is_cut=is_last and bool(read.get(version.id)),
        )
        for version in sorted(versions, key=lambda v: (v.namespace, v.name, v.number))
    ]


def _lot(version: FoundVersion, run: FoundRun | None, walk: Walk, wanted: str | None) -> str | None:
    """Which lot a version is of; where there are several, the one whose history is followed."""
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
    """What the run of each version read, by version."""
    keys = [f"{v.run_id}{lots[v.id] or ''}" for v in versions if v.run_id is not None]
    by_run: dict[str, set[str]] = defaultdict(set)
    for run_id, version_id in tx.fetch("versions_read_by_runs", keys=keys):
        by_run[run_id].add(version_id)
    return {v.id: tuple(sorted(by_run[v.run_id])) for v in versions if v.run_id is not None}


def _describe(tx: Transaction, walk: Walk) -> None:
    """Who claimed what was made, in how many parts, and who registered what was not."""
    nodes = walk.nodes.values()
    made = [node for node in nodes if node.run is not None]
    runs = {node.run.id: node for node in made if node.run is not None}
    claims = [
        f"{node.run.job_id}{node.run.id}{node.lot}"
        for node in made
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


def _from_outside(nodes: Iterable[Node]) -> set[tuple[str, str]]:
    return {
        (node.version.dataset_id, node.lot)
        for node in nodes
        if node.version.origin == Origin.DECLARED and node.lot is not None
    }
