"""What Marquez' own page and clients expect of the API, beyond the shapes."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.schema.admin import KeyRole
from tests.doors.serving import Running, path, post, run_event, running

DATASET_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent"
JOB_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent"


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def show(food: Running, *segments: str, **query: Any) -> Any:
    """The answer of a read, which has to succeed."""
    answer = food.client.get(path(*segments), params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(food: Running, *segments: str, **body: Any) -> Any:
    """The answer of a PUT, which has to succeed."""
    answer = food.client.put(path(*segments), json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def dataset_event(second: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "eventTime": f"2026-11-15T09:00:{second:02}.0Z",
        "producer": "test",
        "schemaURL": DATASET_EVENT,
        "dataset": {"namespace": "food", "name": "menu"},
        **changes,
    }


def job_event(second: int = 0) -> dict[str, Any]:
    return {
        "eventTime": f"2026-11-15T09:01:{second:02}Z",
        "producer": "test",
        "schemaURL": JOB_EVENT,
        "job": {"namespace": "food", "name": "stated"},
    }


def test_a_job_without_runs_has_no_latest_runs(food: Running) -> None:
    put(food, "namespaces", "food", ownerName="ann")

    job = put(food, "namespaces", "food", "jobs", "idle", type="BATCH")

    assert (job["latestRun"], job["latestRuns"]) == (None, None)


def test_lineage_events_are_those_of_runs_unless_types_ask_for_others(food: Running) -> None:
    run, dataset, job = run_event(), dataset_event(), job_event()
    for event in (run, dataset, job):
        post(food.client, event)

    def listed(where: str, **query: Any) -> list[Any]:
        found = show(food, "events", where, **query)
        assert found["totalCount"] == len(found["events"])
        events: list[Any] = found["events"]
        return events

    assert listed("lineage") == [run]
    assert listed("lineage", types=["DATASET", "JOB"]) == [job, dataset]
    assert listed("lineage", types="dataset") == [dataset]
    assert listed("food") == [run, job, dataset]
    assert listed("food", types="JOB", sortDirection="Asc") == [job]
    assert listed("lineage", types=["RUN", "JOB"], after="2026-11-15T09:30:00Z") == [run]


def test_pages_of_several_types_of_event_do_not_overlap(food: Running) -> None:
    for second in range(6):
        post(food.client, dataset_event(second))
        post(food.client, run_event(eventTime=f"2026-11-15T09:00:{second:02}.5Z"))

    def times(**query: Any) -> list[str]:
        query = {"types": ["RUN", "DATASET"], **query}
        return [e["eventTime"] for e in show(food, "events", "lineage", **query)["events"]]

    every = times()
    pages = [time for offset in range(0, 12, 5) for time in times(limit=5, offset=offset)]

    assert len(every) == 12
    assert every == sorted(every, reverse=True) == pages
    assert times(sortDirection="asc") == every[::-1]


def test_an_event_time_without_a_zone_is_listed_in_utc(food: Running) -> None:
    post(food.client, run_event(eventTime="2026-11-15T10:00:00"))

    [event] = show(food, "events", "lineage")["events"]

    assert event == run_event(eventTime="2026-11-15T10:00:00.000Z")


@pytest.mark.parametrize(
    ("segments", "query"),
    [
        (["search"], {"q": "etl", "filter": "job", "sort": "update_at"}),
        (["jobs"], {"lastRunStates": ["completed", "Running"]}),
        (["jobs", "runs", "r1", "facets"], {"type": "RUN"}),
        (["stats", "jobs"], {"period": "day"}),
        (["events", "lineage"], {"sortDirection": "DESC"}),
        (["lineage"], {"nodeId": "job:food:etl", "direction": "UPSTREAM"}),
    ],
)
def test_a_choice_in_a_query_may_be_in_any_case(
    food: Running, segments: list[str], query: dict[str, Any]
) -> None:
    post(food.client, run_event())

    assert show(food, *segments, **query)


def test_a_choice_in_a_body_may_be_in_any_case(food: Running) -> None:
    put(food, "namespaces", "food", ownerName="ann")
    put(food, "sources", "db", type="POSTGRESQL", connectionUrl="jdbc:postgresql://db")

    job = put(food, "namespaces", "food", "jobs", "etl", type="stream")
    table = {"type": "db_table", "physicalName": "menu", "sourceName": "db"}
    dataset = put(food, "namespaces", "food", "datasets", "menu", **table)
    refused = food.client.put(path("namespaces", "food", "jobs", "etl"), json={"type": "odd"})

    assert (job["type"], dataset["type"]) == ("STREAM", "DB_TABLE")
    assert (refused.status_code, "none of BATCH, SERVICE, STREAM" in refused.text) == (422, True)


def test_a_new_catalog_has_a_default_namespace(food: Running) -> None:
    found = show(food, "namespaces")["namespaces"]

    assert [each["name"] for each in found] == ["default"]
    assert not show(food, "namespaces", "default")["isHidden"]


def test_lists_of_an_unknown_namespace_are_empty(food: Running) -> None:
    assert show(food, "namespaces", "none", "jobs") == {"jobs": [], "totalCount": 0}
    assert show(food, "namespaces", "none", "datasets") == {"datasets": [], "totalCount": 0}


def test_a_namespace_keeps_the_description_that_a_put_leaves_out(food: Running) -> None:
    put(food, "namespaces", "food", ownerName="ann", description="all meals")

    kept = put(food, "namespaces", "food", ownerName="bob")
    changed = put(food, "namespaces", "food", ownerName="bob", description="")

    assert (kept["ownerName"], kept["description"]) == ("bob", "all meals")
    assert changed["description"] == ""


def test_a_stream_keeps_the_location_of_its_schema(food: Running) -> None:
    put(food, "namespaces", "food", ownerName="ann")
    put(food, "sources", "kafka", type="KAFKA", connectionUrl="kafka://broker:9092")
    stream = {"type": "STREAM", "physicalName": "clicks", "sourceName": "kafka"}
    where = "https://schemas.example.org/clicks"

    clicks = ("namespaces", "food", "datasets", "clicks")
    stated = put(food, *clicks, **stream, schemaLocation=where)
    again = put(food, *clicks, **stream)
    [version] = show(food, *clicks, "versions")["versions"]
    table = put(food, "namespaces", "food", "datasets", "menu", **{**stream, "type": "DB_TABLE"})

    assert (stated["schemaLocation"], again["schemaLocation"]) == (where, where)
    assert version["schemaLocation"] == where
    assert "schemaLocation" not in table


def test_a_dropped_dataset_is_shown_as_deleted(food: Running) -> None:
    post(food.client, run_event(eventType="COMPLETE"))
    drop = {"lifecycleStateChange": {"_producer": "x", "lifecycleStateChange": "DROP"}}
    outputs = [{"namespace": "food", "name": "clean", "facets": drop}]
    later = {"eventTime": "2026-11-15T11:00:00Z", "outputs": outputs}
    post(food.client, run_event("r2", eventType="COMPLETE", **later))

    clean = ("namespaces", "food", "datasets", "clean")
    dropped = show(food, *clean)
    listed = show(food, "namespaces", "food", "datasets")["datasets"]
    food.client.delete(path(*clean))

    assert (dropped["deleted"], dropped["lastLifecycleState"]) == (True, "DROP")
    assert [dataset["name"] for dataset in listed] == ["raw"]
    assert food.client.get(path(*clean)).status_code == 404


def test_the_job_type_facet_gives_a_job_its_labels(food: Running) -> None:
    kind = {"processingType": "BATCH", "integration": "SPARK", "jobType": "SQL_JOB"}
    job = {"namespace": "food", "name": "etl", "facets": {"jobType": kind}}
    post(food.client, run_event(job=job))

    assert show(food, "namespaces", "food", "jobs", "etl")["labels"] == ["SQL_JOB", "SPARK"]


def test_nominal_time_and_parent_are_arguments_of_a_run(food: Running) -> None:
    facets = {
        "nominalTime": {
            "nominalStartTime": "2026-11-14T00:00:00Z",
            "nominalEndTime": "2026-11-15T00:00:00",
        },
        "parent": {"run": {"runId": "dag-1"}, "job": {"namespace": "food", "name": "dag"}},
    }
    post(food.client, {**run_event(), "run": {"runId": "r1", "facets": facets}})

    assert show(food, "jobs", "runs", "r1")["args"] == {
        "nominal_start_time": "2026-11-14T00:00:00.000Z",
        "nominal_end_time": "2026-11-15T00:00:00.000Z",
        "run_id": "dag-1",
        "name": "dag",
        "namespace": "food",
    }


def column_event() -> dict[str, Any]:
    source = {"namespace": "food", "name": "raw", "field": "a"}
    columns = {"columnLineage": {"fields": {"b": {"inputFields": [source]}}}}
    outputs = [{"namespace": "food", "name": "clean", "facets": columns}]
    inputs = [{"namespace": "food", "name": "raw"}]
    return run_event(eventType="COMPLETE", inputs=inputs, outputs=outputs)


def test_a_field_without_a_type_has_an_empty_one(food: Running) -> None:
    post(food.client, column_event())

    graph = show(food, "column-lineage", nodeId="dataset:food:clean")["graph"]

    assert [node["data"]["fieldType"] for node in graph] == ["", ""]


def test_column_lineage_of_a_version_has_versioned_ids(food: Running) -> None:
    post(food.client, column_event())
    clean = show(food, "namespaces", "food", "datasets", "clean")["currentVersion"]
    raw = show(food, "namespaces", "food", "datasets", "raw")["currentVersion"]

    graph = show(food, "column-lineage", nodeId=f"dataset:food:clean#{clean}")["graph"]

    made, source = f"datasetField:food:clean:b#{clean}", f"datasetField:food:raw:a#{raw}"
    assert [node["id"] for node in graph] == [made, source]
    assert graph[0]["inEdges"] == [{"origin": source, "destination": made}]
    assert show(food, "column-lineage", nodeId=made)["graph"] == graph


def test_a_key_is_ignored_where_there_are_none(food: Running) -> None:
    headers = {"Authorization": "Bearer from-another-server"}

    read = food.client.get(path("namespaces"), headers=headers)
    written = food.client.put(
        path("namespaces", "food"), json={"ownerName": "ann"}, headers=headers
    )
    from_elsewhere = {**headers, "Origin": "https://elsewhere.example.org"}
    refused = food.client.put(
        path("namespaces", "food"), json={"ownerName": "bob"}, headers=from_elsewhere
    )
    food.plane.keys.create("first", KeyRole.ADMIN, who="test")
    later = food.client.get(path("namespaces"), headers=headers)

    assert (read.status_code, written.status_code) == (200, 200)
    assert (refused.status_code, later.status_code) == (403, 401)


def child_event(run: str = "child-1", job: str = "shop.customers", **changes: Any) -> Any:
    """A dbt model is a child of the job that ran it, with a name without its parent's."""
    parent = {"run": {"runId": "dbt-1"}, "job": {"namespace": "food", "name": "dbt-run"}}
    event = run_event(job={"namespace": "food", "name": job, "facets": {}}, **changes)
    return {**event, "run": {"runId": run, "facets": {"parent": parent}}}


CHILD = ("namespaces", "food", "jobs", "dbt-run.shop.customers")


def test_a_child_job_goes_by_the_name_that_marquez_gives_it(food: Running) -> None:
    post(food.client, child_event(eventType="COMPLETE"))
    job = show(food, "namespaces", "food", "jobs", "shop.customers")

    node = "job:food:dbt-run.shop.customers"
    graph = show(food, "lineage", nodeId=node, hops=0)["graph"]
    pinned = show(food, "lineage", nodeId=f"{node}#{job['currentVersion']}", hops=0)

    assert show(food, *CHILD) == job
    assert show(food, *CHILD, "runs")["totalCount"] == 1
    assert show(food, *CHILD, "runs", "child-1")["job"]["name"] == "shop.customers"
    assert [each["id"] for each in graph] == ["job:food:shop.customers"]
    assert pinned["graph"] == graph
    assert food.client.get(path("namespaces", "food", "jobs", "other.shop.customers")).is_error


def test_writes_by_the_name_of_marquez_change_the_child_job(food: Running) -> None:
    post(food.client, child_event())

    stated = put(food, *CHILD, type="BATCH", description="who buys")
    tagged = food.client.post(path(*CHILD, "tags", "gold"))
    started = food.client.post(path(*CHILD, "runs"), json={"id": "child-2"})
    marked = food.client.post(path(*CHILD, "runs", "child-2", "start"))

    assert (stated["name"], stated["description"]) == ("shop.customers", "who buys")
    assert (tagged.status_code, started.status_code, marked.status_code) == (200, 201, 200)
    jobs = show(food, "namespaces", "food", "jobs")["jobs"]
    assert sorted(job["name"] for job in jobs) == ["dbt-run", "shop.customers"]
    assert next(job["tags"] for job in jobs if job["name"] == "shop.customers") == ["gold"]


def test_events_by_the_name_of_marquez_are_about_the_child_job(food: Running) -> None:
    post(food.client, child_event())

    post(food.client, child_event(job="dbt-run.shop.customers", eventType="COMPLETE"))
    below = {"run": {"runId": "child-1"}, "job": {"namespace": "food", "name": CHILD[-1]}}
    spark = run_event(job={"namespace": "food", "name": "spark", "facets": {}})
    post(food.client, {**spark, "run": {"runId": "spark-1", "facets": {"parent": below}}})

    jobs = {job["name"]: job for job in show(food, "namespaces", "food", "jobs")["jobs"]}
    assert sorted(jobs) == ["dbt-run", "shop.customers", "spark"]
    assert jobs["shop.customers"]["latestRun"]["state"] == "COMPLETED"
    assert jobs["spark"]["parentJobName"] == "shop.customers"
    grandchild = show(food, "namespaces", "food", "jobs", "dbt-run.shop.customers.spark")
    assert grandchild["name"] == "spark"


def test_a_job_with_the_longer_name_goes_before_a_child(food: Running) -> None:
    post(food.client, run_event("own", job={"namespace": "food", "name": CHILD[-1]}))
    post(food.client, child_event())

    assert show(food, *CHILD)["name"] == CHILD[-1]


def test_a_parent_that_reports_nothing_runs_while_a_child_does(food: Running) -> None:
    def parent() -> list[Any]:
        run = show(food, "jobs", "runs", "dbt-1")
        job = show(food, "namespaces", "food", "jobs", "dbt-run")
        [node] = show(food, "lineage", nodeId="job:food:dbt-run", hops=0)["graph"]
        family = show(food, "jobs", "runs", "dbt-1", "family")["runs"]
        shown = [run, job["latestRun"], node["data"]["latestRun"]]
        assert {each["startedAt"] for each in shown} == {run["startedAt"]}
        states = {each["state"] for each in [*shown, family[0]]}
        assert len(states) == 1
        return [*states, run["startedAt"]]

    post(food.client, child_event())
    going = parent()
    post(food.client, child_event("child-2", job="shop.orders"))
    post(food.client, child_event(eventType="FAIL"))
    beside = parent()
    post(food.client, child_event("child-2", job="shop.orders", eventType="COMPLETE"))
    over = parent()
    post(food.client, child_event("child-3", job="shop.items"))
    done = {**run_event(eventType="COMPLETE"), "run": {"runId": "dbt-1"}}
    post(food.client, {**done, "job": {"namespace": "food", "name": "dbt-run"}})

    assert going == beside == ["RUNNING", "2026-11-15T10:00:00.000Z"]
    assert over == ["NEW", None]
    assert parent()[0] == "COMPLETED"
