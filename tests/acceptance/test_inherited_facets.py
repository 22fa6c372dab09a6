"""Facets that a dataset version inherits from the version before it, and what ends that."""

from itertools import permutations

import pytest

from tests.acceptance.calls import Calls, Document, new_run_id, schema
from tests.acceptance.lot_calls import LotCalls


def lineage(calls: Calls, **columns: str) -> Document:
    """Return the column lineage facet: each field comes from one field of `raw`."""
    raw = {"namespace": calls.namespace, "name": "raw"}
    column_sources = {
        name: {"inputFields": [raw | {"field": source}]} for name, source in columns.items()
    }
    return {"columnLineage": {"fields": column_sources}}


def full_output(calls: Calls) -> Document:
    """Return an output with every facet that an SQL task reports."""
    return calls.dataset_ref(
        "totals",
        **schema("total", "country"),
        **lineage(calls, total="price", country="country"),
        documentation={"description": "sums by country"},
        ownership={"owners": [{"name": "team:sales"}]},
    )


def write(calls: Calls, *outputs: str | Document, at: str | None = None) -> str:
    run = new_run_id()
    calls.report("START", run, "write", at=at)
    calls.report("COMPLETE", run, "write", outputs=outputs, at=at)
    return run


def column_sources(dataset: Document) -> dict[str, list[str]]:
    """Return the inputs of each field with column lineage."""
    return {
        column["name"]: [source["field"] for source in column["inputFields"]]
        for column in dataset["columnLineage"] or ()
    }


def declare(calls: Calls, dataset: Document) -> None:
    calls.send({"eventTime": calls.now(), "dataset": dataset})


def test_a_version_inherits_facets_that_its_run_did_not_report(calls: Calls) -> None:
    write(calls, full_output(calls))
    first = calls.dataset("totals")

    write(calls, "totals")

    second = calls.dataset("totals")
    inherited = ("fields", "columnLineage", "description", "facets")
    assert [second[name] for name in inherited] == [first[name] for name in inherited]
    assert second["currentVersionNumber"] == 2
    one, two = calls.versions("totals")
    inherited = ("fields", "description", "facets", "currentSchemaVersion")
    assert [two[name] for name in inherited] == [one[name] for name in inherited]
    node = f"datasetField:{calls.namespace}:totals:total"
    graph = calls.get("column-lineage", nodeId=node)["graph"]
    assert {each["data"]["field"] for each in graph} == {"total", "price"}


def test_search_finds_fields_inherited_from_a_late_report(calls: Calls) -> None:
    at = calls.now()
    early = write(calls, "totals", at=at)
    write(calls, "totals")
    reader = calls.dataset_ref("totals", **schema("old"))
    calls.report("COMPLETE", new_run_id(), "read", inputs=[reader])

    late = calls.dataset_ref("totals", **schema("fresh"))
    calls.report("COMPLETE", early, "write", outputs=[late], at=at)

    assert [field["name"] for field in calls.dataset("totals")["fields"]] == ["fresh"]
    counts = {
        word: calls.get("search", q=word, namespace=calls.namespace)["totalCount"]
        for word in ("fresh", "old")
    }
    assert counts == {"fresh": 1, "old": 0}


def test_facets_about_a_single_version_are_not_inherited(calls: Calls) -> None:
    checks = {"dataQualityMetrics": {"rowCount": 7}, "version": {"datasetVersion": "1"}}
    write(
        calls, calls.dataset_ref("totals", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    )
    write(calls, calls.dataset_ref("totals", **checks))

    write(calls, "totals")

    assert calls.dataset("totals")["facets"] == {}
    assert calls.dataset("totals")["lastLifecycleState"] == ""


@pytest.mark.parametrize("empty", [{"fields": {}}, {"_deleted": True}])
def test_an_empty_facet_removes_column_lineage(calls: Calls, empty: Document) -> None:
    write(calls, full_output(calls))

    write(calls, calls.dataset_ref("totals", columnLineage=empty))
    write(calls, "totals")

    dataset = calls.dataset("totals")
    assert column_sources(dataset) == {}
    assert [field["name"] for field in dataset["fields"]] == ["total", "country"]


def test_a_removed_column_loses_its_lineage_for_good(calls: Calls) -> None:
    write(calls, full_output(calls))

    write(calls, calls.dataset_ref("totals", **schema("TOTAL")))
    assert column_sources(calls.dataset("totals")) == {"total": ["price"]}
    assert calls.dataset("totals")["facets"]["columnLineage"]["fields"].keys() == {"total"}

    write(calls, calls.dataset_ref("totals", **schema("total", "country")))
    assert column_sources(calls.dataset("totals")) == {"total": ["price"]}


def test_a_declaration_with_a_new_schema_keeps_column_lineage(calls: Calls) -> None:
    write(calls, full_output(calls))

    declare(calls, calls.dataset_ref("totals", **schema("total", "currency")))

    dataset = calls.dataset("totals")
    assert column_sources(dataset) == {"total": ["price"]}
    assert dataset["currentVersionNumber"] == 2


def test_declared_fields_are_not_replaced_by_inherited_ones(calls: Calls) -> None:
    calls.put_namespace()
    calls.put_source("warehouse")
    write(calls, full_output(calls))

    calls.put_dataset("totals", fields=[{"name": "total", "type": "DECIMAL"}])
    write(calls, "totals")

    for shown in (calls.dataset("totals"), calls.versions("totals")[1]):
        assert [(field["name"], field["type"]) for field in shown["fields"]] == [
            ("total", "DECIMAL")
        ]
    assert column_sources(calls.dataset("totals")) == {"total": ["price"]}


def test_inherited_lineage_replaces_lineage_declared_earlier(calls: Calls) -> None:
    declare(
        calls, calls.dataset_ref("totals", **schema("total"), **lineage(calls, total="declared"))
    )
    write(calls, calls.dataset_ref("totals", **lineage(calls, total="written")))

    write(calls, "totals")

    assert column_sources(calls.dataset("totals")) == {"total": ["written"]}
    node = f"datasetField:{calls.namespace}:totals:total"
    graph = calls.get("column-lineage", nodeId=node)["graph"]
    assert {each["data"]["field"] for each in graph} == {"total", "written"}


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_runs_that_report_in_any_order_inherit_the_same(
    calls: Calls, order: tuple[int, ...]
) -> None:
    runs, at = [new_run_id() for _ in order], [calls.now() for _ in order]
    outputs = [
        full_output(calls),
        "totals",
        calls.dataset_ref("totals", **schema("total"), documentation={"description": "sums"}),
        "totals",
    ]

    for number in order:
        run = runs[number]
        calls.report("COMPLETE", run, "write", outputs=[outputs[number]], at=at[number])

    by_run = {version["createdByRun"]["id"]: version for version in calls.versions("totals")}
    versions = [by_run[run] for run in runs]
    assert [[field["name"] for field in version["fields"]] for version in versions] == [
        ["total", "country"], ["total", "country"], ["total"], ["total"],
    ]  # fmt: skip
    assert [version["description"] for version in versions] == [
        "sums by country", "sums by country", "sums", "sums",
    ]  # fmt: skip
    assert [version["facets"].get("ownership") for version in versions] == [
        {"owners": [{"name": "team:sales"}]}
    ] * 4
    columns = [version["facets"]["columnLineage"]["fields"].keys() for version in versions]
    assert columns == [{"total", "country"}, {"total", "country"}, {"total"}, {"total"}]
    assert column_sources(calls.dataset("totals")) == {"total": ["price"]}
    node = f"dataset:{calls.namespace}:totals"
    for moment, fields in zip(at, (2, 2, 1, 1), strict=True):
        graph = calls.get("column-lineage", nodeId=node, asOf=moment, depth=1)["graph"]
        derived = [each for each in graph if each["data"]["inputFields"]]
        assert len(derived) == fields


def test_a_late_report_reaches_the_versions_that_inherit(calls: Calls) -> None:
    early = new_run_id()
    calls.report("COMPLETE", early, "write", outputs=["totals"])
    for _ in range(3):
        write(calls, "totals")

    calls.report("COMPLETE", early, "write", outputs=[full_output(calls)])

    for version in calls.versions("totals"):
        assert [field["name"] for field in version["fields"]] == ["total", "country"]
        assert version["facets"].keys() == full_output(calls)["facets"].keys()
    assert column_sources(calls.dataset("totals")).keys() == {"total", "country"}


def test_versions_of_lots_inherit_too(calls: Calls) -> None:
    framework = LotCalls(calls)
    write(calls, full_output(calls))
    first = calls.dataset("totals")
    framework.wire("make", inputs=["raw"], outputs=["totals"])
    framework.register("raw", "1", "2")

    framework.run_once("make")
    framework.run_once("make")
    framework.register("totals", "3")

    dataset = calls.dataset("totals")
    assert dataset["currentVersionNumber"] == 4
    inherited = ("fields", "columnLineage", "description")
    assert [dataset[name] for name in inherited] == [first[name] for name in inherited]
    assert dataset["facets"]["ownership"] == first["facets"]["ownership"]


@pytest.mark.parametrize("reader_first", [True, False])
def test_a_readers_schema_is_kept_if_no_writer_reports_one(
    calls: Calls, reader_first: bool
) -> None:
    input = calls.dataset_ref("orders", **schema("id", "price"))
    if reader_first:
        calls.report("COMPLETE", new_run_id(), "read", inputs=[input])
        write(calls, "orders")
    else:
        write(calls, "orders")
        calls.report("COMPLETE", new_run_id(), "read", inputs=[input])

    dataset, version = calls.dataset("orders"), calls.versions("orders")[-1]
    for each in (dataset, version):
        assert [field["name"] for field in each["fields"]] == ["id", "price"]
    assert dataset["facets"]["schema"] == schema("id", "price")["schema"]
    graph = calls.get("lineage", nodeId=f"dataset:{calls.namespace}:orders", depth=0)["graph"]
    assert [field["name"] for field in graph[0]["data"]["fields"]] == ["id", "price"]
    columns = calls.get("column-lineage", nodeId=f"dataset:{calls.namespace}:orders")["graph"]
    assert {node["data"]["field"] for node in columns} == {"id", "price"}
    results = calls.get("search", q=f"price {calls.namespace[-12:]}")["results"]
    assert "orders" in [result["name"] for result in results]


@pytest.mark.parametrize("reader_first", [True, False])
def test_a_writers_schema_wins_over_a_readers(calls: Calls, reader_first: bool) -> None:
    write(calls, "orders")
    input = calls.dataset_ref("orders", **schema("seen"))
    output = calls.dataset_ref("orders", **schema("written"))
    if reader_first:
        calls.report("COMPLETE", new_run_id(), "read", inputs=[input])
        write(calls, output)
    else:
        write(calls, output)
        calls.report("COMPLETE", new_run_id(), "read", inputs=[input])

    assert [field["name"] for field in calls.dataset("orders")["fields"]] == ["written"]
    write(calls, "orders")
    assert [field["name"] for field in calls.dataset("orders")["fields"]] == ["written"]
