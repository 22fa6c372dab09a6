"""Every view of the page, opened on a filled server: it draws, and nothing goes wrong."""

import pytest
from playwright.sync_api import Browser

from tests.browser.addresses import views
from tests.browser.browsing import PHONE, WIDE, Tab, Theme, tab
from tests.browser.scene import Scene

# They use one server and one browser: one worker has them all.
pytestmark = pytest.mark.xdist_group("browser")

EVERYTHING: tuple[str, ...] = ()
COLOURS = ("color-contrast",)
REACH = ("scrollable-region-focusable", "target-size")


@pytest.mark.parametrize(
    ("size", "theme", "rules"),
    [(WIDE, "light", EVERYTHING), (WIDE, "dark", COLOURS), (PHONE, "light", REACH)],
    ids=["wide", "dark", "phone"],
)
def test_every_view_opens_and_can_be_used_by_everybody(
    browser: Browser, scene: Scene, size: tuple[int, int], theme: Theme, rules: tuple[str, ...]
) -> None:
    with tab(browser, scene.url, size, theme) as opened:
        for name, address in views(scene).items():
            opened.open(address)
            opened.settle()
            assert opened.page.locator("main .trouble[role=alert]").count() == 0, name
            assert opened.serious_problems(*rules) == [], name
            too_wide = "document.documentElement.scrollWidth > innerWidth"
            assert opened.page.evaluate(too_wide) is False, name
            assert opened.complaints == [], name


def test_a_view_that_is_not_there_says_so(tab: Tab) -> None:
    tab.open("/no/such/page")
    assert "There is no page at /no/such/page" in tab.page.inner_text("main")
