"""The page in use: live updates, actions, keyboard, print and theme."""

import re

import pytest
from playwright.sync_api import expect

from penstock import ids
from tests.browser.acting import confirm, expect_toast, open_dialog
from tests.browser.addresses import REVENUE, WAREHOUSE, address
from tests.browser.browsing import Tab
from tests.browser.scene import CLEAN, CLEANING, FAILED_HOURS_AGO, HELD_HOURS_AGO, SHOP, Scene
from tests.doors.serving import run_event

pytestmark = pytest.mark.xdist_group("browser")

INK = "rgb(23, 33, 43)"


def test_list_updates_without_a_reload(tab: Tab, scene: Scene) -> None:
    tab.open("/jobs")
    tab.settle()
    tab.page.evaluate("() => { window.sameDocument = true }")
    job = {"namespace": SHOP, "name": f"just_now_{ids.new_id()[-6:]}"}
    event = run_event(ids.new_id(), job=job, inputs=[], outputs=[])
    scene.call("POST", "lineage", json=event)
    row = tab.page.locator("main [role=row]", has_text=job["name"])
    expect(row.locator(".status")).to_have_text("running")
    scene.call("POST", "lineage", json={**event, "eventType": "COMPLETE"})
    expect(row.locator(".status")).to_have_text("completed")
    assert tab.page.evaluate("() => window.sameDocument") is True


def test_held_work_is_released_with_a_reason(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(HELD_HOURS_AGO)
    tab.open(address("jobs", SHOP, CLEANING, "lots", lot))
    expect(tab.page.locator("main")).to_contain_text("the source sends it again")
    # The head of the page and the explanation both have the button.
    tab.page.get_by_role("button", name="Release hold", exact=True).first.click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("works on the lot")
    dialog.get_by_label("Reason").fill("it came")
    dialog.get_by_role("button", name="Release hold").click()
    expect(tab.page.locator(".toast")).to_contain_text("is released")
    at = ("namespaces", SHOP, "jobs", CLEANING)
    assert scene.call("GET", *at, "lots", lot)["state"] != "HELD"
    last = scene.call("GET", *at, "log", params={"lot": lot})["entries"][0]
    assert last["why"] == "it came"


def test_failed_lot_is_retried(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(FAILED_HOURS_AGO)
    tab.open("/")
    problem = tab.page.locator(".problems li", has_text=lot)
    expect(problem).to_contain_text("row 17: no such user")
    problem.get_by_role("button", name="Retry").click()
    tab.page.get_by_label("Reason").fill("the user is there now")
    tab.page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(tab.page.locator(".toast")).to_contain_text("will retry")
    work = scene.call("GET", "namespaces", SHOP, "jobs", CLEANING, "lots", lot)
    assert work["state"] == "READY"


def test_dataset_is_held_and_released(tab: Tab, scene: Scene) -> None:
    tab.open(address("datasets", SHOP, CLEAN))
    tab.page.get_by_role("button", name="Hold", exact=True).click()
    agree = tab.page.get_by_role("button", name="Hold dataset")
    expect(agree).to_be_disabled()
    tab.page.get_by_label("Reason").fill("looking at it")
    agree.click()
    expect(tab.page.locator("main")).to_contain_text("looking at it")
    at = ("namespaces", SHOP, "datasets", CLEAN, "standing")
    assert scene.call("GET", *at)["held"]["why"] == "looking at it"
    tab.page.get_by_role("button", name="Release hold").click()
    tab.page.get_by_label("Reason").fill("looked at it")
    tab.page.get_by_role("dialog").get_by_role("button", name="Release hold").click()
    expect(tab.page.get_by_role("button", name="Hold", exact=True)).to_be_visible()
    assert scene.call("GET", *at)["held"] is None


def test_backfill_is_previewed_before_its_start(tab: Tab, scene: Scene) -> None:
    before = len(scene.call("GET", "backfills")["backfills"])
    tab.open(address("jobs", SHOP, CLEANING, tab="backfill"))
    tab.page.get_by_label("From").fill(scene.hour(FAILED_HOURS_AGO))
    tab.page.get_by_label("include good lots").check()
    tab.page.get_by_role("button", name="Preview").click()
    expect(tab.page.get_by_role("table", name="plan of the backfill")).to_be_visible()
    assert len(scene.call("GET", "backfills")["backfills"]) == before
    tab.page.get_by_role("button", name="Start backfill").dblclick()
    confirm(tab.page.get_by_role("dialog"), "Start backfill", "a new rule")
    expect_toast(tab.page, "has started")
    backfill, *others = scene.call("GET", "backfills")["backfills"]
    assert (backfill["why"], len(others)) == ("a new rule", before)
    expect(tab.page).to_have_url(re.compile(backfill["id"]))
    confirm(open_dialog(tab.page, "Cancel"), "Cancel backfill", "enough seen")
    expect_toast(tab.page, "is cancelled")
    assert scene.call("GET", "backfills", backfill["id"])["state"] == "cancelled"


def test_grid_is_navigated_by_keyboard(tab: Tab, scene: Scene) -> None:
    tab.open(address("datasets", SHOP, CLEAN))
    grid = tab.page.locator(".heat canvas")
    grid.focus()
    tab.page.keyboard.press("End")
    expect(grid).to_have_attribute("aria-label", re.compile("Chosen: "))
    last = tab.page.url.rpartition("lot=")[2]
    assert last > scene.hour(1)  # the newest hour is another whenever the hour turns
    tab.open(address("datasets", SHOP, CLEAN, lot=scene.hour(0)))
    grid.focus()
    for hours_ago in range(1, FAILED_HOURS_AGO + 1):  # ready, being made, held, and failed lots
        tab.page.keyboard.press("ArrowLeft")
        lot = scene.hour(hours_ago)
        expect(tab.page).to_have_url(re.compile(f"lot={lot}"))
        expect(grid).to_have_attribute("aria-label", re.compile(f"Chosen: {lot}"))
        tab.settle()
        assert tab.complaints == [], lot


def test_held_lot_shows_its_run_if_it_was_started(tab: Tab, scene: Scene) -> None:
    spent, untried, made = (scene.hour(ago) for ago in (12, 13, 14))
    job = ("namespaces", SHOP, "jobs", "audit_clicks")
    sides = {"inputs": CLEAN, "outputs": "clicks_audit"}
    wiring = {side: [{"namespace": SHOP, "name": name}] for side, name in sides.items()}
    scene.call("PUT", *job, "wiring", json={**wiring, "triesMax": 1})
    runs = {}
    for lot, end in ((spent, "fail"), (made, "complete")):
        claim = {"owner": "ann", "lots": [lot]}
        [claimed] = scene.call("POST", *job, "claims", json=claim)["claims"]
        scene.call("POST", "claims", claimed["id"], end, json={"token": claimed["token"]})
        runs[lot] = claimed["id"]
    lots = ("namespaces", SHOP, "datasets", "clicks_audit", "lots")
    scene.call("POST", *lots, made, "hold", json={"why": "it is counted"})
    for lot in (untried, made):
        scene.call("POST", *job, "lots", lot, "hold", json={"why": "it is closed"})
    for lot, text in (
        (spent, "out of tries"),
        (untried, "it is closed"),
        (made, "it is counted"),
    ):
        tab.open(address("datasets", SHOP, "clicks_audit", lot=lot))
        expect(tab.page.locator("main")).to_contain_text(text)
        tab.settle()
        facts = tab.page.locator("main .facts", has_text="Locked for")
        expect(facts).to_have_count(1 if lot in runs else 0)
        if lot in runs:
            expect(facts.locator(f'a[href$="/runs/{runs[lot]}"]')).to_be_visible()
            expect(facts).to_contain_text("audit_clicks")
    tab.open(address("jobs", SHOP, "audit_clicks"))
    expect(tab.page.locator(".timeline a").first).to_have_attribute("tabindex", "-1")
    tab.page.get_by_role("link", name=re.compile("lots on hold$")).click()
    held = tab.page.get_by_role("table", name="work")
    for lot in (spent, untried, made):
        expect(held).to_contain_text(lot)
    expect(held).to_have_attribute("aria-rowcount", "4")


def test_dialog_returns_the_focus_and_keeps_its_text(tab: Tab) -> None:
    page = tab.page
    tab.open(address("datasets", SHOP, CLEAN))
    hold = page.get_by_role("button", name="Hold", exact=True)
    for opening in (hold, page.get_by_role("button", name="search or go to")):
        opening.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(opening).to_be_focused()
    hold.dblclick()
    reason = page.get_by_label("Reason")
    reason.fill("looked at")
    field, dialog = reason.bounding_box(), page.get_by_role("dialog").bounding_box()
    assert field is not None
    assert dialog is not None
    page.mouse.move(field["x"] + 40, field["y"] + 10)
    page.mouse.down()
    page.mouse.move(dialog["x"] - 40, field["y"] + 10)
    page.mouse.up()
    expect(reason).to_have_value("looked at")
    page.mouse.click(dialog["x"] - 40, field["y"] + 10)
    expect(reason).to_have_count(0)


def test_id_is_copied_in_full(tab: Tab, scene: Scene) -> None:
    lot = scene.hour(6)
    tab.open(address("datasets", SHOP, CLEAN, "lots", lot))
    tab.page.get_by_role("button", name=f"copy {lot}").click()
    expect_toast(tab.page, "Copied")
    tab.page.keyboard.press("/")
    tab.page.keyboard.press("Control+v")
    expect(tab.page.get_by_role("combobox", name="search, or go to")).to_have_value(lot)


def test_view_is_printed_in_full_on_white(tab: Tab) -> None:
    tab.open("/")
    tab.settle()
    tab.wear("dark")
    tab.page.emulate_media(media="print")
    cut = "main => main.scrollHeight - main.clientHeight"
    assert tab.page.locator("main").evaluate(cut) == 0
    colour = "heading => getComputedStyle(heading).color"
    assert tab.page.locator("main h1").evaluate(colour) == INK
    expect(tab.page.locator(".nav")).to_be_hidden()
    tab.page.emulate_media(media="null")


def test_page_is_navigated_by_keyboard(tab: Tab) -> None:
    keyboard = tab.page.keyboard
    tab.open("/")
    keyboard.press("Tab")
    expect(tab.page.locator(":focus")).to_have_text("Skip to the content")
    keyboard.press("Control+k")
    keyboard.type("daily_revenue")
    choice = tab.page.get_by_role("option", name=re.compile(REVENUE)).first
    expect(choice).to_be_visible()
    for _ in range(20):
        if choice.get_attribute("aria-selected") == "true":
            break
        keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(tab.page.locator("main h1")).to_have_text(REVENUE)
    keyboard.press("/")
    keyboard.type("jobs")
    keyboard.press("Enter")
    expect(tab.page.locator("main h1")).to_have_text("Jobs and arcs")
    rows = tab.page.get_by_role("rowgroup", name="jobs: rows")
    expect(rows).to_contain_text(CLEANING)
    rows.focus()
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile("/jobs/shop/"))
    tab.page.go_back()
    expect(tab.page.locator("main h1")).to_have_text("Jobs and arcs")


def test_graph_is_explored_focused_and_collapsed(tab: Tab) -> None:
    node = f"dataset:{WAREHOUSE}:{REVENUE}"
    tab.open(address("lineage", node=node))
    tab.settle()
    job = tab.page.locator(".react-flow__node", has_text="build_daily_revenue")
    job.click()
    expect(tab.page.get_by_role("complementary", name="details")).to_contain_text("Latest run")
    shown = tab.page.locator(".lineage-bar .num")
    before = shown.inner_text()
    tab.page.get_by_role("button", name="Collapse").click()
    expect(shown).not_to_have_text(before)
    tab.page.get_by_role("button", name="Expand all").click()
    expect(shown).to_have_text(before)
    tab.page.get_by_role("button", name="Focus", exact=True).click()
    expect(tab.page).to_have_url(re.compile("node=job"))
    tab.page.get_by_label("Find in this graph").fill("finance")
    expect(tab.page.locator(".graph-node.found").first).to_be_visible()


def test_theme_choice_is_kept(tab: Tab) -> None:
    tab.open("/")
    background = "() => getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(background)
    tab.page.get_by_role("button", name="dark theme").click()
    assert tab.page.evaluate(background) != light
    dark = tab.page.evaluate(background)
    tab.page.reload()
    assert tab.page.evaluate(background) == dark
