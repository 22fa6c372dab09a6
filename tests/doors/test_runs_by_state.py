"""All runs in one list by state, over HTTP, by the client and on the command line."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.schema.admin import KeyRole
from tests.doors.commands import Terminal
from tests.doors.serving import Running, path, post, run_event, running

FAILURES = 14


@pytest.fixture
def penstock(penstock: Terminal, food: Running, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PENSTOCK_URL", food.server.url)
    return penstock


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    """One job failed more often than a job shows of its runs, and has completed since."""
    with running(database_url) as server:
        for number in range(FAILURES):
            send(server, f"bad-{number:02}", "etl", "FAIL", number)
        for number in range(20, 32):
            send(server, f"good-{number}", "etl", "COMPLETE", number)
        send(server, "other", "copy", "FAIL", 40, namespace="shop")
        send(server, "going", "copy", "START", 41, namespace="shop")
        yield server


def send(
    server: Running, run: str, job: str, kind: str, minute: int, namespace: str = "food"
) -> None:
    at = f"2026-11-15T10:{minute:02}:00Z"
    of = {"namespace": namespace, "name": job, "facets": {}}
    event = run_event(run, eventType=kind, eventTime=at, job=of, inputs=[], outputs=[])
    post(server.client, event)


def listed(food: Running, headers: dict[str, str] | None = None, **query: Any) -> list[str]:
    """The times at which the listed runs began, minute by minute."""
    answer = food.client.get(path("runs"), params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return [run["createdAt"][14:16] for run in answer.json()["runs"]]


def test_every_failed_run_is_listed_newest_first(food: Running) -> None:
    failed = ["40", *(f"{number:02}" for number in reversed(range(FAILURES)))]

    assert listed(food, state="FAILED") == failed
    assert listed(food, state="failed", namespace="food") == failed[1:]
    assert listed(food, state=["RUNNING", "FAILED"], limit=2) == ["41", "40"]
    assert len(listed(food)) == FAILURES + 14


def test_pages_continue_where_the_last_one_ended(food: Running) -> None:
    found: list[str] = []
    after: str | None = None
    while True:
        page = food.client.get(path("runs"), params={"limit": 6, "after": after or ""}).json()
        found += [run["id"] for run in page["runs"]]
        after = page["next"]
        if after is None:
            break

    assert len(found) == len(set(found)) == FAILURES + 14


def test_a_key_of_a_namespace_sees_its_own_runs(food: Running) -> None:
    shop = food.key("shop", KeyRole.READER, namespace="shop")

    assert listed(food, headers=shop) == ["41", "40"]
    elsewhere = food.client.get(path("runs"), params={"namespace": "food"}, headers=shop)
    assert elsewhere.status_code == 403


def test_a_run_follows_its_job_to_another_namespace(food: Running) -> None:
    below = {"run": {"runId": "dag"}, "job": {"namespace": "food", "name": "guess"}}
    child = run_event("child", eventTime="2026-11-15T10:50:00Z")
    post(food.client, {**child, "run": {"runId": "child", "facets": {"parent": below}}})

    send(food, "dag", "dag", "FAIL", 50, namespace="shop")

    assert listed(food, state="FAILED", namespace="shop") == ["50", "40"]
    assert "50" not in listed(food, state="FAILED", namespace="food")


@pytest.mark.parametrize("after", ["yesterday", "1.x", "x.0190a6a0-0000-7000-8000-000000000001"])
def test_a_place_that_no_page_returned_is_refused(food: Running, after: str) -> None:
    answer = food.client.get(path("runs"), params={"after": after})

    assert (answer.status_code, "send `next` of a page" in answer.text) == (400, True)


def test_the_command_line_lists_every_failed_run(food: Running, penstock: Terminal) -> None:
    told = penstock("runs", "list", "--state", "FAILED", "--limit", "10", "--json").document
    text = penstock("runs", "list", "--state", "FAILED", "--after", told["next"])
    cut = penstock("runs", "list", "--limit", "1")
    refused = penstock("runs", "list", "--offset", "10")

    assert len(told["runs"]) == 10
    assert text.text.count("FAILED") == FAILURES - 9
    assert "--after" in cut.err
    assert (refused.code, "--after" in refused.err) == (2, True)
