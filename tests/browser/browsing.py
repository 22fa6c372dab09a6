"""A page in a real Chromium that watches itself: errors, and requests that go elsewhere."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

UI = Path(__file__).resolve().parents[2] / "ui"
AXE = UI / "node_modules" / "axe-core" / "axe.min.js"
WIDE = (1280, 800)
PHONE = (390, 844)
# Nothing but the page itself may want the network.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PATIENCE_MS = 60_000
Theme = Literal["light", "dark"]

# A slow machine is no failure.
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright."""
    program = shutil.which("chromium")
    assert program is not None, "run: scripts/chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """A tab on a server's page; `complaints` is everything that should not have happened."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to an address of the page, and wait until it has drawn something."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector("main h1, main .empty, main .trouble")

    def settle(self) -> None:
        """Wait until nothing is being read any more."""
        self.page.wait_for_selector("main h1")
        unfinished = self.page.locator(".waiting, .blank, .canvas.busy")
        expect(unfinished).to_have_count(0)

    def serious_problems(self, *rules: str) -> list[str]:
        """What axe finds that keeps somebody from using the page, by these rules or by all."""
        # The page's own policy lets no script in but the server's, so axe comes in another way.
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(AXE.read_text())
        asked: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            asked["runOnly"] = {"type": "rule", "values": list(rules)}
        found: dict[str, Any] = self.page.evaluate("asked => axe.run(document, asked)", asked)
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]


@contextmanager
def tab(
    browser: Browser, url: str, size: tuple[int, int] = WIDE, theme: Theme = "light"
) -> Iterator[Tab]:
    """A new tab with nothing kept from others; what went wrong in it is a failure."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        reduced_motion="reduce",
        locale="en-GB",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    opened = Tab(page, url)
    page.on("console", lambda said: _note_console(opened, said.type, said.text))
    page.on("pageerror", lambda error: opened.complaints.append(f"error: {error}"))
    page.route("**/*", lambda route: _stay_here(opened, route))
    try:
        yield opened
        complaints = list(opened.complaints)  # what closing breaks off is nobody's fault
    finally:
        context.close()
    assert complaints == []


def _note_console(opened: Tab, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        opened.complaints.append(f"{kind}: {text}")


def _stay_here(opened: Tab, route: Route) -> None:
    if route.request.url.startswith((opened.url, "data:", "blob:")):
        route.continue_()
        return
    opened.complaints.append(f"a request to {route.request.url}")
    route.abort()
