"""What a key for one namespace may do by events: teams food and drink share a server."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from penstock.config import Settings
from penstock.plane import Plane
from penstock.schema.admin import KeyRole
from tests.doors.serving import API, Running, path, post, run_event, running

SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
AT = "2026-11-15T11:00:00Z"
CELLAR = path("namespaces", "drink", "datasets", "cellar")

Document = dict[str, Any]
Headers = Mapping[str, str]


@pytest.fixture
def shared(database_url: str) -> Iterator[Running]:
    """A server that needs keys; drink/cellar has been made, and is also called food/window."""
    with Plane.open(Settings(database=database_url)) as plane:
        plane.keys.create("first", KeyRole.ADMIN, who="test")
    with running(database_url, host="0.0.0.0") as server:
        server.client.headers.update(server.key("boss", KeyRole.ADMIN))
        facets = fields("vintage") | names(("food", "window"))
        post(server.client, run("mix", "press", outputs=[dataset("drink", "cellar", **facets)]))
        yield server


@pytest.fixture
def food(shared: Running) -> Headers:
    return shared.key("food", KeyRole.WRITER, "food")


@pytest.fixture
def drink(shared: Running) -> Headers:
    return shared.key("drink", KeyRole.WRITER, "drink")


def facet(**said: Any) -> Document:
    return {"_producer": "https://example.org/tests", "_schemaURL": "https://x", **said}


def fields(*named: str) -> Document:
    return {"schema": facet(fields=[{"name": name, "type": "INT"} for name in named])}


def names(*second: tuple[str, str]) -> Document:
    identifiers = [{"namespace": n, "name": name, "type": "TABLE"} for n, name in second]
    return {"symlinks": facet(identifiers=identifiers)}


DROP = {"lifecycleStateChange": facet(lifecycleStateChange="DROP")}


def parent(run_id: str, namespace: str, name: str) -> Document:
    said = facet(run={"runId": run_id}, job={"namespace": namespace, "name": name})
    return {"parent": said}


def dataset(namespace: str, name: str, **facets: Any) -> Document:
    return {"namespace": namespace, "name": name, "facets": facets}


def run(run_id: str, job: str, namespace: str = "drink", **changes: Any) -> Document:
    said = {"eventType": "COMPLETE", "inputs": [], "outputs": [], **changes}
    return run_event(run_id, job={"namespace": namespace, "name": job, "facets": {}}, **said)


def dataset_event(stated: Document) -> Document:
    return {"eventTime": AT, "schemaURL": f"{SPEC}/DatasetEvent", "dataset": stated}


def job_event(name: str, *inputs: Document) -> Document:
    job = {"namespace": "food", "name": name, "facets": {}}
    return {"eventTime": AT, "schemaURL": f"{SPEC}/JobEvent", "job": job, "inputs": inputs}


def status(server: Running, key: Headers, event: Document) -> int:
    return server.client.post(f"{API}/lineage", json=event, headers=key).status_code


def shown(server: Running, target: str) -> Document:
    found: Document = server.client.get(target).raise_for_status().json()
    return found


def test_a_second_name_does_not_lead_a_declaration_out_of_the_namespace(
    shared: Running, food: Headers, drink: Headers
) -> None:
    before = shown(shared, CELLAR)
    stated = dataset("food", "window", **fields("evil"))
    assert status(shared, food, dataset_event(stated)) == 403
    assert shown(shared, CELLAR) == before
    assert status(shared, food, dataset_event(dataset("food", "soup", **fields("salt")))) == 201
    assert status(shared, drink, dataset_event(dataset("drink", "cellar", **fields("x")))) == 201


def test_a_job_event_describes_no_dataset_of_another_namespace(
    shared: Running, food: Headers
) -> None:
    before = shown(shared, CELLAR)
    for stated in (dataset("drink", "cellar", **DROP), dataset("food", "window", **fields("x"))):
        assert status(shared, food, job_event("cook", stated)) == 403
        swapped = {**job_event("cook"), "outputs": [stated]}
        assert status(shared, food, swapped) == 403
    assert shown(shared, CELLAR) == before
    assert shared.client.get(path("namespaces", "food", "jobs", "cook")).status_code == 404


def test_a_job_event_may_name_datasets_of_other_namespaces(shared: Running, food: Headers) -> None:
    before = shown(shared, CELLAR)
    own = dataset("food", "soup", **fields("salt"))
    assert status(shared, food, job_event("cook", dataset("drink", "cellar"), own)) == 201
    job = shown(shared, path("namespaces", "food", "jobs", "cook"))
    assert {(i["namespace"], i["name"]) for i in job["inputs"]} == {
        ("drink", "cellar"),
        ("food", "soup"),
    }
    assert shown(shared, CELLAR)["currentVersion"] == before["currentVersion"]


def test_a_run_may_name_datasets_of_other_namespaces(shared: Running, food: Headers) -> None:
    written = dataset("drink", "cellar", **fields("vintage", "label"))
    read = dataset("drink", "grapes", **fields("weight"))
    event = run("r", "cook", "food", inputs=[read], outputs=[written], eventTime=AT)
    assert status(shared, food, event) == 201
    reported = shown(shared, f"{CELLAR}/versions/V2")
    assert [field["name"] for field in reported["fields"]] == ["vintage", "label"]
    assert (reported["isCurrent"], reported["isUnconfirmed"]) == (False, True)
    assert reported["createdByRun"]["id"] == shown(shared, path("jobs", "runs", "r"))["id"]
    job = shown(shared, path("namespaces", "food", "jobs", "cook"))
    assert [each["name"] for each in job["inputs"]] == ["grapes"]
    assert [each["name"] for each in job["outputs"]] == ["cellar"]


@pytest.mark.parametrize("kind", ["run", "job", "dataset"])
def test_a_second_name_in_another_namespace_is_left_out(
    shared: Running, food: Headers, drink: Headers, kind: str
) -> None:
    soup = dataset("food", "soup", **names(("drink", "newtable"), ("food", "broth")))
    claim = {
        "run": run("r", "cook", "food", outputs=[soup]),
        "job": job_event("cook", soup),
        "dataset": dataset_event(soup),
    }[kind]
    assert status(shared, food, claim) == 201
    secret = dataset("drink", "newtable", **fields("secret"))
    assert status(shared, drink, run("theirs", "press", outputs=[secret])) == 201
    target = path("namespaces", "drink", "datasets", "newtable")
    own = shared.client.get(target, headers=drink)
    assert own.json()["id"] == {"namespace": "drink", "name": "newtable"}
    soups = shown(shared, path("namespaces", "food", "datasets", "broth"))
    assert soups["name"] == "soup"
    assert soups["fields"] == []
    said = soups["facets"]["symlinks"]
    assert [each["name"] for each in said["identifiers"]] == ["broth"]
    assert said["_producer"] == "https://example.org/tests"


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_dataset_of_another_namespace_gets_no_second_name(
    shared: Running, food: Headers, side: str
) -> None:
    """The object store and the metastore of a Spark job are neither of them its own."""
    files = dataset("s3://lake", "/orders", **names(("hive://m", "shop.orders"), ("food", "peep")))
    assert status(shared, food, run("r", "cook", "food", **{side: [files]})) == 201
    assert shown(shared, path("namespaces", "s3://lake", "datasets", "/orders"))["aliases"] == []
    window = dataset("food", "window", **names(("food", "porthole")))
    assert status(shared, food, run("r2", "cook", "food", **{side: [window]})) == 201
    porthole = path("namespaces", "food", "datasets", "porthole")
    assert shared.client.get(porthole).status_code == 404


def test_a_run_of_another_namespace_is_not_taken(
    shared: Running, food: Headers, drink: Headers
) -> None:
    child = run("child", "dag.task")
    child["run"]["facets"] = parent("dag-run", "drink", "dag")
    assert status(shared, drink, child) == 201
    assert status(shared, food, run("dag-run", "thief", "food", eventType="START")) == 403
    assert status(shared, drink, run("dag-run", "dag", eventType="START")) == 201
    assert status(shared, food, run("dag-run", "thief", "food")) == 403
    # Within a namespace a run may turn out to be of another job than its child said.
    child = run("child2", "dag.task")
    child["run"]["facets"] = parent("dag-run2", "drink", "dag")
    assert status(shared, drink, child) == 201
    assert status(shared, drink, run("dag-run2", "dag.renamed", eventType="START")) == 201


def test_a_parent_of_another_namespace_is_believed(
    shared: Running, food: Headers, drink: Headers
) -> None:
    """Airflow starts jobs of everybody: that a parent is, and no more, is its child's to say."""
    child = run("child", "task", "food")
    child["run"]["facets"] = parent("dag-run", "drink", "dag")
    assert status(shared, food, child) == 201
    assert shown(shared, path("jobs", "runs", "dag-run"))["state"] == "NEW"
    assert status(shared, food, run("dag-run", "dag", "food")) == 403
    assert status(shared, drink, run("dag-run", "dag")) == 201


def test_a_dataset_beside_a_run_does_not_hide_whose_run_it_is(
    shared: Running, food: Headers
) -> None:
    beside = {**run("r", "press", eventType="START"), "dataset": dataset("food", "soup")}
    assert status(shared, food, beside) == 403
    assert shared.client.get(path("jobs", "runs", "r")).status_code == 404
    post(shared.client, beside)
    events = shown(shared, f"{API}/events/drink")["events"]
    assert [event["run"]["runId"] for event in events] == ["r", "mix"]


def test_a_run_of_another_namespace_is_not_shown_with_what_it_wrote(
    shared: Running, food: Headers, drink: Headers
) -> None:
    soup = dataset("food", "soup", **fields("salt"))
    assert status(shared, drink, run("theirs", "press", outputs=[soup])) == 201
    assert status(shared, food, run("ours", "cook", "food", outputs=[soup])) == 201
    target = path("namespaces", "food", "datasets", "soup") + "/versions"
    listed = shared.client.get(target, headers=food).json()["versions"]
    assert [(v["createdByRun"] or {}).get("job") for v in listed] == [
        {"namespace": "food", "name": "cook"},
        None,
    ]
    assert shared.client.get(f"{target}/V1", headers=food).json()["createdByRun"] is None
    assert shown(shared, f"{target}/V1")["createdByRun"]["job"]["name"] == "press"
