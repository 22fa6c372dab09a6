"""Output of commands: JSON documents, tables for people, errors on stderr."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from penstock.cli.stdout import discard_writes

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
    """Return the console for results; it has no colors in pipes and with NO_COLOR."""
    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    """Return the console for progress and errors."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def line_width(console: Console) -> int:
    """Return the width of a terminal or COLUMNS; lines in pipes are not cut."""
    return console.width if console.is_terminal or "COLUMNS" in os.environ else _WIDTH_MAX


def complain(message: str) -> None:
    """Write an error to stderr, one line for each fault."""
    lines = (" ".join(plain(line).split()) for line in message.split("\n"))
    _write_err("penstock: " + _indent(filter(None, lines)))


def note(message: str) -> None:
    """Write a remark to stderr."""
    _write_err(_indent(map(plain, message.split("\n"))))


def _indent(lines: Iterable[str]) -> str:
    """Indent all lines but the first, so that no text looks like another message."""
    return "\n  ".join(lines)


def _write_err(lines: str) -> None:
    # One write, so that lines of several processes do not mix. If stderr is full or closed, the
    # exit code has to be enough.
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{lines}\n")
        sys.stderr.flush()
    except OSError:
        discard_writes(sys.stderr)


def plain(text: str) -> str:
    """Replace control characters, which could control the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def write_json(value: object) -> None:
    """Write a value as JSON to stdout."""
    document = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(document.decode() + "\n")
    sys.stdout.flush()


def write_json_line(value: object) -> None:
    """Write a value as one line of JSON to stdout."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


class Column(NamedTuple):
    """A column of a table."""

    heading: str
    numbers: bool = False
    whole: bool = False  # not folded
    spare: bool = False  # omitted if the table is too wide


def write_table(columns: Sequence[str | Column], rows: Iterable[Sequence[Cell]]) -> None:
    """Write a table; omit spare columns or fold cells if it is too wide."""
    all_columns = [Column(each) if isinstance(each, str) else each for each in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    console = out()
    table = _table(all_columns, cells)
    spare = [at for at, column in enumerate(all_columns) if column.spare]
    wide = console.options.update(max_width=_WIDTH_MAX)
    if spare and console.measure(table, options=wide).maximum > console.width:
        shown = [at for at in range(len(all_columns)) if at not in spare]
        rows_shown = [[row[at] for at in shown] for row in cells]
        table = _table([all_columns[at] for at in shown], rows_shown)
        names = ", ".join(all_columns[at].heading for at in spare)
        note(f"{names}: not shown, the terminal is too narrow; --json shows all")
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
    """Write names and values, one a line, without empty values."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        if value not in (None, ""):
            table.add_row(name, _cell_of_lines(value))
    out().print(table)


def write_line(text: str | Text = "") -> None:
    """Write one line of a result."""
    out().print(text if isinstance(text, Text) else plain(text), soft_wrap=True)


def write_rest(shown: int, total: int, offset: int = 0) -> None:
    """Note on stderr how much of a list is not shown."""
    if offset + shown < total:
        note(f"{shown:,} of {total:,} shown; --limit and --offset show others")


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: 1 lot, 2 lots."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def state_text(state: str | None) -> Text:
    """Color the state of a run."""
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
