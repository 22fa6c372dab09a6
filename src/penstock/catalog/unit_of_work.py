"""The unit of work with the catalog's tables."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from penstock.catalog.new_run_ids import NewRunIds
from penstock.catalog.rows import (
    AliasRow,
    ColumnEdgeRow,
    DatasetRow,
    EdgeRow,
    EventRow,
    FacetSetRow,
    JobRow,
    JobVersionRow,
    NamespaceRow,
    RunDatasetRow,
    RunRow,
    SightingRow,
    SourceRow,
    StreamSchemaRow,
    TagRow,
    TagUseRow,
    VersionRow,
)
from penstock.clock import Micros
from penstock.db.database import Ask
from penstock.schema.catalog import DatasetRole
from penstock.store.table_cache import TableCache, filling, learning, write_only
from penstock.store.unit_of_work import BaseUnitOfWork

IoKey = tuple[str, str]  # role, dataset id
Io = Mapping[IoKey, RunDatasetRow]
Edges = Mapping[IoKey, Micros]  # since when

R = TypeVar("R", bound=Struct)

Place = tuple[Micros, str]  # sort key of a published version among those of its dataset

PAGE_OF_VERSIONS = 100
# Rows may contain large event payloads. Their total size has a limit of its own.
HEAVY = 65_536
HEAVY_KEPT_MAX = 32 << 20


class RowKeys(Struct):
    """Keys of the rows that a batch needs, loaded in one round trip."""

    runs: set[str] = msgspec.field(default_factory=set)
    jobs: set[str] = msgspec.field(default_factory=set)
    datasets: set[str] = msgspec.field(default_factory=set)
    namespaces: set[str] = msgspec.field(default_factory=set)
    sources: set[str] = msgspec.field(default_factory=set)


_NO_KEYS = RowKeys()


class UnitOfWork(BaseUnitOfWork):
    """The caches of the catalog's tables; other rooms add theirs with `tables`."""

    def __init__(self) -> None:
        super().__init__()
        self._heavy = 0  # characters of large events
        self._past: deque[tuple[set[str], set[str | None]]] = deque()
        self._new_runs = NewRunIds()
        self.namespaces = self.cache(NamespaceRow, "namespaces_by_names", "name")
        self.sources = self.cache(SourceRow, "sources_by_names", "name")
        self.grants: TableCache[frozenset[str]] = TableCache(self._fetch_grants, self.undo)
        self.tags = self.cache(TagRow, "tags_by_names", "name")
        self.datasets = self.cache(DatasetRow, "datasets_by_ids")
        self.sightings = self.cache(SightingRow, "sightings_by_ids", "dataset_id")
        self.aliases = self.cache(AliasRow, "aliases_by_ids")
        self.versions = self.cache(VersionRow, "versions_by_ids")
        self.facet_sets = self.cache(FacetSetRow, "facet_sets_by_ids")
        self.jobs = self.cache(JobRow, "jobs_by_ids")
        self.job_versions = self.cache(JobVersionRow, "job_versions_by_ids")
        self.runs = self.cache(RunRow, "runs_by_ids")
        self.io: TableCache[Io] = TableCache(self._fetch_io, self.undo)
        self.edges: TableCache[Edges] = TableCache(self._fetch_edges, self.undo)
        self.tag_uses: TableCache[TagUseRow] = TableCache(write_only, self.undo)
        self.run_datasets: TableCache[RunDatasetRow] = TableCache(write_only, self.undo)
        self.edge_rows: TableCache[EdgeRow] = TableCache(write_only, self.undo)
        self.lost_edges: TableCache[EdgeRow] = TableCache(write_only, self.undo)
        self.column_edges: TableCache[tuple[ColumnEdgeRow, ...]] = TableCache(write_only, self.undo)
        self.events: TableCache[EventRow] = TableCache(write_only, self.undo)
        self.stream_schemas: TableCache[StreamSchemaRow] = TableCache(write_only, self.undo)
        self._cached = [
            self.namespaces, self.sources, self.tags, self.datasets, self.sightings, self.aliases,
            self.versions, self.facet_sets, self.jobs, self.job_versions, self.runs, self.io,
            self.edges, self.grants,
        ]  # fmt: skip
        self._append_only = [
            self.tag_uses, self.run_datasets, self.edge_rows, self.lost_edges, self.column_edges,
            self.events, self.stream_schemas,
        ]  # fmt: skip

    def new_keys(self) -> RowKeys:
        """Return an empty set of keys for commands to add to."""
        return RowKeys()

    def mark_sent(self) -> None:
        """Record that the batch was sent, and drop runs that ended before the last batch."""
        self._drop_the_past()
        sizes = [len(event.payload) for event in self.events.changed()]
        self._heavy += sum(size for size in sizes if size > HEAVY)
        super().mark_sent()

    @property
    def is_full(self) -> bool:
        """Whether the caches hold too much, or rows that no longer match the database."""
        return self._heavy > HEAVY_KEPT_MAX or super().is_full

    def _drop_the_past(self) -> None:
        """Drop runs that have ended and versions that are no longer current.

        Only rows that the database has: the rows of this batch and of the one before it may be
        uncommitted.
        """
        if len(self._past) == 2:
            runs, versions = self._past.popleft()
            runs -= self.runs.uncommitted_keys() | self.io.uncommitted_keys()
            self.runs.drop(runs)
            self.io.drop(runs)
            self._new_runs.drop(runs)
            self.versions.drop(versions - self.versions.uncommitted_keys())
        ended = {run.id for run in self.runs.changed() if run.ended_at is not None}
        current = {row.current_version_id for row in self.datasets.changed()}
        replaced = {row.current_version_id for row in self.datasets.before.values() if row}
        written = {v.id for v in self.versions.changed() if v.run_id in ended}
        self._past.append((ended, (replaced | written) - current))

    def forget(self) -> None:
        """Drop all rows: another process wrote, or a batch failed."""
        self._heavy = 0
        self._past.clear()
        self._new_runs.forget()
        super().forget()

    def load(self, keys: RowKeys, now: Micros) -> None:
        """Fetch all rows that these keys lead to, in one round trip."""
        if keys == _NO_KEYS:
            return
        runs = self._new_runs.without_new(self.runs.missing(keys.runs), self.runs, self.io)
        jobs = self.jobs.missing(keys.jobs)
        datasets = self.datasets.missing(keys.datasets)
        namespaces = self.namespaces.missing(keys.namespaces)
        sources = self.sources.missing(keys.sources)
        asks: list[tuple[Ask, Any]] = []

        def ask(statement: str, wanted: Sequence[str], take: Any) -> None:
            if wanted:
                asks.append(((statement, {"ids": wanted}), take))

        if runs and (question := self._new_runs.question(now)) is not None:
            asks.append(question)
        ask("runs_by_ids", runs, filling(self.runs, runs, RunRow))
        ask("run_datasets_by_runs", runs, lambda rows: self.io.fill(runs, _io_by_run(rows)))
        ask("jobs_by_ids", jobs, filling(self.jobs, jobs, JobRow))
        ask("current_edges_of_jobs", jobs, lambda rows: self.edges.fill(jobs, _edges(jobs, rows)))
        ask("current_versions_of_jobs", jobs, learning(self.job_versions, JobVersionRow))
        ask("datasets_by_ids", datasets, filling(self.datasets, datasets, DatasetRow))
        ask("sightings_by_ids", datasets, filling(self.sightings, datasets, SightingRow))
        ask("aliases_by_ids", datasets, filling(self.aliases, datasets, AliasRow))
        ask("current_versions_of_datasets", datasets, learning(self.versions, VersionRow))
        ask("namespaces_by_names", namespaces, filling(self.namespaces, namespaces, NamespaceRow))
        ask("sources_by_names", sources, filling(self.sources, sources, SourceRow))
        if asks:
            answers = self.tx.fetch_many([asked for asked, _ in asks])
            for (_, take), rows in zip(asks, answers, strict=True):
                take(rows)
        self._load_versions_of(runs)

    def _load_versions_of(self, runs: Sequence[str]) -> None:
        """Load the versions that known runs wrote."""
        written = [
            row.version_id
            for run in runs
            for row in self.io_of(run).values()
            if row.role == DatasetRole.OUTPUT
        ]
        if wanted := self.versions.missing(written):
            rows = self.tx.rows(VersionRow, "versions_by_ids", ids=wanted)
            self.versions.fill(wanted, {row.id: row for row in rows})

    def _fetch_io(self, runs: list[str]) -> dict[str, Io]:
        inputs_and_outputs: dict[str, Io] = {run: {} for run in runs}
        inputs_and_outputs.update(_io_by_run(self.tx.fetch("run_datasets_by_runs", ids=runs)))
        return inputs_and_outputs

    def _fetch_edges(self, jobs: list[str]) -> dict[str, Edges]:
        return _edges(jobs, self.tx.fetch("current_edges_of_jobs", ids=jobs))

    def _fetch_grants(self, namespaces: list[str]) -> dict[str, frozenset[str]]:
        grantees: dict[str, set[str]] = {}
        for namespace, grantee in self.tx.fetch("grants_by_namespaces", ids=namespaces):
            grantees.setdefault(namespace, set()).add(grantee)
        return {namespace: frozenset(names) for namespace, names in grantees.items()}

    def dataset_id(self, named: str) -> str:
        """Return the dataset id behind a name's id:

        usually the id itself, or the target of an alias.
        """
        alias = self.aliases.get(named)
        return alias.dataset_id if alias is not None else named

    def io_of(self, run_id: str) -> Io:
        """Return the datasets that a run reads and writes."""
        return self.io.get(run_id) or {}

    def edges_of(self, job_id: str) -> Edges:
        """Return the current edges of a job."""
        return self.edges.get(job_id) or {}

    def put_io(self, row: RunDatasetRow) -> None:
        """Record a dataset that a run reads or writes."""
        self.io.put(row.run_id, {**self.io_of(row.run_id), (row.role, row.dataset_id): row})
        self.run_datasets.put((row.run_id, row.role, row.dataset_id), row)

    def put_edge(self, row: EdgeRow) -> None:
        """Record a dataset that a job reads or writes; keep the earliest first sight."""
        edges, key = dict(self.edges_of(row.job_id)), (row.role, row.dataset_id)
        former = self.edge_rows.get((row.job_id, *key))
        if former is not None and former.first_at < row.first_at:
            row = msgspec.structs.replace(row, first_at=former.first_at)
        self.edge_rows.put((row.job_id, *key), row)
        since = edges.pop(key, row.first_at)
        if row.current:
            edges[key] = min(since, row.first_at)
        self.edges.put(row.job_id, edges)

    def forget_edge(self, job_id: str, role: DatasetRole, dataset_id: str) -> None:
        """Delete an edge of a job."""
        key = (job_id, role, dataset_id)
        self.edge_rows.put(key, None)
        self.lost_edges.put(key, EdgeRow(job_id, role, dataset_id, 0, 0))
        edges = {k: at for k, at in self.edges_of(job_id).items() if k != (role, dataset_id)}
        self.edges.put(job_id, edges)

    def newest_published(self, dataset_id: str, without_run: str | None) -> VersionRow | None:
        """Return the version published last, except versions of one run."""
        versions = self._versions("newest_published_versions", dataset_id, without_run)
        published = [v for v in versions if v.published_at is not None]
        return max(published, key=lambda v: (v.published_at, v.id), default=None)

    def published_as_of(self, dataset_id: str, at: Micros) -> VersionRow | None:
        """Return the version that was current at a time, by the rows known now."""
        changed = {v.id: v for v in self.versions.unstored() if v.dataset_id == dataset_id}
        most = len(changed) + 1
        stored = self.tx.rows(
            VersionRow, "versions_published_by", dataset_id=dataset_id, at=at, most=most
        )
        seen = {v.id: v for v in stored} | changed
        published = [
            v for v in seen.values() if v.published_at is not None and v.published_at <= at
        ]
        return max(published, key=lambda v: (v.published_at, v.id), default=None)

    def published_before(self, version: VersionRow) -> VersionRow | None:
        """Return the version of a dataset published before another one."""
        most = len(self._unstored_versions(version.dataset_id)) + 1
        rows, _ = self._published_beside("versions_published_before", version, most)
        place = place_of(version)
        return max((v for v in rows if place_of(v) < place), key=place_of, default=None)

    def published_after(self, version: VersionRow) -> list[VersionRow]:
        """Return the versions published after another one, oldest first.

        Returns at most one page; an empty list means that there are none.
        """
        most = len(self._unstored_versions(version.dataset_id)) + PAGE_OF_VERSIONS
        rows, last = self._published_beside("versions_published_after", version, most)
        place = place_of(version)
        later = [v for v in rows if place < place_of(v) and (last is None or place_of(v) <= last)]
        return sorted(later, key=place_of)

    def _published_beside(
        self, statement: str, version: VersionRow, most: int
    ) -> tuple[list[VersionRow], Place | None]:
        """Return published versions on one side of another, and the last place of a full page."""
        stored = self.tx.rows(
            VersionRow,
            statement,
            dataset_id=version.dataset_id,
            at=version.published_at,
            id=version.id,
            most=most,
        )
        last = place_of(stored[-1]) if len(stored) == most else None
        seen = {v.id: v for v in stored} | self._unstored_versions(version.dataset_id)
        return [v for v in seen.values() if v.published_at is not None], last

    def _unstored_versions(self, dataset_id: str) -> dict[str, VersionRow]:
        return {v.id: v for v in self.versions.unstored() if v.dataset_id == dataset_id}

    def newest_version(self, dataset_id: str, without_run: str | None) -> VersionRow | None:
        """Return the version with the highest number, except versions of one run."""
        versions = self._versions("newest_versions", dataset_id, without_run)
        return max(versions, key=lambda v: v.number, default=None)

    def _versions(
        self, statement: str, dataset_id: str, without_run: str | None
    ) -> list[VersionRow]:
        """Return stored versions, overlaid with changes of the batch."""
        changed = {v.id: v for v in self.versions.unstored() if v.dataset_id == dataset_id}
        stored = self.tx.rows(VersionRow, statement, dataset_id=dataset_id, most=len(changed) + 2)
        seen = {v.id: v for v in stored} | changed
        return [v for v in seen.values() if without_run is None or v.run_id != without_run]

    def newest_run(self, job_id: str) -> RunRow | None:
        """Return the newest run of a job."""
        runs = self._runs("newest_runs_of_job", job_id)
        return max(runs, key=lambda r: (r.created_at, r.id), default=None)

    def newest_run_of(self, version: JobVersionRow) -> RunRow | None:
        """Return the newest run with this job version."""
        runs = self._runs_with(version, "newest_runs_of_job_version")
        return max(runs, key=lambda r: (r.created_at, r.id), default=None)

    def first_run_of(self, version: JobVersionRow) -> RunRow | None:
        """Return the first run with this job version."""
        runs = self._runs_with(version, "first_runs_of_job_version")
        return min(runs, key=lambda r: (r.created_at, r.id), default=None)

    def _runs_with(self, version: JobVersionRow, statement: str) -> list[RunRow]:
        # No run of the version is older than the version, unless the version was declared.
        since = version.created_at if version.declared_at is None else 0
        runs = self._runs(statement, version.job_id, version_id=version.id, since=since)
        return [r for r in runs if r.job_version_id == version.id]

    def settled_runs(self, job_id: str, *, streams: bool) -> list[RunRow]:
        """Return the runs that can determine the current version of a job."""
        runs = self._runs("last_ended_runs_of_job", job_id)
        if streams:
            runs += self._runs("going_runs_of_job", job_id)
        return [r for r in runs if r.job_version_id and (streams or r.ended_at is not None)]

    def _runs(self, statement: str, job_id: str, **params: object) -> list[RunRow]:
        """Return stored runs, overlaid with changes of the batch."""
        changed = {r.id: r for r in self.runs.unstored()}
        most = len(changed) + 1
        stored = self.tx.rows(RunRow, statement, job_id=job_id, most=most, **params)
        seen = {r.id: r for r in stored} | changed
        return [r for r in seen.values() if r.job_id == job_id]

    def shapes_of(self, job_id: str) -> list[JobVersionRow]:
        """Return every version that a job has had."""
        stored = [found for (found,) in self.tx.fetch("ids_of_job_versions", job_id=job_id)]
        self.job_versions.prefetch(stored)
        changed = [v.id for v in self.job_versions.unstored() if v.job_id == job_id]
        rows = map(self.job_versions.get, dict.fromkeys([*stored, *changed]))
        return [row for row in rows if row is not None]

    def newest_declared(self, job_id: str) -> JobVersionRow | None:
        """Return the job version that was declared last."""
        changed = {v.id: v for v in self.job_versions.unstored()}
        most = len(changed) + 1
        stored = self.tx.rows(JobVersionRow, "last_declared_job_versions", job_id=job_id, most=most)
        seen = {v.id: v for v in stored} | changed
        stated = [v for v in seen.values() if v.job_id == job_id and v.declared_at is not None]
        return max(stated, key=lambda v: (v.declared_at, v.id), default=None)

    def first_run_with(self, job_id: str, role: DatasetRole, dataset_id: str) -> RunRow | None:
        """Return the first run of a job that read or wrote a dataset."""
        runs = self._runs("first_runs_with_edge", job_id, role=role, dataset_id=dataset_id)
        having = [run for run in runs if (role, dataset_id) in self.io_of(run.id)]
        return min(having, key=lambda r: (r.created_at, r.id), default=None)

    def going_edges(self, job_id: str) -> set[IoKey]:
        """Return the datasets that unfinished runs of a job read and write."""
        edges: set[IoKey] = set()
        changed = self.runs.unstored()
        for run in changed:
            if run.job_id == job_id and run.ended_at is None:
                edges.update(self.io_of(run.id))
        known = {run.id for run in changed}
        for run_id, role, dataset_id in self.tx.fetch("going_edges_of_job", job_id=job_id):
            if run_id not in known:
                edges.add((role, dataset_id))
        return edges


def place_of(version: VersionRow) -> Place:
    """Return the sort key of a published version among those of its dataset."""
    return version.published_at or 0, version.id


def _io_by_run(rows: Iterable[tuple[Any, ...]]) -> dict[str, Io]:
    by_run: dict[str, dict[IoKey, RunDatasetRow]] = {}
    for row in rows:
        by_run.setdefault(row[0], {})[(row[1], row[2])] = RunDatasetRow(*row)
    return dict(by_run)


def _edges(jobs: list[str], rows: Iterable[tuple[Any, ...]]) -> dict[str, Edges]:
    by_job: dict[str, dict[IoKey, Micros]] = {job: {} for job in jobs}
    for job_id, role, dataset_id, first_at in rows:
        by_job[job_id][DatasetRole(role).value, dataset_id] = first_at
    return dict(by_job)
