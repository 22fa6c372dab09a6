"""Every route answers, with the keys that clients know."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.schema.admin import KeyRole
from penstock.server.routes.table import CAPABILITIES
from tests.doors.serving import API, Running, path, post, run_event, running

NAMESPACE = {"name", "createdAt", "updatedAt", "ownerName", "description", "isHidden"}
SOURCE = {"type", "name", "createdAt", "updatedAt", "connectionUrl", "description"}
DATASET = {
    *("id", "type", "name", "physicalName", "createdAt", "updatedAt", "namespace", "sourceName"),
    *("fields", "tags", "lastModifiedAt", "lastLifecycleState", "description", "currentVersion"),
    *("currentVersionNumber", "columnLineage", "facets", "deleted", "aliases"),
    "indirectInputFields",
}
DATASET_VERSION = {
    *("id", "type", "name", "physicalName", "createdAt", "version", "number", "isCurrent"),
    *("namespace", "sourceName", "fields", "tags", "lifecycleState", "description"),
    *("currentSchemaVersion", "createdByRun", "facets", "isUnconfirmed"),
}
JOB = {
    *("id", "type", "name", "simpleName", "parentJobName", "parentJobUuid", "createdAt"),
    *("updatedAt", "namespace", "inputs", "outputs", "location", "description", "latestRun"),
    *("latestRuns", "facets", "currentVersion", "labels", "tags"),
}
JOB_VERSION = {
    *("id", "name", "createdAt", "version", "namespace", "location", "inputs", "outputs"),
    "latestRun",
}
RUN = {
    *("id", "createdAt", "updatedAt", "nominalStartTime", "nominalEndTime", "state", "startedAt"),
    *("endedAt", "durationMs", "args", "job", "jobVersion", "parent", "inputDatasetVersions"),
    *("outputDatasetVersions", "facets", "cause"),
}
INTERVAL = {"startInterval", "endInterval", "count"}
KEY = {
    *("id", "name", "role", "namespace", "createdAt", "revokedAt"),
    *("requestsPerSecond", "bytesPerSecond"),
}

RUN_BODY = {"id": "nightly", "nominalStartTime": "2026-11-15T00:00:00Z", "args": {"day": "15"}}
DATASET_BODY = {
    "type": "DB_TABLE",
    "physicalName": "public.raw",
    "sourceName": "pg",
    "fields": [{"name": "a", "type": "INT"}],
}
JOB_BODY = {
    "type": "BATCH",
    "inputs": [{"namespace": "shop", "name": "raw"}],
    "outputs": [],
    "context": {"sql": "SELECT 1"},
}


@dataclass(frozen=True)
class Step:
    """One call: its route, where its variables stand, and what the answer must hold."""

    route: str
    keys: set[str]
    body: Any = None
    query: str = ""
    status: int = 200


STEPS = (
    Step("POST /namespaces/{namespace}", NAMESPACE, {"ownerName": "me"}),
    Step("PUT /namespaces/{namespace}", NAMESPACE, {"ownerName": "me"}),
    Step("GET /namespaces/{namespace}", NAMESPACE),
    Step("GET /namespaces", {"namespaces"}, query="limit=5&offset=0"),
    Step("PUT /namespaces/{namespace}/grants/{grantee}", {"grants"}),
    Step("GET /namespaces/{namespace}/grants", {"grants"}),
    Step("DELETE /namespaces/{namespace}/grants/{grantee}", {"grants"}),
    Step("PUT /sources/{source}", SOURCE, {"type": "POSTGRESQL", "connectionUrl": "jdbc:x"}),
    Step("GET /sources/{source}", SOURCE),
    Step("GET /sources", {"sources"}),
    Step("PUT /tags/{tag}", {"name", "description"}, {"description": None}),
    Step("GET /tags", {"tags"}),
    Step(
        "POST /namespaces/{namespace}/datasets/{dataset}",
        {"namespace", "name", "isNamespaceNew"},
        {"description": None},
    ),
    Step("PUT /namespaces/{namespace}/datasets/{dataset}", DATASET, DATASET_BODY),
    Step("GET /namespaces/{namespace}/datasets/{dataset}", DATASET),
    Step("GET /namespaces/{namespace}/datasets", {"datasets", "totalCount"}),
    Step("GET /namespaces/{namespace}/datasets/{dataset}/versions", {"versions", "totalCount"}),
    Step("GET /namespaces/{namespace}/datasets/{dataset}/versions/{number}", DATASET_VERSION),
    Step("POST /namespaces/{namespace}/datasets/{dataset}/tags/{tag}", DATASET),
    Step("DELETE /namespaces/{namespace}/datasets/{dataset}/tags/{tag}", DATASET),
    Step("POST /namespaces/{namespace}/datasets/{dataset}/fields/{field}/tags/{tag}", DATASET),
    Step("DELETE /namespaces/{namespace}/datasets/{dataset}/fields/{field}/tags/{tag}", DATASET),
    Step("PUT /namespaces/{namespace}/jobs/{job}", JOB, JOB_BODY),
    Step("GET /namespaces/{namespace}/jobs/{job}", JOB),
    Step("GET /namespaces/{namespace}/jobs", {"jobs", "totalCount"}, query="lastRunStates=NEW"),
    Step("GET /jobs", {"jobs", "totalCount"}, query="lastRunStates=NEW&lastRunStates=FAILED"),
    Step("GET /namespaces/{namespace}/jobs/{job}/versions", {"versions", "totalCount"}),
    Step("GET /namespaces/{namespace}/jobs/{job}/versions/{job_version}", JOB_VERSION),
    Step("POST /namespaces/{namespace}/jobs/{job}/tags/{tag}", JOB),
    Step("DELETE /namespaces/{namespace}/jobs/{job}/tags/{tag}", JOB),
    Step("POST /namespaces/{namespace}/jobs/{job}/runs", RUN, RUN_BODY, status=201),
    Step("GET /namespaces/{namespace}/jobs/{job}/runs", {"runs", "totalCount"}),
    Step("GET /namespaces/{namespace}/jobs/{job}/runs/{run}", RUN),
    Step("GET /jobs/runs/{run}", RUN),
    Step("POST /namespaces/{namespace}/jobs/{job}/runs/{run}/start", RUN),
    Step("POST /jobs/runs/{run}/start", RUN, query="at=2026-11-15T09:00:00%2B00:00"),
    Step("POST /namespaces/{namespace}/jobs/{job}/runs/{run}/complete", RUN),
    Step("POST /jobs/runs/{run}/complete", RUN),
    Step("GET /jobs/runs/{run}/facets", {"runId", "facets"}, query="type=job"),
    Step("POST /lineage", set(), run_event("streamed"), status=201),
    Step("POST /lineage/batch", {"status", "summary", "failed_events"}, [run_event("batched")]),
    Step("GET /jobs/runs/{streamed}/events", {"events", "totalCount"}),
    Step("POST /jobs/runs/{streamed}/fail", RUN),
    Step("POST /namespaces/food/jobs/etl/runs/{streamed}/fail", RUN),
    Step("POST /jobs/runs/{batched}/abort", RUN),
    Step("POST /namespaces/food/jobs/etl/runs/{batched}/abort", RUN),
    Step("GET /lineage", {"graph"}, query="nodeId=job:food:etl&depth=2&history=all"),
    Step("GET /column-lineage", {"graph"}, query="nodeId=dataset:shop:raw&withDownstream=False"),
    Step("GET /runlineage/upstream", {"runs"}, query="runId=streamed"),
    Step("GET /runs", {"runs", "next"}, query="state=FAILED&limit=1"),
    Step("GET /events/lineage", {"events", "totalCount"}, query="sortDirection=asc"),
    Step("GET /events", {"events", "totalCount"}, query="after=2020-01-01T00:00:00Z"),
    Step("GET /events/{namespace}", {"events", "totalCount"}),
    Step("GET /search", {"totalCount", "results"}, query="q=raw&filter=DATASET&sort=UPDATE_AT"),
    Step("GET /search/records", {"records", "isCut"}, query="q=raw"),
    Step("GET /standing", {"atLeast", "holds", "hours", "jobs", "late", "stuck", "work"}),
    Step("GET /namespaces/{namespace}/datasets/{dataset}/standing", {"held", "interval"}),
    Step("GET /namespaces/{namespace}/jobs/{job}/standing", {"isArc", "wiring"}),
    Step("GET /jobs/runs/{run}/family", {"isCut", "runs"}),
    Step("GET /stats/lineage-events", INTERVAL | {"fail", "start", "complete", "abort", "other"}),
    Step("GET /stats/jobs", INTERVAL, query="period=WEEK&timezone=Europe/Amsterdam"),
    Step("GET /stats/datasets", INTERVAL),
    Step("GET /stats/sources", INTERVAL),
    Step("DELETE /namespaces/{namespace}/jobs/{job}", JOB),
    Step("POST /namespaces/{namespace}/jobs/{job}/restore", JOB),
    Step("DELETE /namespaces/{namespace}/datasets/{dataset}", DATASET),
    Step("POST /namespaces/{namespace}/datasets/{dataset}/restore", DATASET),
    Step("DELETE /namespaces/{namespace}", NAMESPACE),
    Step("POST /namespaces/{namespace}/restore", NAMESPACE),
    Step("GET /key", {"name", "role", "namespace"}),
    Step("POST /keys", {"key", "token"}, {"name": "x", "role": "reader"}, status=201),
    Step("GET /keys", {"keys"}, query="revoked=true"),
    Step("PUT /keys/{name}/rates", KEY, {"requestsPerSecond": 50}),
    Step("DELETE /keys/{name}", KEY),
    Step("GET /audit", {"entries"}, query="who=x&action=delete&since=2020-01-01T00:00:00Z"),
    Step("GET /audit/export", {"entries", "next"}, query="since=2020-01-01T00:00:00Z&limit=2"),
)
VARIABLES = {
    "namespace": "shop",
    "grantee": "food",
    "source": "pg",
    "tag": "PII",
    "dataset": "raw",
    "number": "V1",
    "field": "a",
    "job": "load",
    "run": "nightly",
    "streamed": "streamed",
    "batched": "batched",
    "name": "x",
}
# The test_http_… files of these call them all.
ELSEWHERE = {
    "lots",
    "manifests",
    "work",
    "claims",
    "arcs",
    "operations",
    "ingest",
    "lot-events",
    "provenance",
}
OPERATIONS = {"GET /livez", "GET /readyz", "GET /metrics", "GET /openapi.json", "GET /docs"}


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def test_every_route_answers_with_its_keys(food: Running) -> None:
    client = food.client
    client.headers.update(food.key("boss", KeyRole.ADMIN))
    served: set[str] = set()
    for step in STEPS:
        method, _, template = step.route.partition(" ")
        job = client.get(path("namespaces", "shop", "jobs", "load")).json()
        places = VARIABLES | {"job_version": str(job.get("currentVersion"))}
        target = f"{API}{template.format(**places)}?{step.query}"
        answer = client.request(method, target, json=step.body)
        assert answer.status_code == step.status, (step.route, answer.text)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff", step.route
        assert answer.headers["cache-control"] == "no-store", step.route
        value = answer.json()
        assert set(value[0] if isinstance(value, list) else value) == step.keys, step.route
        served.add(f"{method} {API}{template}")
    routes = sum(len(listed) for name, listed in CAPABILITIES if name not in ELSEWHERE)
    assert len(served) == routes - len(OPERATIONS)


def test_operators_are_answered(food: Running) -> None:
    for route in OPERATIONS:
        answer = food.client.get(route.removeprefix("GET "))
        assert answer.status_code == 200
        assert answer.content


def test_head_is_get_without_a_body(food: Running) -> None:
    answer = food.client.head(f"{API}/namespaces")
    assert answer.status_code == 200
    assert answer.content == b""


def test_a_new_run_says_where_it_is(food: Running) -> None:
    post(food.client, run_event())
    answer = food.client.post(path("namespaces", "food", "jobs", "etl", "runs"))
    assert answer.status_code == 201
    assert food.client.get(answer.headers["location"]).json() == answer.json()
    assert answer.json()["state"] == "NEW"


def test_a_run_is_found_only_under_its_own_job(food: Running) -> None:
    post(food.client, run_event("mine"))
    assert food.client.get(path("namespaces", "food", "jobs", "etl", "runs", "mine")).is_success
    answer = food.client.get(path("namespaces", "food", "jobs", "other", "runs", "mine"))
    assert answer.status_code == 404
    assert "etl" in answer.json()["message"]


def test_metrics_count_without_naming_data(food: Running) -> None:
    post(food.client, run_event("secretrun"))
    food.client.get(f"{API}/namespaces/secretname")
    food.client.get("/some/secretpath")
    text = food.client.get("/metrics").text
    assert 'penstock_events_received_total{type="START"} 1.0' in text
    assert "penstock_commit_seconds_count 1.0" in text
    assert "penstock_batch_size_count 1.0" in text
    assert "penstock_queue_length 0.0" in text
    route = 'method="GET",route="/api/v1/namespaces/{namespace}"'
    assert f'penstock_http_requests_total{{{route},status="404"}} 1.0' in text
    assert f"penstock_http_seconds_count{{{route}}} 1.0" in text
    assert "secret" not in text
