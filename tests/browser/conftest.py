"""A browser, and one filled server for all tests of the page that a worker runs."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser

from tests.browser.browsing import BRIEF, Tab, chromium
from tests.browser.browsing import tab as open_tab
from tests.browser.mill import Mill, add_mill
from tests.browser.scene import Scene, empty_scene
from tests.browser.scene import scene as fill

# Whatever the clock says: the hour has turned since the scene began, as it may in any test.
TURNED = timedelta(hours=1)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A real Chromium; while it runs, so does Playwright's loop, and no other loop may."""
    with chromium(BRIEF) as running:
        yield running


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server with the demo's week in it, and a flow that is running, failed and held."""
    with fill(tmp_path_factory.mktemp("page"), datetime.now(UTC) - TURNED) as filled:
        yield filled


@pytest.fixture(scope="session")
def mill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mill]:
    """A server with a mill in it: batches, claims, gaps, stale lots and failed checks."""
    with empty_scene(tmp_path_factory.mktemp("mill")) as scene:
        yield add_mill(scene)


@pytest.fixture
def tab(browser: Browser, scene: Scene) -> Iterator[Tab]:
    """A new tab on that server; it fails its test if anything goes wrong in it."""
    with open_tab(browser, scene.url) as opened:
        yield opened
