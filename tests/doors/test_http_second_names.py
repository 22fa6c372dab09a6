"""A second name that comes after both names have a history makes one dataset of two."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.doors.serving import API, Running, path, post, running

TABLE = ("hive", "shop.orders")
FILES = ("lake", "orders")

Document = dict[str, Any]


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def dataset(name: tuple[str, str], *fields: str, also: tuple[str, str] | None = None) -> Document:
    facets: Document = {}
    if fields:
        facets["schema"] = {"fields": [{"name": field, "type": "INT"} for field in fields]}
    if also is not None:
        identifier = {"namespace": also[0], "name": also[1], "type": "TABLE"}
        facets["symlinks"] = {"identifiers": [identifier]}
    return {"namespace": name[0], "name": name[1], "facets": facets}


def run(run_id: str, job: str, minute: int, **sides: Any) -> Document:
    return {
        "eventTime": f"2026-11-15T10:{minute:02}:00Z",
        "eventType": "COMPLETE",
        "producer": "https://example.org/tests",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run_id},
        "job": {"namespace": "jobs", "name": job},
        **sides,
    }


def get(client: httpx.Client, target: str) -> Document:
    found: Document = client.get(target).raise_for_status().json()
    return found


def shown(client: httpx.Client, name: tuple[str, str]) -> Document:
    return get(client, path("namespaces", name[0], "datasets", name[1]))


def history(client: httpx.Client) -> None:
    """Both names are written and read, by jobs of their own."""
    columns = {"fields": {"id": {"inputFields": [{**named(TABLE), "field": "id"}]}}}
    report = dataset(("lake", "report"), "id")
    report["facets"]["columnLineage"] = columns
    post(client, run("w1", "load", 1, outputs=[dataset(TABLE, "id")]))
    post(client, run("r1", "report", 2, inputs=[dataset(TABLE)], outputs=[report]))
    post(client, run("w2", "export", 3, outputs=[dataset(FILES, "id", "x")]))
    for tag, name in (("pii", TABLE), ("gold", FILES)):
        target = path("namespaces", name[0], "datasets", name[1], "tags", tag)
        assert client.post(target).is_success


def named(name: tuple[str, str]) -> Document:
    return {"namespace": name[0], "name": name[1]}


@pytest.mark.parametrize("kind", ["output", "input", "dataset event", "job event"])
def test_two_names_with_a_history_become_one_dataset(server: Running, kind: str) -> None:
    client = server.client
    history(client)
    both = dataset(FILES, also=TABLE)
    spec = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
    at = {"eventTime": "2026-11-15T10:04:00Z"}
    job = {"namespace": "jobs", "name": "stated"}
    event = {
        "output": run("s", "export", 4, outputs=[both]),
        "input": run("s", "scan", 4, inputs=[both]),
        "dataset event": {**at, "schemaURL": f"{spec}/DatasetEvent", "dataset": both},
        "job event": {**at, "schemaURL": f"{spec}/JobEvent", "job": job, "inputs": [both]},
    }[kind]

    post(client, event)
    post(client, event)

    one = shown(client, FILES)
    assert shown(client, TABLE) == one
    assert one["id"] == named(FILES)
    assert one["tags"] == ["gold", "pii"]
    assert [alias["name"] for alias in one["aliases"]] == [TABLE[1]]
    versions = get(client, path("namespaces", *FILES[:1], "datasets", FILES[1], "versions"))
    made_by = {each["createdByRun"]["job"]["name"] for each in versions["versions"]}
    assert {"load", "export"} <= made_by
    assert get(client, path("namespaces", "hive", "datasets"))["totalCount"] == 0
    graph = get(client, f"{API}/lineage?nodeId=dataset:lake:orders&depth=5")["graph"]
    nodes = {node["id"] for node in graph}
    assert {"job:jobs:load", "job:jobs:report", "job:jobs:export"} <= nodes
    assert "dataset:hive:shop.orders" not in nodes
    report = get(client, path("namespaces", "jobs", "jobs", "report"))
    assert report["inputs"] == [named(FILES)]
    columns = get(client, f"{API}/column-lineage?nodeId=datasetField:lake:report:id")["graph"]
    assert "datasetField:lake:orders:id" in {node["id"] for node in columns}
    found = get(client, f"{API}/search?q=shop.orders")
    assert [each["name"] for each in found["results"]] == ["orders"]


def test_merged_versions_inherit_in_the_order_of_publication(server: Running) -> None:
    client = server.client
    report = dataset(TABLE, "id")
    report["facets"]["columnLineage"] = {
        "fields": {"id": {"inputFields": [{**named(("lake", "raw")), "field": "id"}]}}
    }
    tests = {"dataQualityAssertions": {"assertions": [{"assertion": "unique", "success": True}]}}
    post(client, run("w1", "load", 1, outputs=[report]))
    post(client, run("w2", "export", 2, outputs=[dataset(FILES)]))
    checked = {**dataset(TABLE), "inputFacets": tests}
    post(client, run("t1", "test", 3, inputs=[checked]))

    post(client, run("w3", "export", 4, inputs=[dataset(FILES, also=TABLE)]))

    one = shown(client, FILES)
    assert [field["name"] for field in one["fields"]] == ["id"]
    assert [column["name"] for column in one["columnLineage"]] == ["id"]
    target = path("namespaces", *FILES[:1], "datasets", FILES[1], "versions")
    versions = get(client, target)["versions"]
    made = {each["createdByRun"]["job"]["name"]: each for each in versions if each["createdByRun"]}
    assert [field["name"] for field in made["export"]["fields"]] == ["id"]
    assert "dataQualityAssertions" in made["load"]["facets"]


def test_events_of_both_names_go_on_in_one_dataset(server: Running) -> None:
    client = server.client
    history(client)
    post(client, run("s", "export", 4, outputs=[dataset(FILES, also=TABLE)]))

    post(client, run("w3", "load", 5, outputs=[dataset(TABLE, "id", "y")]))
    post(client, run("r2", "report", 6, inputs=[dataset(TABLE)]))

    one = shown(client, FILES)
    assert [field["name"] for field in one["fields"]] == ["id", "y"]
    [read] = get(client, path("jobs", "runs", "r2"))["inputDatasetVersions"]
    assert read["datasetVersionId"]["name"] == FILES[1]
    assert read["number"] == one["currentVersionNumber"]


def test_a_dataset_with_lots_takes_in_the_other_name(server: Running) -> None:
    client = server.client
    history(client)
    lots = path("namespaces", TABLE[0], "datasets", TABLE[1], "lots")
    assert client.post(lots, json={"lots": ["a"]}).is_success

    post(client, run("s", "export", 4, outputs=[dataset(FILES, also=TABLE)]))

    one = shown(client, FILES)
    assert one["id"] == named(TABLE)
    assert [lot["lot"] for lot in get(client, lots)["lots"]] == ["a"]


def test_two_datasets_with_lots_stay_apart(server: Running) -> None:
    client = server.client
    history(client)
    for name in (TABLE, FILES):
        lots = path("namespaces", name[0], "datasets", name[1], "lots")
        assert client.post(lots, json={"lots": ["a"]}).is_success

    post(client, run("s", "export", 4, outputs=[dataset(FILES, also=TABLE)]))

    assert shown(client, TABLE)["id"] == named(TABLE)
    assert shown(client, FILES)["id"] == named(FILES)


def test_a_batch_of_events_merges_names_in_its_order(server: Running) -> None:
    client = server.client
    history(client)
    batch = [
        run("w3", "load", 5, outputs=[dataset(TABLE, "id", "y")]),
        run("s", "export", 4, outputs=[dataset(FILES, also=TABLE)]),
        run("w4", "load", 7, outputs=[dataset(TABLE, "id", "z")]),
    ]

    answer = client.post(f"{API}/lineage/batch", json=batch).json()

    assert answer["summary"]["successful"] == 3
    assert [field["name"] for field in shown(client, FILES)["fields"]] == ["id", "z"]
