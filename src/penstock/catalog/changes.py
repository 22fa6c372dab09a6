"""The changes of a batch: rows, and the statements that write them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct

from penstock.catalog.entities.datasets import shown_schema
from penstock.catalog.events.quality import reported_at
from penstock.catalog.events.schema import NO_SCHEMA, observed_schema
from penstock.catalog.queries.events import counted_type
from penstock.catalog.queries.search import search_body
from penstock.catalog.rows import (
    AliasRow,
    ColumnEdgeRow,
    DatasetAdvance,
    DatasetRow,
    JobAdvance,
    JobRow,
    JobVersionAdvance,
    QualityReportRow,
    RunAdvance,
    SearchRow,
    VersionAdvance,
)
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import HOUR
from penstock.store.unit_of_work import Changes


class EventCount(Struct, frozen=True):
    """A number to add to the event count of an hour."""

    hour: int
    event_type: str
    total: int


class _Tally(Struct, frozen=True):
    kind: str
    namespace: str
    state: str
    total: int


class _Edge(Struct, frozen=True):
    job_id: str
    role: str
    dataset_id: str


class _Gone(Struct, frozen=True):
    id: str


# The search index depends on these fields, on names, which never change, and on the schema.
_dataset_search_parts = attrgetter("hidden", "description", "tags", "field_tags", "observed")
_job_search_parts = attrgetter("hidden", "description", "tags")


def changes(uow: UnitOfWork) -> Changes:
    """Return every change of the batch, in the order to write them."""
    former = uow.job_versions.before
    gone = [_Gone(version_id) for version_id in former if uow.job_versions.get(version_id) is None]
    datasets, advanced_datasets = uow.datasets.parted(DatasetAdvance)
    versions, advanced_versions = uow.versions.parted(VersionAdvance)
    jobs, advanced_jobs = uow.jobs.parted(JobAdvance)
    job_versions, advanced_job_versions = uow.job_versions.parted(JobVersionAdvance)
    runs, advanced_runs = uow.runs.parted(RunAdvance)
    batch: Changes = [
        ("forget_job_versions", gone),
        ("put_namespaces", uow.namespaces.changed()),
        ("put_sources", uow.sources.changed()),
        ("put_tags", uow.tags.changed()),
        ("put_tag_uses", uow.tag_uses.changed()),
        ("put_aliases", uow.aliases.changed()),
        ("move_datasets", uow.datasets.moved("hidden", "created_at")),
        ("move_versions", uow.versions.moved("number")),
        ("move_jobs", uow.jobs.moved("created_at")),
        ("put_datasets", datasets),
        ("advance_datasets", advanced_datasets),
        ("put_stream_schemas", uow.stream_schemas.changed()),
        ("put_sightings", uow.sightings.changed()),
        ("put_facet_sets", uow.facet_sets.changed()),
        ("put_versions", versions),
        ("advance_versions", advanced_versions),
        ("put_jobs", jobs),
        ("advance_jobs", advanced_jobs),
        (
            "move_runs",
            uow.runs.moved("job_id", "created_at"),
        ),  # after put_jobs: the statement reads the jobs
        ("put_job_versions", job_versions),
        ("advance_job_versions", advanced_job_versions),
        ("put_runs", runs),
        ("advance_runs", advanced_runs),
        ("put_run_datasets", uow.run_datasets.changed()),
        (
            "forget_edges",
            [_Edge(e.job_id, e.role, e.dataset_id) for e in uow.lost_edges.changed()],
        ),
        ("put_quality_reports", list(_quality_reports(uow))),
        ("put_edges", uow.edge_rows.changed()),
        ("put_column_edges", list(_column_edges(uow))),
        ("put_events", uow.events.changed()),
        ("add_event_counts", _counts(uow)),
        ("add_tallies", _tallies(uow)),
        ("put_search_docs", list(_search_docs(uow))),
        *(change for group in uow.groups for change in group.changes()),
    ]
    return [change for change in batch if change[1]]


def _column_edges(uow: UnitOfWork) -> Iterator[ColumnEdgeRow]:
    for edges in uow.column_edges.changed():
        yield from edges


def _quality_reports(uow: UnitOfWork) -> Iterator[QualityReportRow]:
    for row in uow.run_datasets.changed():
        at = reported_at(row.facets, row.stamps)
        if at is not None:
            yield QualityReportRow(row.run_id, row.role, row.dataset_id, row.version_id, at)


def _counts(uow: UnitOfWork) -> list[EventCount]:
    totals = Counter(
        (e.event_time // HOUR * HOUR, counted_type(e.kind, e.event_type))
        for e in uow.events.changed()
    )
    return [EventCount(hour, kind, total) for (hour, kind), total in sorted(totals.items())]


def _tallies(uow: UnitOfWork) -> list[_Tally]:
    """Return the changes in the numbers of visible datasets and jobs."""
    moved: Counter[tuple[str, str, str]] = Counter()
    for kind, shelf in (("DATASET", uow.datasets), ("JOB", uow.jobs)):
        for key, before in shelf.before.items():
            for row, step in ((before, -1), (shelf.get(key), 1)):
                if row is not None and not row.hidden:
                    moved[kind, row.namespace, getattr(row, "latest_run_state", "")] += step
    return [_Tally(*key, total) for key, total in sorted(moved.items()) if total]


def _search_docs(uow: UnitOfWork) -> Iterator[SearchRow]:
    changed = _datasets_that_read_differently(uow)
    stored = [row.id for row in changed if uow.datasets.before.get(row.id, row) is not None]
    second_names = _second_names(uow, stored) if changed else {}
    for row in changed:
        words = _dataset_words(uow, row, second_names.get(row.id, ()))
        yield SearchRow(row.id, "DATASET", row.namespace, row.name, row.hidden, words)
    for key, was in uow.jobs.before.items():
        job: Any = uow.jobs.get(key)
        if job is not None and _job_reads_differently(was, job):
            words = search_body(job.namespace, job.name, job.description, "[]", job.tags)
            yield SearchRow(job.id, "JOB", job.namespace, job.name, job.hidden, words)


def _datasets_that_read_differently(uow: UnitOfWork) -> list[DatasetRow]:
    """Return the datasets whose search words changed; a new second name is enough."""
    before = uow.datasets.before
    renamed = {alias.dataset_id: None for alias in uow.aliases.changed()}
    rows = {key: uow.datasets.get(key) for key in [*before, *renamed]}
    return [
        row
        for key, row in rows.items()
        if row is not None and (key in renamed or _dataset_reads_differently(uow, before[key], row))
    ]


def _second_names(uow: UnitOfWork, stored: Sequence[str]) -> dict[str, list[AliasRow]]:
    """Return the second names of datasets, stored and uncommitted, by dataset."""
    known = uow.tx.rows(AliasRow, "aliases_of_datasets", ids=stored) if stored else []
    seen = {alias.id: alias for alias in [*known, *uow.aliases.unstored()]}
    names: dict[str, list[AliasRow]] = {}
    for alias in sorted(seen.values(), key=attrgetter("namespace", "name")):
        names.setdefault(alias.dataset_id, []).append(alias)
    return names


def _dataset_words(uow: UnitOfWork, row: DatasetRow, second_names: Sequence[AliasRow]) -> str:
    return search_body(
        row.namespace,
        row.name,
        row.description,
        shown_schema(uow, row)[0],
        row.tags,
        field_tags=row.field_tags,
        second_names=[text for alias in second_names for text in (alias.name, alias.namespace)],
    )


def _dataset_reads_differently(uow: UnitOfWork, before: DatasetRow | None, row: DatasetRow) -> bool:
    if before is None or _dataset_search_parts(before) != _dataset_search_parts(row):
        return True
    shown = row.current_version_id or row.latest_version_id
    was = before.current_version_id or before.latest_version_id
    if shown == was and shown not in uow.versions.before:
        return False
    version = uow.versions.before.get(was) or (uow.versions.get(was) if was else None)
    if version is None:
        return True
    schema = (
        version.schema_id if version.schema_id != NO_SCHEMA else observed_schema(before.observed)[1]
    )
    return schema != shown_schema(uow, row)[1]


def _job_reads_differently(before: JobRow | None, job: JobRow) -> bool:
    return before is None or _job_search_parts(before) != _job_search_parts(job)
