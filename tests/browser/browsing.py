"""A page in a real Chromium that watches itself: errors, and requests that go elsewhere."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, expect, sync_playwright

UI = Path(__file__).resolve().parents[2] / "ui"
AXE = UI / "node_modules" / "axe-core" / "axe.min.js"
WIDE = (1280, 800)
PHONE = (390, 844)
# Nothing but the page itself may want the network, and no other host can be found.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
TWO_FRAMES = "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))"
PATIENCE_MS = 120_000
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

# A slow machine is no failure.
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright."""
    program = shutil.which("chromium")
    assert program is not None, "run: make screenshots"
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

    def forgive(self, words: str) -> None:
        """Expect complaints with these words, and no others."""
        assert self.complaints != []
        assert [each for each in self.complaints if words not in each] == []
        self.complaints.clear()

    def wear(self, theme: Theme) -> None:
        """Change the system's theme, and wait until the page has drawn itself anew."""
        self.page.emulate_media(color_scheme=theme)
        self.page.evaluate(TWO_FRAMES)

    def resize(self, size: tuple[int, int]) -> None:
        """Make the window as large as this, and wait until the page has drawn itself anew."""
        width, height = size
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(TWO_FRAMES)
        self.settle()

    def is_too_wide(self) -> bool:
        """Whether the whole page can be scrolled sideways."""
        found: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return found

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
    browser: Browser, url: str, size: tuple[int, int] = WIDE, alone: bool = False
) -> Iterator[Tab]:
    """A new tab; what went wrong in it is a failure.

    Tabs share what the browser has cached, unless one wants to be alone, and nothing else.
    """
    shared = None if alone else next(iter(browser.contexts), None)
    context = shared or browser.new_context(
        color_scheme="light", reduced_motion="reduce", locale="en-GB"
    )
    page = context.new_page()
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    page.set_default_timeout(PATIENCE_MS)
    opened = Tab(page, url)
    page.on("console", lambda said: _note_console(opened, said.type, said.text))
    page.on("pageerror", lambda error: opened.complaints.append(f"error: {error}"))
    # Holding each request up to look at it (`page.route`) would turn the browser's cache off.
    page.on("request", lambda request: _stay_here(opened, request.url))
    try:
        yield opened
        complaints = list(opened.complaints)  # what closing breaks off is nobody's fault
        if page.url.startswith(url):
            page.evaluate("() => localStorage.clear()")
    finally:
        if alone:
            context.close()
        else:
            page.close()
    assert complaints == [], complaints


def _note_console(opened: Tab, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        opened.complaints.append(f"{kind}: {text}")


def _stay_here(opened: Tab, url: str) -> None:
    if not url.startswith((opened.url, "data:", "blob:")):
        opened.complaints.append(f"a request to {url}")
