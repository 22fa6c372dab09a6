"""The pages of ingest and every action on them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.acting import confirm, expect_toast, open_dialog
from tests.browser.addresses import address, ingest_views
from tests.browser.browsing import Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.looking import look_at
from tests.browser.mill import MILL, SACKS, Mill

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def tab(browser: Browser, mill: Mill) -> Iterator[Tab]:
    """A new tab on the mill's server; an error in it fails its test."""
    with open_tab(browser, mill.scene.url) as opened:
        yield opened


def test_every_view_of_ingest_is_accessible(browser: Browser, mill: Mill) -> None:
    look_at(browser, mill.scene.url, ingest_views(mill))


def test_palette_finds_an_object_by_a_file_name(tab: Tab, mill: Mill) -> None:
    ark = mill.jobs(mill.failed)["rye.csv"]["primaryId"]
    tab.open("/")

    tab.page.keyboard.press("/")
    tab.page.keyboard.type("rye.csv")
    tab.page.get_by_role("option", name=re.compile("rye.csv.*file")).click()

    expect(tab.page.locator("main")).to_contain_text(f"Versions of {ark}")
    files = tab.page.get_by_role("table", name="files of the object")
    expect(files).to_contain_text("producer/rye.csv")


def last_audited(mill: Mill, action: str) -> Any:
    """Return the newest entry of the audit log for an action."""
    entries = mill.call("GET", "audit")["entries"]
    return next(entry for entry in entries if entry["action"] == action)


def test_queue_is_held_and_released(tab: Tab, mill: Mill) -> None:
    tab.open("/ingest")
    dialog = open_dialog(tab.page, "Hold queue")
    expect(dialog).to_contain_text("No daemon takes up a batch or a job of any collection")
    confirm(dialog, "Hold queue", "the disk is full")
    expect(tab.page.locator("main")).to_contain_text("The ingest queue is on hold")
    assert mill.call("GET", "ingest", "queue")["held"]["why"] == "the disk is full"
    confirm(open_dialog(tab.page, "Release queue"), "Release hold", "there is room again")
    expect_toast(tab.page, "The hold on the queue is released")
    assert mill.call("GET", "ingest", "queue")["held"] is None
    assert last_audited(mill, "release queue")["detail"] == "there is room again"


def test_batch_is_held_and_released(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[0]
    tab.open(address("ingest", "batches", batch))
    confirm(open_dialog(tab.page, "Hold"), "Hold batch", "ann asked for it")
    expect(tab.page.locator("main")).to_contain_text("ann asked for it")
    assert mill.call("GET", "ingest", "batches", batch)["status"] == "held"
    confirm(open_dialog(tab.page, "Release hold"), "Release hold", "ann is content")
    expect_toast(tab.page, "is released")
    assert mill.call("GET", "ingest", "batches", batch)["status"] == "pending"


def test_held_batch_is_deleted_after_its_name_is_typed(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[1]
    mill.call("POST", "ingest", "batches", batch, "hold", json={"why": "a mistake"})
    tab.open(address("ingest", "batches", batch))
    dialog = open_dialog(tab.page, "Delete")
    expect(dialog).to_contain_text("This cannot be undone")
    confirm(dialog, "Delete batch", "it was sent twice", typed=batch)
    expect(tab.page).to_have_url(re.compile("/ingest$"))
    expect_toast(tab.page, "is deleted")
    left = [each["id"] for each in mill.call("GET", "ingest", "batches")["batches"]]
    assert batch not in left
    assert mill.failed in left


def test_change_of_a_batch_is_shown_at_once(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[2]
    tab.open(address("ingest", collection=SACKS))
    row = tab.page.locator("main [role=row]", has_text=batch)
    expect(row.locator(".status")).to_have_text("pending")
    tab.page.evaluate("() => { window.sameDocument = true }")
    mill.call("POST", "ingest", "batches", batch, "hold", json={"why": "to see it"})
    expect(row.locator(".status")).to_have_text("held")
    tab.page.get_by_label("State").select_option("held")
    expect(tab.page).to_have_url(re.compile("state=held"))
    expect(tab.page.locator("main [role=row]", has_text=mill.failed)).to_have_count(0)
    assert tab.page.evaluate("() => window.sameDocument") is True
    tab.page.reload()
    expect(row.locator(".status")).to_have_text("held")


def test_all_holds_in_a_collection_are_released(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[3]
    mill.call("POST", "ingest", "batches", batch, "hold", json={"why": "for now"})
    tab.open(address("ingest", "collections", SACKS))
    confirm(open_dialog(tab.page, "Release all holds"), "Release holds", "the day begins")
    expect_toast(tab.page, "released.")
    assert mill.call("GET", "ingest", "batches", batch)["status"] == "pending"


def test_collection_is_held_and_released(tab: Tab, mill: Mill) -> None:
    tab.open(address("ingest", "collections", SACKS))
    confirm(open_dialog(tab.page, "Hold"), "Hold collection", "the scales are off")
    expect(tab.page.locator("main")).to_contain_text("the scales are off")
    at = ("ingest", "collections", SACKS)
    assert mill.call("GET", *at)["held"]["why"] == "the scales are off"
    tab.open("/ingest")
    expect(tab.page.locator("main")).to_contain_text(f"Collection {SACKS} is on hold")
    tab.open(address("ingest", tab="collections"))
    row = tab.page.locator("main [role=row]", has_text=SACKS)
    confirm(open_dialog(tab.page, "Release hold", row), "Release hold", "they are even")
    expect_toast(tab.page, "is released")
    assert mill.call("GET", *at)["held"] is None


def test_collection_is_created_changed_and_deleted(tab: Tab, mill: Mill) -> None:
    tab.open(address("ingest", tab="collections"))
    dialog = open_dialog(tab.page, "New collection")
    dialog.get_by_label("Name", exact=True).fill("barrels")
    dialog.get_by_label("Namespace").fill(MILL)
    dialog.get_by_label("Dataset of its lots").fill("oil")
    dialog.get_by_label("One lot per").select_option("PT1H")
    dialog.get_by_role("button", name="Create collection").click()
    expect(tab.page.locator("main h1")).to_have_text("barrels")
    at = ("ingest", "collections", "barrels")
    made = mill.call("GET", *at)
    assert (made["namespace"], made["dataset"], made["lots"]) == (MILL, "oil", "PT1H")
    tab.open(address(*at, tab="profile"))
    tab.page.get_by_label("Description").fill("What the press gives")
    tab.page.get_by_label("Priority of its jobs (0 runs first)").fill("7")
    tab.page.get_by_role("button", name="Save profile").click()
    expect_toast(tab.page, "is changed")
    changed = mill.call("GET", *at)
    assert (changed["description"], changed["priority"]) == ("What the press gives", 7)
    assert changed["lots"] == "PT1H"
    confirm(open_dialog(tab.page, "Delete"), "Delete collection", typed="barrels")
    expect_toast(tab.page, "is deleted")
    names = [each["name"] for each in mill.call("GET", "ingest", "collections")["collections"]]
    assert "barrels" not in names
    assert SACKS in names


def expect_late_refusal_of_a_priority(tab: Tab) -> None:
    late: list[Route] = []

    def hold_up(route: Route) -> None:
        late.append(route)

    tab.page.route("**/priority", hold_up)
    dialog = open_dialog(tab.page, "Priority")
    dialog.get_by_label("Reason").fill("it is late")
    with tab.page.expect_request("**/priority"):
        dialog.get_by_role("button", name="Set priority").click()
    tab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    late[0].fulfill(status=409, json={"message": "it is too late for that"})
    expect(tab.page.locator(".toast.tone-bad")).to_contain_text("too late for that")
    tab.page.unroute("**/priority")
    tab.forgive("409")


def test_pending_jobs_are_held_and_released(tab: Tab, mill: Mill) -> None:
    mill.work("ingest", "--stages", "batch-pending")
    batch = mill.pending[4]
    job = mill.jobs(batch)["rye.csv"]["id"]
    at = ("ingest", "jobs", job)
    tab.open(address(*at))
    confirm(open_dialog(tab.page, "Hold"), "Hold job", "the sack is open")
    expect(tab.page.locator("main")).to_contain_text("the sack is open")
    assert mill.call("GET", *at)["status"] == "held"
    confirm(open_dialog(tab.page, "Release hold"), "Release hold", "it is sewn up")
    expect_toast(tab.page, "is released")
    assert mill.call("GET", *at)["status"] == "pending"
    tab.open(address("ingest", "batches", batch))
    expect_late_refusal_of_a_priority(tab)
    tab.page.get_by_role("button", name="Priority").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).not_to_contain_text("This was not done")
    dialog.get_by_label("Priority").fill("2")
    dialog.get_by_label("Reason").fill("it is for today")
    dialog.get_by_role("button", name="Set priority").click()
    expect_toast(tab.page, "2 jobs have priority 2")
    assert {each["priority"] for each in mill.jobs(batch).values()} == {2}
    confirm(open_dialog(tab.page, "Hold"), "Hold batch", "the mill stands still")
    expect_toast(tab.page, "2 jobs are on hold")
    assert {each["status"] for each in mill.jobs(batch).values()} == {"held"}
    tab.open("/ingest")
    confirm(open_dialog(tab.page, "Release all holds"), "Release holds", "it turns again")
    expect_toast(tab.page, "released.")
    assert {each["status"] for each in mill.jobs(batch).values()} == {"pending"}


def test_jobs_are_resumed_stopped_and_reported_again(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[4]
    mill.work("ingest")
    jobs = mill.jobs(batch)
    good, failed = jobs["rye.csv"], jobs["spelt.csv"]
    assert (good["status"], failed["status"]) == ("completed", "failed")
    assert failed["resumesAt"] == "downloading"
    tab.open(address("ingest", "jobs", failed["id"]))
    expect(tab.page.locator("main")).to_contain_text("it continues with downloading")
    (mill.scene.folder / "sacks" / "later4" / "spelt.csv").write_text("sack,kilograms\n2,20\n")
    confirm(open_dialog(tab.page, "Resume"), "Resume", "the file is there")
    expect_toast(tab.page, "continues with downloading")
    again = mill.call("GET", "ingest", "jobs", failed["id"])
    assert (again["status"], again["retryCount"]) == ("downloading", 1)
    tab.page.get_by_role("button", name="Priority").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("Priority").fill("3")
    dialog.get_by_label("Reason").fill("it is waited for")
    dialog.get_by_role("button", name="Set priority").click()
    expect_toast(tab.page, "priority 3")
    assert mill.call("GET", "ingest", "jobs", failed["id"])["priority"] == 3
    dialog = open_dialog(tab.page, "Stop")
    expect(dialog).to_contain_text("fails at once")
    confirm(dialog, "Stop job", "it is the wrong file")
    expect(tab.page.locator("main")).to_contain_text("it is the wrong file")
    assert mill.call("GET", "ingest", "jobs", failed["id"])["status"] == "failed"
    tab.open(address("ingest", "batches", batch))
    confirm(open_dialog(tab.page, "Resume failed"), "Resume", "it was right after all")
    expect_toast(tab.page, "1 job continues")
    mill.work("ingest")
    assert mill.jobs(batch)["spelt.csv"]["status"] == "completed"
    confirm(open_dialog(tab.page, "Update report"), "Update report", "all is there")
    expect_toast(tab.page, "gets another report")
    mill.work("ingest")
    expect(tab.page.locator("main .page-head .status")).to_have_text("completed")
    tab.open(address("ingest", "batches", batch, tab="report"))
    expect(tab.page.locator(".letter")).to_contain_text("2 completed, 0 failed")


def test_failed_job_is_deleted(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[5]
    mill.work("ingest")
    failed = mill.jobs(batch)["spelt.csv"]["id"]
    tab.open(address("ingest", "jobs", failed))
    dialog = open_dialog(tab.page, "Delete")
    expect(dialog).to_contain_text("its depositor gets no report about it")
    confirm(dialog, "Delete job", "there is no spelt", typed=failed)
    expect(tab.page).to_have_url(re.compile(f"/ingest/batches/{batch}"))
    expect_toast(tab.page, "is deleted")
    assert set(mill.jobs(batch)) == {"rye.csv"}


def test_unknown_batch_is_reported(tab: Tab) -> None:
    tab.open("/ingest/batches/bid9999999999")
    expect(tab.page.locator("main .trouble")).to_contain_text("Not found")
    tab.forgive("404")


def test_stage_opens_its_jobs_by_keyboard(tab: Tab, mill: Mill) -> None:
    tab.open("/ingest")
    stage = tab.page.locator(".flow-stage", has_text="failed")
    stage.focus()
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile("tab=jobs&status=failed"))
    rows = tab.page.get_by_role("rowgroup", name="ingest jobs: rows")
    expect(rows).to_contain_text("oats.csv")
    rows.focus()
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile("/ingest/jobs/jid"))
