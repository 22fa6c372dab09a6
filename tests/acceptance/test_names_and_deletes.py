"""Real-life names, and things that are deleted and restored."""

from collections.abc import Callable

import httpx
import pytest

from tests.acceptance.calls import Calls, fields, new_run_id, path, schema

pytestmark = pytest.mark.both_databases

ODD = [
    "s3://bucket:9000/a/b#c d",
    "100%/é ☃?x=1&y=2;z",
    "a:b:c",
    "%2F",
    "../a/./b",
    "a\\b\"c'd",
    "1" * 900,
    " leading and trailing ",
    "versions",
    "line\nbreak\ttab",
]


@pytest.mark.parametrize("name", ODD, ids=lambda name: repr(name)[:24])
def test_any_valid_name_works_in_every_call(calls: Calls, name: str) -> None:
    spaced = Calls(calls.client, f"{calls.namespace[-12:]}{name}"[:1000])
    namespace, run = spaced.namespace, new_run_id()
    output = spaced.dataset_ref(name, **schema(name[:50]))
    spaced.report("COMPLETE", run, name, inputs=[f"{name}#in"], outputs=[output])

    assert spaced.dataset(name)["id"] == {"namespace": namespace, "name": name}
    assert spaced.job(name)["id"] == {"namespace": namespace, "name": name}
    assert spaced.get("namespaces", namespace)["name"] == namespace
    datasets = spaced.get("namespaces", namespace, "datasets")["datasets"]
    assert [d["name"] for d in datasets] == sorted([name, f"{name}#in"])
    [version] = spaced.versions(name)
    of_dataset = ("namespaces", namespace, "datasets", name)
    assert spaced.get(*of_dataset, "versions", version["version"])["number"] == 1
    for node in (f"dataset:{namespace}:{name}", f"job:{namespace}:{name}", f"run:{run}"):
        graph = spaced.get("lineage", nodeId=node)["graph"]
        assert {n["data"]["name"] for n in graph} == {name, f"{name}#in"}
    versioned = spaced.get("lineage", nodeId=f"dataset:{namespace}:{name}#{version['version']}")
    assert any(n["data"]["name"] == name for n in versioned["graph"])
    spaced.get("column-lineage", nodeId=f"datasetField:{namespace}:{name}:{name[:50]}")
    tagged = spaced.ask("POST", path(*of_dataset, "tags", name))
    assert tagged["tags"] == [name]
    tagged = spaced.ask("POST", path(*of_dataset, "fields", name[:50], "tags", name))
    assert tagged["fields"][0]["tags"] == [name]


def test_a_deleted_dataset_is_hidden_and_can_be_restored(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "j", outputs=[calls.dataset_ref("d", **schema("id"))])
    before = calls.dataset("d")
    where = ("namespaces", calls.namespace, "datasets", "d")

    assert calls.ask("DELETE", path(*where))["deleted"] is True
    calls.get(*where, status=404)
    calls.get(*where, "versions", status=404)
    assert calls.get("namespaces", calls.namespace, "datasets")["totalCount"] == 0
    results = calls.get("search", q="d", namespace=calls.namespace, filter="DATASET")
    assert (results["results"], results["totalCount"]) == ([], 0)
    nodes = calls.get("lineage", nodeId=f"job:{calls.namespace}:j")["graph"]
    assert [node["type"] for node in nodes] == ["JOB"]

    restored = calls.ask("POST", path(*where, "restore"))
    assert (restored["deleted"], restored["currentVersion"]) == (False, before["currentVersion"])
    assert calls.get("namespaces", calls.namespace, "datasets")["totalCount"] == 1
    assert len(calls.get("lineage", nodeId=f"job:{calls.namespace}:j")["graph"]) == 2


def test_a_deleted_job_is_hidden_and_can_be_restored(calls: Calls) -> None:
    run = new_run_id()
    calls.report("COMPLETE", run, "j", outputs=["d"])
    where = ("namespaces", calls.namespace, "jobs", "j")
    calls.ask("DELETE", path(*where))
    calls.get(*where, status=404)
    assert calls.get("namespaces", calls.namespace, "jobs")["totalCount"] == 0
    assert [v["createdByRun"]["id"] for v in calls.versions("d")] == [run]
    calls.ask("POST", path(*where, "restore"))
    assert calls.job("j")["latestRun"]["id"] == run


def test_deleting_and_restoring_a_namespace_includes_its_contents(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "j", inputs=["a"], outputs=["b"])
    where = path("namespaces", calls.namespace)
    assert calls.ask("DELETE", where)["isHidden"] is True
    for segments in (("datasets", "a"), ("datasets", "b"), ("jobs", "j")):
        calls.get("namespaces", calls.namespace, *segments, status=404)
    namespaces = calls.get("namespaces", limit=10_000)["namespaces"]
    assert all(n["name"] != calls.namespace for n in namespaces if not n["isHidden"])

    assert calls.ask("POST", f"{where}/restore")["isHidden"] is False
    assert calls.get("namespaces", calls.namespace, "datasets")["totalCount"] == 2
    assert calls.get("namespaces", calls.namespace, "jobs")["totalCount"] == 1
    assert calls.job("j")["latestRun"]["state"] == "COMPLETED"


def names_in(calls: Calls, kind: str) -> list[str]:
    """Return the names of one kind in a namespace. Its count and search must agree."""
    page = calls.get("namespaces", calls.namespace, kind)
    names = sorted(each["name"] for each in page[kind])
    results = calls.get(
        "search", q=calls.namespace, namespace=calls.namespace, filter=kind.upper()[:-1]
    )
    assert page["totalCount"] == results["totalCount"] == len(names)
    return names


def test_restoring_a_namespace_keeps_earlier_deletions_in_it(calls: Calls) -> None:
    drop = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
    where = path("namespaces", calls.namespace)
    calls.report("COMPLETE", new_run_id(), "j", outputs=["a", "b"])
    calls.report("COMPLETE", new_run_id(), "k", outputs=[calls.dataset_ref("dropped", **drop)])
    calls.ask("DELETE", f"{where}/datasets/a")
    calls.ask("DELETE", f"{where}/jobs/k")

    calls.ask("DELETE", where)
    assert (names_in(calls, "datasets"), names_in(calls, "jobs")) == ([], [])
    calls.ask("DELETE", where)  # the second delete hides nothing more and loses nothing
    calls.ask("POST", f"{where}/restore")
    assert (names_in(calls, "datasets"), names_in(calls, "jobs")) == (["b"], ["j"])


@pytest.mark.parametrize("by", ["stating it", "an event"])
def test_contents_can_be_restored_after_their_namespace_returned_empty(
    calls: Calls, by: str
) -> None:
    calls.report("COMPLETE", new_run_id(), "j", outputs=["a", "b"])
    where = path("namespaces", calls.namespace)
    calls.ask("DELETE", where)
    if by == "stating it":
        calls.put_namespace()
    else:
        calls.report("START", new_run_id(), "k", at="2099-01-01T00:00:00Z")
    assert calls.ask("GET", where)["isHidden"] is False
    assert names_in(calls, "datasets") == []
    calls.ask("POST", f"{where}/restore")
    assert names_in(calls, "datasets") == ["a", "b"]


WRITES_AGAIN: dict[str, Callable[[Calls], object]] = {
    "a run that reads a dataset of it": lambda calls: Calls(
        calls.client, f"{calls.namespace}-jobs"
    ).report(
        "START", new_run_id(), "j", inputs=[calls.dataset_ref("d")], at="2099-01-01T00:00:00Z"
    ),
    "a run that writes a dataset of it": lambda calls: Calls(
        calls.client, f"{calls.namespace}-jobs"
    ).report(
        "COMPLETE", new_run_id(), "j", outputs=[calls.dataset_ref("d")], at="2099-01-01T00:00:00Z"
    ),
    "stating a dataset": lambda calls: calls.put_dataset("d"),
    "stating a job": lambda calls: calls.put_job("j"),
    "restoring a dataset": lambda calls: calls.ask(
        "POST", path("namespaces", calls.namespace, "datasets", "d", "restore")
    ),
    "restoring a job": lambda calls: calls.ask(
        "POST", path("namespaces", calls.namespace, "jobs", "j", "restore")
    ),
}


@pytest.mark.parametrize("write", WRITES_AGAIN)
def test_restoring_contents_restores_their_deleted_namespace(calls: Calls, write: str) -> None:
    calls.put_source("warehouse")
    calls.report("COMPLETE", new_run_id(), "j", outputs=["d", "e"])
    calls.ask("DELETE", path("namespaces", calls.namespace))

    WRITES_AGAIN[write](calls)
    assert calls.get("namespaces", calls.namespace)["isHidden"] is False
    back = names_in(calls, "datasets") + names_in(calls, "jobs")
    assert back == (["j"] if "job" in write else ["d"])


def test_a_later_child_restores_its_deleted_parent_job(calls: Calls) -> None:
    parent = {"run": {"runId": new_run_id()}, "job": {"namespace": calls.namespace, "name": "dag"}}
    calls.report("START", new_run_id(), "dag.task", run_facets={"parent": parent})
    where = ("namespaces", calls.namespace, "jobs", "dag")
    calls.ask("DELETE", path(*where))
    calls.report("START", new_run_id(), "dag.task", run_facets={"parent": parent})
    calls.get(*where, status=404)

    later = "2099-01-01T00:00:00Z"
    calls.report("START", new_run_id(), "dag.task", run_facets={"parent": parent}, at=later)
    assert calls.job("dag")["latestRun"]["id"] == parent["run"]["runId"]
    assert names_in(calls, "jobs") == ["dag", "dag.task"]


@pytest.mark.parametrize("what", ["dataset", "job", "namespace"])
def test_a_later_write_restores_a_deleted_dataset(calls: Calls, what: str) -> None:
    calls.report("COMPLETE", new_run_id(), "j", outputs=["d"])
    segments = {"dataset": ("datasets", "d"), "job": ("jobs", "j"), "namespace": ()}[what]
    where = path("namespaces", calls.namespace, *segments)
    calls.ask("DELETE", where)

    calls.report("COMPLETE", new_run_id(), "j", outputs=["d"], at="2026-01-01T00:00:00Z")
    answer = calls.client.get(where)
    assert answer.status_code == 404 or answer.json()["isHidden"]

    calls.report("COMPLETE", new_run_id(), "j", outputs=["d"], at="2099-01-01T00:00:00Z")
    assert calls.ask("GET", where).get("isHidden", False) is False
    assert calls.dataset("d")["deleted"] is False
    assert calls.job("j")["latestRun"]["state"] == "COMPLETED"
    assert calls.get("namespaces", calls.namespace, "datasets")["totalCount"] == 1
    assert calls.get("namespaces", calls.namespace, "jobs")["totalCount"] == 1


def test_putting_a_deleted_dataset_or_job_restores_it(calls: Calls) -> None:
    calls.put_namespace()
    calls.put_source("warehouse")
    calls.put_dataset("d", fields=fields("id"))
    calls.put_job("j", [], ["d"])
    for kind, name in (("datasets", "d"), ("jobs", "j")):
        calls.ask("DELETE", path("namespaces", calls.namespace, kind, name))
    calls.put_dataset("d", fields=fields("id"))
    calls.put_job("j", [], ["d"])
    assert calls.dataset("d")["currentVersionNumber"] == 1
    assert [d["name"] for d in calls.job("j")["outputs"]] == ["d"]


def test_deletions_are_in_the_audit_log(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "j", outputs=["d"])
    calls.ask("DELETE", path("namespaces", calls.namespace, "datasets", "d"))
    answer: httpx.Response = calls.client.get(path("audit"))
    assert answer.status_code == 200
    assert f"dataset:{calls.namespace}:d" in answer.text
