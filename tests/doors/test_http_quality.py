"""Checks, acceptance and stale work, over HTTP and at the command line."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client import Client
from tests.doors.commands import Terminal
from tests.doors.serving import API, Running, path, running

RUN = "0190a6a0-0000-7000-8000-00000000000{}"
CLEAN = path("namespaces", "shop", "datasets", "clean", "lots", "9")
CHECK = {"version", "name", "field", "success", "detail", "run", "at"}


def event(kind: str, run: int, passed: bool) -> dict[str, Any]:
    """A run of shop/load makes lot 9 of clean from raw, and tells what a check of it said."""
    said = {"assertion": "not_null", "success": passed, "column": "amount"}
    facet = {"_producer": "t", "_schemaURL": "t", "assertions": [said]}
    named = {"namespace": "shop", "name": "clean"}
    return {
        "eventType": kind,
        "eventTime": f"2026-11-15T09:0{run}:00Z",
        "producer": "t",
        "run": {"runId": RUN.format(run), "facets": {"penstock_lot": {"lot": "9"}}},
        "job": {"namespace": "shop", "name": "load"},
        "inputs": [{"namespace": "shop", "name": "raw"}],
        "outputs": [{**named, "outputFacets": {"dataQualityAssertions": facet}}],
    }


@pytest.fixture
def shop(database_url: str) -> Iterator[Running]:
    """A lot whose check failed, and a job that waits for it."""
    with running(database_url) as server, Client(server.server.url) as client:
        client.wire_job("shop", "load", inputs=["raw"], outputs=["clean"])
        client.wire_job("shop", "sum", inputs=["clean"], outputs=["totals"], stale="hold")
        client.register_lots("shop", "raw", ["9"])
        for kind in ("START", "COMPLETE"):
            assert server.client.post(f"{API}/lineage", json=event(kind, 1, False)).is_success
        yield server


def post(server: Running, target: str, **body: Any) -> Any:
    answer = server.client.post(target, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def make_again(server: Running) -> None:
    with Client(server.server.url) as client:
        client.resubmit("shop", "load", ["9"], "again")
    for kind in ("START", "COMPLETE"):
        assert server.client.post(f"{API}/lineage", json=event(kind, 2, True)).is_success


def test_a_lot_is_checked_held_and_accepted(shop: Running) -> None:
    [check] = shop.client.get(f"{CLEAN}/checks").json()["checks"]
    assert check.keys() == CHECK
    assert (check["name"], check["field"], check["success"]) == ("not_null", "amount", False)
    assert check["run"] == RUN.format(1)
    assert shop.client.get(CLEAN).json()["status"] == "HOLD"
    why = shop.client.get(path("namespaces", "shop", "jobs", "sum", "lots", "9", "why")).json()
    assert why["runnable"] is False
    assert "failed: not_null of amount" in why["sentence"]
    refused = shop.client.post(f"{CLEAN}/release", json={"why": "go"})
    assert refused.status_code == 409
    assert "accept it, or resubmit it" in refused.json()["message"]
    accepted = post(shop, f"{CLEAN}/accept", why="known")
    assert (accepted["lot"], accepted["status"]) == ("9", "READY")
    assert shop.client.post(f"{CLEAN}/accept", json={"why": "known"}).status_code == 409
    entries = shop.client.get(f"{API}/audit").json()["entries"]
    assert ("lot accept", "known") in [(entry["action"], entry["detail"]) for entry in entries]


def test_stale_work_is_listed_by_job_and_namespace(shop: Running) -> None:
    post(shop, f"{CLEAN}/accept", why="known")
    with Client(shop.server.url) as client:
        [claim] = client.claim_lots("shop", "sum", owner="w1").claims
        client.complete_claim(claim.id, claim.token)
        make_again(shop)
        [work] = client.stale_work().lots
        assert (work.job, work.lot, work.state) == ("sum", "9", "HELD")
        assert work.stale_since is not None
        assert client.stale_work(namespace="shop", job="sum").lots == [work]
        assert client.stale_work(job="load").lots == []
        assert client.stale_work(namespace="other").lots == []


def test_checks_of_a_dataset_are_listed_the_newest_first_or_those_that_failed(
    shop: Running,
) -> None:
    with Client(shop.server.url) as client:
        [failed] = client.dataset_checks("shop", "clean").checks
        assert (failed.lot, failed.name, failed.success) == ("9", "not_null", False)
        make_again(shop)
        passed, before = client.dataset_checks("shop", "clean").checks
        assert (passed.success, before) == (True, failed)
        assert client.dataset_checks("shop", "clean", failed=True).checks == [failed]
        assert client.dataset_checks("shop", "clean", limit=1, offset=1).checks == [failed]
        assert client.dataset_checks("shop", "raw").checks == []


def test_what_is_not_there_cannot_be_accepted(shop: Running) -> None:
    there = path("namespaces", "shop", "datasets", "clean", "lots", "10")
    answer = shop.client.post(f"{there}/accept", json={"why": "known"})
    assert answer.status_code == 404
    assert "there is no lot 10 of shop/clean" in answer.json()["message"]
    assert shop.client.get(f"{there}/checks").json() == {"checks": []}
    assert shop.client.post(f"{CLEAN}/accept", json={}).status_code in (400, 422)


def test_at_the_command_line(
    shop: Running, penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", shop.server.url)
    shown = penstock("quality", "show", "shop/clean", "9").text
    assert [word in shown for word in ("not_null", "amount", "no")] == [True] * 3
    listed = penstock("quality", "list", "shop/clean", "--failed").text
    assert [word in listed for word in ("9", "not_null", "amount")] == [True] * 3
    told = penstock("quality", "accept", "shop/clean", "9", "--why", "known").text
    assert told == "lot 9 of shop/clean is accepted: READY\n"
    again = penstock("quality", "accept", "shop/clean", "9", "--why", "known")
    assert (again.code, "nothing to accept" in again.complaint) == (1, True)
    nothing = penstock("quality", "show", "shop/raw", "9").text
    assert nothing == "no check has run on lot 9 of shop/raw\n"
    assert penstock("run", "shop/sum", "--", "true").code == 0
    make_again(shop)
    stale = penstock("work", "stale", "shop/sum").text
    assert [word in stale for word in ("shop/sum", "9", "HELD")] == [True] * 3
    assert penstock("work", "stale", "--json").document["lots"][0]["job"] == "sum"
    wired = penstock("jobs", "wire", "shop/sum", "--stale", "ignore", "--json").document
    assert wired["stale"] == "ignore"
