"""Unusual names are listed, linked, opened and shown in full."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from penstock import ids
from tests.browser.addresses import address
from tests.browser.browsing import PHONE, WIDE
from tests.browser.browsing import tab as open_tab
from tests.browser.reach import out_of_reach
from tests.browser.scene import Scene, empty_scene
from tests.doors.serving import run_event

pytestmark = pytest.mark.xdist_group("browser")

NAMES = {
    "percent": "100% of %41 %",
    "hash": "a#b?c=d&e",
    "slashes": "/srv//x/../y/",
    "spaces": "two  spaces",
    "quotes": 'it\'s "so" <b>bold</b>',
    "emoji": "🌾 grain",
    "leftward": "بيانات القمح",
    "dots": "...",
    "long": "long_" + "n" * 950 + "_end",
}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server on which each name is a namespace, a job and a dataset."""
    with empty_scene(tmp_path_factory.mktemp("named")) as scene:
        for name in NAMES.values():
            thing = {"namespace": name, "name": name}
            event = run_event(ids.new_id(), job=thing, inputs=[], outputs=[thing])
            scene.call("POST", "lineage", json={**event, "eventType": "COMPLETE"})
            scene.call("POST", "namespaces", name, "datasets", name, "lots", json={"lots": ["lot"]})
        yield scene


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_name_is_opened_from_its_list(browser: Browser, named: Scene, name: str) -> None:
    with open_tab(browser, named.url, WIDE) as opened:
        page, heading = opened.page, opened.page.locator("main h1")
        for kind, at in (("datasets", "datasets"), ("jobs", "jobs")):
            opened.open(address(at, namespace=name))
            listed = page.get_by_role("table", name=re.compile(f"^{kind}"))
            listed.get_by_role("link").first.click()
            page.reload()
            expect(heading).to_have_text(name)
        opened.open(address("datasets", name, name, "lots", "lot"))
        opened.settle()
        expect(page.locator("main")).to_contain_text(name)


def test_no_name_is_cut_off_on_its_pages(browser: Browser, named: Scene) -> None:
    name = NAMES["long"]
    dataset, job = ("datasets", name, name), ("jobs", name, name)
    shown = (
        *("/", "/jobs", address(*dataset), address(*job), address(*dataset, "lots", "lot")),
        *(address(*dataset, tab=tab) for tab in ("versions", "about")),
        address("datasets", namespace=name),
        address("lineage", node=f"dataset:{name}:{name}"),
    )
    with open_tab(browser, named.url, WIDE) as opened:
        for at in shown:
            opened.resize(WIDE)
            opened.open(at)
            opened.settle()
            for size in (WIDE, PHONE):
                opened.resize(size)
                opened.redraw()
                assert out_of_reach(opened) == [], (size, at[:80])
