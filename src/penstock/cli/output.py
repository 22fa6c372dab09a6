"""How output looks: documents as JSON, tables for people, complaints on stderr."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from penstock.cli.stdout import give_up

STATE_STYLES = {
    "COMPLETED": "green",
    "RUNNING": "cyan",
    "FAILED": "bold red",
    "ABORTED": "magenta",
    "NEW": "dim",
}
Cell = str | int | Text | None
_WIDTH_MAX = 10_000


def out() -> Console:
    """Where results go. Colours are left out in pipes and when NO_COLOR is set."""
    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    """Where progress and complaints go."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def line_width(console: Console) -> int:
    """How long a line may be: as long as it is, unless a terminal or COLUMNS says otherwise."""
    return console.width if console.is_terminal or "COLUMNS" in os.environ else _WIDTH_MAX


def complain(message: str) -> None:
    """Say on stderr what went wrong: in one line, or in as many as there are faults."""
    lines = (" ".join(plain(line).split()) for line in message.split("\n"))
    _write_err("penstock: " + _set_in(filter(None, lines)))


def note(message: str) -> None:
    """Say something on stderr that is no result."""
    _write_err(_set_in(map(plain, message.split("\n"))))


def _set_in(lines: Iterable[str]) -> str:
    """Lines of which only the first begins where a message does: no text can pass for another."""
    return "\n  ".join(lines)


def _write_err(lines: str) -> None:
    # In one piece, so that lines of several processes do not run into each other. Where stderr is
    # full or closed the exit code has to tell it alone.
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{lines}\n")
        sys.stderr.flush()
    except OSError:
        give_up(sys.stderr)


def plain(text: str) -> str:
    """The text without characters that would steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def write_json(value: object) -> None:
    """The value as JSON on stdout."""
    document = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(document.decode() + "\n")
    sys.stdout.flush()


def write_json_line(value: object) -> None:
    """The value as one line of JSON on stdout."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


class Column(NamedTuple):
    """A column of a table: of numbers, of what must not be folded, or of what may be left out."""

    heading: str
    numbers: bool = False
    whole: bool = False
    spare: bool = False


def write_table(columns: Sequence[str | Column], rows: Iterable[Sequence[Cell]]) -> None:
    """A table; what does not fit is folded, unless there is room without what can be spared."""
    headed = [Column(each) if isinstance(each, str) else each for each in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    console = out()
    table = _table(headed, cells)
    spare = [at for at, column in enumerate(headed) if column.spare]
    wide = console.options.update(max_width=_WIDTH_MAX)
    if spare and console.measure(table, options=wide).maximum > console.width:
        kept = [at for at in range(len(headed)) if at not in spare]
        table = _table([headed[at] for at in kept], [[row[at] for at in kept] for row in cells])
        names = ", ".join(headed[at].heading for at in spare)
        note(f"{names} left out for want of room; --json and wider terminals show all")
    console.print(table)


def _table(columns: Sequence[Column], rows: Iterable[Sequence[Text]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify: JustifyMethod = "right" if column.numbers else "left"
        whole = column.whole or column.numbers
        table.add_column(column.heading, justify=justify, no_wrap=whole, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def write_fields(fields: Iterable[tuple[str, Cell]]) -> None:
    """Names and values of one thing, one below the other; what is empty is left out."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        if value not in (None, ""):
            table.add_row(name, _cell_of_lines(value))
    out().print(table)


def write_line(text: str | Text = "") -> None:
    """One line of a result."""
    out().print(text if isinstance(text, Text) else plain(text), soft_wrap=True)


def write_rest(shown: int, total: int, offset: int = 0) -> None:
    """Say on stderr how much of a list was not shown, if any."""
    if offset + shown < total:
        note(f"{shown:,} of {total:,} shown; --limit and --offset show others")


def counted(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def state_text(state: str | None) -> Text:
    """A run's state in its colour."""
    return Text(state or "", STATE_STYLES.get(state or "", ""))


def _cell_of_lines(value: Cell) -> Text:
    if isinstance(value, str) and "\n" in value:
        return Text("\n".join(map(plain, value.split("\n"))))
    return _cell(value)


def _cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    if isinstance(value, int):
        return Text(f"{value:,}")
    return Text(plain(value or ""))
