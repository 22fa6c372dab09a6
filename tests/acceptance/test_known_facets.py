"""The facets that Penstock interprets, and their effect on the catalog."""

import pytest

from tests.acceptance.calls import PRODUCER, SPEC, Calls, Document, new_run_id, path, schema


@pytest.mark.parametrize("facet", ["parent", "parentRun"])
def test_a_parent_facet_creates_the_parent_and_short_name(calls: Calls, facet: str) -> None:
    child, parent = new_run_id(), new_run_id()
    job = {"namespace": calls.namespace, "name": "dag"}
    facets = {facet: {"run": {"runId": parent}, "job": job}}
    calls.report("START", child, "dag.task", run_facets=facets)
    calls.report("FAIL", child, "dag.task")

    assert calls.run(child)["parent"] == {**job, "runId": parent}
    assert calls.run(parent)["state"] == "NEW"
    assert calls.run(parent)["job"] == job
    task = calls.job("dag.task")
    assert (task["simpleName"], task["parentJobName"]) == ("task", "dag")
    assert calls.job("dag")["latestRun"]["id"] == parent
    assert task["parentJobUuid"] is not None


def test_a_parent_created_by_its_child_accepts_its_own_events(calls: Calls) -> None:
    child, parent = new_run_id(), "the parent"
    job = {"namespace": calls.namespace, "name": "dag"}
    at = calls.now()
    calls.report(
        "START", child, "dag.task", run_facets={"parent": {"run": {"runId": parent}, "job": job}}
    )
    calls.report("START", parent, "dag", at=at)
    calls.report("COMPLETE", parent, "dag")
    assert calls.run(parent)["state"] == "COMPLETED"
    assert calls.job("dag")["latestRun"]["state"] == "COMPLETED"
    assert calls.get("namespaces", calls.namespace, "jobs", "dag", "runs")["totalCount"] == 1
    assert calls.run(child)["state"] == "RUNNING"


def test_a_symlink_is_a_second_name_of_the_same_dataset(calls: Calls) -> None:
    second = {"namespace": calls.namespace, "name": "shop.orders", "type": "TABLE"}
    output = calls.dataset_ref("/lake/orders", symlinks={"identifiers": [second]}, **schema("id"))
    calls.report("COMPLETE", new_run_id(), "write", outputs=[output])
    reader = new_run_id()
    calls.report("COMPLETE", reader, "read", inputs=["shop.orders"])

    dataset = calls.dataset("shop.orders")
    assert dataset == calls.dataset("/lake/orders")
    assert dataset["aliases"] == [second]
    [read] = calls.run(reader)["inputDatasetVersions"]
    assert read["datasetVersionId"]["version"] == dataset["currentVersion"]
    assert read["datasetVersionId"]["name"] == "/lake/orders"
    page = calls.get("namespaces", calls.namespace, "datasets")
    assert [dataset["name"] for dataset in page["datasets"]] == ["/lake/orders"]
    graph = calls.get("lineage", nodeId=f"dataset:{calls.namespace}:shop.orders")["graph"]
    assert {node["data"]["name"] for node in graph} == {"/lake/orders", "write", "read"}


def column_lineage(calls: Calls, source: str, *columns: str) -> Document:
    of_input = {"namespace": calls.namespace, "name": source}
    step = {"type": "DIRECT", "subtype": "AGGREGATION", "description": "sum"}
    made_from = [of_input | {"field": column, "transformations": [step]} for column in columns]
    return {"columnLineage": {"fields": {"total": {"inputFields": made_from}}}}


def test_column_lineage_shows_the_sources_of_a_field(calls: Calls) -> None:
    orders = calls.dataset_ref("orders", **schema("price", "tax"))
    facets = schema("total") | column_lineage(calls, "orders", "price", "tax")
    totals = calls.dataset_ref("totals", **facets)
    calls.report("COMPLETE", new_run_id(), "sum", inputs=[orders], outputs=[totals])

    [column] = calls.dataset("totals")["columnLineage"]
    assert column["name"] == "total"
    assert [source["field"] for source in column["inputFields"]] == ["price", "tax"]
    assert {source["dataset"] for source in column["inputFields"]} == {"orders"}
    assert column["inputFields"][0]["transformationType"] == "AGGREGATION"
    assert column["inputFields"][0]["transformationDescription"] == "sum"
    node = f"datasetField:{calls.namespace}:totals:total"
    graph = calls.get("column-lineage", nodeId=node)["graph"]
    assert {n["id"].removeprefix(f"datasetField:{calls.namespace}:") for n in graph} == {
        "totals:total", "orders:price", "orders:tax",
    }  # fmt: skip
    down = calls.get(
        "column-lineage",
        nodeId=f"datasetField:{calls.namespace}:orders:tax",
        withDownstream=True,
    )
    assert any(n["id"] == node for n in down["graph"])


def test_an_input_field_with_only_indirect_steps_is_marked(calls: Calls) -> None:
    raw = {"namespace": calls.namespace, "name": "raw"}
    case = {"type": "INDIRECT", "subtype": "CONDITIONAL"}
    copy = {"type": "DIRECT", "subtype": "IDENTITY"}
    made_from = [
        raw | {"field": "kind", "transformations": [case]},
        raw | {"field": "price", "transformations": [case, copy]},
    ]
    lineage = {"columnLineage": {"fields": {"total": {"inputFields": made_from}}}}
    totals = calls.dataset_ref("totals", **schema("total"), **lineage)

    calls.report("COMPLETE", new_run_id(), "sum", outputs=[totals])

    [column] = calls.dataset("totals")["columnLineage"]
    node = f"datasetField:{calls.namespace}:totals:total"
    graph = calls.get("column-lineage", nodeId=node)["graph"]
    [total] = [each["data"] for each in graph if each["id"] == node]
    for inputs in (column["inputFields"], total["inputFields"]):
        assert [
            (each["field"], each["transformationType"], each.get("indirect")) for each in inputs
        ] == [("kind", "CONDITIONAL", True), ("price", "IDENTITY", None)]


@pytest.mark.parametrize("by_run", [True, False])
def test_column_lineage_shows_unknown_sources_without_creating_datasets(
    calls: Calls, by_run: bool
) -> None:
    lineage = column_lineage(calls, "seed", "price")
    totals = calls.dataset_ref("totals", **schema("total"), **lineage)
    if by_run:
        calls.report("COMPLETE", new_run_id(), "sum", outputs=[totals])
    else:
        at, url = calls.now(), f"{SPEC}/DatasetEvent"
        calls.send({"eventTime": at, "producer": PRODUCER, "schemaURL": url, "dataset": totals})

    [column] = calls.dataset("totals")["columnLineage"]
    [source] = column["inputFields"]
    assert (source["namespace"], source["dataset"], source["field"]) == (
        (calls.namespace, "seed", "price")
    )
    node, seed = (
        f"datasetField:{calls.namespace}:{field}" for field in ("totals:total", "seed:price")
    )
    now = calls.get("column-lineage", nodeId=node)
    for answer in (now, calls.get("column-lineage", nodeId=node, asOf=calls.now())):
        graph = answer["graph"]
        nodes = {each["id"]: each["data"] for each in graph}
        assert nodes.keys() == {node, seed}
        assert (nodes[seed]["datasetVersion"], nodes[seed]["fieldType"]) == (None, "")
    calls.get("namespaces", calls.namespace, "datasets", "seed", status=404)
    datasets = calls.get("namespaces", calls.namespace, "datasets")["datasets"]
    assert [d["name"] for d in datasets] == ["totals"]

    output = calls.dataset_ref("seed", **schema("price"))
    calls.report("COMPLETE", new_run_id(), "load", outputs=[output])
    graph = calls.get("column-lineage", nodeId=node)["graph"]
    assert {each["id"]: each["data"]["fieldType"] for each in graph} == {
        node: "INTEGER",
        seed: "INTEGER",
    }
    calls.ask("DELETE", path("namespaces", calls.namespace, "datasets", "seed"))
    graph = calls.get("column-lineage", nodeId=node)["graph"]
    assert [each["id"] for each in graph] == [node]


def test_a_field_with_an_invalid_name_is_omitted(calls: Calls) -> None:
    odd = calls.dataset_ref("odd", **schema("id", "a\x00b"))
    calls.report("COMPLETE", new_run_id(), "make", outputs=[odd])
    assert [field["name"] for field in calls.dataset("odd")["fields"]] == ["id"]
    graph = calls.get("column-lineage", nodeId=f"dataset:{calls.namespace}:odd")["graph"]
    assert [node["data"]["field"] for node in graph] == ["id"]


def lifecycle(change: str) -> Document:
    return {"lifecycleStateChange": {"lifecycleStateChange": change}}


def test_a_dropped_dataset_is_deleted_until_it_is_written_again(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "make", outputs=[calls.dataset_ref("d", **schema("id"))])
    calls.report(
        "COMPLETE", new_run_id(), "drop", outputs=[calls.dataset_ref("d", **lifecycle("DROP"))]
    )
    assert calls.dataset("d")["deleted"]
    page = calls.get("namespaces", calls.namespace, "datasets")
    assert (page["datasets"], page["totalCount"]) == ([], 0)

    calls.report(
        "COMPLETE", new_run_id(), "make", outputs=[calls.dataset_ref("d", **lifecycle("CREATE"))]
    )
    dataset = calls.dataset("d")
    assert (dataset["deleted"], dataset["lastLifecycleState"]) == (False, "CREATE")
    assert dataset["currentVersionNumber"] == 3
    states = [version["lifecycleState"] for version in calls.versions("d")]
    assert states == ["", "DROP", "CREATE"]


def test_only_a_later_reader_restores_a_dropped_dataset(
    calls: Calls,
) -> None:
    before = calls.now()
    calls.report(
        "COMPLETE", new_run_id(), "drop", outputs=[calls.dataset_ref("d", **lifecycle("DROP"))]
    )
    calls.report("START", new_run_id(), "read", inputs=["d"], at=before)
    assert calls.dataset("d")["deleted"]
    calls.report("START", new_run_id(), "read", inputs=["d"])
    assert calls.dataset("d")["lastLifecycleState"] == "DROP"


def test_a_failed_drop_drops_nothing(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "make", outputs=["d"])
    calls.report(
        "FAIL", new_run_id(), "drop", outputs=[calls.dataset_ref("d", **lifecycle("DROP"))]
    )
    dataset = calls.dataset("d")
    assert (dataset["deleted"], dataset["lastLifecycleState"]) == (False, "")
    assert dataset["currentVersionNumber"] == 1


def test_nominal_times_give_the_interval_of_a_run(calls: Calls) -> None:
    run = new_run_id()
    times = {"nominalStartTime": "2026-11-14T00:00:00Z", "nominalEndTime": "2026-11-15T00:00:00Z"}
    calls.report("START", run, "j", run_facets={"nominalTime": times})
    calls.report("COMPLETE", run, "j")
    shown = calls.run(run)
    assert shown["nominalStartTime"] == "2026-11-14T00:00:00.000Z"
    assert shown["nominalEndTime"] == "2026-11-15T00:00:00.000Z"
    assert shown["facets"]["nominalTime"] == times


def test_tags_of_jobs_datasets_and_fields_accumulate_for_search(calls: Calls) -> None:
    word = calls.namespace[-12:]
    marks = [{"key": f"pii{word}", "value": "true", "source": "X"}, {"key": "tier", "value": "1"}]
    on_field = {"tags": [*marks, {"key": "gdpr", "value": "true", "field": "email"}]}
    output = calls.dataset_ref("people", tags=on_field, **schema("id", "email"))
    calls.report("START", new_run_id(), "j", job_facets={"tags": {"tags": marks}}, outputs=[output])
    calls.report(
        "COMPLETE",
        new_run_id(),
        "j",
        outputs=[calls.dataset_ref("people", tags={"tags": [{"key": "gold"}]})],
    )

    dataset = calls.dataset("people")
    assert dataset["tags"] == ["gold", f"pii{word}", "tier:1"]
    tags = {field["name"]: field["tags"] for field in dataset["fields"]}
    assert tags == {"id": [], "email": ["gdpr"]}
    assert calls.job("j")["tags"] == [f"pii{word}", "tier:1"]
    results = calls.get("search", q=f"pii{word}")["results"]
    assert {(result["type"], result["name"]) for result in results} == {
        ("DATASET", "people"),
        ("JOB", "j"),
    }


def test_documentation_and_code_location_describe_jobs_and_datasets(calls: Calls) -> None:
    job_facets = {
        "documentation": {"description": "sums up"},
        "sourceCodeLocation": {"type": "git", "url": "https://git.example.org/sum.py"},
        "jobType": {"processingType": "BATCH", "integration": "X", "jobType": "QUERY"},
    }
    output = calls.dataset_ref("d", documentation={"description": "the sums"})
    calls.report("COMPLETE", new_run_id(), "j", job_facets=job_facets, outputs=[output])
    job = calls.job("j")
    assert (job["description"], job["location"], job["type"]) == (
        "sums up",
        "https://git.example.org/sum.py",
        "BATCH",
    )
    assert calls.dataset("d")["description"] == "the sums"


def test_data_quality_facets_stay_with_the_run_that_reported_them(calls: Calls) -> None:
    metrics = {
        "dataQualityMetrics": {"rowCount": 123, "columnMetrics": {"id": {"nullCount": 0}}},
        "dataQualityAssertions": {"assertions": [{"assertion": "not_null", "success": True}]},
    }
    statistics = {"outputStatistics": {"rowCount": 7, "size": 4096}}
    input = calls.dataset_ref("in") | {"inputFacets": metrics}
    output = calls.dataset_ref("out") | {"outputFacets": statistics}
    first, second = new_run_id(), new_run_id()
    calls.report("COMPLETE", first, "j", inputs=[input], outputs=[output])
    calls.report("COMPLETE", second, "j", inputs=["in"], outputs=["out"])

    [input_version], [output_version] = (
        calls.run(first)[f"{side}DatasetVersions"] for side in ("input", "output")
    )
    assert (input_version["facets"], output_version["facets"]) == (metrics, statistics)
    [input_version], [output_version] = (
        calls.run(second)[f"{side}DatasetVersions"] for side in ("input", "output")
    )
    assert (input_version["facets"], output_version["facets"]) == ({}, {})


def test_the_writer_sets_the_data_source_of_a_dataset(calls: Calls) -> None:
    name = f"warehouse {calls.namespace[-12:]}"
    facet = {"_producer": PRODUCER, "_schemaURL": SPEC, "name": name, "uri": "postgres://db:5432"}
    output = calls.dataset_ref("d", dataSource=facet)
    calls.report("COMPLETE", new_run_id(), "j", inputs=["raw"], outputs=[output])
    assert calls.dataset("d")["sourceName"] == name
    source = calls.get("sources", name)
    assert (source["type"], source["connectionUrl"]) == ("POSTGRES", "postgres://db:5432")
    assert calls.dataset("raw")["sourceName"] == calls.namespace
    assert calls.get("sources", calls.namespace)["name"] == calls.namespace


@pytest.mark.parametrize(
    "facet",
    [
        {"schema": {"fields": "none"}},
        {"schema": 7},
        {"schema": {"fields": [{"type": "INT"}, 3, {"name": "id"}]}},
        {"documentation": {"description": 7}},
        {"columnLineage": {"fields": []}},
        {"symlinks": {"identifiers": [{"name": 1}]}},
        {"tags": {"tags": [{"value": "x"}]}},
        {"dataSource": {"name": 5}},
        {"lifecycleStateChange": {"lifecycleStateChange": None}},
        {"ownership": None},
    ],
    ids=lambda facet: str(facet)[:40],
)
def test_a_facet_of_the_wrong_shape_is_kept_and_ignored(calls: Calls, facet: Document) -> None:
    calls.report("COMPLETE", new_run_id(), "j", outputs=[calls.dataset_ref("d", **facet)])
    dataset = calls.dataset("d")
    assert dataset["facets"] == {name: value for name, value in facet.items() if value is not None}
    assert dataset["fields"] in (
        [],
        [{"name": "id", "type": None, "tags": [], "description": None}],
    )
    assert (dataset["description"], dataset["tags"], dataset["deleted"]) == (None, [], False)


def test_facet_names_of_only_dots_are_ignored(calls: Calls) -> None:
    parent = {"run": {"runId": "p"}, "job": {"namespace": calls.namespace, "name": ".."}}
    second = [
        {"namespace": calls.namespace, "name": name, "type": "TABLE"} for name in ("..", "out2")
    ]
    facets = {
        "symlinks": {"identifiers": second},
        "tags": {"tags": [{"key": "."}, {"key": "kept"}]},
        "dataSource": {"name": "..", "uri": "file:///data"},
        **schema("x", "."),
    }
    run = new_run_id()
    outputs = [{"namespace": calls.namespace, "name": "out", "facets": facets}]
    calls.report("COMPLETE", run, "job", run_facets={"parent": parent}, outputs=outputs)
    assert calls.run(run)["parent"] is None
    dataset = calls.dataset("out")
    assert [alias["name"] for alias in dataset["aliases"]] == ["out2"]
    assert dataset["tags"] == ["kept"]
    assert dataset["sourceName"] == calls.namespace
    # A column may have this name: R names an unnamed column ".".
    assert [field["name"] for field in dataset["fields"]] == ["x", "."]
