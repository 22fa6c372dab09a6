"""Events over HTTP: batches, large ones, and many callers at once."""

import gzip
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.doors.serving import API, Running, path, post, run_event, running


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def test_a_batch_is_received_whole(food: Running) -> None:
    batch = [run_event(f"r{i}", eventType=kind) for i in range(3) for kind in ("START", "COMPLETE")]
    answer = food.client.post(f"{API}/lineage/batch", json=batch)
    assert answer.status_code == 200
    summary = {"received": 6, "successful": 6, "failed": 0, "retriable": 0, "non_retriable": 0}
    assert answer.json() == {"status": "success", "summary": summary, "failed_events": []}
    for run in ("r0", "r1", "r2"):
        assert food.client.get(path("jobs", "runs", run)).json()["state"] == "COMPLETED"


def test_a_batch_of_nothing_but_bad_events_is_a_failure(food: Running) -> None:
    result = food.client.post(f"{API}/lineage/batch", json=[{}]).json()
    assert (result["status"], result["summary"]["non_retriable"]) == ("failure", 1)


def test_an_empty_batch_is_a_success(food: Running) -> None:
    for content in (b"[]", b""):
        result = food.client.post(f"{API}/lineage/batch", content=content).json()
        assert (result["status"], result["summary"]["received"]) == ("success", 0)


def test_a_batch_longer_than_the_queue_is_received_whole(database_url: str) -> None:
    with running(database_url, queue_length_max=20, batch_events_max=10) as server:
        batch = gzip.compress(json.dumps([run_event(f"r{i}") for i in range(120)]).encode())
        headers = {"content-encoding": "gzip"}
        answer = server.client.post(f"{API}/lineage/batch", content=batch, headers=headers)
        assert answer.json()["summary"]["successful"] == 120
        assert server.client.get(f"{API}/events?limit=0").json()["totalCount"] == 120


def test_what_the_queue_had_no_room_for_may_be_sent_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(database_url, queue_length_max=1, batch_events_max=8) as server:
        catalog, tried = server.plane.catalog, threading.Semaphore(0)
        submit = catalog.submit_async

        def watched(command: Any, size: int) -> Any:
            tried.release()
            return submit(command, size)

        monkeypatch.setattr(catalog, "submit_async", watched)
        with ThreadPoolExecutor(1) as caller, server.plane.database.write():
            batch = [run_event(f"r{i}") for i in range(8)]
            sent = caller.submit(server.client.post, f"{API}/lineage/batch", json=batch)
            for _ in batch:
                tried.acquire()
        result = sent.result().json()
        assert result["status"] == "partial_success"
        assert result["summary"]["retriable"] == result["summary"]["failed"] > 0
        assert all(failed["retriable"] for failed in result["failed_events"])


def test_many_callers_are_each_answered_after_their_commit(food: Running) -> None:
    def send_and_look(number: int) -> str:
        post(food.client, run_event(f"r{number}"))
        state: str = food.client.get(path("jobs", "runs", f"r{number}")).json()["state"]
        return state

    with ThreadPoolExecutor(16) as callers:
        states = list(callers.map(send_and_look, range(200)))
    assert states == ["RUNNING"] * 200
    assert food.client.get(f"{API}/events?limit=1").json()["totalCount"] == 200
