"""What Marquez' own page and clients expect of the API, beyond the shapes."""

from collections.abc import Iterator
from typing import Any

import pytest

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
