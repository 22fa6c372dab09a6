"""Single things and lists of the catalog, on both databases."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from penstock.catalog.queries import catalog
from penstock.catalog.rows import (
    AliasRow,
    ColumnEdgeRow,
    NamespaceRow,
    Origin,
    SourceRow,
    TagRow,
    replace,
)
from penstock.clock import SECOND, format_time
from penstock.db import Database, Transaction, open_database
from penstock.errors import NotFound
from penstock.ids import dataset_id, derived_id, job_id
from penstock.schema.catalog import DatasetRole
from penstock.schema.shape import stored_json
from penstock.states import RunState
from tests.contract.catalog_rows import (
    NAMESPACE,
    NOW,
    Tally,
    dataset,
    edge,
    job,
    job_version,
    run,
    touched,
    version,
)

AT = format_time(NOW)
COLUMN_SET = derived_id("columns")
SHAPE = derived_id("shape", job_id(NAMESPACE, "dag.load"))
OBSERVED = '{"schema":{"fields":[{"name":"line","type":"TEXT"}]},"owner":{"who":"sales"}}'

DAG = job("dag", facets='{"owner": "ann"}')
LOAD = job("dag.load", parent_job_id=DAG.id, current_version_id=SHAPE, run_count=12)
RUNS = [
    run(LOAD, number, RunState.FAILED if number == 11 else RunState.COMPLETED)
    for number in range(12)
]
PARENT = run(DAG, 0, RunState.RUNNING)
ORDERS = dataset("orders", tags='["gold"]', field_tags='{"id":["pii"]}', version_count=2)
RAW = dataset("raw", observed=OBSERVED, version_count=1)
V1 = version(ORDERS, 1, RUNS[0], facets='{"quality": {"rows": 3}}', column_set_id=COLUMN_SET)
V2 = version(ORDERS, 2, RUNS[11], published_at=None)
IMPLIED = version(RAW, 1, origin=Origin.IMPLIED, fields="[]")
BARE = dataset("bare")
UNPUBLISHED = version(BARE, 1, PARENT, published_at=None)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A small shop: raw → dag.load → orders, whose second version failed."""
    opened = open_database(database_url)
    opened.migrate()
    with opened.write() as tx:
        _fill(tx)
    yield opened
    opened.close()


def _fill(tx: Transaction) -> None:
    current = {"current_version_id": V1.id, "published_at": NOW + 7 * SECOND}
    latest = {"latest_version_id": V2.id, "latest_number": 2}
    implied = {"current_version_id": IMPLIED.id, "published_at": NOW}
    newest = {"latest_run_id": RUNS[11].id, "latest_run_state": "FAILED", "version_count": 1}
    extra = {"job_facets": '{"sql": {"query": "q"}}', "parent_run_id": PARENT.id}
    tx.write(
        "put_namespaces",
        [
            NamespaceRow(NAMESPACE, "ann", "the shop", 0, NOW, NOW),
            NamespaceRow("old", "bob", None, 1, NOW, NOW),
        ],
    )
    tx.write("put_sources", [SourceRow("warehouse", "POSTGRES", "postgres://h", None, NOW, NOW)])
    tx.write("put_tags", [TagRow("pii", "personal"), TagRow("gold", None)])
    tx.write(
        "put_datasets",
        [
            replace(ORDERS, **current, **latest),
            replace(RAW, **implied),
            dataset("gone", hidden=1),
            replace(BARE, latest_version_id=UNPUBLISHED.id, latest_number=1),
        ],
    )
    tx.write("put_versions", [V1, V2, IMPLIED, UNPUBLISHED])
    tx.write(
        "put_aliases",
        [AliasRow(dataset_id("hive", "shop.orders"), "hive", "shop.orders", ORDERS.id, "TABLE")],
    )
    tx.write(
        "put_column_edges",
        [
            ColumnEdgeRow(COLUMN_SET, ORDERS.id, "id", RAW.id, "line", "cut", "IDENTITY"),
            ColumnEdgeRow(COLUMN_SET, ORDERS.id, "id", RAW.id, "row", "cut", "MASKED"),
        ],
    )
    dag = replace(DAG, latest_run_id=PARENT.id)
    hidden_job = job("gone", hidden=1, latest_run_state="FAILED")
    tx.write("put_jobs", [dag, replace(LOAD, updated_at=NOW + 5, **newest), hidden_job])
    inputs = f'[{{"namespace":"{NAMESPACE}","name":"raw"}}]'
    tx.write("put_job_versions", [job_version(LOAD, inputs, latest_run_id=RUNS[11].id)])
    tx.write(
        "put_edges", [edge(LOAD, DatasetRole.INPUT, RAW), edge(LOAD, DatasetRole.OUTPUT, ORDERS)]
    )
    tx.write("put_edges", [edge(LOAD, DatasetRole.INPUT, BARE, current=False)])
    shaped = replace(RUNS[11], job_version_id=SHAPE, args='{"day": "1"}', **extra)
    tx.write("put_runs", [PARENT, *RUNS[:11], shaped])
    tx.write(
        "put_run_datasets",
        [
            touched(RUNS[11], DatasetRole.INPUT, IMPLIED, '{"subset": {}}'),
            touched(RUNS[11], DatasetRole.OUTPUT, V2),
        ],
    )
    tx.write("add_tallies", [Tally("DATASET", NAMESPACE, "", 3)])
    tx.write("add_tallies", [Tally("JOB", NAMESPACE, "", 1), Tally("JOB", NAMESPACE, "FAILED", 1)])


def wire(database: Database, read: Callable[[Transaction], object]) -> Any:
    """Return the JSON that a client receives."""
    with database.read() as tx:
        return msgspec.json.decode(msgspec.json.encode(read(tx)))


def keys(text: str) -> set[str]:
    return set(text.split())


RUN_KEYS = keys(
    "id createdAt updatedAt nominalStartTime nominalEndTime state startedAt endedAt durationMs "
    "args job jobVersion parent cause inputDatasetVersions outputDatasetVersions facets"
)
DATASET_KEYS = keys(
    "id type name physicalName createdAt updatedAt namespace sourceName fields tags "
    "lastModifiedAt lastLifecycleState description currentVersion currentVersionNumber "
    "columnLineage indirectInputFields facets deleted"
)


def test_namespaces_sources_and_tags_have_their_documented_fields(database: Database) -> None:
    assert wire(database, lambda tx: catalog.get_namespace(tx, NAMESPACE)) == {
        "name": NAMESPACE,
        "createdAt": AT,
        "updatedAt": AT,
        "ownerName": "ann",
        "description": "the shop",
        "isHidden": False,
    }
    assert wire(database, lambda tx: catalog.get_source(tx, "warehouse")) == {
        "type": "POSTGRES",
        "name": "warehouse",
        "createdAt": AT,
        "updatedAt": AT,
        "connectionUrl": "postgres://h",
        "description": None,
    }
    assert wire(database, lambda tx: catalog.list_tags(tx, 10, 0)) == [
        {"name": "gold", "description": None},
        {"name": "pii", "description": "personal"},
    ]


def test_names_are_listed_in_order_and_by_page(database: Database) -> None:
    with database.read() as tx:
        everything = catalog.list_namespaces(tx, 10, 0)
        assert [(n.name, n.is_hidden) for n in everything] == [
            ("default", False),
            ("old", True),
            (NAMESPACE, False),
        ]
        assert catalog.list_namespaces(tx, 1, 2) == everything[2:]
        assert catalog.list_sources(tx, 10, 1) == []


def test_a_dataset_shows_its_current_version_despite_later_failures(
    database: Database,
) -> None:
    dataset = wire(database, lambda tx: catalog.get_dataset(tx, NAMESPACE, "orders"))
    assert set(dataset) == DATASET_KEYS | {"aliases"}
    assert dataset["id"] == {"namespace": NAMESPACE, "name": "orders"}
    assert (dataset["currentVersion"], dataset["currentVersionNumber"]) == (V1.id, 1)
    assert dataset["fields"] == [
        {"name": "id", "type": "INT", "tags": ["pii"], "description": None}
    ]
    assert dataset["tags"] == ["gold"]
    assert dataset["facets"] == {"quality": {"rows": 3}}
    assert dataset["lastModifiedAt"] == format_time(NOW + 7 * SECOND)
    assert dataset["aliases"] == [{"namespace": "hive", "name": "shop.orders", "type": "TABLE"}]


def test_a_dataset_without_a_current_version_shows_its_latest(database: Database) -> None:
    dataset = wire(database, lambda tx: catalog.get_dataset(tx, NAMESPACE, "bare"))
    assert [field["name"] for field in dataset["fields"]] == ["id"]
    assert (dataset["currentVersion"], dataset["currentVersionNumber"]) == (None, None)
    assert dataset["lastModifiedAt"] is None


def test_column_lineage_repeats_common_values_at_the_field(database: Database) -> None:
    dataset = wire(database, lambda tx: catalog.get_dataset(tx, NAMESPACE, "orders"))
    source = {"namespace": NAMESPACE, "dataset": "raw", "transformationDescription": "cut"}
    assert dataset["columnLineage"] == [
        {
            "name": "id",
            "inputFields": [
                {**source, "field": "line", "transformationType": "IDENTITY"},
                {**source, "field": "row", "transformationType": "MASKED"},
            ],
            "transformationDescription": "cut",
            "transformationType": None,
        }
    ]


def test_a_second_name_leads_to_the_same_dataset(database: Database) -> None:
    def read(namespace: str, name: str) -> Any:
        return wire(database, lambda tx: catalog.get_dataset(tx, namespace, name))

    assert read("hive", "shop.orders") == read(NAMESPACE, "orders")


def test_a_dataset_without_writers_shows_what_readers_reported(database: Database) -> None:
    dataset = wire(database, lambda tx: catalog.get_dataset(tx, NAMESPACE, "raw"))
    assert [field["name"] for field in dataset["fields"]] == ["line"]
    assert dataset["facets"]["owner"] == {"who": "sales"}
    versions = wire(database, lambda tx: catalog.list_dataset_versions(tx, NAMESPACE, "raw", 9, 0))
    [only] = versions["items"]
    assert (only["fields"], only["facets"]) == (dataset["fields"], dataset["facets"])
    assert only["createdByRun"] is None


def test_datasets_are_listed_by_name_without_deleted_ones(database: Database) -> None:
    page = wire(database, lambda tx: catalog.list_datasets(tx, NAMESPACE, 2, 0))
    assert [item["name"] for item in page["items"]] == ["bare", "orders"]
    assert page["total_count"] == 3
    assert all(set(item) == DATASET_KEYS for item in page["items"])
    assert page["items"][0]["columnLineage"] is None
    rest = wire(database, lambda tx: catalog.list_datasets(tx, NAMESPACE, 2, 2))
    assert [item["name"] for item in rest["items"]] == ["raw"]


def test_versions_are_listed_newest_first_with_their_runs(
    database: Database,
) -> None:
    page = wire(database, lambda tx: catalog.list_dataset_versions(tx, NAMESPACE, "orders", 9, 0))
    assert page["total_count"] == 2
    assert [(v["number"], v["isCurrent"]) for v in page["items"]] == [(2, False), (1, True)]
    newest = page["items"][0]
    assert set(newest) == keys(
        "id type name physicalName createdAt version number isCurrent isUnconfirmed namespace "
        "sourceName fields "
        "tags lifecycleState description currentSchemaVersion createdByRun facets"
    )
    assert newest["createdByRun"]["id"] == RUNS[11].id
    assert set(newest["createdByRun"]) == RUN_KEYS
    assert newest["fields"][0]["tags"] == ["pii"]


def test_a_version_is_found_by_number_or_uuid(database: Database) -> None:
    names = ["2", "V2", "v2", V2.id, V2.id.upper()]
    with database.read() as tx:
        versions = [catalog.get_dataset_version(tx, NAMESPACE, "orders", name) for name in names]
    assert [version.version for version in versions] == [V2.id] * len(names)


def test_a_job_shows_edges_parent_and_its_ten_newest_runs(database: Database) -> None:
    job = wire(database, lambda tx: catalog.get_job(tx, NAMESPACE, "dag.load"))
    assert set(job) == keys(
        "id type name simpleName parentJobName parentJobUuid createdAt updatedAt namespace inputs "
        "outputs location description latestRun latestRuns facets currentVersion labels tags"
    )
    assert (job["simpleName"], job["parentJobName"]) == ("load", "dag")
    assert job["parentJobUuid"] == DAG.id
    assert job["inputs"] == [{"namespace": NAMESPACE, "name": "raw"}]
    assert job["outputs"] == [{"namespace": NAMESPACE, "name": "orders"}]
    newest_first = [row.id for row in reversed(RUNS)]
    assert [shown_run["id"] for shown_run in job["latestRuns"]] == newest_first[:10]
    assert job["latestRun"] == job["latestRuns"][0]
    assert job["facets"] == {"sql": {"query": "q"}}
    assert job["currentVersion"] == SHAPE


def test_a_job_without_facets_from_runs_shows_its_own(
    database: Database,
) -> None:
    job = wire(database, lambda tx: catalog.get_job(tx, NAMESPACE, "dag"))
    assert job["facets"] == {"owner": "ann"}
    assert (job["simpleName"], job["parentJobName"]) == ("dag", None)


def test_jobs_are_listed_by_last_update_and_filtered_by_state(database: Database) -> None:
    def jobs_page(namespace: str | None, *states: RunState) -> tuple[list[str], int]:
        with database.read() as tx:
            page = catalog.list_jobs(tx, namespace, states, 10, 0)
        return [item.name for item in page.items], page.total_count

    for namespace in (None, NAMESPACE):
        assert jobs_page(namespace) == (["dag.load", "dag"], 2)
        assert jobs_page(namespace, RunState.FAILED, RunState.NEW) == (["dag.load"], 1)
        assert jobs_page(namespace, RunState.COMPLETED) == ([], 0)


def test_a_job_version_shows_its_inputs_and_outputs(database: Database) -> None:
    page = wire(database, lambda tx: catalog.list_job_versions(tx, NAMESPACE, "dag.load", 9, 0))
    assert page["total_count"] == 1
    [version] = page["items"]
    assert set(version) == keys(
        "id name createdAt version namespace location inputs outputs latestRun"
    )
    assert version["id"] == {"namespace": NAMESPACE, "name": "dag.load", "version": SHAPE}
    assert version["inputs"] == [{"namespace": NAMESPACE, "name": "raw"}]
    assert version["latestRun"]["id"] == RUNS[11].id
    one = wire(database, lambda tx: catalog.get_job_version(tx, NAMESPACE, "dag.load", SHAPE))
    assert one == version


def test_a_run_shows_its_inputs_and_outputs(database: Database) -> None:
    run = wire(database, lambda tx: catalog.get_run(tx, RUNS[11].id))
    assert set(run) == RUN_KEYS
    assert (run["state"], run["durationMs"]) == ("FAILED", 1000)
    assert run["args"] == {"day": "1"}
    assert run["job"] == {"namespace": NAMESPACE, "name": "dag.load"}
    assert run["jobVersion"] == {**run["job"], "version": SHAPE}
    assert run["parent"] == {"namespace": NAMESPACE, "name": "dag", "runId": PARENT.id}
    of_raw = {"namespace": NAMESPACE, "name": "raw", "version": IMPLIED.id}
    assert run["inputDatasetVersions"] == [
        {"datasetVersionId": of_raw, "number": 1, "facets": {"subset": {}}}
    ]
    of_orders = {"namespace": NAMESPACE, "name": "orders", "version": V2.id}
    assert run["outputDatasetVersions"] == [
        {"datasetVersionId": of_orders, "number": 2, "facets": {}}
    ]


def test_an_unfinished_run_has_no_end_and_no_duration(database: Database) -> None:
    run = wire(database, lambda tx: catalog.get_run(tx, PARENT.id))
    assert (run["state"], run["endedAt"], run["durationMs"]) == ("RUNNING", None, None)
    assert (run["parent"], run["jobVersion"]) == (None, None)


def test_runs_are_listed_newest_first(database: Database) -> None:
    page = wire(database, lambda tx: catalog.list_runs(tx, NAMESPACE, "dag.load", 3, 1))
    assert [item["id"] for item in page["items"]] == [RUNS[n].id for n in (10, 9, 8)]
    assert page["total_count"] == 12


def test_facets_of_a_run_and_its_job_stay_separate(database: Database) -> None:
    with database.read() as tx:
        of_run = catalog.get_run_facets(tx, RUNS[11].id)
        of_job = catalog.get_run_facets(tx, RUNS[11].id, of_job=True)
    assert msgspec.json.encode(of_run) == b'{"runId":"%s","facets":{}}' % RUNS[11].id.encode()
    assert msgspec.json.decode(stored_json(of_job.facets)) == {"sql": {"query": "q"}}


def test_deleted_things_are_shown_only_on_request(database: Database) -> None:
    with database.read() as tx:
        assert catalog.get_dataset(tx, NAMESPACE, "gone", include_deleted=True).deleted
        assert catalog.get_job(tx, NAMESPACE, "gone", include_deleted=True).name == "gone"
        for read in (catalog.get_dataset, catalog.get_job):
            with pytest.raises(NotFound, match="is deleted; writing it"):
                read(tx, NAMESPACE, "gone")


def test_an_error_names_the_missing_thing(database: Database) -> None:
    orders = (NAMESPACE, "orders")
    reads: list[tuple[str, Callable[[Transaction], object]]] = [
        ("no namespace 'x'", lambda tx: catalog.get_namespace(tx, "x")),
        ("no source 'x'", lambda tx: catalog.get_source(tx, "x")),
        ("no tag 'x'", lambda tx: catalog.get_tag(tx, "x")),
        ("no dataset 'x' in namespace", lambda tx: catalog.get_dataset(tx, NAMESPACE, "x")),
        ("no job 'x' in namespace", lambda tx: catalog.get_job(tx, NAMESPACE, "x")),
        ("no run 'x'", lambda tx: catalog.get_run(tx, "x")),
        ("no run 'x'", lambda tx: catalog.get_run_facets(tx, "x")),
        ("no version 'x'", lambda tx: catalog.get_dataset_version(tx, *orders, "x")),
        ("no version 'V9'", lambda tx: catalog.get_dataset_version(tx, *orders, "V9")),
        ("no version", lambda tx: catalog.get_dataset_version(tx, *orders, IMPLIED.id)),
        ("no version 'x'", lambda tx: catalog.get_job_version(tx, NAMESPACE, "dag.load", "x")),
    ]
    for message, read in reads:
        with database.read() as tx, pytest.raises(NotFound, match=message):
            read(tx)
