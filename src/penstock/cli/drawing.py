"""Drawing a graph as a tree of lines that fit the terminal.

A node is drawn in full where it is met first. Where it is met again it is marked and not followed,
so a graph with diamonds and cycles is drawn in as many lines as it has edges.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from penstock.cli.output import plain

Beside = Callable[[str], Sequence[str]]

NAME_WIDTH_MIN = 12


@dataclass(frozen=True)
class Symbols:
    """The characters a tree is made of."""

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
    """Symbols that can be written in an encoding."""
    try:
        "■●▪├└│↑↻…".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return Symbols()


@dataclass(frozen=True)
class Label:
    """What is said of a node: a symbol, a name, and details of which the last may be left out."""

    symbol: str
    name: str
    details: tuple[Text, ...] = ()
    style: str = ""


@dataclass
class Tree:
    """One way through a graph, from one node on."""

    label: Callable[[str], Label]
    beside: Beside
    symbols: Symbols
    width: int
    _drawn: set[str] = field(default_factory=set)

    def draw(self, root: str) -> Iterator[Text]:
        """The lines below a node; the node itself is not among them."""
        self._drawn.add(root)
        yield from self._below(root, "", (root,))

    def _below(self, node: str, indent: str, path: tuple[str, ...]) -> Iterator[Text]:
        children = sorted(self.beside(node))
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
        if node in self._drawn and self.beside(node):
            return self.symbols.again
        return ""


def fit(label: Label, guide: str, mark: str, more: str, width: int) -> Text:
    """A node in one line: details that do not fit are left out, a name that does not is cut."""
    fixed = cell_len(guide) + cell_len(label.symbol) + 1
    tail = Text(f"  {mark}", "dim") if mark else Text()
    room = max(width - fixed, NAME_WIDTH_MIN)
    name = shorten(plain(label.name), max(room - tail.cell_len, NAME_WIDTH_MIN), more)
    room -= cell_len(name) + tail.cell_len
    details = Text()
    for detail in label.details:
        if details.cell_len + detail.cell_len + 2 <= room:
            details.append("  ").append_text(detail)
    line = Text.assemble((guide, "dim"), (f"{label.symbol} ", label.style), name)
    return line.append_text(details).append_text(tail)


def shorten(text: str, width: int, more: str) -> str:
    """The text with its middle left out if it is too wide; names differ at their ends."""
    if cell_len(text) <= width:
        return text
    kept = width - cell_len(more)
    head = kept // 2
    start = set_cell_size(text, head)
    end = text
    while cell_len(end) > kept - head:
        end = end[1:]
    return f"{start.rstrip()}{more}{end}"
