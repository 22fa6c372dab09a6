"""Long lists: paging, scroll positions, and jumps to the next gap."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.addresses import address
from tests.browser.browsing import PHONE, Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.scene import Scene, empty_scene

pytestmark = pytest.mark.xdist_group("browser")

BARN, BALES, HOURS = "barn", "bales", "hours"
WET = "20260120PT1H07"
LOTS = 6_000
PAGE = 100
# A drag of the scroll bar: each stop is painted, but the drag rests at none.
STOPS = 40
DRAG = """
async (view, stops) => {
  const drawn = () => new Promise(go => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = go;
    port2.postMessage(0);
  });
  for (let stop = 1; stop <= stops; stop += 1) {
    view.scrollTop = ((view.scrollHeight - view.clientHeight) * stop) / stops;
    view.dispatchEvent(new Event("scroll"));
    for (let message = 0; message < 6; message += 1) await drawn();
  }
}
"""


@pytest.fixture(scope="module")
def barn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server with a dataset of many lots."""
    with empty_scene(tmp_path_factory.mktemp("barn")) as scene:
        at = ("namespaces", BARN, "datasets", BALES)
        source = {"type": "FILES", "connectionUrl": "file:///barn"}
        scene.call("PUT", "namespaces", BARN, json={"ownerName": "ann"})
        scene.call("PUT", "sources", BARN, json=source)
        table = {"type": "DB_TABLE", "physicalName": BALES, "sourceName": BARN}
        scene.call("PUT", *at, json=table)
        lots = [f"bale{number:05}" for number in range(LOTS)]
        scene.call("POST", *at, "lots", json={"lots": lots})
        hours = ("namespaces", BARN, "datasets", HOURS)
        scene.call("PUT", *hours, json={**table, "physicalName": HOURS})
        days = [date(2026, 1, 1) + timedelta(days=day) for day in range(100)]
        lots = [f"{day:%Y%m%d}PT1H{hour:02}" for day in days for hour in range(24)]
        scene.call("POST", *hours, "lots", json={"lots": lots})
        scene.call("POST", *hours, "lots", WET, "hold", json={"why": "it is wet"})
        yield scene


def rows_of(page: Page) -> Locator:
    """Return the scrolling list of lots."""
    return page.get_by_role("rowgroup", name="lots: rows")


def offsets(asked: list[str]) -> list[int]:
    """Return the offsets of the requested pages."""
    return [int(match[1]) for url in asked if (match := re.search(r"/lots\?.*offset=(\d+)", url))]


def test_pages_passed_by_a_drag_are_not_read(browser: Browser, barn: Scene) -> None:
    asked: list[str] = []
    with open_tab(browser, barn.url, alone=True) as opened:
        page = opened.page
        page.clock.install()
        opened.open(address("datasets", BARN, BALES))
        opened.settle()
        expect(rows_of(page)).to_contain_text("bale00000")
        page.clock.run_for(1_000)
        page.on("request", lambda request: asked.append(request.url))
        page.clock.pause_at(page.evaluate("() => Date.now() + 1000"))
        rows_of(page).evaluate(DRAG, STOPS)
        page.clock.run_for(1_000)
        expect(rows_of(page)).to_contain_text(f"bale{LOTS - 1:05}")
    assert LOTS - PAGE in offsets(asked)
    assert len(set(offsets(asked))) <= 4


def scroll_to_the_middle(opened: Tab) -> str:
    """Scroll a list to its middle, and return a lot in view."""
    rows = rows_of(opened.page)
    expect(rows).to_contain_text("bale00000")
    rows.evaluate("view => { view.scrollTop = view.scrollHeight / 2 }")
    lot = f"bale{LOTS // 2 + 3:05}"
    expect(rows.get_by_role("link", name=lot)).to_be_in_viewport()
    return lot


def test_list_restores_its_scroll_position(browser: Browser, barn: Scene) -> None:
    with open_tab(browser, barn.url) as opened:
        page = opened.page
        opened.open(address("datasets", BARN, BALES))
        lot = scroll_to_the_middle(opened)
        seen = page.get_by_role("link", name=lot)
        seen.click()
        expect(page.locator("main h1")).to_contain_text(lot)
        page.go_back()
        expect(seen).to_be_in_viewport()
        page.reload()
        expect(seen).to_be_in_viewport()
        page.get_by_role("link", name="Overview").last.click()
        expect(page.locator("main h1")).to_have_text("Overview")
        opened.open(address("datasets", BARN, BALES))
        expect(rows_of(page)).to_contain_text("bale00000")


def test_view_restores_its_scroll_position(browser: Browser, barn: Scene) -> None:
    with open_tab(browser, barn.url, (PHONE[0], 400)) as opened:
        page = opened.page
        opened.open(address("datasets", BARN, BALES))
        expect(rows_of(page)).to_contain_text("bale00000")
        page.locator("main").evaluate("main => { main.scrollTop = 120 }")
        top = "() => document.querySelector('main').scrollTop"
        page.get_by_role("link", name="Overview").last.click()
        expect(page.locator("main h1")).to_have_text("Overview")
        assert page.evaluate(top) == 0
        page.go_back()
        page.wait_for_function(f"({top})() === 120")


def test_legend_scrolls_to_the_only_held_lot(browser: Browser, barn: Scene) -> None:
    asked: list[str] = []
    with open_tab(browser, barn.url) as opened:
        page = opened.page
        grid, view = page.locator(".heat canvas"), page.locator(".heat-view")
        seen = "view => [view.scrollTop, view.scrollHeight - view.clientHeight]"
        opened.open(address("datasets", BARN, HOURS))
        page.get_by_role("button", name="held", exact=True).click()
        expect(grid).to_have_attribute("aria-label", re.compile(f"Chosen: {WET}, held"))
        expect(page.locator("main")).to_contain_text("it is wet")
        top, end = view.evaluate(seen)
        assert 0 < top < end / 2
        page.reload()
        expect(grid).to_have_attribute("aria-label", re.compile(f"Chosen: {WET}, held"))
        assert view.evaluate(seen) == [top, end]
        opened.settle()
        page.on("request", lambda request: asked.append(request.url))
        grid.focus()
        for _ in range(48):
            page.keyboard.down("ArrowRight")
        page.keyboard.up("ArrowRight")
        expect(page).to_have_url(re.compile("lot=20260122PT1H07"))
        opened.settle()
    passed = {match[1] for url in asked if (match := re.search("from=([^&]*)", url))}
    assert len(passed) < 10
