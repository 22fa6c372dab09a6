"""Named SQL statements, read once, and expanded for one dialect at their first use.

A file is a list of statements, each with its name and at least one sentence:

    -- name: datasets_by_ids
    -- Find the datasets with these ids.
    SELECT {columns datasets d} FROM {each ids uuid AS k} JOIN datasets d ON d.id = k.value

Parameters and markers:

- `:name` is a parameter.
- `{each ids uuid AS k}` is a list parameter as a table with the column `value`.
- `w.lot {in lots text}` compares a column with a list. Use it for the last column of a key.
- `{rows id uuid, name text}` is a batch of rows: the source of an INSERT, or in parentheses a table
  in UPDATE … FROM or IN. Its first column is never NULL.
- `{columns …}`, `{insert …}`, `{upsert …}` and `{rows TABLE}` spell out the columns of a table: see
  `penstock.db.tables`.

Kinds are uuid, text, bigint, boolean (stored as 0 or 1) and, for a column of rows, long: long text,
which PostgreSQL reads faster from an array than from JSON.

SQLite reads the types UUID and BIGINT as TEXT and INTEGER, so `CAST(:id AS UUID) IS NULL` works on
both databases. PostgreSQL needs that cast: a bare `:id IS NULL` has no type. Cast every SUM and AVG
too: PostgreSQL returns decimals.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources.abc import Traversable
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import msgspec

from penstock.db.folders import SqlFile, sql_files
from penstock.db.tables import TableColumns, load_tables, selected_columns, spell_columns

TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "[^"]*"            # literals and quoted names stay
      | (?P<comment> --[^\n]* | /\*.*?\*/)
      | ::
      | :(?P<param> [a-z_][a-z0-9_]*)
      | (?P<open> \(\s*)? \{(?P<marker> [^{}]*)\}
      | (?P<word> \b[A-Za-z_]\w*\b)""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"^-- name:[ \t]*(\S*)[ \t]*$", re.MULTILINE)
_EACH = re.compile(r"each (?P<param>[a-z_]\w*) (?P<kind>[a-z]+) AS (?P<alias>[a-z_]\w*)")
_IN = re.compile(r"in (?P<param>[a-z_]\w*) (?P<kind>[a-z]+)")
_ROWS = re.compile(r"rows (?P<columns>[a-z_]\w* [a-z]+(?:\s*,\s*[a-z_]\w* [a-z]+)*)")
_KINDS = {"uuid": "uuid", "text": "text", "bigint": "bigint", "boolean": "boolean", "long": "text"}
SQLITE_WORDS = {"UUID": "TEXT", "BIGINT": "INTEGER"}
NECESSITY = "Differs by necessity:"
_NO_PADDING = "WHERE column1 IS NOT NULL"  # VALUES may have more rows than the batch, all NULL


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement in the words of its dialect.

    `params` are in the order of PostgreSQL's $1, $2, …; `lists` has the kinds of those that are
    lists. `selects` are the columns of a `SELECT {columns …}`.

    `columns` are the columns of a `{rows …}` marker, `row_sql` is one row of its VALUES, and
    `rows_sql` the part of the SQL that all rows come from. With `column_kinds` each column is a
    parameter, a list of that kind; without, all rows are one JSON parameter.
    """

    name: str
    sql: str
    params: tuple[str, ...]
    selects: tuple[str, ...]
    lists: Mapping[str, str]
    columns: tuple[str, ...]
    row_sql: str
    rows_sql: str
    column_kinds: tuple[str, ...]
    needs: frozenset[str] = field(repr=False)

    def missing(self, params: Mapping[str, object]) -> TypeError:
        """Build the error for a call without one of the parameters."""
        absent = ", ".join(sorted(self.needs - params.keys()))
        return TypeError(f"statement {self.name} was called without its parameter {absent}")


class Statements(Mapping[str, Statement]):
    """Statements by name, each expanded at its first use: a process uses few of them."""

    def __init__(
        self,
        dialect: str,
        texts: Mapping[str, str],
        folders: Sequence[Traversable],
    ) -> None:
        self._dialect = dialect
        self._texts = texts
        self._folders = folders
        self._expanded: dict[str, Statement] = {}

    def __getitem__(self, name: str) -> Statement:
        statement = self._expanded.get(name)
        return self._expand(name) if statement is None else statement

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    @cached_property
    def _tables(self) -> Mapping[str, TableColumns]:
        return load_tables(self._folders)

    def _expand(self, name: str) -> Statement:
        text = self._texts.get(name)
        if text is None:
            raise LookupError(
                f"there is no statement {name!r} for this database; write it in a room's "
                "statements/*.sql under '-- name: …'"
            )
        statement = expand(name, text, self._dialect, self._tables)
        self._expanded[name] = statement
        return statement


def load_statements(dialect: str, folders: Iterable[Traversable]) -> Statements:
    """Read every statement; one for this dialect replaces the portable one of the same name."""
    folders = list(folders)
    texts: dict[str, str] = {}
    origins: dict[str, SqlFile] = {}
    for file in sql_files(folders, "statements"):
        for name, text in _statements(file, dialect):
            other = origins.get(name)
            if other is not None and other.dialect == file.dialect:
                raise ValueError(f"{name} is written twice, in {other.name} and in {file.name}")
            origins[name] = file
            texts[name] = text
    return Statements(dialect, texts, folders)


@cache
def _statements(file: SqlFile, dialect: str) -> tuple[tuple[str, str], ...]:
    """Return the names and texts of a file's statements for this dialect."""
    parsed = list(parse(file))
    for name, comment, _ in parsed:
        if file.dialect and not comment.startswith(NECESSITY):
            raise ValueError(
                f"{file.name}: {name} is for one dialect; begin its comment with "
                f"'{NECESSITY}' and the reason"
            )
    if file.dialect not in ("", dialect):
        return ()
    return tuple((name, sql) for name, _, sql in parsed)


def parse(file: SqlFile) -> Iterator[tuple[str, str, str]]:
    """Yield the name, comment and SQL of each statement in a file."""
    head, *parts = _NAME.split(file.text)
    if TOKEN.sub(_drop_comment, head).strip():
        raise ValueError(f"{file.name}: there is SQL before the first '-- name:'")
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError(f"{file.name}: {name!r} is not the name of a statement")
        lines = body.strip().splitlines()
        count = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
        comment = " ".join(line.removeprefix("--").strip() for line in lines[:count]).strip()
        if not comment:
            raise ValueError(f"{file.name}: {name} needs a comment that describes it")
        sql = "\n".join(lines[count:])
        if "--" in sql or "/*" in sql:
            sql = TOKEN.sub(_drop_comment, sql)
        sql = sql.strip().removesuffix(";").rstrip()
        if not sql:
            raise ValueError(f"{file.name}: {name} has no SQL")
        yield name, comment, sql


def _drop_comment(match: re.Match[str]) -> str:
    return "" if match["comment"] else match[0]


def expand(
    name: str, sql: str, dialect: str, tables: Mapping[str, TableColumns] = MappingProxyType({})
) -> Statement:
    """Translate parameters and markers into the dialect."""
    expansion = _PostgresExpansion(name) if dialect == "postgresql" else _SqliteExpansion(name)
    text = TOKEN.sub(expansion.replace, spell_columns(name, sql, tables))
    if expansion.columns and expansion.params not in ([], ["rows"], expansion.columns):
        raise ValueError(f"{name}: a statement with {{rows …}} takes no other parameter")
    return Statement(
        name=name,
        sql=text,
        params=tuple(expansion.params),
        selects=selected_columns(sql, tables),
        lists=expansion.lists,
        columns=tuple(expansion.columns),
        row_sql=expansion.row_sql,
        rows_sql=expansion.rows_sql,
        column_kinds=tuple(expansion.column_kinds),
        needs=frozenset(expansion.params),
    )


class _Expansion(ABC):
    """The expansion of one statement, and the parameters that it has met so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.params: list[str] = []
        self.lists: dict[str, str] = {}
        self.columns: list[str] = []
        self.column_kinds: list[str] = []
        self.row_sql = self.rows_sql = ""

    @abstractmethod
    def param(self, param: str) -> str: ...

    @abstractmethod
    def each(self, param: str, kind: str, alias: str) -> str: ...

    @abstractmethod
    def among(self, param: str, kind: str) -> str: ...

    @abstractmethod
    def rows(self, kinds: Mapping[str, str], by_column: bool) -> str: ...

    def replace(self, match: re.Match[str]) -> str:
        if param := match["param"]:
            return self._number(param)
        if (marker := match["marker"]) is None:
            return match[0]
        opening = match["open"] or ""
        if each := _EACH.fullmatch(marker.strip()):
            kind = self.lists[each["param"]] = self._kind(each["kind"])
            self._number(each["param"])
            return opening + self.each(each["param"], kind, each["alias"])
        if among := _IN.fullmatch(marker.strip()):
            kind = self.lists[among["param"]] = self._kind(among["kind"])
            self._number(among["param"])
            return opening + self.among(among["param"], kind)
        if rows := _ROWS.fullmatch(marker.strip()):
            if self.columns:
                raise ValueError(f"{self.name}: a statement can have only one {{rows …}}")
            pairs = [pair.split() for pair in rows["columns"].split(",")]
            self.columns = [column for column, _ in pairs]
            kinds = {column: self._kind(kind) for column, kind in pairs}
            by_column = any(kind == "long" for _, kind in pairs)
            return opening + self.rows(kinds, by_column)
        raise ValueError(f"{self.name}: {{{marker}}} is not a marker; see penstock.db.statements")

    def _number(self, param: str) -> str:
        if param not in self.params:
            self.params.append(param)
        return self.param(param)

    def _kind(self, kind: str) -> str:
        if kind not in _KINDS:
            raise ValueError(f"{self.name}: {kind!r} is none of {', '.join(_KINDS)}")
        return _KINDS[kind]


class _SqliteExpansion(_Expansion):
    def replace(self, match: re.Match[str]) -> str:
        return SQLITE_WORDS.get(match[0]) or super().replace(match)

    def param(self, param: str) -> str:
        return f":{param}"

    def each(self, param: str, kind: str, alias: str) -> str:
        return f"json_each(:{param}) AS {alias}"

    def among(self, param: str, kind: str) -> str:
        return f"IN (SELECT value FROM json_each(:{param}))"

    def rows(self, kinds: Mapping[str, str], by_column: bool) -> str:
        self.row_sql = f"({', '.join('?' for _ in kinds)})"
        self.rows_sql = f"(VALUES {self.row_sql})"
        columns = ", ".join(
            f"column{number} AS {column}" for number, column in enumerate(kinds, start=1)
        )
        return f"SELECT {columns} FROM {self.rows_sql} {_NO_PADDING}"


class _PostgresExpansion(_Expansion):
    def param(self, param: str) -> str:
        return f"${self.params.index(param) + 1}"

    def each(self, param: str, kind: str, alias: str) -> str:
        return f"unnest({self.param(param)}::{kind}[]) AS {alias}(value)"

    def among(self, param: str, kind: str) -> str:
        return f"= ANY ({self.param(param)}::{kind}[])"

    def rows(self, kinds: Mapping[str, str], by_column: bool) -> str:
        columns = ", ".join(
            f"{column}::int AS {column}" if kind == "boolean" else column
            for column, kind in kinds.items()
        )
        self.row_sql = f"({', '.join(f'%s::{kind}' for kind in kinds.values())})"
        if by_column:
            self.column_kinds = list(kinds.values())
            lists = ", ".join(f"{self._number(column)}::{kind}[]" for column, kind in kinds.items())
            self.rows_sql = f"unnest({lists}) AS r({', '.join(kinds)})"
        else:
            types = ", ".join(f"{column} {kind}" for column, kind in kinds.items())
            self.rows_sql = f"json_to_recordset({self._number('rows')}::json) AS r({types})"
        return " ".join(("SELECT", columns, "FROM", self.rows_sql))


def from_json(statement: Statement, text: str) -> str:
    """Make a statement of SQLite read its rows from JSON, a list of lists, of this name."""
    values = (
        f"json_extract(value, '$[{number}]') AS column{number + 1}"
        for number in range(len(statement.columns))
    )
    rows = f"(SELECT {', '.join(values)} FROM json_each({text}))"
    return statement.sql.replace(f"{statement.rows_sql} {_NO_PADDING}", f"{rows} WHERE true")


@lru_cache(maxsize=1024)
def row_picker(statement: Statement) -> Callable[[msgspec.Struct], Sequence[Any]]:
    """Return the function that takes a statement's columns out of a row."""
    if len(statement.columns) == 1:
        one = attrgetter(statement.columns[0])
        return lambda row: (one(row),)
    return attrgetter(*statement.columns)


@lru_cache(maxsize=1024)
def check_shape(shape: type[msgspec.Struct], statement: Statement) -> None:
    """Refuse rows that lack a column of the statement, or leave it out of their JSON."""
    if not statement.columns:
        raise TypeError(f"statement {statement.name} has no {{rows …}}; use execute for it")
    config = shape.__struct_config__
    plain = shape.__struct_fields__ == shape.__struct_encode_fields__
    if config.omit_defaults or config.array_like or not plain:
        raise TypeError(f"{shape.__name__} cannot be written: its fields are renamed or left out")
    if absent := set(statement.columns) - set(shape.__struct_fields__):
        raise TypeError(
            f"{shape.__name__} lacks {', '.join(sorted(absent))}, which {statement.name} writes"
        )


@lru_cache(maxsize=1024)
def check_selects(shape: type[msgspec.Struct], statement: Statement) -> None:
    """Refuse to read the columns of a table into a shape with other fields, or another order."""
    if shape.__struct_fields__[: len(statement.selects)] != statement.selects:
        raise TypeError(
            f"the fields of {shape.__name__} must be the columns that {statement.name} selects, in "
            f"this order: {', '.join(statement.selects)}"
        )
