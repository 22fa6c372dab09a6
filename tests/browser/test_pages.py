"""Every view of the page, opened on a filled server: it draws, and nothing goes wrong."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.acting import ask
from tests.browser.addresses import address, views
from tests.browser.browsing import PHONE, THEMES, Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.looking import look_at
from tests.browser.scene import CLEAN, SHOP, Scene

# They use one server and one browser: one worker has them all.
pytestmark = pytest.mark.xdist_group("browser")


def test_every_view_opens_and_can_be_used_by_everybody(browser: Browser, scene: Scene) -> None:
    look_at(browser, scene.url, views(scene))


@pytest.mark.parametrize("name", ["overview", "dataset-lots", "lineage"])
def test_a_view_that_is_opened_on_a_phone_fits_it(
    browser: Browser, scene: Scene, name: str
) -> None:
    with open_tab(browser, scene.url, PHONE) as opened:
        opened.open(views(scene)[name])
        opened.settle()
        assert not opened.is_too_wide()


def test_what_lies_over_the_page_can_be_used_by_everybody(tab: Tab) -> None:
    tab.open(address("datasets", SHOP, CLEAN))
    for theme in THEMES:
        tab.wear(theme)
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("clicks")
        expect(tab.page.get_by_role("option").first).to_be_visible()
        assert tab.serious_problems() == []
        tab.page.keyboard.press("Escape")
        dialog = ask(tab.page, "Hold")
        assert tab.serious_problems() == []
        tab.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def test_a_view_that_is_not_there_says_so(tab: Tab) -> None:
    tab.open("/no/such/page")
    assert "There is no page at /no/such/page" in tab.page.inner_text("main")
