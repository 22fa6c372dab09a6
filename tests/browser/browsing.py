"""Tabs of a real Chromium that record errors and requests to other hosts."""

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
# Only the page uses the network, and no other host resolves.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
# No view lives long enough for optimized code to pay off.
BRIEF = "--js-flags=--no-opt --no-maglev --no-flush-bytecode"
BLANK = "about:blank"
# A page that navigates itself keeps its process, which has the page's code already.
LEAVE = f"() => {{ setTimeout(() => location.replace('{BLANK}')) }}"
TWO_FRAMES = "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))"
PATIENCE_MS = 120_000
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

# A slow machine is not a failure.
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """Run Debian's Chromium under Playwright with additional flags."""
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
    """A tab on a server's page; `complaints` lists its errors."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Open an address, and wait for the first content."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector("main h1, main .empty, main .trouble")

    def settle(self) -> None:
        """Wait until all reads have ended."""
        self.page.wait_for_selector("main h1")
        unfinished = self.page.locator(".waiting, .blank, .canvas.busy")
        expect(unfinished).to_have_count(0)

    def forgive(self, words: str) -> None:
        """Expect only complaints with this text, and clear them."""
        assert self.complaints != []
        assert [each for each in self.complaints if words not in each] == []
        self.complaints.clear()

    def wear(self, theme: Theme) -> None:
        """Change the system's theme."""
        self.page.emulate_media(color_scheme=theme)

    def resize(self, size: tuple[int, int]) -> None:
        """Set the size of the window."""
        width, height = size
        self.page.set_viewport_size({"width": width, "height": height})

    def redraw(self) -> None:
        """Wait until the page is painted in another theme or size."""
        self.page.evaluate(TWO_FRAMES)
        self.settle()

    def is_too_wide(self) -> bool:
        """Whether the page scrolls sideways."""
        is_too_wide: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return is_too_wide

    def bring_axe(self) -> None:
        """Load axe into every view that is opened after this."""
        # The content security policy blocks other scripts, so axe is an init script.
        self.page.add_init_script(path=AXE)

    def serious_problems(self, *rules: str) -> list[str]:
        """Return the serious problems that axe finds, by some rules or by all."""
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = {"type": "rule", "values": list(rules)}
        results: dict[str, Any] = self.page.evaluate(
            "options => axe.run(document, options)", options
        )
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
            for each in results["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def note_console(self, message: ConsoleMessage) -> None:
        """Record an error or a warning of the console."""
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def note_error(self, error: Error) -> None:
        """Record an uncaught error."""
        self.complaints.append(f"error: {error}")

    def note_request(self, request: Request) -> None:
        """Record a request to another host."""
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.complaints.append(f"a request to {request.url}")


@contextmanager
def tab(
    browser: Browser, url: str, size: tuple[int, int] = WIDE, alone: bool = False
) -> Iterator[Tab]:
    """Open an empty tab; a complaint fails its test.

    A tab that passed is emptied and used again: a new one opens more slowly than a view, and only
    the history remains. Use `alone` for a tab that routes requests or adds scripts.
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
            complaints = list(
                opened.complaints
            )  # without the requests that leaving the page aborts
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
    # `page.route` would turn the browser's cache off.
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
