"""Small graphs for lineage tests: datasets, jobs and runs in short calls."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from penstock import ids
from penstock.catalog.rows import (
    AliasRow,
    ColumnEdgeRow,
    DatasetRow,
    EdgeRow,
    JobRow,
    JobVersionRow,
    RunDatasetRow,
    RunRow,
    VersionRow,
    replace,
)
from penstock.clock import SECOND, Micros
from penstock.db import Database, Transaction
from penstock.schema.catalog import DatasetRole
from penstock.schema.lineage import ColumnGraph, LineageGraph
from penstock.states import RunState
from tests.contract.catalog_rows import NAMESPACE, NOW, dataset, job, run, version

Arrow = tuple[str, str]


def at(second: int) -> Micros:
    """Return the time at this second of the scene."""
    return NOW + second * SECOND


class Scene:
    """Rows that are written together. A later call for the same thing replaces the earlier one."""

    def __init__(self) -> None:
        self.datasets: dict[str, DatasetRow] = {}
        self.versions: dict[str, VersionRow] = {}
        self.jobs: dict[str, JobRow] = {}
        self.job_versions: dict[str, JobVersionRow] = {}
        self.runs: dict[str, RunRow] = {}
        self.edges: dict[tuple[str, str, str], EdgeRow] = {}
        self.touched: dict[tuple[str, str, str], RunDatasetRow] = {}
        self.columns: list[ColumnEdgeRow] = []
        self.aliases: list[AliasRow] = []

    def save(self, database: Database) -> None:
        """Write and commit everything."""
        with database.write() as tx:
            self.write(tx)

    def write(self, tx: Transaction) -> None:
        """Write everything."""
        tables: list[tuple[str, Collection[msgspec.Struct]]] = [
            ("put_datasets", self.datasets.values()),
            ("move_datasets", self.datasets.values()),
            ("put_versions", self.versions.values()),
            ("put_jobs", self.jobs.values()),
            ("put_job_versions", self.job_versions.values()),
            ("put_runs", self.runs.values()),
            ("put_edges", self.edges.values()),
            ("put_run_datasets", self.touched.values()),
            ("put_column_edges", self.columns),
            ("put_aliases", self.aliases),
        ]
        for statement, rows in tables:
            tx.write(statement, list(rows))

    def dataset(self, name: str, namespace: str = NAMESPACE, **values: object) -> DatasetRow:
        """Return a dataset. Create it if it is new."""
        id = ids.dataset_id(namespace, name)
        row = replace(self.datasets.get(id) or dataset(name, namespace), **values)
        self.datasets[id] = row
        return row

    def version(
        self,
        of: str,
        number: int,
        published: Micros | None,
        by: RunRow | None = None,
        **more: object,
    ) -> VersionRow:
        """Add a version of a dataset. The one published last is current."""
        owner = self.dataset(of)
        row = version(owner, number, by, published_at=published, **more)
        self.versions[row.id] = row
        owner = self.dataset(of, latest_version_id=row.id, latest_number=number)
        if published is not None and published >= (owner.published_at or 0):
            self.dataset(of, current_version_id=row.id, published_at=published)
        return row

    def job(
        self,
        name: str,
        reads: Iterable[str] = (),
        writes: Iterable[str] = (),
        *,
        current: bool = True,
        first_at: Micros = NOW,
        **values: object,
    ) -> JobRow:
        """Return a job with these edges. An edge keeps the time when it was first seen."""
        id = ids.job_id(NAMESPACE, name)
        row = replace(self.jobs.get(id) or job(name), **values)
        self.jobs[id] = row
        for role, names in ((DatasetRole.INPUT, reads), (DatasetRole.OUTPUT, writes)):
            for other in names:
                dataset_id = self.dataset(other).id
                previous = self.edges.get((id, role, dataset_id))
                first = min(first_at, previous.first_at) if previous else first_at
                edge = EdgeRow(id, role, dataset_id, int(current), first)
                self.edges[id, role, dataset_id] = edge
        return row

    def job_version(
        self, of: str, reads: Sequence[str], writes: Sequence[str], **values: object
    ) -> JobVersionRow:
        """Add a shape of a job."""
        owner = self.job(of)
        sides = [
            msgspec.json.encode([{"namespace": NAMESPACE, "name": name} for name in names]).decode()
            for names in (reads, writes)
        ]
        id = ids.derived_id("shape", owner.id, *sides)
        row = JobVersionRow(id, owner.id, None, sides[0], sides[1], None, NOW, None)
        self.job_versions[id] = replace(row, **values)
        return self.job_versions[id]

    def run(
        self,
        of: str,
        began: int,
        ended: int | None,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
    ) -> RunRow:
        """Add a run with its edges.

        A finished run leaves a shape; that of the last run is current.
        """
        owner = self.job(of, reads, writes, first_at=at(began))
        state = RunState.RUNNING if ended is None else RunState.COMPLETED
        row = run(owner, began, state, ended_at=None if ended is None else at(ended))
        owner = self.job(of, latest_run_id=row.id)
        if ended is not None:
            shape = self.job_version(of, reads, writes, created_at=at(began))
            row = replace(row, job_version_id=shape.id)
            if at(ended) >= owner.version_at:
                self.job(of, current_version_id=shape.id, version_at=at(ended))
        self.runs[row.id] = row
        for role, names in ((DatasetRole.INPUT, reads), (DatasetRole.OUTPUT, writes)):
            for name in names:
                self.touch(row, role, name)
        return row

    def touch(
        self, by: RunRow, role: DatasetRole, name: str, what: VersionRow | None = None
    ) -> None:
        """Record that a run read or wrote a dataset, in this version or any."""
        dataset_id = self.dataset(name).id
        version_id = what.id if what else ids.derived_id("some version", dataset_id)
        row = RunDatasetRow(by.id, role, dataset_id, version_id, "{}", "{}")
        self.touched[by.id, role, dataset_id] = row

    def columns_of(self, what: VersionRow, made_from: dict[str, list[Arrow]]) -> None:
        """Derive fields of a version from fields of datasets, each a `(dataset, field)`."""
        set_id = ids.derived_id("columns", what.id)
        self.versions[what.id] = replace(what, column_set_id=set_id)
        for field, sources in made_from.items():
            for name, source_field in sources:
                source = self.dataset(name).id
                self.columns.append(
                    ColumnEdgeRow(set_id, what.dataset_id, field, source, source_field, None, None)
                )


def nodes(graph: LineageGraph | ColumnGraph) -> list[str]:
    """Return the nodes of a graph by name."""
    return [_short(node.id) for node in graph.graph]


def arrows(graph: LineageGraph | ColumnGraph) -> set[Arrow]:
    """Return the edges of a graph by the names of their ends.

    Both ends must list the same edges.
    """
    into = [edge for node in graph.graph for edge in node.in_edges]
    out_of = [edge for node in graph.graph for edge in node.out_edges]
    assert sorted(into, key=repr) == sorted(out_of, key=repr)
    assert all(edge.destination == node.id for node in graph.graph for edge in node.in_edges)
    assert all(edge.origin == node.id for node in graph.graph for edge in node.out_edges)
    return {(_short(edge.origin), _short(edge.destination)) for edge in into}


def _short(node_id: str) -> str:
    return node_id.partition(f":{NAMESPACE}:")[2]
