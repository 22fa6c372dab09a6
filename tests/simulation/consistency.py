"""Invariants of the catalog's tables after any crash, checked row by row."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from penstock import ids
from penstock.catalog import rows
from penstock.catalog.events.parse import DATASET, JOB, Event, Limits, Mention, read_event
from penstock.catalog.events.schema import shown_fields
from penstock.catalog.queries.search import search_body
from penstock.catalog.rows import Origin
from penstock.clock import HOUR
from penstock.db import Transaction
from penstock.schema.catalog import DatasetRole
from penstock.states import RunState
from tests.simulation.tables import EventCount, Tally

_LIMITS = Limits()
_ENDED = {"COMPLETE": RunState.COMPLETED, "FAIL": RunState.FAILED, "ABORT": RunState.ABORTED}
_decode_names = msgspec.json.Decoder(list[dict[str, str]]).decode


class Tables:
    """All rows of the catalog, by key."""

    def __init__(self, tx: Transaction) -> None:
        self.events = tx.rows(rows.EventRow, "every_event")
        self.event_counts = tx.rows(EventCount, "every_event_count")
        self.tallies = tx.rows(Tally, "every_tally")
        self.edges = {
            (row.job_id, str(row.role), row.dataset_id): row
            for row in tx.rows(rows.EdgeRow, "every_edge")
        }
        self.datasets = {row.id: row for row in tx.rows(rows.DatasetRow, "every_dataset")}
        self.aliases = {row.id: row for row in tx.rows(rows.AliasRow, "every_alias")}
        self.versions = {row.id: row for row in tx.rows(rows.VersionRow, "every_version")}
        self.jobs = {row.id: row for row in tx.rows(rows.JobRow, "every_job")}
        shapes = tx.rows(rows.JobVersionRow, "every_job_version")
        self.job_versions = {row.id: row for row in shapes}
        self.runs = {row.id: row for row in tx.rows(rows.RunRow, "every_run")}
        self.search_docs = {row.id: row for row in tx.rows(rows.SearchRow, "every_search_doc")}
        self.io = {
            (row.run_id, row.role, row.dataset_id): row
            for row in tx.rows(rows.RunDatasetRow, "every_run_dataset")
        }

    def dataset_id(self, mention: Mention) -> str:
        """Return the id of the dataset with this name."""
        alias = self.aliases.get(mention.id)
        return alias.dataset_id if alias is not None else mention.id


def problems(tx: Transaction) -> list[str]:
    """Return every broken invariant."""
    tables = Tables(tx)
    checks = (_events, _runs, _io, _versions, _jobs, _edges, _counts, _search_docs)
    return [problem for check in checks for problem in check(tables)]


def _events(tables: Tables) -> Iterator[str]:
    """Everything that an event reports is stored."""
    for row in tables.events:
        event = read_event(row.payload.encode(), _LIMITS)
        if (row.event_time, row.kind, row.event_type, row.run_id) != (
            event.at,
            event.kind,
            event.event_type,
            event.run_id,
        ):
            yield f"event {row} does not agree with its payload"
        if event.kind == DATASET and event.dataset is not None:
            yield from _named(tables, event.dataset, row)
        elif event.kind == JOB:
            if event.job_id not in tables.jobs:
                yield f"no job for event {row}"
            for mention in (*event.inputs, *event.outputs):
                yield from _named(tables, mention, row)
        else:
            yield from _run_event(tables, event)


def _named(tables: Tables, mention: Mention, row: rows.EventRow) -> Iterator[str]:
    if tables.dataset_id(mention) not in tables.datasets:
        yield f"no dataset {mention.name} for event {row}"


def _run_event(tables: Tables, event: Event) -> Iterator[str]:
    run = tables.runs.get(event.run_id or "")
    if run is None:
        yield f"no run for event {event}"
        return
    if event.job_id not in tables.jobs or not run.created_at <= event.at <= run.updated_at:
        yield f"run {run} does not agree with event {event}"
    state = _ENDED.get(event.event_type)
    if state is not None and (run.state != state or run.ended_at is None):
        yield f"run {run.id} is {run.state} although it reported {event.event_type}"
    if event.event_type in ("START", "RUNNING") and run.state == RunState.NEW:
        yield f"run {run.id} is NEW although it reported {event.event_type}"
    for role, mentions in ((DatasetRole.INPUT, event.inputs), (DatasetRole.OUTPUT, event.outputs)):
        for mention in mentions:
            dataset = tables.dataset_id(mention)
            if (run.id, role, dataset) not in tables.io:
                yield f"run {run.id} lacks its {role} {mention.name}"
            if (run.job_id, role, dataset) not in tables.edges:
                yield f"job {run.job_id} lacks its {role} edge to {mention.name}"


def _runs(tables: Tables) -> Iterator[str]:
    """A run exists because an event of it or of its child names it."""
    reported = {row.run_id for row in tables.events}
    parents = {run.parent_run_id for run in tables.runs.values()}
    for run in tables.runs.values():
        if run.id not in reported | parents and run.stamps != "{}":
            yield f"run {run.id} has no event"
        if run.job_id not in tables.jobs:
            yield f"run {run.id} has no job"
        if run.ended_at is not None and run.job_version_id not in tables.job_versions:
            yield f"run {run.id} ended without a job version"


def _io(tables: Tables) -> Iterator[str]:
    """Inputs and outputs of a run are versions of that dataset; outputs are the run's own."""
    for row in tables.io.values():
        version = tables.versions.get(row.version_id)
        if row.run_id not in tables.runs or row.dataset_id not in tables.datasets:
            yield f"{row} points nowhere"
        elif version is None or version.dataset_id != row.dataset_id:
            yield f"{row} has no version of its dataset"
        elif (row.role == DatasetRole.OUTPUT) != (version.run_id == row.run_id):
            yield f"{row} reads its own version, or writes another's"


def _versions(tables: Tables) -> Iterator[str]:
    """Version numbers have no gaps. The current version is the last published one of a good run."""
    by_dataset: dict[str, list[rows.VersionRow]] = defaultdict(list)
    for version in tables.versions.values():
        by_dataset[version.dataset_id].append(version)
        yield from _version(tables, version)
    for dataset in tables.datasets.values():
        versions = sorted(by_dataset.pop(dataset.id, []), key=lambda v: v.number)
        numbers = [version.number for version in versions]
        if numbers != list(range(1, dataset.version_count + 1)):
            yield f"{dataset.name} has versions {numbers}, not 1 to {dataset.version_count}"
        elif versions and (dataset.latest_version_id, dataset.latest_number) != (
            versions[-1].id,
            versions[-1].number,
        ):
            yield f"{dataset.name} does not know its latest version"
        published = [v for v in versions if v.published_at is not None]
        current = max(published, key=lambda v: (v.published_at, v.id), default=None)
        if dataset.current_version_id != (current.id if current else None):
            yield f"{dataset.name} has the wrong current version"
        if dataset.published_at != (current.published_at if current else None):
            yield f"{dataset.name} has the wrong time of publication"
    for dataset_id in by_dataset:
        yield f"versions of {dataset_id} have no dataset"


def _version(tables: Tables, version: rows.VersionRow) -> Iterator[str]:
    run = tables.runs.get(version.run_id) if version.run_id is not None else None
    if (version.origin == Origin.RUN) != (run is not None):
        yield f"version {version.id} is {version.origin} but its run is {run}"
    if run is None or tables.jobs[run.job_id].type == "STREAM":
        return
    if (version.published_at is not None) != (run.state == RunState.COMPLETED):
        yield f"version {version.id} is published at {version.published_at}, run {run.state}"


def _jobs(tables: Tables) -> Iterator[str]:
    """A job has the right counts of runs and versions, newest run and current version."""
    runs: dict[str, list[rows.RunRow]] = defaultdict(list)
    for run in tables.runs.values():
        runs[run.job_id].append(run)
    versions = Counter(version.job_id for version in tables.job_versions.values())
    for job in tables.jobs.values():
        if (job.run_count, job.version_count) != (len(runs[job.id]), versions[job.id]):
            yield f"job {job.name} counts {job.run_count} runs and {job.version_count} versions"
        newest = max(runs[job.id], key=lambda run: (run.created_at, run.id), default=None)
        latest = (job.latest_run_id, job.latest_run_at, job.latest_run_state)
        if newest is not None and latest != (newest.id, newest.created_at, newest.state):
            yield f"job {job.name} has {latest} for its newest run {newest}"
        if job.current_version_id is not None and job.current_version_id not in tables.job_versions:
            yield f"job {job.name} has no row for its current version"


def _edges(tables: Tables) -> Iterator[str]:
    """The current edges are exactly those of the current version and of unfinished runs."""
    expected: set[tuple[str, str, str]] = set()
    for job in tables.jobs.values():
        version = tables.job_versions.get(job.current_version_id or "")
        for role, text in (
            (DatasetRole.INPUT, version.inputs if version else "[]"),
            (DatasetRole.OUTPUT, version.outputs if version else "[]"),
        ):
            for name in _decode_names(text):
                expected.add((job.id, role, ids.dataset_id(name["namespace"], name["name"])))
    for run_id, role, dataset_id in tables.io:
        run = tables.runs[run_id]
        if run.ended_at is None:
            expected.add((run.job_id, role, dataset_id))
    current = {key for key, edge in tables.edges.items() if edge.current}
    for edge in expected ^ current:
        yield f"edge {edge} is {'missing' if edge in expected else 'shown for no reason'}"


def _counts(tables: Tables) -> Iterator[str]:
    """Stored counts equal the number of rows."""
    events = Counter(
        (row.event_time // HOUR * HOUR, row.event_type if row.kind == "RUN" else row.kind)
        for row in tables.events
    )
    stored = {(row.hour, row.event_type): row.total for row in tables.event_counts}
    if dict(events) != stored:
        yield f"event counts are {stored}, not {dict(events)}"
    counted: Counter[tuple[Any, ...]] = Counter()
    for dataset in tables.datasets.values():
        counted["DATASET", dataset.namespace, ""] += not dataset.hidden
    for job in tables.jobs.values():
        counted["JOB", job.namespace, job.latest_run_state] += not job.hidden
    tallies = {(row.kind, row.namespace, row.state): row.total for row in tables.tallies}
    if {key: total for key, total in counted.items() if total} != tallies:
        yield f"tallies are {tallies}, not {dict(counted)}"


def _search_docs(tables: Tables) -> Iterator[str]:
    """Everything that is not hidden can be found by its current words."""
    if tables.search_docs.keys() != tables.datasets.keys() | tables.jobs.keys():
        yield "some things cannot be searched, or some words lead nowhere"
    for job in tables.jobs.values():
        words = search_body(job.namespace, job.name, job.description, "[]", job.tags)
        yield from _search_doc(tables, "JOB", job, words)
    for dataset in tables.datasets.values():
        version = tables.versions.get(dataset.current_version_id or dataset.latest_version_id or "")
        fields = version.fields if version is not None else "[]"
        fields = shown_fields(fields, dataset.observed)
        words = search_body(
            dataset.namespace,
            dataset.name,
            dataset.description,
            fields,
            dataset.tags,
            field_tags=dataset.field_tags,
            second_names=[
                text
                for alias in tables.aliases.values()
                if alias.dataset_id == dataset.id
                for text in (alias.name, alias.namespace)
            ],
        )
        yield from _search_doc(tables, "DATASET", dataset, words)


def _search_doc(
    tables: Tables, kind: str, of: rows.DatasetRow | rows.JobRow, words: str
) -> Iterator[str]:
    doc = tables.search_docs.get(of.id)
    if doc is None:
        return
    if sorted(doc.body.split()) != sorted(words.split()):
        yield f"{kind} {of.name} is found by {doc.body!r}, not {words!r}"
    actual = (doc.kind, doc.namespace, doc.name, doc.hidden)
    if actual != (kind, of.namespace, of.name, of.hidden):
        yield f"{kind} {of.name} is found as {actual}, but it is {of}"
