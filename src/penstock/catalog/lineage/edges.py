"""The edges of a graph: current ones, all ever seen, or those of a time."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from penstock.catalog.lineage.nodes import PinnedJobVersion
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Ask, Row
from penstock.errors import Invalid
from penstock.ids import dataset_id
from penstock.schema.catalog import DatasetRole, EntityId

NOW: Micros = 2**62  # after every time that a row can hold

History = Literal["current", "all"]
Roles = tuple[str, str]  # roles to follow; a single role stands twice
Answers = list[list[Row]]
_read_names = msgspec.json.Decoder(list[EntityId]).decode


class JobEdge(NamedTuple):
    """A dataset that a job reads or writes."""

    job_id: str
    role: str
    dataset_id: str
    namespace: str
    name: str


class EdgeSource(Protocol):
    """Edges between datasets and jobs, without deleted datasets.

    Each call takes other queries along on its round trip and returns their answers.
    """

    def edges_of(self, jobs: Sequence[str], *along: Ask) -> tuple[list[JobEdge], Answers]:
        """Return every edge of these jobs; edges to the root stay, deleted or not."""

    def jobs_beside(
        self, datasets: Sequence[str], roles: Roles, *along: Ask
    ) -> tuple[list[str], Answers]:
        """Return the jobs, deleted or not, that have one of these datasets in a role."""


class KeptEdges:
    """Edges in job_edges at a time: the current ones, or all."""

    def __init__(self, tx: Transaction, root: str, *, current: bool, as_of: Micros | None) -> None:
        self._tx = tx
        self._root = root
        self._as_of = as_of
        at = NOW if as_of is None else as_of
        self._edges = {"current": int(current), "at": at, "root": root}
        if as_of is None:
            self._beside, self._filter = "lineage_jobs_beside", {"current": int(current)}
        else:
            self._beside, self._filter = "lineage_jobs_beside_as_of", {"at": at}

    def edges_of(self, jobs: Sequence[str], *along: Ask) -> tuple[list[JobEdge], Answers]:
        ask = ("lineage_edges_of_jobs", {"ids": jobs, **self._edges})
        rows, *answers = self._tx.fetch_many([ask, *along])
        edges = [JobEdge(*row) for row in rows]
        dropped = dropped_then(self._tx, {e.dataset_id for e in edges} - {self._root}, self._as_of)
        return [edge for edge in edges if edge.dataset_id not in dropped], answers

    def jobs_beside(
        self, datasets: Sequence[str], roles: Roles, *along: Ask
    ) -> tuple[list[str], Answers]:
        ask = (self._beside, {"ids": datasets, **_named(roles), **self._filter})
        rows, *answers = self._tx.fetch_many([ask, *along])
        return [job for _, _, job in rows], answers


class PastEdges:
    """Edges that were current at a time.

    job_edges records only whether an edge is current now. The edges at a time are those of the job
    version at that time and of runs unfinished then.
    """

    def __init__(self, tx: Transaction, root: str, at: Micros) -> None:
        self._tx = tx
        self._root = root
        self._at = at
        self._edges: dict[str, set[tuple[str, str]]] = {}  # of a job: role and dataset
        self._names: dict[str, tuple[str, str] | None] = {}  # None: not shown

    def edges_of(self, jobs: Sequence[str], *along: Ask) -> tuple[list[JobEdge], Answers]:
        self._load(jobs)
        edges = [
            JobEdge(job, role, dataset, *name)
            for job in jobs
            for role, dataset in self._edges[job]
            if (name := self._names[dataset]) is not None
        ]
        return edges, self._tx.fetch_many(along)

    def jobs_beside(
        self, datasets: Sequence[str], roles: Roles, *along: Ask
    ) -> tuple[list[str], Answers]:
        ask = ("lineage_jobs_beside_as_of", {"ids": datasets, **_named(roles), "at": self._at})
        rows, *answers = self._tx.fetch_many([ask, *along])
        self._load({job for _, _, job in rows})
        beside = [job for dataset, role, job in rows if (role, dataset) in self._edges[job]]
        return beside, answers

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
        self._load_names({dataset for job in fresh for _, dataset in self._edges[job]})

    def _load_names(self, datasets: Iterable[str]) -> None:
        fresh = [dataset for dataset in datasets if dataset not in self._names]
        self._names.update(dict.fromkeys(fresh))
        self._names.update(_visible_names(self._tx, fresh, self._at, self._root))


class PinnedEdges:
    """The edges of another source, except for one job with a given version."""

    def __init__(
        self, tx: Transaction, source: EdgeSource, job: str, version: PinnedJobVersion, at: Micros
    ) -> None:
        self._source = source
        self._job = job
        ends = _edges_of_version(version.inputs, version.outputs)
        names = _visible_names(tx, [dataset for _, dataset in ends], at, job)
        self._edges = [
            JobEdge(job, role, dataset, *names[dataset])
            for role, dataset in ends
            if dataset in names
        ]

    def edges_of(self, jobs: Sequence[str], *along: Ask) -> tuple[list[JobEdge], Answers]:
        others = [job for job in jobs if job != self._job]
        edges, answers = self._source.edges_of(others, *along)
        return (edges if len(others) == len(jobs) else [*self._edges, *edges]), answers

    def jobs_beside(
        self, datasets: Sequence[str], roles: Roles, *along: Ask
    ) -> tuple[list[str], Answers]:
        return self._source.jobs_beside(datasets, roles, *along)


def edge_source(
    tx: Transaction,
    root: str,
    history: History,
    as_of: Micros | None,
    root_version: PinnedJobVersion | None = None,
) -> EdgeSource:
    """Return the source of edges for a graph around this root."""
    if history not in ("current", "all"):
        raise Invalid(f"history {history!r} is neither current nor all")
    at = NOW if as_of is None else as_of
    source: EdgeSource
    if as_of is not None and history == "current":
        source = PastEdges(tx, root, at)
    else:
        source = KeptEdges(tx, root, current=history == "current", as_of=as_of)
    return source if root_version is None else PinnedEdges(tx, source, root, root_version, at)


def _named(roles: Roles) -> dict[str, str]:
    return {"role": roles[0], "other_role": roles[1]}


def _visible_names(
    tx: Transaction, datasets: Sequence[str], at: Micros, root: str
) -> dict[str, tuple[str, str]]:
    rows = tx.fetch("lineage_visible_datasets", ids=datasets, at=at, root=root) if datasets else []
    dropped = dropped_then(tx, {dataset for dataset, _, _ in rows} - {root}, at)
    return {d: (namespace, name) for d, namespace, name in rows if d not in dropped}


def dropped_then(tx: Transaction, datasets: Collection[str], at: Micros | None) -> set[str]:
    """Return those of these datasets that exist now but were dropped at a time."""
    if not datasets or at is None or at == NOW:
        return set()
    rows = tx.fetch("lineage_dropped_as_of", ids=list(datasets), at=at)
    return {dataset for (dataset,) in rows}


def _edges_of_version(inputs: str, outputs: str) -> set[tuple[str, str]]:
    """Return the roles and datasets in the lists of a job version."""
    read = {(DatasetRole.INPUT.value, dataset_id(n.namespace, n.name)) for n in _read_names(inputs)}
    written = {
        (DatasetRole.OUTPUT.value, dataset_id(n.namespace, n.name)) for n in _read_names(outputs)
    }
    return read | written
