"""The connection to the server: keys, live updates, and outages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from penstock.access.keys import Keys
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.schema.admin import KeyRole
from tests.browser.addresses import address
from tests.browser.browsing import tab as open_tab
from tests.browser.scene import CLEANING, RAW, SHOP, Scene
from tests.databases import sqlite_database
from tests.running import serving

pytestmark = pytest.mark.xdist_group("browser")

EVERYWHERE = "0.0.0.0"
STREAM = "**/api/v1/pulse"
# Longer than the longest retry interval of the stream.
LONG_MS = 30_000


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A server that needs a key, and a key."""
    url = sqlite_database(tmp_path / "penstock.db")
    database = open_database(url)
    token = Keys(database, clock=system_clock).create("miller", KeyRole.ADMIN, who="test").token
    database.close()
    with serving(url, host=EVERYWHERE) as server:
        yield server.url.replace(EVERYWHERE, "127.0.0.1"), token


def enter(page: Page, key: str) -> None:
    """Enter a key."""
    page.get_by_role("textbox", name="Key").fill(key)
    page.get_by_role("button", name="Use this key").click()


def enter_wrong_and_right(page: Page, key: str) -> None:
    """Enter a wrong key, which is refused, then the right one."""
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("A key is needed")
    enter(page, "pst_wrong")
    expect(dialog).to_contain_text("The key was refused")
    enter(page, key)
    expect(dialog).to_have_count(0)


def test_key_is_requested_kept_in_the_tab_and_removed(
    browser: Browser, guarded: tuple[str, str]
) -> None:
    url, token = guarded
    with open_tab(browser, url) as opened:
        page, dialog = opened.page, opened.page.get_by_role("dialog")
        page.goto(f"{url}/audit")
        enter_wrong_and_right(page, token)
        expect(page.locator("main")).to_contain_text("miller")
        expect(page.locator(".liveness")).to_have_text("Live")
        page.reload()
        expect(page.locator("main")).to_contain_text("miller")
        expect(dialog).to_have_count(0)
        page.get_by_role("button", name="remove the key").click()
        expect(dialog).to_contain_text("A key is needed")
        expect(page.locator("main .trouble")).to_have_count(1)
        expect(page.locator("main")).not_to_contain_text("miller")
        assert page.evaluate("() => sessionStorage.length + localStorage.length") == 0
        opened.forgive("401")


def test_late_answer_to_a_former_key_requests_no_key(
    browser: Browser, guarded: tuple[str, str]
) -> None:
    url, token = guarded
    late: list[Route] = []

    def hold_up(route: Route) -> None:
        key = route.request.headers.get("authorization")
        if key == "Bearer pst_wrong" and not late:
            late.append(route)
        else:
            route.fallback()

    with open_tab(browser, url, alone=True) as opened:
        page, dialog = opened.page, opened.page.get_by_role("dialog")
        page.route(lambda at: "/api/" in at and not at.endswith("/pulse"), hold_up)
        page.goto(f"{url}/locks")
        enter_wrong_and_right(page, token)
        with page.expect_response(lambda answer: answer.request == late[0].request) as answered:
            late[0].continue_()
        assert answered.value.status == 401
        opened.settle()
        expect(page.locator("main .trouble")).to_have_count(0)
        expect(dialog).to_have_count(0)
        opened.forgive("401")


def test_data_stays_while_the_server_does_not_answer(browser: Browser, scene: Scene) -> None:
    with open_tab(browser, scene.url, alone=True) as opened:
        page, liveness = opened.page, opened.page.locator(".liveness")
        page.clock.install()
        opened.open("/jobs")
        rows = page.get_by_role("table", name="jobs")
        expect(rows).to_contain_text(CLEANING)
        page.route("**/api/v1/**", lambda route: route.abort())
        page.clock.fast_forward(LONG_MS)
        expect(liveness).to_have_text("No answer")
        expect(page.locator(".toasts")).to_contain_text("The server does not answer")
        expect(rows).to_contain_text(CLEANING)
        expect(page.locator("main .trouble")).to_have_count(0)
        page.unroute("**/api/v1/**")
        page.clock.fast_forward(LONG_MS)
        expect(page.locator(".toast")).to_have_count(0)
        opened.forgive("ERR_FAILED")


def test_no_count_and_no_empty_result_before_the_answer(browser: Browser, scene: Scene) -> None:
    late: list[Route] = []

    def hold_up(route: Route) -> None:
        late.append(route)

    with open_tab(browser, scene.url, alone=True) as opened:
        page = opened.page
        page.route(re.compile(r"/api/v1/(jobs|search)\?"), hold_up)
        page.goto(opened.url + "/jobs")
        listed = page.locator(".panel", has=page.get_by_role("table", name="jobs"))
        expect(listed).to_contain_text("reading…")
        expect(listed).not_to_contain_text("0 jobs")
        # Slow typing also searches for the first words.
        with page.expect_request(re.compile(r"/api/v1/search\?.*this")) as asked:
            page.keyboard.press("/")
            page.keyboard.type("nothing like this")
        palette = page.get_by_role("dialog")
        expect(palette).to_contain_text("Searching…")
        [last] = [route for route in late if route.request == asked.value]
        last.fulfill(status=503, json={"message": "the disk is slow"})
        expect(palette).to_contain_text("The search failed. the disk is slow")
        expect(palette).not_to_contain_text("Nothing matches")
        opened.forgive("503")


def test_page_polls_without_the_event_stream(browser: Browser, scene: Scene) -> None:
    at = ("namespaces", SHOP, "datasets", RAW)
    with open_tab(browser, scene.url, alone=True) as opened:
        page, liveness = opened.page, opened.page.locator(".liveness")
        page.clock.install()
        page.route(STREAM, lambda route: route.fulfill(status=503))
        opened.open(address("datasets", SHOP, RAW))
        expect(liveness).to_have_text("Connecting")
        while liveness.inner_text() != "Every 5 s":
            page.clock.fast_forward(LONG_MS)
        scene.call("POST", *at, "hold", json={"why": "the stream is down"})
        page.clock.fast_forward(LONG_MS)
        expect(page.locator("main")).to_contain_text("the stream is down")
        page.unroute(STREAM)
        page.clock.fast_forward(LONG_MS)
        expect(liveness).to_have_text("Live")
        scene.call("POST", *at, "release", json={"why": "the stream is up"})
        expect(page.get_by_role("button", name="Hold", exact=True)).to_be_visible()
        opened.forgive("503")
