"""Times: the age in the text, the full time in a tooltip."""

import re

import pytest
from playwright.sync_api import Browser, Locator, expect

from penstock import ids
from tests.browser.addresses import address
from tests.browser.browsing import PHONE, WIDE, Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.scene import CLEAN, SHOP, Scene
from tests.doors.serving import run_event

pytestmark = pytest.mark.xdist_group("browser")

ZONE = "Asia/Tokyo"
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
LAYOUT = "() => [...document.querySelectorAll('main *')].map(each => each.offsetTop).join()"


def tooltip_times(tooltip: Locator) -> tuple[str, str]:
    """Return the two times of a tooltip: in UTC and local."""
    utc, here = tooltip.locator("span").all_inner_texts()
    assert re.fullmatch(f"{MOMENT} UTC", utc)
    assert re.fullmatch(f"{MOMENT} {ZONE}", here)
    return utc, here


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_tooltip_shows_the_full_time(browser: Browser, scene: Scene, size: tuple[int, int]) -> None:
    with open_tab(browser, scene.url, size, alone=True) as opened:
        page = opened.page
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setTimezoneOverride", {"timezoneId": ZONE})
        opened.open(address("datasets", SHOP, CLEAN, tab="versions"))
        opened.settle()
        tooltip = page.get_by_role("tooltip")
        before = page.evaluate(LAYOUT)
        for time in (page.locator("main .page-head time"), page.locator(".table-room time").first):
            time.hover()
            expect(tooltip).to_be_in_viewport(ratio=1)
            by_pointer = tooltip_times(tooltip)
            page.mouse.move(0, 0)
            expect(tooltip).to_have_count(0)
            page.keyboard.press("Tab")
            time.focus()
            assert tooltip_times(tooltip) == by_pointer
            expect(time).to_have_attribute("aria-describedby", tooltip.get_attribute("id") or "")
            assert page.evaluate(LAYOUT) == before
            page.keyboard.press("Escape")
            expect(tooltip).to_have_count(0)


def test_unparsable_time_is_shown_unchanged(tab: Tab, scene: Scene) -> None:
    run, at = ids.new_id(), "20261115T100000Z"
    job = {"namespace": SHOP, "name": "odd_times"}
    event = run_event(run, job=job, inputs=[], outputs=[], eventTime=at, eventType="COMPLETE")
    scene.call("POST", "lineage", json=event)
    tab.open(address("runs", run, tab="events"))
    expect(tab.page.locator("main .panel")).to_contain_text(at)
    expect(tab.page.locator("main h1")).to_have_text(run)
