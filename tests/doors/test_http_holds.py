"""Holds over HTTP: a release that releases nothing is refused, and names what really holds."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.schema.admin import KeyRole
from tests.doors.lot_calls import act, complete, fail, look, named
from tests.doors.serving import API, Running, path, running

LOAD = path("namespaces", "shop", "jobs", "load")
SUM = path("namespaces", "shop", "jobs", "sum")
RAW = path("namespaces", "shop", "datasets", "raw")
CLEAN = path("namespaces", "shop", "datasets", "clean")
TOTALS = path("namespaces", "shop", "datasets", "totals")


@pytest.fixture
def shop(database_url: str) -> Iterator[Running]:
    """load: raw → clean; sum: clean → totals; lot 1 of raw and of clean is there."""
    with running(database_url) as server:
        wire(server, LOAD, "raw", "clean")
        wire(server, SUM, "clean", "totals")
        act(server, f"{RAW}/lots", lots=["1"])
        complete(server, LOAD)
        yield server


def wire(server: Running, job: str, reads: str, writes: str) -> None:
    sides = {"inputs": [named(reads)] if reads else [], "outputs": [named(writes)]}
    answer = server.client.put(f"{job}/wiring", json={**sides, "triesMax": 1})
    assert answer.is_success, answer.text


def refusal(server: Running, target: str) -> str:
    """The message of the conflict that a release is; nothing is written to the audit log."""
    before = look(server, f"{API}/audit")["entries"]
    answer = server.client.post(f"{target}/release", json={"why": "try"})
    assert answer.status_code == 409, answer.text
    assert look(server, f"{API}/audit")["entries"] == before
    message: str = answer.json()["message"]
    return message


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (SUM, "job shop/sum"),
        (RAW, "dataset shop/raw"),
        (f"{RAW}/lots/1", "lot 1 of shop/raw"),
        (f"{RAW}/lots/77", "lot 77 of shop/raw"),
        (f"{SUM}/lots/1", "lot 1 of job shop/sum"),
    ],
)
def test_release_of_what_is_not_held_is_refused(shop: Running, target: str, name: str) -> None:
    assert refusal(shop, target).startswith(f"{name} is not held, so nothing was changed")


def test_release_of_a_job_names_the_dataset_that_stops_it(shop: Running) -> None:
    act(shop, f"{CLEAN}/hold", why="wrong rates")

    message = refusal(shop, SUM)

    assert "dataset shop/clean is held by 'local' since" in message
    assert message.endswith(": wrong rates: `penstock datasets release shop/clean --why REASON`")


def test_release_of_a_job_names_the_dataset_upstream_that_holds_it(shop: Running) -> None:
    act(shop, f"{RAW}/hold", why="wrong rates")

    assert refusal(shop, SUM).endswith("`penstock datasets release shop/raw --why REASON`")


def test_release_of_a_job_names_a_lot_of_it_that_is_held(shop: Running) -> None:
    act(shop, f"{SUM}/lots/1/hold", why="wait")

    assert refusal(shop, SUM).endswith("`penstock work release shop/sum 1 --why REASON`")


def test_release_of_a_dataset_names_the_job_that_is_held(shop: Running) -> None:
    act(shop, f"{LOAD}/hold", why="wait")

    assert refusal(shop, RAW).endswith("`penstock jobs release shop/load --why REASON`")


def test_release_of_a_dataset_names_a_lot_of_it_that_is_held(shop: Running) -> None:
    act(shop, f"{RAW}/lots/1/hold", why="wait")

    assert refusal(shop, RAW).endswith("`penstock lots release shop/raw 1 --why REASON`")


def test_release_of_a_lot_names_the_dataset_that_is_held(shop: Running) -> None:
    act(shop, f"{RAW}/hold", why="wait")

    assert refusal(shop, f"{RAW}/lots/1").endswith(
        "`penstock datasets release shop/raw --why REASON`"
    )


def test_release_of_a_lot_names_the_work_that_is_held(shop: Running) -> None:
    act(shop, f"{SUM}/lots/1/hold", why="wait")

    assert refusal(shop, f"{CLEAN}/lots/1").endswith(
        "`penstock work release shop/sum 1 --why REASON`"
    )


def test_release_of_a_lot_names_the_lot_that_it_was_made_from(shop: Running) -> None:
    act(shop, f"{RAW}/lots/1/hold", why="wait")

    assert refusal(shop, f"{CLEAN}/lots/1").endswith(
        "`penstock lots release shop/raw 1 --why REASON`"
    )


def test_release_of_work_names_the_lot_that_stops_it(shop: Running) -> None:
    act(shop, f"{CLEAN}/lots/1/hold", why="wait")

    assert refusal(shop, f"{SUM}/lots/1").endswith(
        "End that: `penstock lots release shop/clean 1 --why REASON`"
    )


def test_release_of_work_names_the_held_lot_that_a_source_writes(shop: Running) -> None:
    source = path("namespaces", "shop", "jobs", "source")
    wire(shop, source, "", "made")
    fail(shop, source, "5")
    act(shop, f"{path('namespaces', 'shop', 'datasets', 'made')}/lots/5/hold", why="wait")

    message = refusal(shop, f"{source}/lots/5")

    assert message.endswith("`penstock lots release shop/made 5 --why REASON`")
    [stuck] = look(shop, f"{API}/standing")["stuck"]
    assert stuck["heldLotOf"] == {"namespace": "shop", "name": "made"}


def test_a_key_sees_no_jobs_of_others_in_a_refusal(shop: Running) -> None:
    theirs = path("namespaces", "bank", "jobs", "secret")
    sides = {"inputs": [named("raw")], "outputs": []}
    assert shop.client.put(f"{theirs}/wiring", json=sides).is_success
    act(shop, f"{theirs}/hold", why="confidential")
    act(shop, f"{theirs}/lots/1/hold", why="confidential")
    key: Any = {"headers": shop.key("shop", KeyRole.ADMIN, "shop"), "json": {"why": "try"}}

    for target in (RAW, f"{RAW}/lots/1"):
        answer = shop.client.post(f"{target}/release", **key)
        assert answer.status_code == 409
        assert "secret" not in answer.text
        assert "confidential" not in answer.text


def test_a_released_job_names_the_holds_that_still_stop_it(shop: Running) -> None:
    act(shop, f"{CLEAN}/hold", why="wrong rates")
    act(shop, f"{SUM}/hold", why="wait")

    released = act(shop, f"{SUM}/release", why="go")

    assert released["held"] is None
    [stop] = released["stoppedBy"]
    assert (stop["kind"], stop["name"], stop["why"]) == ("DATASET", "clean", "wrong rates")
    assert stop["command"] == "penstock datasets release shop/clean --why REASON"


def test_a_released_dataset_names_the_jobs_that_are_still_held(shop: Running) -> None:
    act(shop, f"{RAW}/hold", why="wrong rates")
    act(shop, f"{LOAD}/hold", why="wait")

    [stop] = act(shop, f"{RAW}/release", why="go")["stoppedBy"]

    assert (stop["kind"], stop["name"]) == ("JOB", "load")


def test_a_hold_that_follows_a_dataset_names_it(shop: Running) -> None:
    act(shop, f"{RAW}/hold", why="wrong rates")

    holds = look(shop, f"{API}/standing")["holds"]

    [follower] = [hold for hold in holds if hold["kind"] == "LINEAGE"]
    assert (follower["name"], follower["source"]) == ("sum", named("raw"))
    assert follower["command"] == "penstock datasets release shop/raw --why REASON"


def test_a_lot_shows_what_holds_it_and_what_releases_it(shop: Running) -> None:
    assert look(shop, f"{RAW}/lots/1/hold")["kind"] is None

    act(shop, f"{RAW}/lots/1/hold", why="wrong rates")

    person, upstream = (look(shop, f"{of}/lots/1/hold") for of in (RAW, CLEAN))
    assert (person["kind"], person["who"], person["why"]) == ("PERSON", "local", "wrong rates")
    assert person["command"] == "penstock lots release shop/raw 1 --why REASON"
    assert (upstream["kind"], upstream["source"]) == ("UPSTREAM", named("raw"))
    assert upstream["command"] == person["command"]


def test_a_lot_shows_the_job_that_is_out_of_tries_with_it(shop: Running) -> None:
    fail(shop, SUM)

    hold = look(shop, f"{TOTALS}/lots/1/hold")

    assert (hold["kind"], hold["job"], hold["why"]) == ("ATTEMPTS", named("sum"), "disk full")
    assert hold["command"] == "penstock work retry shop/sum 1 --why REASON"
