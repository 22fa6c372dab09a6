"""The columns of tables, read from the migrations, and the markers that spell them out.

A statement names a table instead of its columns:

- `{columns runs r}`: `r.id, r.external_id, …`; the alias may be left out.
- `{insert runs}`: `INSERT INTO runs (…) {rows …}`, without a column that the database numbers.
- `{upsert runs}`: the same; a row whose primary key exists is updated instead.
  `{upsert runs, keep job_id, created_at}` leaves these columns of such a row as they are.
- `{rows runs}`: a `{rows …}` marker with all columns, and their kinds.

`{columns runs r, except namespace}` leaves columns out, and so do `insert` and `rows`.

Only the portable files of migrations are read, where each column has a line of its own.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from typing import NamedTuple

from penstock.db.folders import SqlFile, sql_files

_IDENTITY = "identity"
_KINDS = {"UUID": "uuid", "TEXT": "text", "BIGINT": "bigint", "INTEGER": "bigint"}
_KINDS |= {"{identity}": _IDENTITY}
_KIND = "|".join(map(re.escape, _KINDS))
_CHANGE = re.compile(
    rf"""^CREATE\ TABLE\ (?P<created>\w+)\ \(\n(?P<body>.*?)^\)
       | ^ALTER\ TABLE\ (?P<altered>\w+)\ (?:
             ADD\ COLUMN\ (?P<added>\w+)\ (?P<kind>{_KIND})
           | DROP\ COLUMN\ (?P<dropped>\w+)
           | (?P<unknown>\w+)
         )""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_COLUMN = re.compile(rf"^ +(\w+) +({_KIND})(.*)", re.MULTILINE)
_KEY = re.compile(r"PRIMARY KEY \(([^)]*)\)")
_MARKER = re.compile(
    r"""\{ (?: columns\ (?P<selected>\w+) (?:\ (?P<alias>\w+))?
             | (?P<act>insert|upsert|rows)\ (?P<written>\w+) )
        (?: ,\ (?P<word>except|keep)\ (?P<names>\w+(?:,\s+\w+)*) )? \}""",
    re.VERBOSE,
)


class TableColumns(NamedTuple):
    """The columns of a table with their kinds, in order, and its primary key."""

    kinds: Mapping[str, str]
    key: tuple[str, ...]


def load_tables(folders: Iterable[Traversable]) -> Mapping[str, TableColumns]:
    """Read the tables that the migrations of these folders create."""
    return _tables(tuple(file for file in sql_files(folders, "migrations") if not file.dialect))


@cache
def _tables(files: tuple[SqlFile, ...]) -> Mapping[str, TableColumns]:
    tables: dict[str, TableColumns] = {}
    for file in files:
        for change in _CHANGE.finditer(file.text):
            if created := change["created"]:
                tables[created] = _created(change["body"])
                continue
            kinds, key = tables[change["altered"]]
            if change["unknown"]:
                raise ValueError(f"{file.name}: cannot follow {change[0]!r}; extend db/tables.py")
            changed = {name: kind for name, kind in kinds.items() if name != change["dropped"]}
            if added := change["added"]:
                changed[added] = _KINDS[change["kind"]]
            tables[change["altered"]] = TableColumns(changed, key)
    return tables


def _created(body: str) -> TableColumns:
    columns = _COLUMN.findall(body)
    key = _KEY.search(body)
    return TableColumns(
        {name: _KINDS[kind] for name, kind, _ in columns},
        tuple(key[1].split(", "))
        if key
        else tuple(name for name, _, rest in columns if "PRIMARY KEY" in rest),
    )


def spell_columns(name: str, sql: str, tables: Mapping[str, TableColumns]) -> str:
    """Replace the markers of tables in a statement; `name` is for error messages."""
    return _MARKER.sub(lambda marker: _spelled(name, marker, tables), sql)


def selected_columns(sql: str, tables: Mapping[str, TableColumns]) -> tuple[str, ...]:
    """The columns of a statement that begins with `SELECT {columns …}`."""
    marker = _MARKER.match(sql, len("SELECT ")) if sql.startswith("SELECT ") else None
    if marker is None or not marker["selected"]:
        return ()
    left_out = _names(marker)
    return tuple(each for each in tables[marker["selected"]].kinds if each not in left_out)


def _spelled(name: str, marker: re.Match[str], tables: Mapping[str, TableColumns]) -> str:
    table = marker["selected"] or marker["written"]
    if table not in tables:
        raise ValueError(f"{name}: no migration creates a table {table} with a line per column")
    kinds, key = tables[table]
    names = _names(marker)
    if unknown := names - kinds.keys():
        raise ValueError(f"{name}: table {table} has no {', '.join(sorted(unknown))}")
    act = marker["act"] or "columns"
    if marker["word"] not in (None, "keep" if act == "upsert" else "except"):
        raise ValueError(f"{name}: {{{act} …}} does not take '{marker['word']}'")
    left_out = set() if act == "upsert" else names
    if act == "columns":
        prefix = f"{marker['alias']}." if marker["alias"] else ""
        return ", ".join(f"{prefix}{each}" for each in kinds if each not in left_out)
    written = {
        each: kind for each, kind in kinds.items() if each not in left_out and kind != _IDENTITY
    }
    rows = f"{{rows {', '.join(f'{each} {kind}' for each, kind in written.items())}}}"
    if act == "rows":
        return rows
    insert = f"INSERT INTO {table} ({', '.join(written)})\n{rows}"
    if act == "insert":
        return insert
    sets = [f"{each} = excluded.{each}" for each in written if each not in {*key, *names}]
    update = f"UPDATE SET {', '.join(sets)}" if sets else "NOTHING"
    return f"{insert}\nON CONFLICT ({', '.join(key)}) DO {update}"


def _names(marker: re.Match[str]) -> set[str]:
    return set(re.findall(r"\w+", marker["names"] or ""))
