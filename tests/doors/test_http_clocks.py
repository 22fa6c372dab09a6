"""Times that are ahead: of events, whose senders' clocks differ, and of a server's own clock."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.clock import HOUR, SECOND, Micros, format_time, parse_time, system_clock
from tests.doors.serving import API, Running, path, post, run_event, running

FAR = "2999-01-01T00:00:00Z"
CLEAN = path("namespaces", "food", "datasets", "clean")
RAW = path("namespaces", "food", "datasets", "raw")
ETL = path("namespaces", "food", "jobs", "etl")

Document = dict[str, Any]


def ahead() -> Micros:
    """A clock that is an hour ahead."""
    return system_clock() + HOUR


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def get(client: httpx.Client, target: str) -> Document:
    found: Document = client.get(target).raise_for_status().json()
    return found


def in_seconds(seconds: int) -> str:
    return format_time(system_clock() + seconds * SECOND)


def names(document: Document) -> list[str]:
    return [field["name"] for field in document["fields"]]


def body(*fields: str, **more: Any) -> Document:
    stated = {"type": "DB_TABLE", "physicalName": "clean", "sourceName": "food"}
    return {**stated, "fields": [{"name": field} for field in fields], **more}


def test_an_event_from_the_far_future_counts_as_received_now(food: Running) -> None:
    before = system_clock()
    post(food.client, run_event(eventType="COMPLETE", eventTime=FAR))
    after = system_clock()

    run = get(food.client, path("jobs", "runs", "r1"))
    assert before <= parse_time(run["endedAt"]) <= after
    assert before <= parse_time(get(food.client, CLEAN)["updatedAt"]) <= after
    [event] = get(food.client, f"{API}/events")["events"]
    assert event["eventTime"] == FAR
    assert get(food.client, f"{API}/events?before={in_seconds(5)}")["totalCount"] == 1


def test_events_after_one_from_the_far_future_count(food: Running) -> None:
    drop = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
    outputs = [{"namespace": "food", "name": "clean", "facets": drop}]
    post(food.client, run_event(eventType="COMPLETE", eventTime=FAR, outputs=outputs))
    assert get(food.client, CLEAN)["deleted"] is True

    post(food.client, run_event("r2", eventType="COMPLETE", eventTime=in_seconds(5)))

    assert names(get(food.client, CLEAN)) == ["b"]
    assert get(food.client, ETL)["latestRun"]["state"] == "COMPLETED"


def test_an_event_within_the_tolerance_keeps_its_time(food: Running) -> None:
    at = in_seconds(300)
    post(food.client, run_event(eventType="COMPLETE", eventTime=at))
    assert get(food.client, path("jobs", "runs", "r1"))["endedAt"] == at


def test_the_tolerance_can_be_set(database_url: str) -> None:
    with running(database_url, event_ahead_seconds=60) as server:
        at = in_seconds(300)
        post(server.client, run_event(eventType="COMPLETE", eventTime=at))
        assert get(server.client, path("jobs", "runs", "r1"))["endedAt"] < at


def test_a_run_that_is_marked_in_the_far_future_ends_now(food: Running) -> None:
    post(food.client, run_event())
    assert food.client.post(f"{path('jobs', 'runs', 'r1')}/complete?at={FAR}").is_success
    ended_at = get(food.client, path("jobs", "runs", "r1"))["endedAt"]
    assert parse_time(ended_at) <= system_clock()


def test_a_dataset_stated_after_a_clock_was_ahead_has_the_new_schema(database_url: str) -> None:
    with running(database_url, clock=ahead) as server:
        post(server.client, run_event(eventType="COMPLETE"))
        assert server.client.put(CLEAN, json=body("old", description="old")).is_success

    with running(database_url) as server:
        answer = server.client.put(CLEAN, json=body("new", description="new"))
        assert names(answer.json()) == ["new"]
        assert answer.json()["description"] == "new"
        assert names(get(server.client, f"{CLEAN}/versions")["versions"][0]) == ["new"]


def test_a_run_completed_after_a_clock_was_ahead_makes_the_current_version(
    database_url: str,
) -> None:
    with running(database_url, clock=ahead) as server:
        post(server.client, run_event(eventType="COMPLETE"))
        assert server.client.put(CLEAN, json=body("old")).is_success

    with running(database_url) as server:
        run = server.client.post(f"{ETL}/runs", json={"id": "new"})
        assert server.client.put(CLEAN, json=body("new", runId=run.json()["id"])).is_success
        assert server.client.post(f"{path('jobs', 'runs', 'new')}/complete").is_success
        assert names(get(server.client, CLEAN)) == ["new"]


def test_a_job_stated_after_a_clock_was_ahead_has_the_new_shape(database_url: str) -> None:
    stated = {"type": "BATCH", "location": "https://old", "description": "old"}
    with running(database_url, clock=ahead) as server:
        post(server.client, run_event(eventType="COMPLETE"))
        inputs = [{"namespace": "food", "name": "raw"}]
        assert server.client.put(ETL, json={**stated, "inputs": inputs}).is_success

    with running(database_url) as server:
        inputs = [{"namespace": "food", "name": "clean"}]
        new = {**stated, "location": "https://new", "inputs": inputs}
        answer = server.client.put(ETL, json=new).json()
        assert [each["name"] for each in answer["inputs"]] == ["clean"]
        assert answer["location"] == "https://new"


@pytest.mark.parametrize("target", [RAW, ETL])
def test_what_is_deleted_after_a_clock_was_ahead_stays_deleted(
    database_url: str, target: str
) -> None:
    with running(database_url, clock=ahead) as server:
        late = format_time(ahead())
        post(server.client, run_event(eventType="COMPLETE", eventTime=late))

    with running(database_url) as server:
        assert server.client.delete(target).is_success
        post(server.client, run_event(eventType="COMPLETE", eventTime=in_seconds(300)))
        assert server.client.get(target).status_code == 404
        assert server.client.post(f"{target}/restore").is_success
        assert server.client.get(target).is_success


def test_a_lot_registered_after_a_clock_was_ahead_is_the_current_version(
    database_url: str,
) -> None:
    lots = f"{CLEAN}/lots"
    with running(database_url, clock=ahead) as server:
        post(server.client, run_event(eventType="COMPLETE"))
        assert server.client.post(lots, json={"lots": ["a"]}).is_success

    with running(database_url) as server:
        assert server.client.post(lots, json={"lots": ["b"]}).is_success
        newest, *_ = get(server.client, f"{CLEAN}/versions")["versions"]
        assert newest["isCurrent"]
