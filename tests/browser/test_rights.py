"""A key without rights sees the data, no actions, and a note."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from penstock.schema.admin import KeyRole
from tests.browser.addresses import address
from tests.browser.browsing import Tab
from tests.browser.browsing import tab as open_tab
from tests.browser.test_connection import enter
from tests.databases import sqlite_database
from tests.doors.serving import path
from tests.doors.waiting import until
from tests.running import ServerProcess, serving

pytestmark = pytest.mark.xdist_group("browser")

EVERYWHERE = "0.0.0.0"
MILL = "mill"
JOB = ("jobs", MILL, "grind")
COLLECTION = "sacks"
ACTS = ("Hold", "Release hold", "Hold queue", "New collection", "New replay", "Delete")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that needs keys, with a held job and a collection."""
    url = sqlite_database(tmp_path_factory.mktemp("guarded") / "penstock.db")
    job = ("namespaces", MILL, "jobs", "grind")
    sides = {"inputs": "grain", "outputs": "flour"}
    steps: tuple[tuple[str, str, Any], ...] = (
        (
            *("PUT", path(*job, "wiring")),
            {side: [{"namespace": MILL, "name": name}] for side, name in sides.items()},
        ),
        ("POST", path(*job, "hold"), {"why": "it is loud"}),
        (
            *("PUT", path("ingest", "collections", COLLECTION)),
            {"dataset": "sacks", "namespace": MILL},
        ),
    )
    with serving(url) as filling, filling.client() as client:
        for method, at, body in steps:
            answer = client.request(method, at, json=body)
            assert answer.is_success, answer.text
        filling.key(KeyRole.ADMIN)
    with serving(url, host=EVERYWHERE) as server:
        server.url = server.url.replace(EVERYWHERE, "127.0.0.1")
        yield server


def come(opened: Tab, at: str, token: str) -> Page:
    """Open an address with a key."""
    opened.page.goto(opened.url + at)
    enter(opened.page, token)
    opened.settle()
    opened.forgive("401")
    return opened.page


def offered(page: Page) -> list[str]:
    """List the actions of a view."""
    main = page.locator("main")
    names = main.locator(".button").all_inner_texts()
    return [name for name in names if name in ACTS]


def until_offered(page: Page, acts: list[str]) -> None:
    """Wait for the actions of a view, which appear after the rights of the key are known."""
    until(lambda: offered(page) == acts)


VIEWS = {
    "job": (address(*JOB), ["Release hold"]),
    "held": (address("locks", tab="held"), ["Release hold"]),
    "ingest": ("/ingest", ["Hold queue"]),
    "collections": (
        address("ingest", tab="collections"),
        ["Hold queue", "New collection", "Hold"],
    ),
    "replay": ("/replay", ["New replay", "New replay"]),
}


def test_reader_sees_data_and_no_actions(browser: Browser, guarded: ServerProcess) -> None:
    for role in (KeyRole.ADMIN, KeyRole.WRITER, KeyRole.READER):
        with open_tab(browser, guarded.url) as opened:
            page = come(opened, "/", guarded.key(role))
            for at, acts in VIEWS.values():
                opened.open(at)
                opened.settle()
                expect(page.locator("nav[aria-label=pages]")).to_contain_text("Locks")
                until_offered(page, acts if role is KeyRole.ADMIN else [])
            opened.open(address(*JOB))
            expect(page.locator("main")).to_contain_text("it is loud")
            audit = page.locator("nav").get_by_role("link", name="Audit log")
            expect(audit).to_have_count(1 if role is KeyRole.ADMIN else 0)
            says = page.locator(".rights")
            if role is KeyRole.ADMIN:
                expect(says).to_have_count(0)
            else:
                expect(says).to_contain_text(f"is a {role}’s: actions that change")


def test_reader_cannot_change_a_profile(browser: Browser, guarded: ServerProcess) -> None:
    with open_tab(browser, guarded.url) as opened:
        at = address("ingest", "collections", COLLECTION, tab="profile")
        page = come(opened, at, guarded.key(KeyRole.READER))
        expect(page.get_by_label("Dataset of its lots")).to_have_value("sacks")
        expect(page.get_by_label("Dataset of its lots")).to_be_disabled()
        expect(page.get_by_role("button", name="Save profile")).to_have_count(0)
        expect(page.locator("main")).to_contain_text("actions that change data are hidden")


def test_key_of_a_namespace_sees_its_actions_only(browser: Browser, guarded: ServerProcess) -> None:
    with open_tab(browser, guarded.url) as opened:
        page = come(opened, address(*JOB), guarded.key(KeyRole.ADMIN, MILL))
        until_offered(page, ["Release hold"])
        expect(page.locator(".rights")).to_contain_text(f"for namespace “{MILL}” only")
        pages = page.locator("nav[aria-label=pages]")
        for name in ("Audit log", "Lineage", "Provenance"):
            expect(pages.get_by_role("link", name=name)).to_have_count(0)
        opened.open("/ingest")
        opened.settle()
        expect(page.locator(".rights")).to_contain_text(f"for namespace “{MILL}” only")
        assert offered(page) == []
