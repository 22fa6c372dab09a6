"""Whether everything in a view can be got to: seen, or scrolled to, and nothing cut off."""

from tests.browser.browsing import Tab

# What is cut with an ellipsis says itself that there is more; a button or a picture does not.
MEASURE = """
() => {
  const SLACK = 2;
  const CONTROLS = "a, button, input, select, textarea, summary, canvas, svg, img";
  const words = node => [...node.childNodes].some(each => each.nodeType === 3 && each.data.trim());
  const label = node => (node.tagName + ": " + (node.textContent || node.className)).slice(0, 80);
  const found = [];
  const main = document.querySelector("main");
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  if (main.scrollWidth > main.clientWidth + 1) found.push("the view scrolls sideways");
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
          found.push("cut off: " + label(node));
        [left, right] = [Math.max(left, room.left), Math.min(right, room.right)];
      }
      if (style.position === "fixed") break;
    }
    if (right > innerWidth + SLACK || left < -SLACK) found.push("out of sight: " + label(node));
  }
  return [...new Set(found)];
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
    """What of a view is cut off, or lies where nobody can scroll to."""
    found: list[str] = opened.page.evaluate(MEASURE)
    return found


def scrolls_unsaid(opened: Tab) -> list[str]:
    """The tables with more at their right than is seen, and no hint of it."""
    found: list[str] = opened.page.evaluate(HINTS)
    return found


def columns(opened: Tab) -> dict[str, list[str]]:
    """The titles of the columns of every table."""
    found: dict[str, list[str]] = opened.page.evaluate(TITLES)
    return found
