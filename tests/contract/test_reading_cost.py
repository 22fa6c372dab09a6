"""The cost of reads from a large catalog: few statements, and no scan of a whole table."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from penstock.catalog.queries import catalog
from penstock.catalog.rows import ColumnEdgeRow, NamespaceRow, replace
from penstock.clock import HOUR, SECOND
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import Statement, load_statements
from penstock.schema.catalog import DatasetRole
from tests.contract.catalog_rows import (
    NAMESPACE,
    NOW,
    Tally,
    dataset,
    edge,
    event,
    job,
    job_version,
    put_events,
    run,
    search_row,
    touched,
    version,
)
from tests.plans import excess_work, filled_database, plan_steps

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("reading_cost")

COUNT = 5000
DATASETS = [dataset(f"table_{n:05}", created_at=NOW + n * SECOND) for n in range(COUNT)]
JOBS = [job(f"job_{n:05}", updated_at=NOW + n, created_at=NOW + n * SECOND) for n in range(COUNT)]
STATES = ["COMPLETED"] * 49 + ["FAILED"]
# The tables with thousands of rows, and their aliases in statements.
LARGE = re.compile(
    r"(datasets|dataset_versions|jobs|job_versions|runs|run_datasets|job_edges|events"
    r"|search_docs|column_edges|d|v|j|r|rd|e|l|p|pr|pj)\b"
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Five thousand datasets, and as many jobs, runs and events."""
    with filled_database(request, tmp_path_factory, _fill) as url:
        yield url


def _fill(tx: Transaction) -> None:
    versions = [version(row, 1) for row in DATASETS]
    runs = [run(row, 1) for row in JOBS]
    tx.write("put_namespaces", [NamespaceRow(NAMESPACE, "ann", None, 0, NOW, NOW)])
    tx.write("add_tallies", [Tally("DATASET", NAMESPACE, "", COUNT)])
    tx.write("put_versions", versions)
    tx.write("put_runs", runs)
    tx.write(
        "put_datasets",
        [
            replace(row, current_version_id=v.id, published_at=NOW)
            for row, v in zip(DATASETS, versions, strict=True)
        ],
    )
    tx.write(
        "put_jobs",
        [replace(row, latest_run_state=STATES[n % 50]) for n, row in enumerate(JOBS)],
    )
    tx.write("put_job_versions", [job_version(row) for row in JOBS])
    rows = list(zip(JOBS, runs, DATASETS, versions, strict=True))
    tx.write("put_edges", [edge(row, DatasetRole.OUTPUT, d) for row, _, d, _ in rows])
    tx.write("put_run_datasets", [touched(r, DatasetRole.OUTPUT, v) for _, r, _, v in rows])
    put_events(tx, [event(NOW + n * SECOND, run_id=r.id) for n, r in enumerate(runs)])
    tx.write("put_search_docs", [*map(search_row, DATASETS), *map(search_row, JOBS)])
    tx.write(
        "put_column_edges",
        [
            ColumnEdgeRow(row.id, row.id, "id", other.id, "id", None, None)
            for row, other in zip(DATASETS, reversed(DATASETS), strict=True)
        ],
    )


class CountingTransaction:
    """A transaction that counts its statements and its trips to the database."""

    epoch = 0

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.statements = 0
        self.trips = 0

    def fetch(self, statement: str, /, **params: object) -> list[tuple[Any, ...]]:
        self.statements += 1
        self.trips += 1
        return self._tx.fetch(statement, **params)

    def fetch_one(self, statement: str, /, **params: object) -> tuple[Any, ...] | None:
        self.statements += 1
        self.trips += 1
        return self._tx.fetch_one(statement, **params)

    def rows(self, shape: type[Any], statement: str, /, **params: object) -> list[Any]:
        self.statements += 1
        self.trips += 1
        return self._tx.rows(shape, statement, **params)

    def fetch_many(
        self, asks: Sequence[tuple[str, Mapping[str, object]]]
    ) -> list[list[tuple[Any, ...]]]:
        self.statements += len(asks)
        self.trips += 1
        return self._tx.fetch_many(asks)

    def execute(self, statement: str, /, **params: object) -> None:
        raise AssertionError(f"{statement} writes")

    def write(self, statement: str, rows: Sequence[msgspec.Struct]) -> None:
        raise AssertionError(f"{statement} writes")


def test_a_long_page_costs_no_more_statements(database: Database) -> None:
    lists: list[Callable[[Transaction, int], object]] = [
        lambda tx, limit: catalog.list_datasets(tx, NAMESPACE, limit, 0),
        lambda tx, limit: catalog.list_dataset_versions(tx, NAMESPACE, "table_00001", limit, 0),
        lambda tx, limit: catalog.list_jobs(tx, None, [], limit, 0),
        lambda tx, limit: catalog.list_job_versions(tx, NAMESPACE, "job_00001", limit, 0),
        lambda tx, limit: catalog.list_runs(tx, NAMESPACE, "job_00001", limit, 0),
        lambda tx, limit: catalog.list_all_runs(tx, None, [], limit),
        lambda tx, limit: catalog.list_events(tx, None, None, limit=limit, offset=0),
        lambda tx, limit: catalog.search(tx, "table", limit=limit),
        lambda tx, limit: catalog.search(tx, "table", limit=limit, after=NOW),
    ]

    def statements(limit: int) -> list[int]:
        counts = []
        for read in lists:
            with database.read() as tx:
                counted = CountingTransaction(tx)
                read(counted, limit)
            counts.append(counted.statements)
        return counts

    assert statements(limit=1) == statements(limit=100)
    assert max(statements(limit=100)) <= 7


def test_no_read_scans_a_large_table(database: Database, url: str) -> None:
    statements = load_statements(database.dialect, capability_folders())
    assert {
        name: plan
        for name, params in reading_examples().items()
        if (plan := _walks(url, statements[name], params))
    } == {}


def reading_examples() -> dict[str, dict[str, Any]]:
    """Return the statements of this capability's reads with the parameters of a typical call."""
    page = {"limit": 100, "offset": 0}
    of_dataset = {"dataset_id": DATASETS[7].id}
    of_job = {"job_id": JOBS[7].id}
    here = {"namespace": NAMESPACE}
    datasets = [row.id for row in DATASETS[:10]]
    jobs = [row.id for row in JOBS[:10]]
    runs = {"ids": [run(row, 1).id for row in JOBS[:10]]}
    versions = {"ids": [version(row, 1).id for row in DATASETS[:10]]}
    shapes = {"ids": [job_version(row).id for row in JOBS[:10]]}
    span = {"after": NOW, "before": NOW + 60 * SECOND}
    by_run = {**span, "run_id": runs["ids"][0]}
    cursor = {"before": NOW + 60 * SECOND, "before_id": JOBS[7].id}
    by_state = {**cursor, "states": ["COMPLETED", "FAILED"], "limit": 100}
    kinds = {"kinds": ["RUN", "JOB"]}
    late = {"after": NOW + (COUNT - 100) * SECOND, "slot": HOUR // 4}
    words = {"fts5": '"table00042"*', "tsquery": "'table00042':*"}
    search_params = {**page, **words, "kind": None, "namespace": None}
    return {
        "read_dataset_ids": {**page, **here},
        "read_dataset_by_name": {"id": DATASETS[7].id},
        "read_datasets": {"ids": datasets},
        "child_jobs_by_ids": {"ids": jobs},
        "read_run_ids_by_state": by_state,
        "read_run_ids_of_namespace_by_state": {**by_state, **here},
        "read_column_edges": {"ids": datasets},
        "read_version_ids": {**page, **of_dataset},
        "read_version_by_number": {**of_dataset, "number": 1},
        "read_versions": versions,
        "read_quality_reports": {**versions, "most": 10},
        "read_job_by_id": {"id": JOBS[7].id},
        "read_job_ids_by_state": {**page, "states": ["FAILED", "ABORTED"]},
        "read_job_ids_of_namespace_by_state": {**page, **here, "states": ["FAILED"]},
        "read_jobs": {"ids": jobs},
        "read_job_edges": {"ids": jobs},
        "read_job_version_ids": {**page, **of_job},
        "read_job_versions": shapes,
        "read_run_ids": {**page, **of_job},
        "read_latest_run_ids": {"ids": jobs, "most": 10},
        "read_runs": runs,
        "read_run_datasets": runs,
        "read_run_facets": {"id": runs["ids"][0]},
        "read_events_newest_first": {**page, **span, **kinds},
        "read_events_oldest_first": {**page, **span, **kinds},
        "read_events_of_run": {**page, **by_run, "sign": -1},
        "count_events_of_run": by_run,
        "count_events": {**span, **kinds},
        "count_datasets_created": late,
        "count_jobs_created": late,
        "search_by_name": search_params,
        "search_by_time": {**search_params, **span, "sort": "UPDATE_AT"},
        "count_found_jobs": words,
        "search_latest_jobs": {**page, **words, "states": ["COMPLETED", "FAILED"], "most": 100},
    }


def _walks(url: str, statement: Statement, params: dict[str, Any]) -> list[str]:
    """Return the steps of the statement's plan that read a whole large table."""
    walk = rf"(^SCAN|Seq Scan on) {LARGE.pattern}"
    steps = [step for step in plan_steps(url, statement, params) if re.search(walk, step)]
    if url.startswith("sqlite"):
        steps += excess_work(url, statement, params, 2 * COUNT)
    return steps
