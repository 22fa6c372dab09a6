"""Checks of every view: light and wide, dark, on half a screen, on a phone."""

from collections.abc import Mapping

from playwright.sync_api import Browser

from tests.browser.browsing import PHONE, WIDE, Tab, tab
from tests.browser.reach import columns, out_of_reach, tables_without_hint

COLOURS = ("color-contrast",)
HALF = (800, 900)
REACH = ("scrollable-region-focusable", "target-size")


def look_at(browser: Browser, url: str, views: Mapping[str, str]) -> None:
    """Open every view once, and check it for errors and accessibility."""
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
            titles = columns(opened)
            for size in (HALF, PHONE):
                opened.resize(size)
                opened.redraw()
                _measure(opened, f"{name} at {size[0]} px", titles)
            _look(opened, f"{name}, on a phone", *REACH)
            opened.resize(WIDE)
            opened.redraw()


def _measure(opened: Tab, name: str, titles: Mapping[str, list[str]]) -> None:
    """Check that every column is in view, can be scrolled to, or is in the second line."""
    assert out_of_reach(opened) == [], name
    assert tables_without_hint(opened) == [], name
    for label, shown in columns(opened).items():
        table = opened.page.get_by_role("table", name=label, exact=True)
        assert shown == titles[label] or table.locator(".below").count() > 0, (name, label)


def _look(opened: Tab, name: str, *rules: str) -> None:
    problems = opened.serious_problems(*rules)
    assert problems == [], (name, problems)
    assert not opened.is_too_wide(), name
    assert opened.complaints == [], (name, opened.complaints)
