"""`penstock catalog mend-times`: what an event from the future did before it was kept out."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.clock import HOUR, Micros, format_time, parse_time, system_clock
from tests.doors.commands import Terminal
from tests.doors.serving import API, path, post, run_event, running

FAR = "2999-01-01T00:00:00Z"
FARTHER = "2999-01-02T00:00:00Z"
EVER = 10**11  # seconds: a server that takes any time for true
CLEAN = path("namespaces", "food", "datasets", "clean")
ETL = path("namespaces", "food", "jobs", "etl")
DROP = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
TEXT = {"documentation": {"description": "from the future"}}

Document = dict[str, Any]


@pytest.fixture
def penstock(penstock: Terminal, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("PENSTOCK_DATABASE", database_url)
    return penstock


def made(run: str, at: str, *fields: str, **facets: Any) -> Document:
    schema = {"schema": {"fields": [{"name": name} for name in fields]}}
    clean = {"namespace": "food", "name": "clean", "facets": {**schema, **facets}}
    return run_event(run, eventType="COMPLETE", eventTime=at, outputs=[clean])


def damage(database_url: str, *, clock: Callable[[], Micros] = system_clock) -> None:
    """Drop and describe a dataset in the future, and have its owner make it again today."""
    with running(database_url, clock=clock, event_ahead_seconds=EVER) as server:
        post(server.client, made("r1", "2026-11-01T10:00:00Z", "a"))
        post(server.client, made("evil", FAR, "evil", **DROP, **TEXT))
        post(server.client, made("r2", format_time(system_clock()), "a", "b"))
        stated = {"eventTime": FARTHER, "dataset": made("", FAR, "worse")["outputs"][0]}
        post(server.client, {**stated, "schemaURL": "https://x#/$defs/DatasetEvent"})


def test_mended_times_let_later_events_count(database_url: str, penstock: Terminal) -> None:
    damage(database_url)

    mended = penstock("catalog", "mend-times", "--json").document

    assert (mended["events"], mended["runs"], mended["datasets"]) == (2, 1, 1)
    assert mended["dryRun"] is False
    with running(database_url) as server:
        get = server.client.get
        run = get(path("jobs", "runs", "evil")).json()
        assert parse_time(run["endedAt"]) <= system_clock()
        assert get(f"{ETL}/versions").is_success
        assert parse_time(get(CLEAN).json()["updatedAt"]) <= system_clock()
        assert get(f"{API}/events?before={format_time(system_clock())}").json()["totalCount"] == 4
        later = format_time(system_clock())
        post(server.client, made("r3", later, "a", "b", "c"))
        assert [field["name"] for field in get(CLEAN).json()["fields"]] == ["a", "b", "c"]
        assert get(ETL).json()["latestRun"]["id"] == get(path("jobs", "runs", "r3")).json()["id"]
        assert server.client.delete(CLEAN).is_success
        assert get(CLEAN).status_code == 404
        assert penstock("check", "--url", server.server.url).code == 0


def test_events_that_were_shadowed_meanwhile_are_current_after_mending(
    database_url: str, penstock: Terminal
) -> None:
    with running(database_url, event_ahead_seconds=EVER) as server:
        post(server.client, made("evil", FAR, "evil", **DROP))
        later = format_time(system_clock())
        post(server.client, made("r2", later, "a", "b"))
        assert server.client.get(CLEAN).json()["deleted"] is True

    assert penstock("catalog", "mend-times").code == 0

    with running(database_url) as server:
        clean = server.client.get(CLEAN).json()
        assert [field["name"] for field in clean["fields"]] == ["a", "b"]
        run = server.client.get(path("jobs", "runs", "r2")).json()
        assert server.client.get(ETL).json()["latestRun"]["id"] == run["id"]
        listed = server.client.get(path("namespaces", "food", "datasets")).json()
        assert listed["totalCount"] == 2
        assert penstock("check", "--url", server.server.url).code == 0


def test_a_dry_run_only_counts(database_url: str, penstock: Terminal) -> None:
    damage(database_url)

    counted = penstock("catalog", "mend-times", "--dry-run", "--json").document
    again = penstock("catalog", "mend-times", "--dry-run", "--json").document

    assert counted == again
    assert counted["events"] == 2
    assert penstock("catalog", "mend-times", "--json").document == {**counted, "dryRun": False}
    assert penstock("catalog", "mend-times", "--json").document["runs"] == 0
    with running(database_url) as server:
        [entry] = server.client.get(f"{API}/audit").json()["entries"]
        assert entry["action"] == "catalog mend-times"


def test_calls_of_a_server_that_was_ahead_are_mended_too(
    database_url: str, penstock: Terminal
) -> None:
    with running(database_url, clock=lambda: system_clock() + HOUR) as server:
        post(server.client, run_event(eventType="COMPLETE"))
        body = {"type": "DB_TABLE", "physicalName": "x", "sourceName": "food", "fields": []}
        for name in ("one", "two"):
            fields = {**body, "fields": [{"name": name}]}
            assert server.client.put(CLEAN, json=fields).is_success
        assert server.client.delete(ETL).is_success

    assert penstock("catalog", "mend-times", "--ahead-seconds", "0").code == 0

    with running(database_url) as server:
        clean = server.client.get(CLEAN).json()
        assert [field["name"] for field in clean["fields"]] == ["two"]
        assert parse_time(clean["updatedAt"]) <= system_clock()
        assert server.client.get(ETL).status_code == 404
        later = format_time(system_clock())
        post(server.client, run_event("r2", eventType="COMPLETE", eventTime=later))
        assert server.client.get(ETL).is_success
        assert penstock("check", "--url", server.server.url).code == 0
