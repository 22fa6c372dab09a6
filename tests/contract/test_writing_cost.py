"""The cost of writes for a job and a dataset with a long history: no scan of that history."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock import ids
from penstock.catalog.rows import NamespaceRow, replace
from penstock.clock import HOUR
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import load_statements
from penstock.schema.catalog import DatasetRole
from penstock.states import RunState
from tests.contract.catalog_rows import (
    NAMESPACE,
    NOW,
    dataset,
    edge,
    event,
    job,
    job_version,
    put_events,
    run,
    touched,
    version,
)
from tests.contract.test_lineage_cost import lineage_examples
from tests.contract.test_reading_cost import reading_examples
from tests.plans import costly_steps, filled_database, reads

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("writing_cost")

RUNS = 20_000
GOING = 5  # the run that began last
FEW = 100  # the first run, with another shape
MOST = 50
FIRST_ID = "00000000-0000-0000-0000-000000000000"
# A shape is unused only if no run of the job has it, so this reads them all.
OF_ALL_RUNS = ("prunable_job_versions", "job_versions_in_use")
# Administrators run this once after a clock was wrong, to correct times in the future.
OF_ALL_ROWS = (
    *("future_datasets", "future_edges", "future_events", "future_job_versions", "future_jobs"),
    *("future_namespaces", "future_runs", "future_sources", "future_versions"),
)
# A dataset is merged into another once in its life, with all its versions.
OF_ALL_VERSIONS = ("runs_that_read_both", "runs_that_wrote_both", "version_numbers")
CATALOG = [folder for folder in capability_folders() if folder.name == "catalog"]
RAW, CLEAN = dataset("raw"), dataset("clean", version_count=RUNS, latest_number=RUNS)
LOAD = job("load", run_count=RUNS, version_count=2)
NOW_SHAPE = job_version(LOAD, declared_at=NOW)
OLD_SHAPE = replace(NOW_SHAPE, id=ids.derived_id("old shape"), declared_at=None)
STATES = [RunState.COMPLETED] * (RUNS - GOING) + [RunState.RUNNING] * GOING
MADE = [
    run(LOAD, number, state, job_version_id=(OLD_SHAPE if number < FEW else NOW_SHAPE).id)
    for number, state in enumerate(STATES)
]
VERSIONS = [
    version(CLEAN, number + 1, by, created_at=by.created_at, published_at=by.ended_at)
    for number, by in enumerate(MADE)
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One job that ran twenty thousand times and wrote as many versions of a dataset."""
    with filled_database(request, tmp_path_factory, _fill) as url:
        yield url


def _fill(tx: Transaction) -> None:
    tx.write("put_namespaces", [NamespaceRow(NAMESPACE, "ann", None, 0, NOW, NOW)])
    last = VERSIONS[-1 - GOING]
    published = replace(CLEAN, current_version_id=last.id, published_at=last.published_at)
    tx.write("put_datasets", [RAW, published])
    latest = replace(LOAD, current_version_id=NOW_SHAPE.id, latest_run_id=MADE[-1].id)
    tx.write("put_jobs", [latest])
    tx.write("put_job_versions", [OLD_SHAPE, NOW_SHAPE])
    tx.write("put_runs", MADE)
    tx.write("put_versions", VERSIONS)
    tx.write("put_edges", [edge(LOAD, DatasetRole.OUTPUT, CLEAN)])
    wrote = [
        touched(by, DatasetRole.OUTPUT, version) for by, version in zip(MADE, VERSIONS, strict=True)
    ]
    read = [
        touched(by, DatasetRole.INPUT, version)
        for version, by in zip(VERSIONS, MADE[1:], strict=False)
    ]
    tx.write("put_run_datasets", wrote + read)
    put_events(tx, [event(by.created_at, run_id=by.id) for by in MADE])


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_every_read_of_the_catalog_has_an_example(dialect: str) -> None:
    statements = load_statements(dialect, CATALOG)
    tried = {*_of_single_rows(), *_of_history(), *_of_old_things()}
    tried |= {*OF_ALL_RUNS, *OF_ALL_ROWS, *OF_ALL_VERSIONS}
    assert reads(statements) == {*tried, *lineage_examples(), *reading_examples()}


def test_no_read_scans_a_long_history(database: Database, url: str) -> None:
    statements = load_statements(database.dialect, CATALOG)
    examples = {**_of_single_rows(), **_of_history(), **_of_old_things()}
    assert {
        name: steps
        for name, params in examples.items()
        if (steps := costly_steps(url, statements[name], params))
    } == {}


def _of_single_rows() -> dict[str, dict[str, Any]]:
    """Return the lookups by id or name, and those in small tables."""
    page = {"limit": MOST, "offset": 0}
    runs = {"ids": [each.id for each in MADE[:MOST]]}
    jobs, datasets = {"ids": [LOAD.id]}, {"ids": [RAW.id, CLEAN.id]}
    names = {"ids": [NAMESPACE]}
    return {
        "last_run_ids": {"upto": MADE[RUNS // 2].id},
        "read_namespaces": page,
        "read_namespace": {"name": NAMESPACE},
        "read_sources": page,
        "read_source": {"name": "warehouse"},
        "read_sources_of_namespace": {**page, "namespace": NAMESPACE},
        "read_source_of_namespace": {"name": "warehouse", "namespace": NAMESPACE},
        "read_tags": page,
        "read_tags_of_namespace": {**page, "namespace": NAMESPACE},
        "read_tag": {"name": "PII"},
        "read_tallies": {"kind": "JOB"},
        "read_tallies_of_namespace": {"kind": "JOB", "namespace": NAMESPACE},
        "read_aliases": {"id": RAW.id},
        "count_sources": {},
        "count_sources_created": {"slot": HOUR, "after": NOW},
        "runs_by_ids": runs,
        "run_datasets_by_runs": runs,
        "jobs_by_ids": jobs,
        "datasets_by_ids": datasets,
        "sightings_by_ids": datasets,
        "aliases_by_ids": datasets,
        "aliases_of_datasets": datasets,
        "versions_by_ids": {"ids": [each.id for each in VERSIONS[:MOST]]},
        "job_versions_by_ids": {"ids": [OLD_SHAPE.id, NOW_SHAPE.id]},
        "namespaces_by_names": names,
        "sources_by_names": names,
        "grants_by_namespaces": names,
        "grants_of_namespace": {"namespace": NAMESPACE},
        "kept_datasets_among": datasets,
        "edges_of_dataset": {"dataset_id": CLEAN.id},
        "tags_by_names": names,
        "current_versions_of_datasets": datasets,
        "current_versions_of_jobs": jobs,
        "current_edges_of_jobs": jobs,
    }


def _of_history() -> dict[str, dict[str, Any]]:
    """Return the reads of a job's runs, of a dataset's versions and of events."""
    of_job = {"job_id": LOAD.id, "most": MOST}
    of_dataset = {"dataset_id": CLEAN.id, "most": MOST}
    last = MADE[-100].created_at
    span = {"after": last, "before": last + HOUR}
    page = {**span, "namespace": "food", "limit": MOST, "offset": 0}
    kinds = {"kinds": ["RUN", "JOB"]}
    return {
        "newest_published_versions": of_dataset,
        "oldest_published_versions": of_dataset,
        "versions_published_by": {**of_dataset, "at": last},
        "versions_published_before": {**of_dataset, "at": last, "id": VERSIONS[-1].id},
        "versions_published_after": {**of_dataset, "at": NOW, "id": VERSIONS[0].id},
        "facet_sets_by_ids": {"ids": [CLEAN.id]},
        "newest_versions": of_dataset,
        "newest_runs_of_job": of_job,
        "newest_runs_of_job_version": {**of_job, "version_id": OLD_SHAPE.id, "since": last},
        "first_runs_of_job_version": {**of_job, "version_id": OLD_SHAPE.id, "since": last},
        "last_ended_runs_of_job": of_job,
        "going_runs_of_job": of_job,
        "going_edges_of_job": {"job_id": LOAD.id},
        "last_declared_job_versions": of_job,
        "ids_of_job_versions": {"job_id": LOAD.id},
        "first_runs_with_edge": {**of_job, "role": "OUTPUT", "dataset_id": CLEAN.id},
        "run_family": {"id": MADE[7].id, "depth": 5, "most": MOST},
        "read_events_of_namespace_newest_first": {**page, **kinds},
        "read_events_of_namespace_oldest_first": {**page, **kinds},
        "count_events_of_namespace": {**span, **kinds, "namespace": "food"},
        "count_events_by_hours": {**span, **kinds},
        "count_events_per_hour": span,
    }


def _of_old_things() -> dict[str, dict[str, Any]]:
    """Return the reads of pruning, which works in small batches."""
    cutoff, most = {"cutoff": NOW + HOUR}, {"most": MOST}
    return {
        "prunable_runs": {**cutoff, **most, "job_id": LOAD.id, "ended_at": NOW, "id": LOAD.id},
        "runs_still_prunable": {**cutoff, "ids": [each.id for each in MADE[:MOST]]},
        "prunable_declared_versions": {**cutoff, **most, "created_at": NOW, "id": LOAD.id},
        "versions_still_prunable": {**cutoff, "ids": [each.id for each in VERSIONS[:MOST]]},
        "jobs_with_versions": {**most, "after": FIRST_ID},
        "prunable_column_sets": {**cutoff, **most, "after": FIRST_ID},
        "column_sets_still_unused": {"ids": [CLEAN.id]},
        "prunable_facet_sets": {**cutoff, **most, "after": FIRST_ID},
        "facet_sets_still_unused": {"ids": [CLEAN.id]},
    }
