"""Removing lots that have no manifest: registered ones, and those that a claim has made."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors.serving import API, Running, path, running

LOAD = path("namespaces", "shop", "jobs", "load")
SOURCE = path("namespaces", "shop", "jobs", "source")
RAW = path("namespaces", "shop", "datasets", "raw")
CLEAN = path("namespaces", "shop", "datasets", "clean")
MADE = path("namespaces", "shop", "datasets", "made")
BECAUSE = {"why": "mistyped"}


@pytest.fixture
def shop(database_url: str) -> Iterator[Running]:
    """load: raw → clean; source makes lots of made from nothing; lot 1 of raw is registered."""
    with running(database_url) as server:
        for job, reads, writes in ((LOAD, ["raw"], "clean"), (SOURCE, [], "made")):
            sides = {"inputs": [_named(name) for name in reads], "outputs": [_named(writes)]}
            assert server.client.put(f"{job}/wiring", json=sides).is_success
        act(server, f"{RAW}/lots", lots=["1"])
        yield server


def _named(dataset: str) -> dict[str, str]:
    return {"namespace": "shop", "name": dataset}


def act(server: Running, target: str, **body: Any) -> Any:
    answer = server.client.post(target, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def look(server: Running, target: str) -> Any:
    answer = server.client.get(target)
    assert answer.status_code == 200, answer.text
    return answer.json()


def claim(server: Running, job: str, lot: str = "1") -> Any:
    [found] = act(server, f"{job}/claims", owner="w1", lots=[lot])["claims"]
    return found


def complete(server: Running, job: str, lot: str = "1") -> None:
    found = claim(server, job, lot)
    act(server, path("claims", found["id"], "complete"), token=found["token"])


def refusal(server: Running, target: str) -> str:
    answer = server.client.post(f"{target}/remove", json=BECAUSE)
    assert answer.status_code == 409, answer.text
    message: str = answer.json()["message"]
    return message


def test_a_registered_lot_that_nothing_read_is_forgotten(shop: Running) -> None:
    removed = act(shop, f"{RAW}/lots/1/remove", **BECAUSE)

    assert removed["manifest"] is None
    assert shop.client.get(f"{RAW}/lots/1").status_code == 404
    assert look(shop, f"{LOAD}/lots")["lots"] == []
    assert act(shop, f"{LOAD}/claims", owner="w1")["claims"] == []
    [entry, *_] = look(shop, f"{API}/audit")["entries"]
    assert (entry["action"], entry["detail"]) == ("lot remove", "mistyped")


def test_a_forgotten_lot_can_be_registered_again(shop: Running) -> None:
    act(shop, f"{RAW}/lots/1/remove", **BECAUSE)

    act(shop, f"{RAW}/lots", lots=["1"])

    complete(shop, LOAD)
    assert look(shop, f"{CLEAN}/lots/1")["status"] == "READY"


def test_a_lot_that_a_claim_made_and_nothing_read_is_forgotten(shop: Running) -> None:
    complete(shop, SOURCE, "mistyped")

    act(shop, f"{MADE}/lots/mistyped/remove", **BECAUSE)

    assert shop.client.get(f"{MADE}/lots/mistyped").status_code == 404
    assert look(shop, f"{SOURCE}/lots")["lots"] == []
    assert act(shop, f"{SOURCE}/claims", owner="w1")["claims"] == []


def test_a_lot_that_was_read_is_removed_only_by_force(shop: Running) -> None:
    complete(shop, LOAD)
    message = refusal(shop, f"{RAW}/lots/1")
    assert "was read by job shop/load" in message
    assert look(shop, f"{RAW}/lots/1")["status"] == "READY"

    removed = act(shop, f"{RAW}/lots/1/remove", **BECAUSE, force=True)

    assert removed["manifest"]["state"] == "removed"
    assert look(shop, f"{RAW}/lots/1")["status"] == "ERROR"
    assert look(shop, f"{CLEAN}/lots/1")["status"] == "READY"
    provenance = look(shop, f"{CLEAN}/lots/1/provenance")
    assert "raw" in {version["dataset"] for version in provenance["versions"]}
    assert act(shop, f"{RAW}/lots", lots=["1"]) == {"registered": 1}


def test_a_lot_is_not_removed_while_a_claim_reads_it(shop: Running) -> None:
    claim(shop, LOAD)

    assert "is being read by job shop/load; release its lock" in refusal(shop, f"{RAW}/lots/1")
    assert "is being made by job shop/load" in refusal(shop, f"{CLEAN}/lots/1")
    forced = shop.client.post(f"{RAW}/lots/1/remove", json={**BECAUSE, "force": True})
    assert forced.status_code == 409


def test_a_held_lot_is_not_removed(shop: Running) -> None:
    act(shop, f"{RAW}/lots/1/hold", why="look at it")

    assert "`penstock lots release shop/raw 1 --why REASON`" in refusal(shop, f"{RAW}/lots/1")


def test_a_lot_of_a_failed_attempt_is_removed(shop: Running) -> None:
    found = claim(shop, SOURCE, "mistyped")
    act(shop, path("claims", found["id"], "fail"), token=found["token"], error="no such day")

    act(shop, f"{MADE}/lots/mistyped/remove", **BECAUSE)

    assert look(shop, f"{SOURCE}/lots")["lots"] == []


def test_a_lot_that_is_not_there_cannot_be_removed(shop: Running) -> None:
    assert shop.client.post(f"{RAW}/lots/77/remove", json=BECAUSE).status_code == 404
