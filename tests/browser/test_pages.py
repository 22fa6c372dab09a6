"""Every view on a filled server: rendering, phones, late code, accessibility."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.acting import open_dialog
from tests.browser.addresses import address, views
from tests.browser.browsing import PHONE, THEMES, Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.looking import look_at
from tests.browser.scene import CLEAN, REPORTING, SHOP, Scene

# React renders in the first of these messages; its effects wait for the next one.
SLOW_AFTER_DRAWING = """
let messages = 0;
const send = MessagePort.prototype.postMessage;
MessagePort.prototype.postMessage = function (...args) {
  setTimeout(() => send.apply(this, args), messages++ ? 500 : 0);
};
"""

# Longer than the longest retry interval of the page.
LONG_MS = 30_000

# One worker runs all of them, with one server and one browser.
pytestmark = pytest.mark.xdist_group("browser")


def test_every_view_is_accessible(browser: Browser, scene: Scene) -> None:
    look_at(browser, scene.url, views(scene))


@pytest.mark.parametrize("name", ["overview", "dataset-lots", "lineage"])
def test_view_fits_a_phone(browser: Browser, scene: Scene, name: str) -> None:
    with open_tab(browser, scene.url, PHONE) as opened:
        opened.open(views(scene)[name])
        opened.settle()
        assert not opened.is_too_wide()


def test_claim_shows_its_worker_on_a_phone(browser: Browser, scene: Scene) -> None:
    with open_tab(browser, scene.url, PHONE) as opened:
        opened.open("/locks")
        claims = opened.page.get_by_role("table", name="claims")
        for words in (REPORTING, "worker-3@blue", "since"):
            expect(claims.locator(".below", has_text=words).first).to_be_visible()


def test_view_renders_whenever_its_code_loads(browser: Browser, scene: Scene) -> None:
    with open_tab(browser, scene.url, alone=True) as opened:
        opened.page.add_init_script(SLOW_AFTER_DRAWING)
        opened.open("/datasets")
        opened.settle()


@pytest.mark.parametrize("lacking", ["js", "css"])
def test_code_of_a_view_that_failed_to_load_is_retried(
    browser: Browser, scene: Scene, lacking: str
) -> None:
    with open_tab(browser, scene.url, alone=True) as opened:
        page = opened.page
        page.clock.install()
        opened.open("/datasets")
        page.route(f"**/assets/*.{lacking}", lambda route: route.abort())
        page.get_by_role("link", name="Overview").last.click()
        expect(page.locator("main")).to_contain_text("this page retries by itself")
        page.unroute(f"**/assets/*.{lacking}")
        page.clock.fast_forward(LONG_MS)
        expect(page.locator("main h1")).to_have_text("Overview")
        columns = "tiles => getComputedStyle(tiles).display"
        assert page.locator(".tiles").evaluate(columns) == "grid"
        opened.complaints.clear()  # of the browser, that it could not have it


def test_dialogs_are_accessible(browser: Browser, scene: Scene) -> None:
    with open_tab(browser, scene.url, alone=True) as opened:
        page = opened.page
        opened.bring_axe()
        opened.open(address("datasets", SHOP, CLEAN))
        for theme in THEMES:
            opened.wear(theme)
            opened.redraw()
            page.keyboard.press("/")
            page.keyboard.type("clicks")
            expect(page.get_by_role("option").first).to_be_visible()
            assert opened.serious_problems() == []
            page.keyboard.press("Escape")
            dialog = open_dialog(page, "Hold")
            assert opened.serious_problems() == []
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)


def test_unknown_address_is_reported(tab: Tab) -> None:
    tab.open("/no/such/page")
    assert "There is no page at /no/such/page" in tab.page.inner_text("main")
