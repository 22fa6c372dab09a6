"""The cost of lineage on a large graph: few statements, and no scan of a whole table."""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec
import pytest

from penstock.catalog.lineage.graph import lineage
from penstock.catalog.lineage.runs import upstream_runs
from penstock.catalog.rows import AliasRow, ColumnEdgeRow, replace
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import Statement, load_statements
from penstock.schema.catalog import DatasetRole
from tests.contract.catalog_rows import (
    NAMESPACE,
    NOW,
    dataset,
    edge,
    job,
    job_version,
    run,
    touched,
    version,
)
from tests.contract.test_reading_cost import CountingTransaction as CountedReads
from tests.plans import excess_work, filled_database, plan_steps

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("lineage_cost")

COUNT = 7000
DATASETS = [dataset(f"table_{n:05}") for n in range(COUNT)]
JOBS = [job(f"job_{n:05}") for n in range(COUNT)]
FILES = ("lineage.sql", "column_lineage.sql", "run_lineage.sql")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Seven thousand datasets and jobs with some twenty thousand edges, all reachable."""
    with filled_database(request, tmp_path_factory, _fill) as url:
        yield url


def _fill(tx: Transaction) -> None:
    """Write a graph in which job n writes dataset n and reads two earlier ones."""
    versions = [version(row, 1, run(of, 1)) for row, of in zip(DATASETS, JOBS, strict=True)]
    runs = [run(row, 1) for row in JOBS]
    reads = [(n, other) for n in range(COUNT) for other in {n // 2, n // 3} if other != n]
    tx.write(
        "put_datasets",
        [
            replace(row, current_version_id=v.id, published_at=NOW, latest_version_id=v.id)
            for row, v in zip(DATASETS, versions, strict=True)
        ],
    )
    tx.write("put_versions", [replace(v, column_set_id=v.id) for v in versions])
    latest = zip(JOBS, runs, strict=True)
    tx.write("put_jobs", [replace(row, latest_run_id=r.id) for row, r in latest])
    names = msgspec.json.encode([{"namespace": NAMESPACE, "name": "t" * 40}] * 4).decode()
    tx.write("put_job_versions", [job_version(row, names, outputs=names) for row in JOBS])
    aliases = [AliasRow(row.id, "hive", row.name, row.id, "TABLE") for row in JOBS]
    tx.write("put_aliases", aliases)
    tx.write("put_runs", runs)
    tx.write("put_edges", [edge(JOBS[n], DatasetRole.OUTPUT, DATASETS[n]) for n in range(COUNT)])
    tx.write("put_edges", [edge(JOBS[n], DatasetRole.INPUT, DATASETS[other]) for n, other in reads])
    touches = [touched(runs[n], DatasetRole.INPUT, versions[other]) for n, other in reads]
    tx.write("put_run_datasets", touches)
    tx.write(
        "put_column_edges",
        [
            ColumnEdgeRow(
                versions[n].id, DATASETS[n].id, "id", DATASETS[other].id, "id", None, None
            )
            for n, other in reads
        ],
    )


class CountingTransaction(CountedReads):
    """A transaction that counts round trips.

    The settings of a walk share a trip with its statement.
    """

    def execute(self, statement: str, /, **params: object) -> None:
        assert statement == "walk_by_key"
        self._tx.execute(statement, **params)


def test_a_graph_costs_one_trip_for_each_level(
    database: Database,
) -> None:
    with database.read() as tx:
        counted = CountingTransaction(tx)
        graph = lineage(counted, f"dataset:{NAMESPACE}:table_00001", hops=5)
    assert len(graph.graph) > 50
    assert counted.trips <= 7


def test_a_graph_by_depth_costs_two_trips_per_level(database: Database) -> None:
    with database.read() as tx:
        counted = CountingTransaction(tx)
        graph = lineage(counted, f"dataset:{NAMESPACE}:table_00001", depth=3)
    assert len(graph.graph) > 50
    assert counted.trips <= 11


def test_upstream_runs_cost_one_trip_per_level(database: Database) -> None:
    with database.read() as tx:
        counted = CountingTransaction(tx)
        runs = upstream_runs(counted, run(JOBS[-1], 1).id, depth=5)
    assert len(runs.runs) > 10
    assert counted.trips <= 8


def test_no_lineage_statement_scans_a_table(database: Database, url: str) -> None:
    statements = load_statements(database.dialect, capability_folders())
    examples = lineage_examples()
    statement_files = files("penstock.catalog") / "statements"
    text = "".join((statement_files / name).read_text() for name in FILES)
    assert sorted(examples) == sorted(re.findall(r"-- name: (\w+)", text))
    assert {
        name: plan
        for name, params in examples.items()
        if (plan := _walks(url, statements["walk_by_key"], statements[name], params))
    } == {}


def lineage_examples() -> dict[str, dict[str, Any]]:
    """Return every statement of lineage with the parameters of a typical call."""
    time = {"at": NOW + 5}
    root = {"root": DATASETS[7].id}
    datasets = {"ids": [row.id for row in DATASETS[:10]]}
    jobs = {"ids": [row.id for row in JOBS[:10]]}
    runs = {"ids": [run(row, 1).id for row in JOBS[:10]]}
    sets = {"sets": [version(row, 1).id for row in DATASETS[:10]]}
    roles = {"role": "INPUT", "other_role": "OUTPUT"}
    of_dataset = {"dataset": DATASETS[7].id, "id": version(DATASETS[7], 1).id, "number": 1}
    return {
        "walk_by_key": {},
        "lineage_datasets_named": datasets,
        "lineage_jobs_named": jobs,
        "lineage_run_named": {"id": runs["ids"][0]},
        "lineage_version_numbered": of_dataset,
        "lineage_version_with_id": of_dataset,
        "lineage_job_version_with_id": {"job": JOBS[7].id, "id": job_version(JOBS[7]).id},
        "lineage_jobs_beside": {**datasets, **roles, "current": 1},
        "lineage_jobs_beside_as_of": {**datasets, **roles, **time},
        "lineage_edges_of_jobs": {**jobs, **root, **time, "current": 1},
        "lineage_versions_as_of": {**jobs, **time},
        "lineage_unfinished_as_of": {**jobs, **time},
        "lineage_visible_datasets": {**datasets, **root, **time},
        "lineage_dropped_as_of": {**datasets, **time},
        "lineage_jobs": {**jobs, **root},
        "lineage_jobs_as_of": {**jobs, **root, **time},
        "lineage_datasets": datasets,
        "lineage_datasets_as_of": {**datasets, **time},
        "column_versions": {**datasets, **root, **time},
        "column_versions_as_of": {**datasets, **root, **time},
        "column_inputs": {**sets, "fields": ["id", "name"]},
        "column_outputs": {**datasets, "fields": ["id", "name"]},
        "column_fields": sets,
        "column_datasets_known": datasets,
        "column_facets": {"ids": [version(row, 1).id for row in DATASETS[:10]]},
        "run_inputs": runs,
        "runs_with_jobs": runs,
    }


def _walks(
    url: str, settings: Statement, statement: Statement, params: dict[str, Any]
) -> list[str]:
    """Return the steps of the statement's plan that read a whole table or index."""
    steps = plan_steps(url, statement, params, settings)
    if not url.startswith("sqlite"):
        return [step for step in steps if "Seq Scan" in step or "Hash" in step]
    # Lists are virtual tables. The other scans are of the statement's own subqueries.
    harmless = re.compile(
        r"SCAN (\w VIRTUAL TABLE|CONSTANT ROW|ended$|stated$|going$|written$|reading$|c$)"
    )
    scans = [step for step in steps if step.startswith("SCAN") and not harmless.match(step)]
    return scans or excess_work(url, statement, params, COUNT)
