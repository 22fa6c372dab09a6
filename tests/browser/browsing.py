"""A page in a real Chromium that watches itself: errors, and requests that go elsewhere."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

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
# No view lives long enough to win back what optimising its code costs.
BRIEF = "--js-flags=--no-opt --no-maglev --no-flush-bytecode"
BLANK = "about:blank"
# A page that leaves by itself stays in its process, which has read the page's code already.
LEAVE = f"() => {{ setTimeout(() => location.replace('{BLANK}')) }}"
TWO_FRAMES = "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))"
PATIENCE_MS = 120_000
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

# A slow machine is no failure.
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright, with more flags than it always has."""
    program = shutil.which("chromium")
    assert program is not None, "run: make screenshots"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*FLAGS, *flags])
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
        """Change the system's theme."""
        self.page.emulate_media(color_scheme=theme)

    def resize(self, size: tuple[int, int]) -> None:
        """Make the window as large as this."""
        width, height = size
        self.page.set_viewport_size({"width": width, "height": height})

    def redraw(self) -> None:
        """Wait until the page has drawn itself anew, in another theme or size."""
        self.page.evaluate(TWO_FRAMES)
        self.settle()

    def is_too_wide(self) -> bool:
        """Whether the whole page can be scrolled sideways."""
        found: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return found

    def bring_axe(self) -> None:
        """Have axe in every view that is opened from now on."""
        # The page's own policy lets no script in but the server's, so axe comes in another way.
        self.page.add_init_script(path=AXE)

    def serious_problems(self, *rules: str) -> list[str]:
        """What axe finds that keeps somebody from using the page, by these rules or by all."""
        asked: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            asked["runOnly"] = {"type": "rule", "values": list(rules)}
        found: dict[str, Any] = self.page.evaluate("asked => axe.run(document, asked)", asked)
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def note_console(self, said: ConsoleMessage) -> None:
        """Complain about a warning."""
        if said.type in ("error", "warning"):
            self.complaints.append(f"{said.type}: {said.text}")

    def note_error(self, error: Error) -> None:
        """Complain about an error that nobody caught."""
        self.complaints.append(f"error: {error}")

    def note_request(self, request: Request) -> None:
        """Complain about a request that goes elsewhere."""
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.complaints.append(f"a request to {request.url}")


@contextmanager
def tab(
    browser: Browser, url: str, size: tuple[int, int] = WIDE, alone: bool = False
) -> Iterator[Tab]:
    """A tab with nothing in it; what went wrong in it is a failure.

    A tab that came to a good end is emptied and used again, since a new one takes longer to open
    than a view; only its history stays. Whoever routes requests or adds scripts wants one alone.
    """
    shared = None if alone else next(iter(browser.contexts), None)
    context = shared or browser.new_context(
        color_scheme="light", reduced_motion="reduce", locale="en-GB"
    )
    page = next((each for each in context.pages if each.url == BLANK), None) or context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    opened = Tab(page, url)
    opened.wear("light")
    opened.resize(size)
    try:
        with _watched(opened):
            yield opened
            complaints = list(opened.complaints)  # what leaving breaks off is nobody's fault
        if not alone:
            _empty(opened)
    except BaseException:
        page.close()
        raise
    finally:
        if alone:
            context.close()
    assert complaints == [], complaints


@contextmanager
def _watched(opened: Tab) -> Iterator[None]:
    # Holding each request up to look at it (`page.route`) would turn the browser's cache off.
    page = opened.page
    page.on("console", opened.note_console)
    page.on("pageerror", opened.note_error)
    page.on("request", opened.note_request)
    try:
        yield
    finally:
        page.remove_listener("console", opened.note_console)
        page.remove_listener("pageerror", opened.note_error)
        page.remove_listener("request", opened.note_request)


def _empty(opened: Tab) -> None:
    page = opened.page
    page.mouse.move(0, 0)
    if page.url.startswith(opened.url):
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
    if page.url != BLANK:
        page.evaluate(LEAVE)
        page.wait_for_url(BLANK)
