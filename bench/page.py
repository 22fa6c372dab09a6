"""The web page in a real Chromium: first views, and response to input.

Times are taken in the browser: a view's from its request, a response's from the key, click or
scroll, each until its effect is painted. An empty page of the same server, measured in the same
run, is the limit.
"""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct
from playwright.sync_api import Browser, Page, ViewportSize

from bench.arcs_gaps import INTERVAL, write_lots
from bench.claims import Say
from bench.graph import FOLDER, Graph, dataset_name
from bench.ours import NAMESPACE
from bench.processes import Bench
from bench.server import System
from bench.targets import Target, below_ms
from bench.vacuum import vacuum
from penstock.catalog.lineage.nodes import dataset_node
from penstock.clock import DAY, system_clock
from penstock.db import open_database
from penstock.locks.gaps.spans import Span
from tests.browser.browsing import PATIENCE_MS, chromium

VIEW_MS_MAX = 1000
ANSWER_MS_MAX = 100
DOMAINS = 1  # of the graph: 1,000 jobs and as many datasets
HOPS = 50
WATCH = Path(__file__).with_name("page_watch.js").read_text()
EMPTY = "/livez"
SIZE: ViewportSize = {"width": 1280, "height": 800}


class Plan(Struct, frozen=True):
    """The size of the measurement."""

    lots: int = 100_000
    rounds: int = 5


QUICK = Plan(lots=30_000, rounds=1)  # fewer days fit without scrolling


class Seen(Struct, frozen=True):
    """The time until something was visible."""

    what: str
    median_ms: float
    worst_ms: float


class PageTimes(Struct, frozen=True):
    """All results of the page; the first of each list is the empty page."""

    lots: int
    nodes: int
    views: list[Seen]
    answers: list[Seen]


class _View(Struct, frozen=True):
    """An address, and a condition that holds once it is visible."""

    what: str
    path: str
    holds: str


class _Doing(Struct, frozen=True):
    """An input, its event in the page, and a condition that holds afterwards."""

    what: str
    event: str
    holds: str
    do: Callable[[Page], object]
    before: Callable[[Page], object] = lambda _: None


def measure_page(bench: Bench, plan: Plan, say: Say) -> PageTimes:
    """Fill a server and open its page."""
    url = bench.empty_database("sqlite")
    say(f"page · writing {plan.lots:,} lots and a graph")
    lots = fill(url, plan.lots)
    with bench.server(System.OURS, url) as server, chromium() as browser:
        address = f"http://127.0.0.1:{server.port}"
        views = [_first_view(browser, address, view, plan.rounds, say) for view in _VIEWS]
        answers = [
            seen
            for view, doings in _DOINGS
            for seen in _answers(browser, address, view, doings, plan.rounds, say)
        ]
        nodes = _count_nodes(browser, address)
    return PageTimes(lots, nodes, views, answers)


def fill(url: str, lots: int) -> int:
    """Fill an empty database with a dataset of so many lots until today, and a graph."""
    end = system_clock() // DAY * DAY
    span = Span(INTERVAL, end - -(-lots * INTERVAL.length // DAY) * DAY, end)
    write_lots(url, span)
    database = open_database(url, extra=[FOLDER])
    try:
        Graph(DOMAINS).save(database)
    finally:
        database.close()
    vacuum(url)
    return span.count


def page_targets(measured: PageTimes) -> list[Target]:
    """Check views within a second and responses within a tenth of a second."""
    views = [below_ms(f"page: {one.what}", VIEW_MS_MAX, one.median_ms) for one in measured.views]
    answers = [
        below_ms(f"page: {one.what}", ANSWER_MS_MAX, one.median_ms) for one in measured.answers
    ]
    return views[1:] + answers[1:]


def _first_view(browser: Browser, address: str, view: _View, rounds: int, say: Say) -> Seen:
    """Open a view in a browser with an empty cache."""
    return _seen(view.what, [_view_ms(browser, address, view) for _ in range(rounds)], say)


def _view_ms(browser: Browser, address: str, view: _View) -> float:
    with browser.new_context(viewport=SIZE, reduced_motion="reduce") as context:
        page = _watched(context.new_page(), view)
        page.goto(address + view.path, wait_until="commit")
        return float(page.evaluate("() => bench.first"))


def _watched(page: Page, view: _View) -> Page:
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(f"{WATCH}; bench.first = bench.seen(() => {view.holds});")
    return page


def _answers(
    browser: Browser, address: str, view: _View, doings: Sequence[_Doing], rounds: int, say: Say
) -> list[Seen]:
    """Measure the responses of an idle page."""
    took: dict[str, list[float]] = {doing.what: [] for doing in doings}
    with browser.new_context(viewport=SIZE, reduced_motion="reduce") as context:
        page = _watched(context.new_page(), view)
        for _ in range(rounds):
            page.goto(address + view.path)
            page.evaluate("() => bench.first")
            page.wait_for_function("() => !document.querySelector('.waiting, .canvas.busy')")
            for doing in doings:
                took[doing.what].append(_answer_ms(page, doing))
    return [_seen(what, times, say) for what, times in took.items()]


def _answer_ms(page: Page, doing: _Doing) -> float:
    doing.before(page)
    page.evaluate(f"() => bench.arm('{doing.event}', () => {doing.holds})")
    doing.do(page)
    page.wait_for_function("() => bench.took !== null")
    return float(page.evaluate("() => bench.took"))


def _seen(what: str, times: Sequence[float], say: Say) -> Seen:
    found = Seen(what, statistics.median(times), max(times))
    say(f"page · {what}: {found.median_ms:,.0f} ms, {found.worst_ms:,.0f} at worst")
    return found


def _count_nodes(browser: Browser, address: str) -> int:
    with browser.new_context(viewport=SIZE) as context:
        answer = context.request.get(f"{address}/api/v1/lineage?nodeId={_ROOT}&hops={HOPS}")
        return len(answer.json()["graph"])


def _keep(page: Page, name: str, value: str) -> None:
    page.evaluate(f"() => {{ bench.{name} = {value}; }}")


_ROOT = quote(dataset_node(*dataset_name((0, 10, 10))), safe="")
_GRID = ".heat canvas"
_TRANSFORM = "document.querySelector('.react-flow__viewport').style.transform"
_NODE = ".react-flow__node"
_EMPTY_VIEW = _View("an empty page", EMPTY, "document.body.firstChild")
_OVERVIEW = _View("overview", "/", "document.querySelector('.tiles')")
_LOTS = _View(
    "dataset with its grid",
    f"/datasets/{NAMESPACE}/made",
    f"document.querySelector('{_GRID}')?.style.width",
)
_LINEAGE = _View(
    "lineage of the graph",
    f"/lineage?node={_ROOT}&hops={HOPS}",
    f"document.querySelector('{_NODE}')?.style.visibility === 'visible'",
)
_VIEWS = (_EMPTY_VIEW, _OVERVIEW, _LOTS, _LINEAGE)
_CHANGED = f"{_TRANSFORM} !== bench.was"


def _note_view(page: Page) -> None:
    _keep(page, "was", _TRANSFORM)


def _to_graph(page: Page) -> None:
    page.mouse.move(700, 450)
    _note_view(page)


def _grasp(page: Page) -> None:
    page.mouse.move(700, 450)
    page.mouse.down()
    page.mouse.move(690, 440)
    _note_view(page)


def _drag(page: Page) -> None:
    page.mouse.move(640, 410)
    page.mouse.up()


def _wheel(page: Page, step: int) -> None:
    page.mouse.wheel(0, step)


_OF_NOTHING = (
    _Doing("a key on an empty page", "keydown", "true", lambda p: p.keyboard.press("a")),
)
_OF_OVERVIEW = (
    _Doing(
        "opening the palette",
        "keydown",
        "document.querySelector('.palette[open] li')",
        lambda page: page.keyboard.press("Control+k"),
    ),
    _Doing(
        "typing into the palette",
        "keydown",
        "document.querySelectorAll('.palette li').length < bench.choices",
        lambda page: page.keyboard.press("g"),
        lambda page: _keep(page, "choices", "document.querySelectorAll('.palette li').length"),
    ),
)
_OF_LOTS = (
    _Doing(
        "pointing at a lot",
        "mousemove",
        "document.querySelector('.heat-tip')",
        lambda page: page.hover(_GRID, position={"x": 300, "y": 100}),
        lambda page: page.mouse.move(5, 5),
    ),
    _Doing(
        "choosing the next lot",
        "keydown",
        f"document.querySelector('{_GRID}').getAttribute('aria-label').includes('Chosen')",
        lambda page: page.keyboard.press("ArrowLeft"),
        lambda page: page.focus(_GRID),
    ),
    _Doing(
        "other days of the grid",
        "wheel",
        "document.querySelector('.heat-view').scrollTop !== bench.top",
        lambda page: _wheel(page, -800),
        lambda page: _keep(page, "top", "document.querySelector('.heat-view').scrollTop"),
    ),
)
_OF_LINEAGE = (
    _Doing("moving the graph", "pointermove", _CHANGED, _drag, _grasp),
    _Doing("zooming the graph", "wheel", _CHANGED, lambda page: _wheel(page, 200), _note_view),
    _Doing(
        "choosing a node",
        "click",
        "document.querySelector('.graph-node.chosen')",
        lambda page: page.locator(f"{_NODE}:visible").first.click(),
        lambda page: page.wait_for_selector(_NODE),
    ),
    _Doing(
        "the whole graph at once",
        "click",
        _CHANGED,
        lambda page: page.get_by_label("show all").click(),
        _note_view,
    ),
    _Doing("zooming the whole", "wheel", _CHANGED, lambda page: _wheel(page, -200), _to_graph),
)
_DOINGS = (
    (_EMPTY_VIEW, _OF_NOTHING),
    (_OVERVIEW, _OF_OVERVIEW),
    (_LOTS, _OF_LOTS),
    (_LINEAGE, _OF_LINEAGE),
)
