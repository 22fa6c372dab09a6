"""The pages of ingest: every view opened, every action clicked and found in the API."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.acting import agree, ask, hear
from tests.browser.addresses import address, ingest_views
from tests.browser.browsing import Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.looking import look_at
from tests.browser.mill import MILL, SACKS, Mill

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def tab(browser: Browser, mill: Mill) -> Iterator[Tab]:
    """A new tab on the mill's server; it fails its test if anything goes wrong in it."""
    with open_tab(browser, mill.scene.url) as opened:
        yield opened


def test_every_view_of_ingest_opens_and_can_be_used_by_everybody(
    browser: Browser, mill: Mill
) -> None:
    look_at(browser, mill.scene.url, ingest_views(mill))


def test_an_object_is_found_by_a_file_name_and_opened(tab: Tab, mill: Mill) -> None:
    ark = mill.jobs(mill.failed)["rye.csv"]["primaryId"]
    tab.open("/")

    tab.page.keyboard.press("/")
    tab.page.keyboard.type("rye.csv")
    tab.page.get_by_role("option", name=re.compile("rye.csv.*file")).click()

    expect(tab.page.locator("main")).to_contain_text(f"Versions of {ark}")
    files = tab.page.get_by_role("table", name="files of the object")
    expect(files).to_contain_text("producer/rye.csv")


def last_audited(mill: Mill, action: str) -> Any:
    """The newest entry of the audit log about an action."""
    entries = mill.call("GET", "audit")["entries"]
    return next(entry for entry in entries if entry["action"] == action)


def test_the_queue_is_held_and_released(tab: Tab, mill: Mill) -> None:
    tab.open("/ingest")
    dialog = ask(tab.page, "Pause the queue")
    expect(dialog).to_contain_text("No batch and no job of any collection is taken up")
    agree(dialog, "Pause the queue", "the disk is full")
    expect(tab.page.locator("main")).to_contain_text("The whole queue is paused")
    assert mill.call("GET", "ingest", "queue")["held"]["why"] == "the disk is full"
    agree(ask(tab.page, "Let the queue go on"), "Let it go on", "there is room again")
    hear(tab.page, "The queue goes on")
    assert mill.call("GET", "ingest", "queue")["held"] is None
    assert last_audited(mill, "release queue")["detail"] == "there is room again"


def test_a_batch_is_held_and_released(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[0]
    tab.open(address("ingest", "batches", batch))
    agree(ask(tab.page, "Hold"), "Hold the batch", "ann asked for it")
    expect(tab.page.locator("main")).to_contain_text("ann asked for it")
    assert mill.call("GET", "ingest", "batches", batch)["status"] == "held"
    agree(ask(tab.page, "Release"), "Release the batch", "ann is content")
    hear(tab.page, "goes on")
    assert mill.call("GET", "ingest", "batches", batch)["status"] == "pending"


def test_a_held_batch_is_deleted_only_when_its_name_is_typed(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[1]
    mill.call("POST", "ingest", "batches", batch, "hold", json={"why": "a mistake"})
    tab.open(address("ingest", "batches", batch))
    dialog = ask(tab.page, "Delete")
    expect(dialog).to_contain_text("This cannot be undone")
    agree(dialog, "Delete the batch", "it was sent twice", typed=batch)
    expect(tab.page).to_have_url(re.compile("/ingest$"))
    hear(tab.page, "is deleted")
    left = [each["id"] for each in mill.call("GET", "ingest", "batches")["batches"]]
    assert batch not in left
    assert mill.failed in left


def test_what_happens_to_a_batch_is_seen_at_once(tab: Tab, mill: Mill) -> None:
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


def test_all_that_is_held_of_a_collection_is_released(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[3]
    mill.call("POST", "ingest", "batches", batch, "hold", json={"why": "for now"})
    tab.open(address("ingest", "collections", SACKS))
    agree(ask(tab.page, "Release all held"), "Release all", "the day begins")
    hear(tab.page, "on.")
    assert mill.call("GET", "ingest", "batches", batch)["status"] == "pending"


def test_a_collection_is_held_and_let_go(tab: Tab, mill: Mill) -> None:
    tab.open(address("ingest", "collections", SACKS))
    agree(ask(tab.page, "Hold"), "Hold the collection", "the scales are off")
    expect(tab.page.locator("main")).to_contain_text("the scales are off")
    at = ("ingest", "collections", SACKS)
    assert mill.call("GET", *at)["held"]["why"] == "the scales are off"
    tab.open("/ingest")
    expect(tab.page.locator("main")).to_contain_text(f"Collection {SACKS} is held")
    tab.open(address("ingest", tab="collections"))
    row = tab.page.locator("main [role=row]", has_text=SACKS)
    agree(ask(tab.page, "Let it go on", row), "Let it go on", "they are even")
    hear(tab.page, "goes on")
    assert mill.call("GET", *at)["held"] is None


def test_a_collection_is_made_changed_and_deleted(tab: Tab, mill: Mill) -> None:
    tab.open(address("ingest", tab="collections"))
    dialog = ask(tab.page, "New collection")
    dialog.get_by_label("Name", exact=True).fill("barrels")
    dialog.get_by_label("Namespace").fill(MILL)
    dialog.get_by_label("Dataset that its lots belong to").fill("oil")
    dialog.get_by_label("One lot is").select_option("PT1H")
    dialog.get_by_role("button", name="Make the collection").click()
    expect(tab.page.locator("main h1")).to_have_text("barrels")
    at = ("ingest", "collections", "barrels")
    made = mill.call("GET", *at)
    assert (made["namespace"], made["dataset"], made["lots"]) == (MILL, "oil", "PT1H")
    tab.open(address(*at, tab="profile"))
    tab.page.get_by_label("Description").fill("What the press gives")
    tab.page.get_by_label("Priority of its jobs, low first").fill("7")
    tab.page.get_by_role("button", name="Change the profile").click()
    hear(tab.page, "is changed")
    changed = mill.call("GET", *at)
    assert (changed["description"], changed["priority"]) == ("What the press gives", 7)
    assert changed["lots"] == "PT1H"
    agree(ask(tab.page, "Delete"), "Delete the collection", typed="barrels")
    hear(tab.page, "is deleted")
    names = [each["name"] for each in mill.call("GET", "ingest", "collections")["collections"]]
    assert "barrels" not in names
    assert SACKS in names


def hear_of_a_priority_that_was_refused_after_the_dialog(tab: Tab) -> None:
    late: list[Route] = []

    def hold_up(route: Route) -> None:
        late.append(route)

    tab.page.route("**/priority", hold_up)
    dialog = ask(tab.page, "Priority")
    dialog.get_by_label("Reason").fill("it is late")
    with tab.page.expect_request("**/priority"):
        dialog.get_by_role("button", name="Set the priority").click()
    tab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    late[0].fulfill(status=409, json={"message": "it is too late for that"})
    expect(tab.page.locator(".toast.tone-bad")).to_contain_text("too late for that")
    tab.page.unroute("**/priority")
    tab.forgive("409")


def test_jobs_that_have_not_begun_are_held_and_released(tab: Tab, mill: Mill) -> None:
    mill.work("ingest", "--stages", "batch-pending")
    batch = mill.pending[4]
    job = mill.jobs(batch)["rye.csv"]["id"]
    at = ("ingest", "jobs", job)
    tab.open(address(*at))
    agree(ask(tab.page, "Hold"), "Hold the job", "the sack is open")
    expect(tab.page.locator("main")).to_contain_text("the sack is open")
    assert mill.call("GET", *at)["status"] == "held"
    agree(ask(tab.page, "Release"), "Release the job", "it is sewn up")
    hear(tab.page, "goes on")
    assert mill.call("GET", *at)["status"] == "pending"
    tab.open(address("ingest", "batches", batch))
    hear_of_a_priority_that_was_refused_after_the_dialog(tab)
    tab.page.get_by_role("button", name="Priority").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).not_to_contain_text("This was not done")
    dialog.get_by_label("Priority").fill("2")
    dialog.get_by_label("Reason").fill("it is for today")
    dialog.get_by_role("button", name="Set the priority").click()
    hear(tab.page, "2 jobs have priority 2")
    assert {each["priority"] for each in mill.jobs(batch).values()} == {2}
    agree(ask(tab.page, "Hold"), "Hold the batch", "the mill stands still")
    hear(tab.page, "2 jobs are held")
    assert {each["status"] for each in mill.jobs(batch).values()} == {"held"}
    tab.open("/ingest")
    agree(ask(tab.page, "Release all held"), "Release all", "it turns again")
    hear(tab.page, "on.")
    assert {each["status"] for each in mill.jobs(batch).values()} == {"pending"}


def test_jobs_are_resumed_stopped_and_reported_anew(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[4]
    mill.work("ingest")
    jobs = mill.jobs(batch)
    good, failed = jobs["rye.csv"], jobs["spelt.csv"]
    assert (good["status"], failed["status"]) == ("completed", "failed")
    assert failed["resumesAt"] == "downloading"
    tab.open(address("ingest", "jobs", failed["id"]))
    expect(tab.page.locator("main")).to_contain_text("it goes on with downloading")
    (mill.scene.folder / "sacks" / "later4" / "spelt.csv").write_text("sack,kilograms\n2,20\n")
    agree(ask(tab.page, "Resume"), "Resume", "the file is there")
    hear(tab.page, "goes on with downloading")
    again = mill.call("GET", "ingest", "jobs", failed["id"])
    assert (again["status"], again["retryCount"]) == ("downloading", 1)
    tab.page.get_by_role("button", name="Priority").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("Priority").fill("3")
    dialog.get_by_label("Reason").fill("it is waited for")
    dialog.get_by_role("button", name="Set the priority").click()
    hear(tab.page, "priority 3")
    assert mill.call("GET", "ingest", "jobs", failed["id"])["priority"] == 3
    dialog = ask(tab.page, "Stop")
    expect(dialog).to_contain_text("failed at once")
    agree(dialog, "Stop the job", "it is the wrong file")
    expect(tab.page.locator("main")).to_contain_text("it is the wrong file")
    assert mill.call("GET", "ingest", "jobs", failed["id"])["status"] == "failed"
    tab.open(address("ingest", "batches", batch))
    agree(ask(tab.page, "Resume failed"), "Resume", "it was right after all")
    hear(tab.page, "1 job goes on")
    mill.work("ingest")
    assert mill.jobs(batch)["spelt.csv"]["status"] == "completed"
    agree(ask(tab.page, "Update the report"), "Report anew", "all is there")
    hear(tab.page, "reported anew")
    mill.work("ingest")
    expect(tab.page.locator("main .page-head .status")).to_have_text("completed")
    tab.open(address("ingest", "batches", batch, tab="report"))
    expect(tab.page.locator(".letter")).to_contain_text("2 completed, 0 failed")


def test_a_failed_job_is_deleted(tab: Tab, mill: Mill) -> None:
    batch = mill.pending[5]
    mill.work("ingest")
    failed = mill.jobs(batch)["spelt.csv"]["id"]
    tab.open(address("ingest", "jobs", failed))
    dialog = ask(tab.page, "Delete")
    expect(dialog).to_contain_text("its depositor is not told about it")
    agree(dialog, "Delete the job", "there is no spelt", typed=failed)
    expect(tab.page).to_have_url(re.compile(f"/ingest/batches/{batch}"))
    hear(tab.page, "is deleted")
    assert set(mill.jobs(batch)) == {"rye.csv"}


def test_a_batch_of_which_nothing_is_known_says_so(tab: Tab) -> None:
    tab.open("/ingest/batches/bid9999999999")
    expect(tab.page.locator("main .trouble")).to_contain_text("There is no such thing")
    tab.forgive("404")


def test_stages_lead_to_their_jobs_with_the_keyboard_alone(tab: Tab, mill: Mill) -> None:
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
