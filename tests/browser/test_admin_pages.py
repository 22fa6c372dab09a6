"""The pages of locks, replays, gaps, checks, provenance and the audit log."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.acting import confirm, expect_toast, open_dialog
from tests.browser.addresses import address, admin_views
from tests.browser.browsing import Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.looking import look_at
from tests.browser.mill import (
    BAKING,
    BREAD,
    FLOUR,
    GRAIN,
    GRINDING,
    HOURS,
    MILL,
    MISSING,
    STALE,
    UNSALTED,
    WEIGHED,
    WEIGHING,
    Mill,
)

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def tab(browser: Browser, mill: Mill) -> Iterator[Tab]:
    """A new tab on the mill's server; an error in it fails its test."""
    with open_tab(browser, mill.scene.url) as opened:
        yield opened


def test_every_view_is_accessible(browser: Browser, mill: Mill) -> None:
    look_at(browser, mill.scene.url, admin_views(mill))


def test_claim_is_listed_and_ended(tab: Tab, mill: Mill) -> None:
    tab.open(address("locks", namespace=MILL))
    row = tab.page.locator("main [role=row]", has_text="scales@mill")
    expect(row).to_contain_text(WEIGHED)
    expect(row).to_contain_text(FLOUR)
    expect(row).to_contain_text("min")
    dialog = open_dialog(tab.page, "End claim", row)
    expect(dialog).to_contain_text("can publish nothing for this lot")
    confirm(dialog, "End claim", "the scales broke")
    expect(row).to_have_count(0)
    at = ("namespaces", MILL, "jobs", WEIGHING)
    assert mill.call("GET", *at, "lots", WEIGHED)["state"] != "RUNNING"
    last = mill.call("GET", *at, "log", params={"lot": WEIGHED})["entries"][0]
    assert last["why"] == "the scales broke"


def test_explanation_is_a_chain_to_the_root_cause(tab: Tab, mill: Mill) -> None:
    tab.open("/locks?tab=why")
    tab.page.get_by_label("Namespace").select_option(MILL)
    tab.page.get_by_label("Job", exact=True).fill(BAKING)
    tab.page.get_by_label("Lot", exact=True).fill(MISSING)
    tab.page.get_by_role("button", name="Explain").click()
    expect(tab.page).to_have_url(re.compile(f"job={BAKING}&lot={MISSING}"))
    chain = tab.page.locator(".why-chain").first
    expect(chain).to_contain_text(BAKING)
    expect(chain).to_contain_text(GRINDING)
    expect(chain).to_contain_text(GRAIN)


def test_hold_on_a_lot_is_released_from_the_list(tab: Tab, mill: Mill) -> None:
    at = ("namespaces", MILL, "datasets", FLOUR, "lots", HOURS[4])
    mill.call("POST", *at, "hold", json={"why": "there are moths in it"})
    tab.open("/locks?tab=held")
    rows = tab.page.get_by_role("table", name="held lots").locator("[role=row]")
    of_flour = tab.page.get_by_role("link", name=FLOUR, exact=True)
    row = rows.filter(has_text="there are moths in it").filter(has=of_flour)
    expect(rows.filter(has_text="its inputs").first).to_contain_text(BREAD)
    confirm(open_dialog(tab.page, "Release hold", row), "Release hold", "they are gone")
    expect_toast(tab.page, "is released")
    assert mill.call("GET", *at)["status"] == "READY"


def test_lot_with_failed_checks_is_accepted(tab: Tab, mill: Mill) -> None:
    at = ("namespaces", MILL, "datasets", BREAD, "lots", UNSALTED)
    assert mill.call("GET", *at)["status"] == "HOLD"
    tab.open("/quality")
    row = tab.page.locator("main [role=row]", has_text=UNSALTED)
    row.get_by_role("link", name=re.compile("has_salt")).click()
    expect(tab.page.get_by_role("table", name="checks", exact=True)).to_contain_text("failed")
    dialog = open_dialog(tab.page, "Accept", row)
    expect(dialog).to_contain_text("although its checks failed")
    confirm(dialog, "Accept lot", "it is meant to be sweet")
    expect(row).to_have_count(0)
    assert mill.call("GET", *at)["status"] == "READY"
    assert mill.call("GET", "held-lots", params={"forChecks": True})["lots"] == []


def test_stale_lot_is_resubmitted(tab: Tab, mill: Mill) -> None:
    tab.open(address("quality", tab="stale", namespace=MILL))
    row = tab.page.locator("main [role=row]", has_text=STALE)
    expect(row).to_contain_text(GRINDING)
    confirm(open_dialog(tab.page, "Resubmit", row), "Resubmit", "the grain is new")
    expect_toast(tab.page, "will make")
    work = mill.call("GET", "namespaces", MILL, "jobs", GRINDING, "lots", STALE)
    assert work["state"] == "READY"
    mill.work("arcs")
    expect(row).to_have_count(0)
    assert mill.call("GET", "stale", params={"namespace": MILL, "job": GRINDING})["lots"] == []


def test_replay_is_previewed_started_paused_and_resumed(tab: Tab, mill: Mill) -> None:
    before = len(mill.call("GET", "replays")["replays"])
    tab.open("/replay/new")
    tab.page.get_by_label("Namespace").select_option(MILL)
    tab.page.get_by_label("Dataset", exact=True).fill(FLOUR)
    tab.page.get_by_label("Lot", exact=True).fill(HOURS[3])
    tab.page.get_by_role("button", name="Preview").click()
    tree = tab.page.get_by_role("group", name="steps of the replay")
    expect(tree).to_contain_text(GRINDING)
    expect(tree.locator("ul ul")).to_contain_text(BAKING)
    assert len(mill.call("GET", "replays")["replays"]) == before
    dialog = open_dialog(tab.page, "Start replay")
    expect(dialog).to_contain_text("run again")
    confirm(dialog, "Start replay", "there was sand in the flour")
    expect(tab.page).to_have_url(re.compile(r"/replay/[0-9a-f-]{36}"))
    replay = tab.page.url.rpartition("/")[2]
    at = ("replays", replay)
    assert mill.call("GET", *at)["why"] == "there was sand in the flour"
    confirm(open_dialog(tab.page, "Pause"), "Pause replay", "the oven is cold")
    expect(tab.page.locator(".page-head .status")).to_have_text("paused")
    assert mill.call("GET", *at)["state"] == "paused"
    confirm(open_dialog(tab.page, "Resume"), "Resume replay", "it is hot")
    expect(tab.page.locator(".page-head .status")).to_have_text("running")
    mill.work("arcs")
    expect(tab.page.locator(".page-head .status")).to_have_text("done")
    steps = tab.page.get_by_role("table", name="steps", exact=True)
    expect(steps.locator(".status").first).to_have_text("done")
    assert mill.call("GET", *at)["done"] == mill.call("GET", *at)["steps"] > 1


def test_replay_is_cancelled_from_the_list(tab: Tab, mill: Mill) -> None:
    replay = "0b6f7b0e-5f2c-4a53-9d7c-3f1c1d8a7e01"
    body = {"namespace": MILL, "dataset": FLOUR, "lot": HOURS[4], "why": "by mistake"}
    mill.call("PUT", "replays", replay, json=body)
    tab.open("/replay")
    row = tab.page.locator("main [role=row]", has_text="by mistake")
    dialog = open_dialog(tab.page, "Cancel", row)
    expect(dialog).to_contain_text("cannot be resumed")
    confirm(dialog, "Cancel replay", "it was good")
    expect(row.locator(".status")).to_have_text("cancelled")
    assert mill.call("GET", "replays", replay)["state"] == "cancelled"


def test_gap_is_explained_and_backfilled(tab: Tab, mill: Mill) -> None:
    tab.open("/gaps")
    tab.page.get_by_label("Namespace").select_option(MILL)
    tab.page.get_by_label("Dataset", exact=True).fill(FLOUR)
    tab.page.get_by_label("From", exact=True).fill(HOURS[0])
    tab.page.get_by_label("To", exact=True).fill(HOURS[4])
    tab.page.get_by_role("button", name="Find gaps").click()
    gaps = tab.page.get_by_role("table", name="gaps")
    row = gaps.locator("[role=row]", has_text=MISSING)
    row.get_by_role("link").click()
    expect(tab.page).to_have_url(re.compile(f"range={MISSING}"))
    expect(tab.page.locator("main")).to_contain_text("no job here makes")
    mill.call("POST", "namespaces", MILL, "datasets", GRAIN, "lots", json={"lots": [MISSING]})
    before = len(mill.call("GET", "backfills")["backfills"])
    tab.page.get_by_role("button", name="Preview").click()
    expect(tab.page.get_by_role("table", name="plan of the backfill")).to_contain_text(MISSING)
    assert len(mill.call("GET", "backfills")["backfills"]) == before
    confirm(open_dialog(tab.page, "Start backfill"), "Start backfill", "the late sack came")
    expect(tab.page).to_have_url(re.compile("/backfills/"))
    backfill = tab.page.url.rpartition("/")[2]
    at = ("backfills", backfill)
    assert mill.call("GET", *at)["why"] == "the late sack came"
    confirm(open_dialog(tab.page, "Pause"), "Pause backfill", "not yet")
    expect(tab.page.locator(".page-head .status")).to_have_text("paused")
    confirm(open_dialog(tab.page, "Resume"), "Resume backfill", "now")
    expect(tab.page.locator(".page-head .status")).to_have_text("running")
    mill.work("arcs")
    expect(tab.page.locator(".page-head .status")).to_have_text("done")
    made = mill.call("GET", "namespaces", MILL, "datasets", FLOUR, "lots", MISSING)
    assert made["status"] == "READY"


def test_backfill_is_cancelled_from_the_list(tab: Tab, mill: Mill) -> None:
    body = {"from": HOURS[0], "to": HOURS[1], "all": True, "why": "for nothing"}
    answer = mill.call("POST", "namespaces", MILL, "arcs", GRINDING, "backfills", json=body)
    tab.open("/replay?tab=backfills")
    row = tab.page.locator("main [role=row]", has_text=HOURS[1])
    confirm(open_dialog(tab.page, "Cancel", row), "Cancel backfill", "it was all good")
    expect(row.locator(".status").first).to_have_text("cancelled")
    assert mill.call("GET", "backfills", answer["backfill"]["id"])["state"] == "cancelled"


def test_provenance_is_a_tree_with_files_and_digests(tab: Tab, mill: Mill) -> None:
    tab.open(address("provenance", namespace=MILL, dataset=BREAD, lot=HOURS[3]))
    tree = tab.page.get_by_role("group", name="provenance of the lot")
    expect(tree.locator("ul ul ul")).to_contain_text(GRAIN)
    files = tab.page.get_by_role("table", name="files", exact=True)
    expect(files).to_contain_text("made.csv")
    expect(files).to_contain_text("sha-256:")
    tree.get_by_role("link", name=re.compile(FLOUR)).click()
    expect(tab.page).to_have_url(re.compile("version="))
    expect(tab.page.locator("main")).to_contain_text(f"{MILL} / {GRINDING}")
    toggle = tree.get_by_role("button").first
    toggle.focus()
    tab.page.keyboard.press("Enter")
    expect(toggle).to_have_attribute("aria-expanded", "false")
    expect(tree).not_to_contain_text(GRAIN)


def test_audit_log_updates_and_is_searched(tab: Tab, mill: Mill) -> None:
    tab.open("/audit")
    at = ("namespaces", MILL, "datasets", GRAIN)
    mill.call("POST", *at, "hold", json={"why": "the miller sleeps"})
    row = tab.page.locator("main [role=row]", has_text="the miller sleeps")
    expect(row).to_be_visible()
    mill.call("POST", *at, "release", json={"why": "he is awake"})
    tab.page.get_by_role("searchbox").fill("miller")
    expect(tab.page).to_have_url(re.compile("q=miller"))
    expect(tab.page.locator("main [role=row]", has_text="he is awake")).to_have_count(0)
    row.get_by_role("link").click()
    expect(tab.page).to_have_url(re.compile(f"/datasets/{MILL}/{GRAIN}"))
