"""Checks that all content of a view can be seen or scrolled to."""

from tests.browser.browsing import Tab

# An ellipsis shows that text is cut; a button or a picture has none.
MEASURE = """
() => {
  const SLACK = 2;
  const CONTROLS = "a, button, input, select, textarea, summary, canvas, svg, img";
  const words = node => [...node.childNodes].some(each => each.nodeType === 3 && each.data.trim());
  const label = node => (node.tagName + ": " + (node.textContent || node.className)).slice(0, 80);
  const problems = [];
  const main = document.querySelector("main");
  if (document.documentElement.scrollWidth > innerWidth) problems.push("the page scrolls sideways");
  if (main.scrollWidth > main.clientWidth + 1) problems.push("the view scrolls sideways");
  for (const node of document.querySelectorAll("main *, .nav *")) {
    if (node.closest(".react-flow, [aria-hidden=true], svg *, .hit")) continue;
    const isControl = node.matches(CONTROLS);
    if (!isControl && !words(node)) continue;
    let box = node.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    let [left, right] = [box.left, box.right];
    for (let up = node.parentElement; up; up = up.parentElement) {
      const style = getComputedStyle(up);
      const room = up.getBoundingClientRect();
      const isCut = right > room.right + SLACK || left < room.left - SLACK;
      if (["auto", "scroll"].includes(style.overflowX)) {
        [left, right] = [room.left, room.right];
      } else if (style.overflowX !== "visible" && isCut) {
        if (style.textOverflow !== "ellipsis" || node.matches("button, input, select, canvas, img"))
          problems.push("cut off: " + label(node));
        [left, right] = [Math.max(left, room.left), Math.min(right, room.right)];
      }
      if (style.position === "fixed") break;
    }
    if (right > innerWidth + SLACK || left < -SLACK) problems.push("out of sight: " + label(node));
  }
  return [...new Set(problems)];
}
"""
TITLES = """
() => Object.fromEntries([...document.querySelectorAll("main [role=table]")].map(table => [
  table.getAttribute("aria-label"),
  [...table.querySelectorAll("[role=columnheader]")].map(each => each.textContent).sort(),
]))
"""
HINTS = """
() => [...document.querySelectorAll("main .table-view")].filter(
  view => view.scrollWidth > view.clientWidth + 1
    && view.scrollLeft + view.clientWidth < view.scrollWidth - 1
    && !view.parentElement.matches(".more")
).map(view => view.getAttribute("aria-label"))
"""


def out_of_reach(opened: Tab) -> list[str]:
    """List the content that is cut off or out of reach of scrolling."""
    problems: list[str] = opened.page.evaluate(MEASURE)
    return problems


def tables_without_hint(opened: Tab) -> list[str]:
    """List the tables with columns beyond the right edge and no hint of them."""
    labels: list[str] = opened.page.evaluate(HINTS)
    return labels


def columns(opened: Tab) -> dict[str, list[str]]:
    """Return the column titles of every table."""
    titles: dict[str, list[str]] = opened.page.evaluate(TITLES)
    return titles
