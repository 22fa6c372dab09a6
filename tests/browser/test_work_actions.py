"""What is done with lots, jobs and backfills: each button clicked once, and found in the API."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.acting import agree, ask, hear
from tests.browser.addresses import address
from tests.browser.browsing import Tab
from tests.browser.scene import (
    CLEAN,
    CLEANING,
    FAILED_HOURS_AGO,
    RAW,
    REPORTING,
    SHOP,
    SUMMING,
    TOTALS,
    WORKING_HOURS_AGO,
    Scene,
)

pytestmark = pytest.mark.xdist_group("browser")


def work(scene: Scene, job: str, lot: str) -> Any:
    """How a job's work on a lot stands."""
    return scene.call("GET", "namespaces", SHOP, "jobs", job, "lots", lot)


def begin_backfill(scene: Scene) -> tuple[str, str]:
    """Begin a backfill of some old lots; where it is in the API."""
    body = {"from": scene.hour(20), "to": scene.hour(18), "all": True, "why": "a new rule"}
    begun = scene.call("POST", "namespaces", SHOP, "arcs", SUMMING, "backfills", json=body)
    return "backfills", begun["backfill"]["id"]


def problem(tab: Tab, *words: str) -> Locator:
    """What the overview says that somebody should look at."""
    found = tab.page.locator(".problems li")
    for each in words:
        found = found.filter(has_text=each)
    return found


def test_a_job_is_held_and_let_go_from_the_list_of_what_is_held(tab: Tab, scene: Scene) -> None:
    at = ("namespaces", SHOP, "jobs", SUMMING, "standing")
    tab.open(address("jobs", SHOP, SUMMING))
    agree(ask(tab.page, "Hold"), "Hold the job", "the sums are wrong")
    hear(tab.page, "is held")
    assert scene.call("GET", *at)["wiring"]["held"]["why"] == "the sums are wrong"
    tab.open(address("locks", tab="held"))
    row = tab.page.locator("main [role=row]", has_text="the sums are wrong")
    agree(ask(tab.page, "Let it go on", row), "Let it go on", "they are right")
    expect(row).to_have_count(0)
    assert scene.call("GET", *at)["wiring"]["held"] is None


def test_a_held_dataset_is_let_go_from_the_overview(tab: Tab, scene: Scene) -> None:
    at = ("namespaces", SHOP, "datasets", TOTALS)
    scene.call("POST", *at, "hold", json={"why": "the auditors come"})
    tab.open("/")
    found = problem(tab, "the auditors come")
    agree(ask(tab.page, "Let it go on", found), "Let it go on", "they went")
    expect(found).to_have_count(0)
    assert scene.call("GET", *at, "standing")["held"] is None


def test_a_hold_that_follows_a_dataset_is_released_there(tab: Tab, scene: Scene) -> None:
    raw = ("namespaces", SHOP, "datasets", RAW)
    scene.call("POST", *raw, "hold", json={"why": "the rates are wrong"})
    tab.open("/")
    expect(problem(tab, "the rates are wrong")).to_have_count(1)  # the dataset alone

    tab.open(address("locks", tab="held"))
    row = tab.page.locator("main [role=row]", has_text=SUMMING).filter(has_text="the rates")
    agree(ask(tab.page, "Release its source", row), "Let it go on", "they are right")

    expect(row).to_have_count(0)
    assert scene.call("GET", *raw, "standing")["held"] is None


def test_a_lot_offers_what_really_releases_it(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(20)
    raw = ("namespaces", SHOP, "datasets", RAW, "lots", lot)
    scene.call("POST", *raw, "hold", json={"why": "the hour is cut off"})
    tab.open(address("datasets", SHOP, CLEAN, "lots", lot))

    agree(ask(tab.page, f"Release {RAW}"), "Release the hold", "it is whole")

    hear(tab.page, "is no longer held")
    assert (
        scene.call("GET", "namespaces", SHOP, "datasets", CLEAN, "lots", lot)["status"] == "READY"
    )


def test_each_root_cause_has_what_ends_it(tab: Tab, scene: Scene) -> None:
    job = ("namespaces", SHOP, "jobs", CLEANING)
    lot = scene.hour(FAILED_HOURS_AGO)
    scene.call("POST", *job, "hold", json={"why": "the rule changes"})
    tab.open(address("locks", tab="why", namespace=SHOP, job=CLEANING, lot=lot))

    roots = tab.page.locator(".why-roots li")
    row = roots.filter(has_text=f"penstock jobs release {SHOP}/{CLEANING} --why REASON")
    agree(ask(tab.page, "Let it go on", row), "Let it go on", "it has changed")

    hear(tab.page, "goes on")
    assert scene.call("GET", *job, "standing")["wiring"]["held"] is None


def test_work_on_a_lot_is_held_and_released_from_the_list_of_what_is_held(
    tab: Tab, scene: Scene
) -> None:
    lot = scene.hour(3)
    tab.open(address("jobs", SHOP, REPORTING, "lots", lot))
    agree(ask(tab.page, "Hold"), "Hold", "not before noon")
    hear(tab.page, "is held")
    assert work(scene, REPORTING, lot)["state"] == "HELD"
    tab.open(address("locks", tab="held"))
    row = tab.page.locator("main [role=row]", has_text="not before noon")
    agree(ask(tab.page, "Release", row), "Release the hold", "it is noon")
    expect(row).to_have_count(0)
    assert work(scene, REPORTING, lot)["state"] == "READY"


def test_held_work_is_released_from_the_grid_of_lots(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(FAILED_HOURS_AGO)
    hold = ("namespaces", SHOP, "jobs", CLEANING, "lots", lot, "hold")
    scene.call("POST", *hold, json={"why": "its input is bad"})
    tab.open(address("datasets", SHOP, CLEAN, lot=lot))
    agree(ask(tab.page, "Release"), "Release the hold", "it is good")
    hear(tab.page, "no longer held")
    assert work(scene, CLEANING, lot)["state"] == "READY"


def test_a_claim_is_ended_where_the_work_is_shown(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(WORKING_HOURS_AGO)
    assert work(scene, REPORTING, lot)["owner"] == "worker-3@blue"
    tab.open(address("jobs", SHOP, REPORTING, "lots", lot))
    dialog = ask(tab.page, "End the claim")
    expect(dialog).to_contain_text("worker-3@blue")
    agree(dialog, "End the claim", "blue is switched off")
    hear(tab.page, "is over")
    assert work(scene, REPORTING, lot)["state"] != "RUNNING"


def test_work_that_is_done_is_done_again(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(3)
    assert work(scene, CLEANING, lot)["state"] == "DONE"
    tab.open(address("jobs", SHOP, CLEANING, "lots", lot))
    agree(ask(tab.page, "Run again"), "Run again", "the rules are new")
    hear(tab.page, "again")
    assert work(scene, CLEANING, lot)["state"] == "READY"


def test_a_lot_of_a_dataset_is_held_and_released(tab: Tab, scene: Scene) -> None:
    at = ("datasets", SHOP, CLEAN, "lots", scene.hour(6))
    found = ("namespaces", SHOP, "datasets", CLEAN, "lots", scene.hour(6))
    tab.open(address(*at))
    agree(ask(tab.page, "Hold"), "Hold the lot", "someone counts it")
    hear(tab.page, "is held")
    assert scene.call("GET", *found)["status"] == "HOLD"
    agree(ask(tab.page, "Release the hold"), "Release the hold", "it is counted")
    hear(tab.page, "no longer held")
    assert scene.call("GET", *found)["status"] == "READY"


def test_a_backfill_is_paused_and_resumed_where_its_job_is_shown(tab: Tab, scene: Scene) -> None:
    at = begin_backfill(scene)
    tab.open(address("jobs", SHOP, SUMMING, tab="backfill"))
    agree(ask(tab.page, "Pause"), "Pause the backfill", "lunch")
    hear(tab.page, "is paused")
    assert scene.call("GET", *at)["state"] == "paused"
    agree(ask(tab.page, "Resume"), "Let it go on", "coffee")
    hear(tab.page, "goes on")
    assert scene.call("GET", *at)["state"] == "running"
    agree(ask(tab.page, "Cancel"), "Cancel the backfill", "home")
    hear(tab.page, "is cancelled")
    assert scene.call("GET", *at)["state"] == "cancelled"


def test_what_failed_attempts_left_is_removed(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(FAILED_HOURS_AGO)
    at = ("namespaces", SHOP, "arcs", CLEANING, "lots", lot)
    assert {each["state"] for each in scene.call("GET", *at)["failedAttempts"]} == {"partial"}
    tab.open(address("jobs", SHOP, CLEANING, "lots", lot))
    dialog = ask(tab.page, "Remove leftovers")
    expect(dialog).to_contain_text("This cannot be undone")
    agree(dialog, "Remove the leftovers", "nobody wants them")
    hear(tab.page, "is removed")
    assert {each["state"] for each in scene.call("GET", *at)["failedAttempts"]} == {"removed"}


def test_a_failed_deposit_is_resumed_from_the_overview(tab: Tab, scene: Scene) -> None:
    failed = {"status": "failed"}
    (job,) = scene.call("GET", "ingest", "jobs", params=failed)["jobs"]
    tab.open("/")
    found = problem(tab, job["payloadName"], job["batch"])
    agree(ask(tab.page, "Resume", found), "Resume", "the file is there")
    hear(tab.page, f"goes on with {job['resumesAt']}")
    again = scene.call("GET", "ingest", "jobs", job["id"])
    assert (again["status"], again["retryCount"]) == (job["resumesAt"], 1)


def test_what_the_server_refuses_is_said_in_its_words(tab: Tab, scene: Scene) -> None:
    at = begin_backfill(scene)
    tab.open(address("jobs", SHOP, SUMMING, tab="backfill"))
    dialog = ask(tab.page, "Pause")
    scene.call("POST", *at, "cancel", json={"why": "somebody was faster"})
    agree(dialog, "Pause the backfill", "too late")
    expect(dialog.get_by_role("alert")).to_contain_text("cancelled")
    expect(dialog.get_by_label("Reason")).to_have_value("too late")
    dialog.get_by_role("button", name="Close", exact=True).click()
    assert scene.call("GET", *at)["state"] == "cancelled"
    tab.forgive("409")


def test_what_a_backfill_would_do_is_shown_only_of_what_is_asked_for_now(
    tab: Tab, scene: Scene
) -> None:
    """An answer comes late, and what would be begun is another range by then."""
    late: list[Route] = []

    def hold_up(route: Route) -> None:
        late.append(route)

    begin = tab.page.get_by_role("button", name="Begin this backfill")
    tab.open(address("jobs", SHOP, SUMMING, tab="backfill"))
    tab.page.get_by_label("From").fill(scene.hour(20))
    tab.page.get_by_label("To", exact=True).fill(scene.hour(18))
    tab.page.get_by_label("also what is good").check()
    asked = "**/arcs/*/backfills"
    tab.page.route(asked, hold_up)
    with tab.page.expect_request(asked):
        tab.page.get_by_role("button", name="Preview").click()
    tab.page.get_by_label("To", exact=True).fill(scene.hour(10))
    with tab.page.expect_response(asked) as answered:
        late[0].continue_()
    answered.value.finished()
    tab.settle()
    expect(begin).to_have_count(0)
    tab.page.unroute(asked)
    tab.page.get_by_role("button", name="Preview").click()
    expect(tab.page.get_by_role("table", name="what would happen")).to_contain_text(scene.hour(10))
    expect(ask(tab.page, "Begin this backfill")).to_contain_text(f"to {scene.hour(10)}")
