"""Which edges a graph is made of: those that stand now, all there ever were, or those of a time."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from penstock.catalog.nodes import PinnedJobVersion
from penstock.catalog.rows import Role
from penstock.catalog.shapes import EntityId
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.ids import dataset_id

NOW: Micros = 2**62  # after every time that a row can hold

History = Literal["current", "all"]
Roles = tuple[str, str]  # the roles to follow; one that stands alone stands twice
_read_names = msgspec.json.Decoder(list[EntityId]).decode


class JobEdge(NamedTuple):
    """That a job reads or writes a dataset."""

    job_id: str
    role: str
    dataset_id: str
    namespace: str
    name: str


class EdgeSource(Protocol):
    """Edges between datasets and jobs, with what is deleted left out."""

    def jobs_beside(self, datasets: Sequence[str], roles: Roles) -> Iterable[str]:
        """The jobs that have any of these datasets in one of the roles."""

    def datasets_beside(self, jobs: Sequence[str], roles: Roles) -> Iterable[str]:
        """The datasets that any of these jobs has in one of the roles."""

    def edges_of(self, jobs: Sequence[str]) -> list[JobEdge]:
        """Every edge of these jobs; one to the root stays, deleted or not."""


class KeptEdges:
    """The edges in job_edges that were there at a time: the current ones, or all."""

    def __init__(self, tx: Transaction, root: str, *, current: bool, at: Micros) -> None:
        self._tx = tx
        self._root = root
        self._filter = {"current": int(current), "at": at}

    def jobs_beside(self, datasets: Sequence[str], roles: Roles) -> Iterable[str]:
        return self._beside("lineage_jobs_beside", datasets, roles)

    def datasets_beside(self, jobs: Sequence[str], roles: Roles) -> Iterable[str]:
        return self._beside("lineage_datasets_beside", jobs, roles)

    def _beside(self, statement: str, ids: Sequence[str], roles: Roles) -> Iterable[str]:
        role, other = roles
        rows = self._tx.fetch(statement, ids=ids, role=role, other_role=other, **self._filter)
        return (found for (found,) in rows)

    def edges_of(self, jobs: Sequence[str]) -> list[JobEdge]:
        rows = self._tx.fetch("lineage_edges_of_jobs", ids=jobs, root=self._root, **self._filter)
        return [JobEdge(*row) for row in rows]


class PastEdges:
    """The edges that were current at a time.

    job_edges says only whether an edge is current now. What a job had then is what its version
    of that time says and what its runs that were unfinished then touched.
    """

    def __init__(self, tx: Transaction, root: str, at: Micros) -> None:
        self._tx = tx
        self._root = root
        self._at = at
        self._edges: dict[str, set[tuple[str, str]]] = {}  # of a job: role and dataset
        self._names: dict[str, tuple[str, str] | None] = {}  # None: not to be shown

    def jobs_beside(self, datasets: Sequence[str], roles: Roles) -> Iterable[str]:
        role, other = roles
        rows = self._tx.fetch(
            "lineage_candidates_as_of", ids=datasets, role=role, other_role=other, at=self._at
        )
        self._load({job for job, _, _ in rows})
        return (job for job, role, dataset in rows if (role, dataset) in self._edges[job])

    def datasets_beside(self, jobs: Sequence[str], roles: Roles) -> Iterable[str]:
        return (edge.dataset_id for edge in self.edges_of(jobs) if edge.role in roles)

    def edges_of(self, jobs: Sequence[str]) -> list[JobEdge]:
        self._load(jobs)
        return [
            JobEdge(job, role, dataset, *name)
            for job in jobs
            for role, dataset in self._edges[job]
            if (name := self._names[dataset]) is not None
        ]

    def _load(self, jobs: Iterable[str]) -> None:
        fresh = [job for job in jobs if job not in self._edges]
        if not fresh:
            return
        versions, unfinished = self._tx.fetch_many(
            [
                ("lineage_versions_as_of", {"ids": fresh, "at": self._at}),
                ("lineage_unfinished_as_of", {"ids": fresh, "at": self._at}),
            ]
        )
        self._edges.update((job, set()) for job in fresh)
        for job, inputs, outputs in versions:
            self._edges[job] = _edges_of_version(inputs, outputs)
        for job, role, dataset in unfinished:
            self._edges[job].add((role, dataset))
        self._load_names(fresh)

    def _load_names(self, jobs: Iterable[str]) -> None:
        datasets = {dataset for job in jobs for _, dataset in self._edges[job]}
        fresh = [dataset for dataset in datasets if dataset not in self._names]
        if not fresh:
            return
        self._names.update(dict.fromkeys(fresh))
        rows = self._tx.fetch("lineage_visible_datasets", ids=fresh, at=self._at, root=self._root)
        self._names.update((found, (namespace, name)) for found, namespace, name in rows)


class PinnedEdges:
    """Another source's edges, but for one job, which has those of a given version."""

    def __init__(
        self, tx: Transaction, source: EdgeSource, job: str, version: PinnedJobVersion, at: Micros
    ) -> None:
        self._source = source
        self._job = job
        ends = _edges_of_version(version.inputs, version.outputs)
        datasets = [dataset for _, dataset in ends]
        rows = tx.fetch("lineage_visible_datasets", ids=datasets, at=at, root=job)
        names = {found: (namespace, name) for found, namespace, name in rows}
        self._edges = [
            JobEdge(job, role, dataset, *names[dataset])
            for role, dataset in ends
            if dataset in names
        ]

    def jobs_beside(self, datasets: Sequence[str], roles: Roles) -> Iterable[str]:
        return self._source.jobs_beside(datasets, roles)

    def datasets_beside(self, jobs: Sequence[str], roles: Roles) -> Iterable[str]:
        if self._job not in jobs:
            return self._source.datasets_beside(jobs, roles)
        own = [edge.dataset_id for edge in self._edges if edge.role in roles]
        return [*own, *self._source.datasets_beside(self._others(jobs), roles)]

    def edges_of(self, jobs: Sequence[str]) -> list[JobEdge]:
        if self._job not in jobs:
            return self._source.edges_of(jobs)
        return [*self._edges, *self._source.edges_of(self._others(jobs))]

    def _others(self, jobs: Sequence[str]) -> list[str]:
        return [job for job in jobs if job != self._job]


def edge_source(
    tx: Transaction,
    root: str,
    history: History,
    as_of: Micros | None,
    root_version: PinnedJobVersion | None = None,
) -> EdgeSource:
    """The edges that a graph around this root is made of."""
    if history not in ("current", "all"):
        raise Invalid(f"history {history!r} is neither current nor all")
    at = NOW if as_of is None else as_of
    source: EdgeSource
    if as_of is not None and history == "current":
        source = PastEdges(tx, root, at)
    else:
        source = KeptEdges(tx, root, current=history == "current", at=at)
    return source if root_version is None else PinnedEdges(tx, source, root, root_version, at)


def _edges_of_version(inputs: str, outputs: str) -> set[tuple[str, str]]:
    """The roles and datasets that a job version's lists of names mean."""
    read = {(Role.INPUT.value, dataset_id(n.namespace, n.name)) for n in _read_names(inputs)}
    written = {(Role.OUTPUT.value, dataset_id(n.namespace, n.name)) for n in _read_names(outputs)}
    return read | written
