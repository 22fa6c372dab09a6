"""The overview: every problem is listed, and no state is claimed before it is read."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from tests.browser.addresses import address
from tests.browser.browsing import Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.mill import FLOUR, GRAIN, GRINDING, HOURS, MILL, SACKS, Mill
from tests.browser.scene import Scene, empty_scene

pytestmark = pytest.mark.xdist_group("browser")

HELD_LOTS = "**/api/v1/held-lots*"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server without data."""
    with empty_scene(tmp_path_factory.mktemp("untouched")) as scene:
        yield scene


@pytest.fixture
def mill_tab(browser: Browser, mill: Mill) -> Iterator[Tab]:
    """A new tab on the mill's server."""
    with open_tab(browser, mill.scene.url) as opened:
        yield opened


def tile(tab: Tab, label: str) -> Locator:
    """Return the tile with a label."""
    heading = tab.page.get_by_role("heading", name=label, exact=True)
    return tab.page.locator(".tile").filter(has=heading)


def test_every_hold_is_a_problem(mill_tab: Tab, mill: Mill) -> None:
    lot = ("namespaces", MILL, "datasets", FLOUR, "lots", HOURS[4])
    deposit = {"collection": SACKS, "url": f"file://{mill.scene.folder}/sacks/bran.csv"}
    batch = ("ingest", "batches", mill.call("POST", "ingest", "batches", json=deposit)["id"])
    mill.call("POST", *batch, "hold", json={"why": "it is not weighed"})
    renewed = {"lots": [HOURS[3]], "renew": True}
    mill.call("POST", "namespaces", MILL, "datasets", GRAIN, "lots", json=renewed)
    stops = (
        (lot, "hold", "release", "it is damp"),
        (("ingest", "collections", SACKS), "hold", "release", "the shed is full"),
        (("ingest", "queue"), "hold", "release", "the road is closed"),
    )
    for at, hold, _, why in stops:
        mill.call("POST", *at, hold, json={"why": why})
    mill_tab.open("/")
    mill_tab.settle()
    problems = mill_tab.page.locator(".problems li")
    for *_, why in stops:
        expect(problems.filter(has_text=why)).to_have_count(1)
    expect(problems.filter(has_text=batch[-1])).to_contain_text("is on hold")
    for lot in mill.call("GET", "held-lots", params={"forChecks": True})["lots"]:
        expect(problems.filter(has_text=lot["lot"])).to_contain_text("Its checks failed")
    expect(problems.filter(has_text="has stale lots")).to_contain_text(GRINDING)
    held = tile(mill_tab, "On hold")
    expect(held).to_contain_text("1 ingest queue")
    expect(held).to_contain_text("1 collection")
    held.get_by_role("link", name=re.compile("lots?$")).click()
    expect(mill_tab.page).to_have_url(re.compile(r"/locks\?tab=held"))
    expect(mill_tab.page.locator("main")).to_contain_text("it is damp")
    for at, _, release, _ in stops:
        mill.call("POST", *at, release, json={"why": "go on"})
    mill.call("DELETE", *batch, params={"confirmed": True, "why": "it was a test"})
    stale = ("namespaces", MILL, "jobs", GRINDING, "lots", HOURS[3])
    mill.call("POST", *stale, "resubmit", json={"why": "the grain is new"})
    mill.work("arcs")


def test_each_number_links_to_its_list(mill_tab: Tab, mill: Mill) -> None:
    late = mill.call("GET", "standing")["late"]
    assert len(late) > 1
    mill_tab.open("/")
    mill_tab.settle()
    tile(mill_tab, "Failed").get_by_role("link", name=re.compile("ingest job")).click()
    expect(mill_tab.page).to_have_url(re.compile("tab=jobs&status=failed"))
    expect(mill_tab.page.get_by_role("table", name="ingest jobs")).to_contain_text("oats")
    mill_tab.open("/")
    tile(mill_tab, "Late").get_by_role("link").click()
    listed = mill_tab.page.get_by_role("table", name="late datasets")
    for each in late:
        expect(listed).to_contain_text(each["dataset"])


def test_no_all_clear_before_everything_is_read(browser: Browser, untouched: Scene) -> None:
    late: list[Route] = []

    def hold_up(route: Route) -> None:
        late.append(route)

    with open_tab(browser, untouched.url, alone=True) as opened:
        problems = opened.page.locator(".problems")
        opened.page.route(HELD_LOTS, hold_up)
        opened.open("/")
        expect(problems).to_contain_text("Reading held lots")
        expect(tile(opened, "On hold")).to_contain_text("…")
        late[0].fulfill(status=503, json={"message": "the disk is slow"})
        expect(problems).to_contain_text("held lots: the disk is slow")
        expect(problems).not_to_contain_text("No data yet")
        opened.forgive("503")


def test_part_that_a_key_may_not_read_is_reported(browser: Browser, mill: Mill) -> None:
    with open_tab(browser, mill.scene.url, alone=True) as opened:
        refused = {"status": 403, "json": {"message": "this key is for another namespace"}}
        opened.page.route(HELD_LOTS, lambda route: route.fulfill(**refused))
        opened.open("/")
        problems = opened.page.locator(".problems")
        expect(problems).to_contain_text("held lots: your key may not read it")
        expect(problems.locator("li").first).to_be_visible()
        opened.forgive("403")


def test_empty_server_shows_the_first_steps(browser: Browser, untouched: Scene) -> None:
    with open_tab(browser, untouched.url) as opened:
        opened.open("/")
        opened.settle()
        expect(opened.page.locator(".problems")).to_contain_text("penstock arcs apply")
        expect(opened.page.locator(".bars-top").first).to_have_text("0")


def test_key_of_an_unknown_namespace_sees_the_first_steps(
    browser: Browser, untouched: Scene
) -> None:
    missing = {"status": 404, "json": {"message": "there is no namespace 'new'"}}
    with open_tab(browser, untouched.url, alone=True) as opened:
        opened.page.route("**/api/v1/jobs?*", lambda route: route.fulfill(**missing))
        opened.open("/")
        opened.settle()
        problems = opened.page.locator(".problems")
        expect(problems).to_contain_text("No data yet")
        expect(problems).not_to_contain_text("Some problems may be missing")
        opened.forgive("404")


def test_lots_with_free_names_are_below_the_grid(mill_tab: Tab, mill: Mill) -> None:
    dataset = ("namespaces", MILL, "datasets", "husks")
    source = {"type": "FILES", "connectionUrl": "file:///shed"}
    mill.call("PUT", "sources", "shed", json=source)
    table = {"type": "DB_TABLE", "physicalName": "husks", "sourceName": "shed"}
    mill.call("PUT", *dataset, json=table)
    mill.call("POST", *dataset, "lots", json={"lots": [*HOURS, "bid0000009999"]})
    hold = {"why": "it is not weighed yet"}
    mill.call("POST", *dataset, "lots", "bid0000009999", "hold", json=hold)
    mill_tab.open(address("datasets", MILL, "husks"))
    expect(mill_tab.page.locator(".heat canvas")).to_be_visible()
    others = mill_tab.page.get_by_role("table", name="lots")
    expect(others).to_contain_text("bid0000009999")
    others.get_by_role("link", name="bid0000009999").click()
    expect(mill_tab.page.locator("main")).to_contain_text("it is not weighed yet")
    mill.call("POST", *dataset, "lots", "bid0000009999", "release", json={"why": "weighed"})
