"""The actions on lots, jobs and backfills: each button once, checked in the API."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.acting import confirm, expect_toast, open_dialog
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
    """Return a job's work on a lot."""
    return scene.call("GET", "namespaces", SHOP, "jobs", job, "lots", lot)


def start_backfill(scene: Scene) -> tuple[str, str]:
    """Start a backfill of some old lots, and return its path in the API."""
    body = {"from": scene.hour(20), "to": scene.hour(18), "all": True, "why": "a new rule"}
    answer = scene.call("POST", "namespaces", SHOP, "arcs", SUMMING, "backfills", json=body)
    return "backfills", answer["backfill"]["id"]


def problem(tab: Tab, *words: str) -> Locator:
    """Return the problem of the overview with these texts."""
    problems = tab.page.locator(".problems li")
    for each in words:
        problems = problems.filter(has_text=each)
    return problems


def test_job_is_held_and_released_from_the_list(tab: Tab, scene: Scene) -> None:
    at = ("namespaces", SHOP, "jobs", SUMMING, "standing")
    tab.open(address("jobs", SHOP, SUMMING))
    confirm(open_dialog(tab.page, "Hold"), "Hold job", "the sums are wrong")
    expect_toast(tab.page, "is on hold")
    assert scene.call("GET", *at)["wiring"]["held"]["why"] == "the sums are wrong"
    tab.open(address("locks", tab="held"))
    row = tab.page.locator("main [role=row]", has_text="the sums are wrong")
    confirm(open_dialog(tab.page, "Release hold", row), "Release hold", "they are right")
    expect(row).to_have_count(0)
    assert scene.call("GET", *at)["wiring"]["held"] is None


def test_held_dataset_is_released_from_the_overview(tab: Tab, scene: Scene) -> None:
    at = ("namespaces", SHOP, "datasets", TOTALS)
    scene.call("POST", *at, "hold", json={"why": "the auditors come"})
    tab.open("/")
    row = problem(tab, "the auditors come")
    confirm(open_dialog(tab.page, "Release hold", row), "Release hold", "they went")
    expect(row).to_have_count(0)
    assert scene.call("GET", *at, "standing")["held"] is None


def test_hold_through_a_dataset_is_released_there(tab: Tab, scene: Scene) -> None:
    raw = ("namespaces", SHOP, "datasets", RAW)
    scene.call("POST", *raw, "hold", json={"why": "the rates are wrong"})
    tab.open("/")
    expect(problem(tab, "the rates are wrong")).to_have_count(1)  # the dataset alone

    tab.open(address("locks", tab="held"))
    row = tab.page.locator("main [role=row]", has_text=SUMMING).filter(has_text="the rates")
    confirm(open_dialog(tab.page, "Release source", row), "Release hold", "they are right")

    expect(row).to_have_count(0)
    assert scene.call("GET", *raw, "standing")["held"] is None


def test_held_lot_has_the_action_that_releases_it(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(20)
    raw = ("namespaces", SHOP, "datasets", RAW, "lots", lot)
    scene.call("POST", *raw, "hold", json={"why": "the hour is cut off"})
    tab.open(address("datasets", SHOP, CLEAN, "lots", lot))

    confirm(open_dialog(tab.page, f"Release hold on {RAW}"), "Release hold", "it is whole")

    expect_toast(tab.page, "is released")
    assert (
        scene.call("GET", "namespaces", SHOP, "datasets", CLEAN, "lots", lot)["status"] == "READY"
    )


def test_each_root_cause_has_its_remedy(tab: Tab, scene: Scene) -> None:
    job = ("namespaces", SHOP, "jobs", CLEANING)
    lot = scene.hour(FAILED_HOURS_AGO)
    scene.call("POST", *job, "hold", json={"why": "the rule changes"})
    tab.open(address("locks", tab="why", namespace=SHOP, job=CLEANING, lot=lot))

    roots = tab.page.locator(".why-roots li")
    row = roots.filter(has_text=f"penstock jobs release {SHOP}/{CLEANING} --why REASON")
    confirm(open_dialog(tab.page, "Release hold", row), "Release hold", "it has changed")

    expect_toast(tab.page, "is released")
    assert scene.call("GET", *job, "standing")["wiring"]["held"] is None


def test_work_is_held_and_released_from_the_list(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(3)
    tab.open(address("jobs", SHOP, REPORTING, "lots", lot))
    confirm(open_dialog(tab.page, "Hold"), "Hold", "not before noon")
    expect_toast(tab.page, "is on hold")
    assert work(scene, REPORTING, lot)["state"] == "HELD"
    tab.open(address("locks", tab="held"))
    row = tab.page.locator("main [role=row]", has_text="not before noon")
    confirm(open_dialog(tab.page, "Release hold", row), "Release hold", "it is noon")
    expect(row).to_have_count(0)
    assert work(scene, REPORTING, lot)["state"] == "READY"


def test_held_work_is_released_from_the_grid(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(FAILED_HOURS_AGO)
    hold = ("namespaces", SHOP, "jobs", CLEANING, "lots", lot, "hold")
    scene.call("POST", *hold, json={"why": "its input is bad"})
    tab.open(address("datasets", SHOP, CLEAN, lot=lot))
    confirm(open_dialog(tab.page, "Release hold"), "Release hold", "it is good")
    expect_toast(tab.page, "is released")
    assert work(scene, CLEANING, lot)["state"] == "READY"


def test_claim_is_ended_on_the_page_of_its_work(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(WORKING_HOURS_AGO)
    assert work(scene, REPORTING, lot)["owner"] == "worker-3@blue"
    tab.open(address("jobs", SHOP, REPORTING, "lots", lot))
    dialog = open_dialog(tab.page, "End claim")
    expect(dialog).to_contain_text("worker-3@blue")
    confirm(dialog, "End claim", "blue is switched off")
    expect_toast(tab.page, "has ended")
    assert work(scene, REPORTING, lot)["state"] != "RUNNING"


def test_finished_work_is_resubmitted(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(3)
    assert work(scene, CLEANING, lot)["state"] == "DONE"
    tab.open(address("jobs", SHOP, CLEANING, "lots", lot))
    confirm(open_dialog(tab.page, "Resubmit"), "Resubmit", "the rules are new")
    expect_toast(tab.page, "again")
    assert work(scene, CLEANING, lot)["state"] == "READY"


def test_lot_is_held_and_released(tab: Tab, scene: Scene) -> None:
    at = ("datasets", SHOP, CLEAN, "lots", scene.hour(6))
    path = ("namespaces", SHOP, "datasets", CLEAN, "lots", scene.hour(6))
    tab.open(address(*at))
    confirm(open_dialog(tab.page, "Hold"), "Hold lot", "someone counts it")
    expect_toast(tab.page, "is on hold")
    assert scene.call("GET", *path)["status"] == "HOLD"
    confirm(open_dialog(tab.page, "Release hold"), "Release hold", "it is counted")
    expect_toast(tab.page, "is released")
    assert scene.call("GET", *path)["status"] == "READY"


def test_backfill_is_paused_and_resumed_on_its_job(tab: Tab, scene: Scene) -> None:
    at = start_backfill(scene)
    tab.open(address("jobs", SHOP, SUMMING, tab="backfill"))
    confirm(open_dialog(tab.page, "Pause"), "Pause backfill", "lunch")
    expect_toast(tab.page, "is paused")
    assert scene.call("GET", *at)["state"] == "paused"
    confirm(open_dialog(tab.page, "Resume"), "Resume backfill", "coffee")
    expect_toast(tab.page, "continues")
    assert scene.call("GET", *at)["state"] == "running"
    confirm(open_dialog(tab.page, "Cancel"), "Cancel backfill", "home")
    expect_toast(tab.page, "is cancelled")
    assert scene.call("GET", *at)["state"] == "cancelled"


def test_leftovers_of_failed_attempts_are_removed(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(FAILED_HOURS_AGO)
    at = ("namespaces", SHOP, "arcs", CLEANING, "lots", lot)
    assert {each["state"] for each in scene.call("GET", *at)["failedAttempts"]} == {"partial"}
    tab.open(address("jobs", SHOP, CLEANING, "lots", lot))
    dialog = open_dialog(tab.page, "Remove leftovers")
    expect(dialog).to_contain_text("This cannot be undone")
    confirm(dialog, "Remove leftovers", "no longer needed")
    expect_toast(tab.page, "are removed")
    assert {each["state"] for each in scene.call("GET", *at)["failedAttempts"]} == {"removed"}


def test_failed_ingest_job_is_resumed_from_the_overview(tab: Tab, scene: Scene) -> None:
    failed = {"status": "failed"}
    (job,) = scene.call("GET", "ingest", "jobs", params=failed)["jobs"]
    tab.open("/")
    row = problem(tab, job["payloadName"], job["batch"])
    confirm(open_dialog(tab.page, "Resume", row), "Resume", "the file is there")
    expect_toast(tab.page, f"continues with {job['resumesAt']}")
    again = scene.call("GET", "ingest", "jobs", job["id"])
    assert (again["status"], again["retryCount"]) == (job["resumesAt"], 1)


def test_refusal_shows_the_message_of_the_server(tab: Tab, scene: Scene) -> None:
    at = start_backfill(scene)
    tab.open(address("jobs", SHOP, SUMMING, tab="backfill"))
    dialog = open_dialog(tab.page, "Pause")
    scene.call("POST", *at, "cancel", json={"why": "another person was faster"})
    confirm(dialog, "Pause backfill", "too late")
    expect(dialog.get_by_role("alert")).to_contain_text("cancelled")
    expect(dialog.get_by_label("Reason")).to_have_value("too late")
    dialog.get_by_role("button", name="Close", exact=True).click()
    assert scene.call("GET", *at)["state"] == "cancelled"
    tab.forgive("409")


def test_late_preview_of_former_input_is_ignored(tab: Tab, scene: Scene) -> None:
    """The answer arrives after the input has changed."""
    late: list[Route] = []

    def hold_up(route: Route) -> None:
        late.append(route)

    begin = tab.page.get_by_role("button", name="Start backfill")
    tab.open(address("jobs", SHOP, SUMMING, tab="backfill"))
    tab.page.get_by_label("From").fill(scene.hour(20))
    tab.page.get_by_label("To", exact=True).fill(scene.hour(18))
    tab.page.get_by_label("include good lots").check()
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
    expect(tab.page.get_by_role("table", name="plan of the backfill")).to_contain_text(
        scene.hour(10)
    )
    expect(open_dialog(tab.page, "Start backfill")).to_contain_text(f"to {scene.hour(10)}")
