"""Views looked at one after the other: bright and wide, then dark, then as on a phone."""

from collections.abc import Mapping

from playwright.sync_api import Browser

from tests.browser.browsing import PHONE, WIDE, Tab, tab

COLOURS = ("color-contrast",)
REACH = ("scrollable-region-focusable", "target-size")


def look_at(browser: Browser, url: str, views: Mapping[str, str]) -> None:
    """Open every view once; nothing goes wrong in it, and everybody can use it."""
    with tab(browser, url, alone=True) as opened:
        opened.bring_axe()
        for name, at in views.items():
            opened.open(at)
            opened.settle()
            assert opened.page.locator("main .trouble[role=alert]").count() == 0, name
            _look(opened, name)
            opened.wear("dark")
            opened.redraw()
            _look(opened, f"{name}, dark", *COLOURS)
            opened.wear("light")
            opened.resize(PHONE)
            opened.redraw()
            _look(opened, f"{name}, on a phone", *REACH)
            opened.resize(WIDE)
            opened.redraw()


def _look(opened: Tab, name: str, *rules: str) -> None:
    found = opened.serious_problems(*rules)
    assert found == [], (name, found)
    assert not opened.is_too_wide(), name
    assert opened.complaints == [], (name, opened.complaints)
