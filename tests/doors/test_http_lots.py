"""Lots and the work on them over HTTP: shown, logged, and changed by administrators."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.schema.admin import KeyRole
from tests.doors.lot_calls import act, look
from tests.doors.serving import API, Running, path, post, run_event, running

LOAD = path("namespaces", "shop", "jobs", "load")
RAW = path("namespaces", "shop", "datasets", "raw")
CLEAN = path("namespaces", "shop", "datasets", "clean")
WIRES = {
    "inputs": [{"namespace": "shop", "name": "raw"}],
    "outputs": [{"namespace": "shop", "name": "clean"}],
}


@pytest.fixture
def shop(database_url: str) -> Iterator[Running]:
    """Job load reads raw and writes clean; lots 1 to 3 of raw are there, and 1 is loaded."""
    with running(database_url) as server:
        assert server.client.put(f"{LOAD}/wiring", json=WIRES).is_success
        assert act(server, f"{RAW}/lots", lots=["1", "2", "3"]) == {"registered": 3}
        (claim,) = act(server, f"{LOAD}/claims", owner="w1")["claims"]
        act(server, path("claims", claim["id"], "complete"), token=1)
        yield server


def refused(server: Running, target: str, **body: Any) -> int:
    return server.client.post(target, json=body).status_code


def test_a_lot_shows_who_made_it_what_is_locked_and_who_read_it(shop: Running) -> None:
    raw, clean = look(shop, f"{RAW}/lots/1"), look(shop, f"{CLEAN}/lots/1")
    assert (raw["status"], raw["job"], raw["run"], raw["locks"]) == ("READY", None, None, ["write"])
    (consumer,) = raw["consumers"]
    assert (consumer["job"], consumer["status"]) == ("load", "DONE")
    assert consumer["version"] == raw["version"]
    assert clean["job"] == {"namespace": "shop", "name": "load"}
    assert (clean["status"], clean["consumers"]) == ("READY", [])
    run = look(shop, path("jobs", "runs", clean["run"]))
    (made,) = run["outputDatasetVersions"]
    assert made["datasetVersionId"]["version"] == clean["version"]


def test_lots_with_free_names_are_listed_apart_from_intervals(shop: Running) -> None:
    hours = [f"20261114PT1H{hour:02}" for hour in range(4)]
    act(shop, f"{RAW}/lots", lots=[*hours, "2026-11-14", "bid0000000001"])
    named = ["1", "2", "2026-11-14", "3", "bid0000000001"]
    found = look(shop, f"{RAW}/lots?named=true")
    assert sorted(lot["lot"] for lot in found["lots"]) == named
    assert found["totalCount"] == len(named)
    page = look(shop, f"{RAW}/lots?named=true&limit=2&offset=1")
    assert (page["lots"], page["totalCount"]) == (found["lots"][1:3], len(named))
    assert look(shop, f"{RAW}/lots")["totalCount"] == len(hours) + len(named)


def test_lots_are_listed_in_pages(shop: Running) -> None:
    found = look(shop, f"{RAW}/lots?limit=2&offset=1")
    assert [lot["lot"] for lot in found["lots"]] == ["2", "3"]
    assert found["totalCount"] == 3
    assert [len(lot["consumers"]) for lot in look(shop, f"{RAW}/lots")["lots"]] == [1, 0, 0]
    assert look(shop, f"{RAW}/lots?limit=0") == {"lots": [], "totalCount": 3}


def test_a_lot_that_is_registered_twice_is_one_lot_unless_it_is_renewed(shop: Running) -> None:
    before = look(shop, f"{RAW}/lots/2")["version"]
    assert act(shop, f"{RAW}/lots", lots=["2", "4", "4"]) == {"registered": 1}
    assert look(shop, f"{RAW}/lots/2")["version"] == before
    assert act(shop, f"{RAW}/lots", lots=["2"], renew=True) == {"registered": 1}
    assert look(shop, f"{RAW}/lots/2")["version"] != before
    assert refused(shop, f"{CLEAN}/lots", lots=["1"]) == 409


def test_work_is_listed_by_state_in_the_order_it_is_worked_on(shop: Running) -> None:
    act(shop, f"{RAW}/lots", lots=["10", "9"])
    ready = look(shop, f"{LOAD}/lots?state=READY")
    assert [work["lot"] for work in ready["lots"]] == ["2", "3", "9", "10"]
    act(shop, f"{LOAD}/lots/10/priority", priority=3, why="month end")
    first = look(shop, f"{LOAD}/lots?state=READY&limit=1")
    assert [(work["lot"], work["priority"]) for work in first["lots"]] == [("10", 3)]
    assert first["totalCount"] == 4
    assert [work["lot"] for work in look(shop, f"{LOAD}/lots?state=DONE")["lots"]] == ["1"]
    assert look(shop, f"{LOAD}/lots")["totalCount"] == 5
    assert shop.client.get(f"{LOAD}/lots?state=ASLEEP").status_code == 422


def test_everything_that_happened_is_in_the_log(shop: Running) -> None:
    act(shop, f"{LOAD}/lots/1/resubmit", why="bad numbers")
    log = look(shop, f"{LOAD}/log")["entries"]
    assert [(entry["action"], entry["was"], entry["became"]) for entry in log] == [
        ("resubmit", "DONE", "READY"),
        ("complete", "RUNNING", "DONE"),
        ("claim", "READY", "RUNNING"),
    ]
    assert (log[0]["who"], log[0]["why"]) == ("local", "bad numbers")
    assert (log[2]["who"], log[2]["namespace"], log[2]["job"]) == ("w1", "shop", "load")
    of_run = look(shop, path("jobs", "runs", log[1]["run"], "log"))["entries"]
    assert of_run[-2:] == log[1:]
    of_lot = look(shop, f"{RAW}/lots/1/log")["entries"]
    assert of_lot[:3] == log
    assert (of_lot[3]["action"], of_lot[3]["dataset"]) == ("register", "raw")
    assert look(shop, f"{LOAD}/log?lot=2")["entries"] == []
    assert look(shop, f"{LOAD}/log?limit=1&offset=1")["entries"] == log[1:2]


def test_a_run_that_is_no_claim_has_an_empty_log(shop: Running) -> None:
    run = shop.client.post(f"{LOAD}/runs").json()["id"]
    assert look(shop, path("jobs", "runs", run, "log")) == {"entries": []}
    post(shop.client, run_event("reported"))
    assert look(shop, path("jobs", "runs", "reported", "log")) == {"entries": []}
    assert shop.client.get(path("jobs", "runs", "nobody", "log")).status_code == 404


def test_resubmitted_lots_are_worked_on_again(shop: Running) -> None:
    again = act(shop, f"{LOAD}/resubmit", lots=["1"], why="bug")
    assert [(work["lot"], work["state"]) for work in again["lots"]] == [("1", "READY")]
    assert look(shop, f"{CLEAN}/lots/1")["status"] == "RESUBMIT"
    (claim,) = act(shop, f"{LOAD}/claims", owner="w2", lots=["1"])["claims"]
    assert (claim["token"], claim["attempt"]) == (2, 1)
    assert refused(shop, f"{LOAD}/resubmit", lots=["1"], why="bug") == 409
    assert refused(shop, f"{LOAD}/resubmit", lots=["77"], why="bug") == 404


def test_a_hold_stops_a_job_a_dataset_a_lot_or_the_work_on_it(shop: Running) -> None:
    for target in (LOAD, RAW, f"{RAW}/lots/2", f"{LOAD}/lots/2"):
        assert look(shop, f"{LOAD}/lots/2/why")["runnable"], target
        act(shop, f"{target}/hold", why="odd")
        assert not look(shop, f"{LOAD}/lots/2/why")["runnable"], target
        act(shop, f"{target}/hold", why="odd, still")
        act(shop, f"{target}/release", why="fine")
    assert look(shop, f"{LOAD}/lots/2/why")["runnable"]


def test_a_lock_is_released_by_an_administrator(shop: Running) -> None:
    act(shop, f"{LOAD}/claims", owner="stuck", lots=["2"])
    work = act(shop, f"{LOAD}/lots/2/end-claim", why="it hangs")
    assert (work["state"], work["attempts"], work["leaseUntil"]) == ("READY", 0, None)
    assert refused(shop, f"{LOAD}/lots/2/end-claim", why="again") == 409


def test_what_administrators_do_is_in_the_audit_log(shop: Running) -> None:
    act(shop, f"{LOAD}/lots/2/hold", why="odd")
    act(shop, f"{RAW}/hold", why="leaking")
    later, earlier = look(shop, f"{API}/audit")["entries"]
    assert (earlier["action"], earlier["target"], earlier["detail"]) == (
        *("work hold", "job:shop:load lot 2", "odd"),
    )
    assert (later["who"], later["action"], later["detail"]) == ("local", "dataset hold", "leaking")


def test_an_administrator_says_why(shop: Running) -> None:
    for body in ({}, {"why": ""}):
        assert refused(shop, f"{LOAD}/hold", **body) == 422
        assert refused(shop, f"{LOAD}/lots/2/hold", **body) == 422
        assert refused(shop, f"{RAW}/lots/2/hold", **body) == 422


def test_a_hold_follows_the_data_out_of_the_namespace_of_its_key(shop: Running) -> None:
    own, mart = f"{CLEAN}/lots/1", path("namespaces", "mart", "datasets", "sums", "lots", "1")
    wires = {"inputs": WIRES["outputs"], "outputs": [{"namespace": "mart", "name": "sums"}]}
    summing = path("namespaces", "mart", "jobs", "sum", "claims")
    [claim] = act(shop, summing, owner="w1", **wires)["claims"]
    act(shop, path("claims", claim["id"], "complete"), token=claim["token"])
    key = shop.key("shop", KeyRole.ADMIN, "shop")
    why: Any = {"json": {"why": "wrong"}, "headers": key}
    assert shop.client.post(f"{own}/hold", **why).status_code == 200
    assert look(shop, mart)["status"] == "HOLD"
    assert shop.client.post(f"{mart}/hold", **why).status_code == 403
    assert shop.client.post(f"{mart}/release", **why).status_code == 403
    assert shop.client.post(f"{own}/release", **why).status_code == 200
    assert look(shop, mart)["status"] == "READY"


def test_lots_of_another_namespace_are_not_reached_by_a_second_name(shop: Running) -> None:
    identifiers = [{"namespace": "food", "name": "window", "type": "TABLE"}]
    facets = {"symlinks": {"_producer": "x", "_schemaURL": "y", "identifiers": identifiers}}
    theirs = {"namespace": "drink", "name": "cellar", "facets": facets}
    post(shop.client, run_event("r", eventType="COMPLETE", outputs=[theirs]))
    window = path("namespaces", "food", "datasets", "window")
    assert act(shop, f"{window}/lots", lots=["1"]) == {"registered": 1}
    cellar = path("namespaces", "drink", "datasets", "cellar")
    assert look(shop, f"{cellar}/lots/1")["version"] == look(shop, f"{window}/lots/1")["version"]
    shop.client.headers.update(shop.key("food", KeyRole.ADMIN, "food"))
    for leaf in ("lots", "lots/1", "lots/1/log"):
        assert shop.client.get(f"{window}/{leaf}").status_code == 403
    assert refused(shop, f"{window}/lots", lots=["2"]) == 403
    for leaf in ("hold", "release", "lots/1/hold", "lots/1/release"):
        assert refused(shop, f"{window}/{leaf}", why="x") == 403


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        (f"{RAW}/lots", {}, 422),
        (f"{RAW}/lots", {"lots": []}, 422),
        (f"{RAW}/lots", {"lots": ["a/b"]}, 422),
        (f"{RAW}/lots", {"lots": ["1"], "priority": 10**20}, 422),
        (path("namespaces", "shop", "datasets", "nothing", "lots"), {"lots": ["1"]}, 404),
        (f"{LOAD}/lots/2/priority", {"why": "x"}, 422),
        (f"{LOAD}/lots/77/priority", {"why": "x", "priority": 1}, 404),
        (path("namespaces", "shop", "jobs", "nobody", "hold"), {"why": "x"}, 404),
        (path("namespaces", "shop", "datasets", "nothing", "hold"), {"why": "x"}, 404),
    ],
)
def test_what_cannot_be_is_refused(
    shop: Running, target: str, body: dict[str, Any], status: int
) -> None:
    assert refused(shop, target, **body) == status


@pytest.mark.parametrize("leaf", ["lots/77", "lots/a%2Fb/why", "lots/a%2Fb", "log?lot=a/b"])
def test_what_is_not_there_is_not_shown(shop: Running, leaf: str) -> None:
    assert shop.client.get(f"{LOAD}/{leaf}").status_code in (404, 422)
    nobody = path("namespaces", "shop", "jobs", "nobody")
    assert shop.client.get(f"{nobody}/{leaf}").status_code in (404, 422)
