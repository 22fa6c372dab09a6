"""The address is the state of the page, and invalid values in it break nothing."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.addresses import REVENUE, WAREHOUSE, address
from tests.browser.browsing import Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.scene import CLEAN, CLEANING, RAW, SHOP, Scene

pytestmark = pytest.mark.xdist_group("browser")

NODE = f"dataset:{WAREHOUSE}:{REVENUE}"
LONG_MS = 3_600_000


def test_graph_has_the_time_of_the_address(browser: Browser, scene: Scene) -> None:
    as_of = f"{scene.started - timedelta(days=3):%Y-%m-%dT%H:%M:17Z}"
    shown = as_of.replace("T", " ").replace("Z", " UTC")
    with open_tab(browser, scene.url, alone=True) as opened:
        page, bar = opened.page, opened.page.locator(".time-slider")
        page.clock.install()
        opened.open(address("lineage", node=NODE, asOf=as_of))
        expect(bar).to_contain_text(shown)
        at = page.url
        for _ in range(3):
            page.clock.fast_forward(LONG_MS)
        expect(bar).to_contain_text(shown)
        assert page.url == at
        page.get_by_label("As of").focus()
        page.keyboard.press("ArrowLeft")
        page.clock.fast_forward(LONG_MS)
        expect(page).not_to_have_url(at)
        moved = re.search(r"asOf=([^&]*)", page.url)
        assert moved is not None
        time = moved[1].replace("%3A", ":").replace("T", " ").replace(".000Z", " UTC")
        expect(bar).to_contain_text(time)


def test_invalid_time_in_the_address_is_reported(browser: Browser, scene: Scene) -> None:
    with open_tab(browser, scene.url) as opened:
        asked = address("lineage", node=NODE, asOf="garbage", days="x", hops="-3", direction="up")
        opened.page.goto(opened.url + asked)
        expect(opened.page.locator(".time-slider")).to_contain_text("“garbage” is not a time")
        expect(opened.page.locator(".trouble")).to_be_visible()
        opened.page.get_by_role("button", name="Back to now").click()
        opened.settle()
        expect(opened.page.locator(".react-flow__node").first).to_be_visible()
        opened.complaints.clear()  # of the browser, about what the server refused


def test_job_search_covers_the_chosen_namespace(tab: Tab) -> None:
    tab.open(address("jobs", q="clicks", namespace=SHOP))
    results = tab.page.get_by_role("table", name="jobs found")
    expect(results).to_contain_text(CLEANING)
    tab.page.get_by_label("Namespace").select_option(WAREHOUSE)
    expect(tab.page.locator("main")).to_contain_text("No job matches")
    expect(tab.page.get_by_label("Latest run")).to_be_disabled()


def test_runs_of_an_arc_show_the_cause_of_failure(tab: Tab) -> None:
    tab.open(address("jobs", SHOP, CLEANING))
    expect(tab.page.get_by_role("table", name="runs")).to_contain_text("row 17: no such user")


def test_graph_search_shows_the_number_of_matches(tab: Tab) -> None:
    tab.open(address("lineage", node=f"dataset:{SHOP}:{CLEAN}", q="nothing like this"))
    expect(tab.page.locator(".lineage-bar").first).to_contain_text("none found")
    tab.open(address("lineage", node=f"dataset:{SHOP}:{CLEAN}", q=RAW))
    expect(tab.page.locator(".lineage-bar").first).to_contain_text("1 found")


def test_palette_finds_a_batch_by_its_id(tab: Tab) -> None:
    tab.open("/")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("bid0000000001")
    tab.page.get_by_role("option", name="Batch bid0000000001").click()
    expect(tab.page.locator("main h1")).to_contain_text("bid0000000001")
