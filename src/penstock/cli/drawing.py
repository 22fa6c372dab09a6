"""Draw a graph as a tree of lines that fit the terminal.

The first occurrence of a node is drawn in full. Later occurrences are marked and not followed, so
a graph with diamonds and cycles has one line for each edge.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from penstock.cli.output import plain

Neighbors = Callable[[str], Sequence[str]]

NAME_WIDTH_MIN = 12


@dataclass(frozen=True)
class Symbols:
    """The characters of a tree."""

    dataset: str = "■"
    job: str = "●"
    field: str = "▪"
    branch: str = "├ "
    last: str = "└ "
    line: str = "│ "
    again: str = "↑ drawn above"
    cycle: str = "↻ cycle"
    more: str = "…"


ASCII = Symbols("#", "o", "-", "|-", "`-", "| ", "^ drawn above", "@ cycle", "...")


def symbols_for(encoding: str) -> Symbols:
    """Choose symbols that an encoding can represent."""
    try:
        "■●▪├└│↑↻…".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return Symbols()


@dataclass(frozen=True)
class Label:
    """The text of a node: a symbol, a name, and details in order of importance."""

    symbol: str
    name: str
    details: tuple[Text, ...] = ()
    style: str = ""


@dataclass
class Tree:
    """A walk through a graph from one node."""

    label: Callable[[str], Label]
    neighbors: Neighbors
    symbols: Symbols
    width: int
    _drawn: set[str] = field(default_factory=set)

    def draw(self, root: str) -> Iterator[Text]:
        """Yield the lines below a node, without the node itself."""
        self._drawn.add(root)
        yield from self._below(root, "", (root,))

    def _below(self, node: str, indent: str, path: tuple[str, ...]) -> Iterator[Text]:
        children = sorted(self.neighbors(node))
        for child in children:
            is_last = child == children[-1]
            guide = indent + (self.symbols.last if is_last else self.symbols.branch)
            mark = self._mark(child, path)
            yield fit(self.label(child), guide, mark, self.symbols.more, self.width)
            if not mark:
                self._drawn.add(child)
                deeper = indent + ("  " if is_last else self.symbols.line)
                yield from self._below(child, deeper, (*path, child))

    def _mark(self, node: str, path: tuple[str, ...]) -> str:
        if node in path:
            return self.symbols.cycle
        if node in self._drawn and self.neighbors(node):
            return self.symbols.again
        return ""


def fit(label: Label, guide: str, mark: str, more: str, width: int) -> Text:
    """Format a node in one line: omit details that do not fit, and cut a long name."""
    fixed = cell_len(guide) + cell_len(label.symbol) + 1
    tail = Text(f"  {mark}", "dim") if mark else Text()
    free = max(width - fixed, NAME_WIDTH_MIN)
    name = shorten(plain(label.name), max(free - tail.cell_len, NAME_WIDTH_MIN), more)
    free -= cell_len(name) + tail.cell_len
    details = Text()
    for detail in label.details:
        if details.cell_len + detail.cell_len + 2 <= free:
            details.append("  ").append_text(detail)
    line = Text.assemble((guide, "dim"), (f"{label.symbol} ", label.style), name)
    return line.append_text(details).append_text(tail)


def shorten(text: str, width: int, more: str) -> str:
    """Cut the middle of a text that is too wide; names differ at their ends."""
    if cell_len(text) <= width:
        return text
    rest = width - cell_len(more)
    head = rest // 2
    start = set_cell_size(text, head)
    end = text
    while cell_len(end) > rest - head:
        end = end[1:]
    return f"{start.rstrip()}{more}{end}"
