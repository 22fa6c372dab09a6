"""Fixtures: a browser, and filled servers that all tests of a worker share."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser

from tests.browser.browsing import BRIEF, Tab, chromium
from tests.browser.browsing import tab as open_tab
from tests.browser.mill import Mill, add_mill
from tests.browser.scene import Scene, empty_scene
from tests.browser.scene import scene as fill

# The scene always starts in the former hour, since the hour may turn during any test.
TURNED = timedelta(hours=1)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A real Chromium. Playwright's event loop runs with it, so no other loop can."""
    with chromium(BRIEF) as running:
        yield running


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server with the week of the demo, and with running, failed and held work."""
    with fill(tmp_path_factory.mktemp("page"), datetime.now(UTC) - TURNED) as filled:
        yield filled


@pytest.fixture(scope="session")
def mill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mill]:
    """A server with batches, claims, gaps, stale lots and failed checks."""
    with empty_scene(tmp_path_factory.mktemp("mill")) as scene:
        yield add_mill(scene)


@pytest.fixture
def tab(browser: Browser, scene: Scene) -> Iterator[Tab]:
    """A new tab on that server; an error in it fails its test."""
    with open_tab(browser, scene.url) as opened:
        yield opened
