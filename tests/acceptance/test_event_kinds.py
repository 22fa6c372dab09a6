"""Run, job and dataset events: single, in batches, compressed, with any run id and any facet."""

import json
from typing import Any

import msgspec
import pytest

from tests.acceptance.calls import PRODUCER, SPEC, Calls, Document, new_run_id, path, schema


def dataset_event(calls: Calls, name: str, **facets: Document) -> Document:
    return {
        "eventTime": calls.now(),
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/DatasetEvent",
        "dataset": calls.dataset_ref(name, **facets),
    }


def job_event(calls: Calls, name: str, inputs: list[str], outputs: list[str]) -> Document:
    return {
        "eventTime": calls.now(),
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/JobEvent",
        "job": {"namespace": calls.namespace, "name": name, "facets": {}},
        "inputs": [calls.dataset_ref(dataset) for dataset in inputs],
        "outputs": [calls.dataset_ref(dataset) for dataset in outputs],
    }


def test_a_dataset_event_with_a_new_schema_creates_a_version(calls: Calls) -> None:
    calls.send(dataset_event(calls, "d", **schema("id")))
    calls.send(dataset_event(calls, "d", **schema("id")))
    calls.send(dataset_event(calls, "d", **schema("id", "x")))

    first, second = calls.versions("d")
    assert [field["name"] for field in first["fields"]] == ["id"]
    assert [field["name"] for field in second["fields"]] == ["id", "x"]
    assert first["createdByRun"] is second["createdByRun"] is None
    dataset = calls.dataset("d")
    assert (dataset["currentVersion"], dataset["currentVersionNumber"]) == (second["version"], 2)
    assert dataset["facets"] == second["facets"]


def test_a_job_event_declares_edges_without_a_run(calls: Calls) -> None:
    calls.send(job_event(calls, "j", ["a", "b"], ["c"]))

    job = calls.job("j")
    assert [d["name"] for d in job["inputs"]] == ["a", "b"]
    assert [d["name"] for d in job["outputs"]] == ["c"]
    assert (job["latestRun"], job["latestRuns"]) == (None, None)
    assert job["currentVersion"] is not None
    assert calls.get("namespaces", calls.namespace, "jobs", "j", "runs")["totalCount"] == 0
    assert [v["number"] for v in calls.versions("c")] == [1]


OWNED: Document = {"ownership": {"owners": [{"name": "ann"}]}}
OWNED_BY_BOB: Document = {"ownership": {"owners": [{"name": "bob"}]}}
ODD: Document = {"odd": {"v": 1.5}}


@pytest.mark.parametrize("again", [True, False], ids=["with its schema", "without a schema"])
def test_a_written_dataset_shows_facets_of_dataset_events(calls: Calls, again: bool) -> None:
    calls.report("COMPLETE", new_run_id(), "j", outputs=[calls.dataset_ref("d", **schema("id"))])
    fields = schema("id") if again else {}
    calls.send(dataset_event(calls, "d", **fields, **OWNED, **ODD))

    assert calls.dataset("d")["facets"] == schema("id") | OWNED | ODD
    [version] = calls.versions("d")
    assert version["facets"] == schema("id")


def test_a_dataset_without_writers_shows_facets_of_dataset_events(
    calls: Calls,
) -> None:
    calls.report("COMPLETE", new_run_id(), "j", inputs=[calls.dataset_ref("d", **schema("id"))])
    calls.send(dataset_event(calls, "d", **OWNED, **ODD))
    calls.report("COMPLETE", new_run_id(), "j", inputs=[calls.dataset_ref("d", **OWNED_BY_BOB)])

    assert calls.dataset("d")["facets"] == schema("id") | OWNED | ODD
    assert len(calls.versions("d")) == 1


def test_later_versions_keep_facets_of_dataset_events(calls: Calls) -> None:
    calls.send(dataset_event(calls, "d", **schema("id"), **OWNED))
    calls.send(dataset_event(calls, "d", **schema("id", "x"), **ODD))
    assert calls.dataset("d")["facets"] == schema("id", "x") | OWNED | ODD

    calls.report("COMPLETE", new_run_id(), "j", outputs=[calls.dataset_ref("d", **schema("y"))])
    assert calls.dataset("d")["facets"] == schema("y") | OWNED | ODD

    calls.report("COMPLETE", new_run_id(), "j", outputs=["d"])
    dataset = calls.dataset("d")
    assert [field["name"] for field in dataset["fields"]] == ["y"]
    assert dataset["facets"] == schema("y") | OWNED | ODD, "the declared schema has other fields"
    assert len(calls.versions("d")) == 4


def column_lineage_from(calls: Calls, field: str) -> Document:
    source = {"namespace": calls.namespace, "name": "raw", "field": field}
    return {"columnLineage": {"fields": {"id": {"inputFields": [source]}}}}


def sources(calls: Calls, **params: Any) -> list[str]:
    """Return the sources of the field `id` of `d` in the graph."""
    node = f"datasetField:{calls.namespace}:d:id"
    graph = calls.get("column-lineage", nodeId=node, **params)["graph"]
    return sorted(each["data"]["field"] for each in graph if each["id"] != node)


def test_column_lineage_of_a_dataset_event_applies_to_any_writer(calls: Calls) -> None:
    raw, output = (
        calls.dataset_ref("raw", **schema("a", "b", "c")),
        calls.dataset_ref("d", **schema("id")),
    )
    by_run = calls.dataset_ref("d", **schema("id"), **column_lineage_from(calls, "c"))
    calls.report("COMPLETE", new_run_id(), "j", inputs=[raw], outputs=[output])
    before = calls.now()
    calls.send(dataset_event(calls, "d", **column_lineage_from(calls, "a")))
    assert sources(calls) == ["a"]
    assert sources(calls, asOf=before) == []
    [column] = calls.dataset("d")["columnLineage"]
    assert [source["field"] for source in column["inputFields"]] == ["a"]

    late = dataset_event(calls, "d", **column_lineage_from(calls, "b"))
    calls.report("COMPLETE", new_run_id(), "j", inputs=[raw], outputs=[output])
    assert sources(calls) == ["a"], "the next version reports no lineage"
    calls.report("COMPLETE", new_run_id(), "j", inputs=[raw], outputs=[by_run])
    calls.send(late)
    assert sources(calls) == ["c"], "the latest word stands"
    [column] = calls.dataset("d")["columnLineage"]
    assert [source["field"] for source in column["inputFields"]] == ["c"]


def test_the_latest_value_of_a_dataset_facet_wins(calls: Calls) -> None:
    early = dataset_event(calls, "d", **OWNED)
    calls.report("COMPLETE", new_run_id(), "j", outputs=[calls.dataset_ref("d", **OWNED_BY_BOB)])
    late = dataset_event(calls, "d", **OWNED)
    calls.send(early)
    assert calls.dataset("d")["facets"] == OWNED_BY_BOB
    calls.send(late)
    calls.send(early)
    assert calls.dataset("d")["facets"] == OWNED


def test_a_version_after_a_drop_has_no_drop_facet(
    calls: Calls,
) -> None:
    drop: Document = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
    calls.send(dataset_event(calls, "d", **schema("id"), **OWNED))
    calls.send(dataset_event(calls, "d", **drop))
    assert calls.dataset("d")["deleted"]
    calls.report("COMPLETE", new_run_id(), "j", outputs=[calls.dataset_ref("d", **schema("x"))])
    assert calls.dataset("d")["facets"] == schema("x") | OWNED


SQL: Document = {"sql": {"query": "SELECT 1"}}


def test_job_event_facets_are_merged_with_the_newest_runs(calls: Calls) -> None:
    early = job_event(calls, "j", [], [])
    early["job"]["facets"] = OWNED | ODD
    calls.report("COMPLETE", new_run_id(), "j", job_facets=SQL | OWNED_BY_BOB)
    late = job_event(calls, "j", [], [])
    late["job"]["facets"] = OWNED

    calls.send(early)
    assert calls.job("j")["facets"] == SQL | OWNED_BY_BOB | ODD
    calls.send(late)
    assert calls.job("j")["facets"] == SQL | OWNED | ODD
    calls.report("START", new_run_id(), "j", job_facets=OWNED_BY_BOB)
    assert calls.job("j")["facets"] == OWNED_BY_BOB | ODD
    [job] = calls.get("namespaces", calls.namespace, "jobs")["jobs"]
    assert job["facets"] == OWNED_BY_BOB | ODD


GONE: Document = {"_deleted": True}


def test_a_deleted_facet_removes_its_earlier_value(calls: Calls) -> None:
    columns = column_lineage_from(calls, "a")
    words = {"documentation": {"description": "old words"}, **schema("id")}
    none = {"documentation": GONE, "columnLineage": GONE}

    def report(facets: Document) -> None:
        outputs = [calls.dataset_ref("d", **facets)]
        job_facets = {name: facet for name, facet in facets.items() if name == "documentation"}
        calls.report(
            "COMPLETE", new_run_id(), "j", job_facets=job_facets, inputs=["raw"], outputs=outputs
        )

    report({**words, **columns})
    assert calls.dataset("d")["columnLineage"] is not None
    calls.send(dataset_event(calls, "d", **none))
    declared = calls.dataset("d")
    assert declared["facets"] == schema("id")
    assert (declared["description"], declared["columnLineage"]) == (None, None)

    report({**words, **columns})
    assert calls.dataset("d")["facets"] == {**words, **columns}
    assert (calls.dataset("d")["description"], calls.job("j")["description"]) == ("old words",) * 2
    late = dataset_event(calls, "d", **none)
    report(none)
    calls.send(late)
    for shown in (calls.dataset("d"), calls.versions("d")[-1]):
        assert (shown["facets"], shown["description"]) == (schema("id"), None)
    assert (calls.job("j")["facets"], calls.job("j")["description"]) == ({}, None)


def test_each_event_of_a_batch_is_received_separately(calls: Calls) -> None:
    run = new_run_id()
    batch = [
        calls.event("START", run, "j", inputs=["a"]),
        {"eventTime": "noon"},
        calls.event("COMPLETE", run, "j", outputs=["b"]),
        dataset_event(calls, "c", **schema("id")),
        job_event(calls, "k", ["c"], []),
        "not an event",
    ]
    answer = calls.ask("POST", path("lineage", "batch"), json=batch)

    assert answer["status"] == "partial_success"
    assert answer["summary"] == {
        "received": 6,
        "successful": 4,
        "failed": 2,
        "retriable": 0,
        "non_retriable": 2,
    }
    assert [failed["index"] for failed in answer["failed_events"]] == [1, 5]
    assert all(failed["reason"] for failed in answer["failed_events"])
    assert calls.run(run)["state"] == "COMPLETED"
    assert [d["name"] for d in calls.job("j")["inputs"]] == ["a"]
    assert calls.dataset("b")["currentVersionNumber"] == 1
    assert calls.dataset("c")["fields"][0]["name"] == "id"
    assert [d["name"] for d in calls.job("k")["inputs"]] == ["c"]


@pytest.mark.parametrize("name", ["daily/2026-11-15", "42", "x" * 1000, "run: é ☃"])
def test_a_run_id_of_any_form_maps_to_a_uuid(calls: Calls, name: str) -> None:
    name = f"{calls.namespace[-12:]} {name}"[:1000]
    calls.report("START", name, "j")
    calls.report("COMPLETE", name, "j")

    [run] = calls.get("namespaces", calls.namespace, "jobs", "j", "runs")["runs"]
    assert run["state"] == "COMPLETED"
    assert calls.run(name) == run == calls.run(run["id"])
    assert len(run["id"]) == 36


def test_run_ids_ignore_case(calls: Calls) -> None:
    run = new_run_id()
    calls.report("START", run.upper(), "j")
    calls.report("COMPLETE", run, "j")
    assert calls.get("namespaces", calls.namespace, "jobs", "j", "runs")["totalCount"] == 1
    assert calls.run(run)["id"] == run


def test_unknown_facets_are_kept_word_for_word(calls: Calls) -> None:
    run = new_run_id()
    odd = '{ "a" :1.50,"b":[ null,1e3 ],"é":"\\u00e9","big":12345678901234567890123}'
    event = calls.event("COMPLETE", run, "j", inputs=["i"], outputs=["o"])
    event["run"]["facets"] = {"odd_run": "RAW"}
    event["job"]["facets"] = {"odd_job": "RAW"}
    event["outputs"][0] |= {"facets": {"odd_out": "RAW"}, "outputFacets": {"odd_o": "RAW"}}
    event["inputs"][0] |= {"facets": {"odd_in": "RAW"}, "inputFacets": {"odd_i": "RAW"}}
    body = json.dumps(event).replace('"RAW"', odd)
    calls.ask("POST", path("lineage"), status=201, content=body.encode())

    def word_for_word(where: str, facet: str) -> str:
        text = calls.client.get(where).text
        return text.partition(f'"{facet}":')[2][: len(odd)]

    namespace = ("namespaces", calls.namespace)
    assert word_for_word(path("jobs", "runs", run), "odd_run") == odd
    assert word_for_word(path("jobs", "runs", run, "facets"), "odd_run") == odd
    assert word_for_word(path("jobs", "runs", run, "facets") + "?type=job", "odd_job") == odd
    assert word_for_word(path(*namespace, "jobs", "j"), "odd_job") == odd
    assert word_for_word(path(*namespace, "datasets", "o"), "odd_out") == odd
    assert word_for_word(path(*namespace, "datasets", "i"), "odd_in") == odd
    assert word_for_word(path("jobs", "runs", run), "odd_i") == odd
    assert word_for_word(path("jobs", "runs", run), "odd_o") == odd
    assert body in calls.client.get(path("jobs", "runs", run, "events")).text


def test_events_without_a_schema_url_are_recognized_by_content(calls: Calls) -> None:
    for event in (
        calls.event("COMPLETE", new_run_id(), "j", outputs=["o"]),
        dataset_event(calls, "d", **schema("id")),
        job_event(calls, "k", ["d"], []),
    ):
        del event["schemaURL"]
        calls.send(msgspec.to_builtins(event))
    assert calls.job("j")["latestRun"]["state"] == "COMPLETED"
    assert calls.dataset("d")["currentVersionNumber"] == 1
    assert [d["name"] for d in calls.job("k")["inputs"]] == ["d"]


def test_a_very_large_event_is_received_like_any_other(calls: Calls) -> None:
    run, many = new_run_id(), 1500
    wide = schema(*(f"column_{number}" for number in range(5_000)))
    wordy = {"documentation": {"description": "word " * 200_000 + "".join(map(str, range(90_000)))}}
    inputs = [calls.dataset_ref(f"in/{number}") for number in range(many)]
    outputs = [calls.dataset_ref("wide", **wide, **wordy)]
    outputs += [calls.dataset_ref(f"out/{number}") for number in range(many)]
    calls.report("COMPLETE", run, "j", inputs=inputs, outputs=outputs)

    stored = calls.run(run)
    assert len(stored["inputDatasetVersions"]) == many
    assert len(stored["outputDatasetVersions"]) == many + 1
    assert len(calls.dataset("wide")["fields"]) == 5_000
    assert len(calls.get("lineage", nodeId=f"run:{run}")["graph"]) == 2 * many + 2


def test_a_dataset_named_twice_in_an_event_exists_once(calls: Calls) -> None:
    run = new_run_id()
    outputs = [
        calls.dataset_ref("d", **schema("a")),
        calls.dataset_ref("d", **schema("b")),
        calls.dataset_ref("d"),
    ]
    calls.report("COMPLETE", run, "j", inputs=["d", "d"], outputs=outputs)
    dataset = calls.run(run)
    assert [v["number"] for v in dataset["inputDatasetVersions"]] == [1]
    assert [v["number"] for v in dataset["outputDatasetVersions"]] == [2]
    assert [field["name"] for field in calls.dataset("d")["fields"]] == ["b"]


@pytest.mark.parametrize("by_job", [False, True])
def test_a_restoring_event_without_a_run_counts_from_its_time(calls: Calls, by_job: bool) -> None:
    drop: Document = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
    calls.send(dataset_event(calls, "d", **schema("id")))
    calls.send(dropped := dataset_event(calls, "d", **drop))
    back = job_event(calls, "j", ["d"], ["e"]) if by_job else dataset_event(calls, "d")
    calls.send(back)
    later = calls.now()
    calls.send(dataset_event(calls, "d", **schema("id", "x")))

    def deleted(at: str) -> bool:
        node = f"dataset:{calls.namespace}:d"
        page = calls.get("lineage", nodeId=node, hops=0, asOf=at)
        return bool(page["graph"][0]["data"]["deleted"])

    assert deleted(dropped["eventTime"])
    assert not deleted(back["eventTime"])
    assert not deleted(later)
    assert [v["lifecycleState"] for v in calls.versions("d")] == ["", "DROP", "", ""]
