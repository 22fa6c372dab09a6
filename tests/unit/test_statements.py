"""How statements are read from their files and written for each dialect."""

from pathlib import Path

import msgspec
import pytest

from penstock.db.folders import SqlFile, capability_folders
from penstock.db.migrate import IDENTITY, load_migrations, split_script
from penstock.db.statements import (
    Statement,
    check_selects,
    check_shape,
    expand,
    load_statements,
    parse,
)
from penstock.db.tables import TableColumns, load_tables, spell_columns

ONE_DIALECT_ONLY = {
    "lock_migrations",
    "configure_reader",
    "configure_writer",
    "next_epoch_after",
    "create_transaction_view",
    "create_turn_trigger",
    "create_part_trigger",
    "write_transaction",
}


def capability(folder: Path, **files: str) -> Path:
    """A function that makes a capability folder. `__` in a file name stands for a dot."""
    (folder / "statements").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / "statements" / (name.replace("__", ".") + ".sql")).write_text(text)
    return folder


def statement_text(name: str, sql: str, comment: str = "Says something.") -> str:
    return f"-- name: {name}\n-- {comment}\n{sql}\n"


def load_folder(folder: Path, dialect: str = "sqlite") -> dict[str, str]:
    return {name: s.sql for name, s in load_statements(dialect, [folder]).items()}


@pytest.mark.parametrize(
    ("sql", "sqlite", "postgresql", "params"),
    [
        ("SELECT :a, :b, :a", "SELECT :a, :b, :a", "SELECT $1, $2, $1", ("a", "b")),
        ("SELECT ':a', \":b\", 'it''s :c'", *["SELECT ':a', \":b\", 'it''s :c'"] * 2, ()),
        (
            "SELECT x::text, :x::text",
            "SELECT x::text, :x::text",
            "SELECT x::text, $1::text",
            ("x",),
        ),
        ("SELECT '{each x uuid AS k}'", *["SELECT '{each x uuid AS k}'"] * 2, ()),
        (
            "SELECT 1 FROM {each ids uuid AS k} WHERE x = :x",
            "SELECT 1 FROM json_each(:ids) AS k WHERE x = :x",
            "SELECT 1 FROM unnest($1::uuid[]) AS k(value) WHERE x = $2",
            ("ids", "x"),
        ),
        (
            "SELECT CAST(:a AS UUID), CAST(:b AS BIGINT), 'UUID', uuid",
            "SELECT CAST(:a AS TEXT), CAST(:b AS INTEGER), 'UUID', uuid",
            "SELECT CAST($1 AS UUID), CAST($2 AS BIGINT), 'UUID', uuid",
            ("a", "b"),
        ),
    ],
)
def test_a_statement_is_translated_for_its_dialect(
    sql: str, sqlite: str, postgresql: str, params: tuple[str, ...]
) -> None:
    for dialect, text in (("sqlite", sqlite), ("postgresql", postgresql)):
        statement = expand("s", sql, dialect)
        assert (statement.sql, statement.params) == (text, params)


def test_rows_are_values_on_sqlite_and_json_on_postgresql() -> None:
    sql = "INSERT INTO t (id, on_) {rows id uuid, on_ boolean, j text} ON CONFLICT DO NOTHING"
    sqlite, postgresql = (expand("s", sql, d) for d in ("sqlite", "postgresql"))
    assert sqlite.sql == (
        "INSERT INTO t (id, on_) SELECT column1 AS id, column2 AS on_, column3 AS j"
        " FROM (VALUES (?, ?, ?)) WHERE column1 IS NOT NULL ON CONFLICT DO NOTHING"
    )
    assert sqlite.row_sql == "(?, ?, ?)"
    assert postgresql.sql == (
        "INSERT INTO t (id, on_) SELECT id, on_::int AS on_, j FROM json_to_recordset($1::json)"
        " AS r(id uuid, on_ boolean, j text) ON CONFLICT DO NOTHING"
    )
    assert sqlite.columns == postgresql.columns == ("id", "on_", "j")


def test_rows_with_long_texts_are_lists_on_postgresql() -> None:
    sql = "INSERT INTO t (id, on_, j) {rows id uuid, on_ boolean, j long}"
    sqlite, postgresql = (expand("s", sql, d) for d in ("sqlite", "postgresql"))
    assert sqlite.sql.endswith("FROM (VALUES (?, ?, ?)) WHERE column1 IS NOT NULL")
    assert postgresql.sql == (
        "INSERT INTO t (id, on_, j) SELECT id, on_::int AS on_, j"
        " FROM unnest($1::uuid[], $2::boolean[], $3::text[]) AS r(id, on_, j)"
    )
    assert (sqlite.column_kinds, postgresql.column_kinds) == ((), ("uuid", "boolean", "text"))
    assert sqlite.columns == postgresql.columns == postgresql.params == ("id", "on_", "j")


def test_rows_in_parentheses_are_a_table() -> None:
    sql = "UPDATE t SET a = r.a FROM ({rows id uuid, a text}) AS r WHERE t.id = r.id"
    sqlite, postgresql = (expand("s", sql, d) for d in ("sqlite", "postgresql"))
    assert "FROM (SELECT column1 AS id, column2 AS a FROM (VALUES (?, ?)) WHERE" in sqlite.sql
    assert "FROM (SELECT id, a FROM json_to_recordset($1::json)" in postgresql.sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {each ids}",
        "SELECT {each ids number AS k}",
        "SELECT {nothing}",
        "INSERT INTO t {rows a text, b}",
        "INSERT INTO t {rows a text} WHERE x = :x",
        "INSERT INTO t {rows a text} {rows a text}",
    ],
)
@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_a_marker_that_cannot_be_expanded_is_refused(sql: str, dialect: str) -> None:
    with pytest.raises(ValueError, match=r"^s: "):
        expand("s", sql, dialect)


def test_a_file_contains_names_descriptions_and_sql() -> None:
    text = "-- About the file.\n\n-- name: a\n-- Two\n-- lines.\nSELECT 1 -- one\n  /* 2 */;\n\n"
    file = SqlFile("f.sql", "", text + statement_text("b", "SELECT '--', 2"))
    assert list(parse(file)) == [
        ("a", "Two lines.", "SELECT 1"),
        ("b", "Says something.", "SELECT '--', 2"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1;\n" + statement_text("a", "SELECT 1"), "before the first"),
        ("-- name: a\nSELECT 1", "needs a comment"),
        ("-- name: a\n--\nSELECT 1", "needs a comment"),
        ("-- name: a\n-- Nothing follows.\n", "has no SQL"),
        ("-- name: A-b\n-- Odd.\nSELECT 1", "not the name of a statement"),
        ("-- name:\n-- Odd.\nSELECT 1", "not the name of a statement"),
    ],
)
def test_a_malformed_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(parse(SqlFile("f.sql", "", text)))


def test_a_dialect_overrides_by_name(tmp_path: Path) -> None:
    why = "Differs by necessity: it can."
    folder = capability(
        tmp_path,
        portable=statement_text("a", "SELECT 1") + statement_text("b", "SELECT 2"),
        sqlite=statement_text("a", "SELECT 10", why),
        more__postgresql=statement_text("b", "SELECT 20", why)
        + statement_text("c", "SELECT 30", why),
    )
    assert load_folder(folder, "sqlite") == {"a": "SELECT 10", "b": "SELECT 2"}
    assert load_folder(folder, "postgresql") == {
        "a": "SELECT 1",
        "b": "SELECT 20",
        "c": "SELECT 30",
    }


def test_a_folder_named_for_a_dialect_holds_overrides(tmp_path: Path) -> None:
    folder = capability(tmp_path, portable=statement_text("a", "SELECT 1"))
    (folder / "statements" / "sqlite").mkdir()
    override = statement_text("a", "SELECT 2", "Differs by necessity: it can.")
    (folder / "statements" / "sqlite" / "more.sql").write_text(override)
    assert load_folder(folder, "sqlite") == {"a": "SELECT 2"}
    assert load_folder(folder, "postgresql") == {"a": "SELECT 1"}


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_an_override_needs_a_reason(tmp_path: Path, dialect: str) -> None:
    folder = capability(tmp_path, sqlite=statement_text("a", "SELECT 1"))
    with pytest.raises(ValueError, match=r"sqlite\.sql: a .*'Differs by necessity:'"):
        load_statements(dialect, [folder])


def test_a_name_belongs_to_one_statement(tmp_path: Path) -> None:
    one = capability(tmp_path / "one", here=statement_text("a", "SELECT 1"))
    two = capability(tmp_path / "two", there=statement_text("a", "SELECT 2"))
    with pytest.raises(ValueError, match=r"a is written twice, in here\.sql and in there\.sql"):
        load_statements("sqlite", [one, two])


def test_an_unknown_name_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="there is no statement 'nowhere'"):
        load_statements("sqlite", [tmp_path])["nowhere"]


def test_every_statement_exists_for_both_databases() -> None:
    sqlite, postgresql = (
        load_statements(dialect, capability_folders()) for dialect in ("sqlite", "postgresql")
    )
    assert sqlite.keys() ^ postgresql.keys() == ONE_DIALECT_ONLY
    assert {"next_epoch", "record_migration"} <= sqlite.keys()
    for statements in (sqlite, postgresql):
        assert all(statement.sql for statement in statements.values())


class Thing(msgspec.Struct):
    id: str
    name: str


class Renamed(msgspec.Struct, rename="camel"):
    id: str
    first_name: str


class Sparse(msgspec.Struct, omit_defaults=True):
    id: str
    name: str = ""


def insert(columns: str) -> Statement:
    return expand("put", f"INSERT INTO t {{rows {columns}}}", "postgresql")


def test_rows_must_have_the_columns_of_the_statement() -> None:
    check_shape(Thing, insert("name text"))
    with pytest.raises(TypeError, match="Thing lacks at, which put writes"):
        check_shape(Thing, insert("id uuid, at bigint"))
    with pytest.raises(TypeError, match=r"put has no \{rows …\}"):
        check_shape(Thing, expand("put", "SELECT 1", "sqlite"))


@pytest.mark.parametrize("shape", [Renamed, Sparse])
def test_rows_whose_json_hides_a_column_are_refused(shape: type[msgspec.Struct]) -> None:
    with pytest.raises(TypeError, match="renamed or left out"):
        check_shape(shape, insert("id uuid"))


TABLES = {
    "things": TableColumns({"id": "uuid", "name": "text", "at": "bigint"}, ("id",)),
    "pairs": TableColumns({"one": "text", "other": "text"}, ("one", "other")),
    "log": TableColumns({"id": "identity", "note": "text"}, ()),
}


@pytest.mark.parametrize(
    ("marker", "sql"),
    [
        ("{columns things}", "id, name, at"),
        ("{columns things t}", "t.id, t.name, t.at"),
        ("{columns things t, except id, at}", "t.name"),
        ("{rows things, except at}", "{rows id uuid, name text}"),
        ("{insert log}", "INSERT INTO log (note)\n{rows note text}"),
        (
            "{upsert things, keep at}",
            "INSERT INTO things (id, name, at)\n{rows id uuid, name text, at bigint}\n"
            "ON CONFLICT (id) DO UPDATE SET name = excluded.name",
        ),
        (
            "{upsert pairs}",
            "INSERT INTO pairs (one, other)\n{rows one text, other text}\n"
            "ON CONFLICT (one, other) DO NOTHING",
        ),
    ],
)
def test_a_marker_expands_to_the_columns_of_a_table(marker: str, sql: str) -> None:
    assert spell_columns("s", marker, TABLES) == sql


@pytest.mark.parametrize(
    "marker",
    [
        "{columns nowhere}",
        "{columns things, except nothing}",
        "{columns things, keep at}",
        "{upsert things, except at}",
    ],
)
def test_a_marker_of_unknown_columns_is_refused(marker: str) -> None:
    with pytest.raises(ValueError, match=r"^s: "):
        spell_columns("s", marker, TABLES)


def test_tables_match_the_migrations(tmp_path: Path) -> None:
    folder = migrations(
        tmp_path,
        _0001_a="CREATE TABLE a (\n    id  {identity},\n    old TEXT NOT NULL\n);\n",
        _0002_b="CREATE TABLE b (\n    id UUID,\n    n BIGINT,\n    PRIMARY KEY (id, n)\n);\n",
        _0003_c="ALTER TABLE a ADD COLUMN new UUID;\nALTER TABLE a DROP COLUMN old;\n",
    )
    assert load_tables([folder]) == {
        "a": TableColumns({"id": "identity", "new": "uuid"}, ()),
        "b": TableColumns({"id": "uuid", "n": "bigint"}, ("id", "n")),
    }

    migrations(tmp_path / "renamed", _0001_a="CREATE TABLE a (\n    id UUID\n);\n")
    migrations(tmp_path / "renamed", _0002_b="ALTER TABLE a RENAME TO b;\n")
    with pytest.raises(ValueError, match=r"0002_b\.sql: cannot follow 'ALTER TABLE a RENAME'"):
        load_tables([tmp_path / "renamed"])


def test_a_struct_must_match_the_selected_columns() -> None:
    statement = expand("get", "SELECT {columns things t, except at}, 1 FROM t", "sqlite", TABLES)
    check_selects(Thing, statement)
    with pytest.raises(TypeError, match="fields of Renamed must be the columns that get selects"):
        check_selects(Renamed, statement)


def migrations(folder: Path, **files: str) -> Path:
    (folder / "migrations").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / "migrations" / (name[1:].replace("__", ".") + ".sql")).write_text(text)
    return folder


def test_migrations_are_ordered_by_number_over_all_capabilities(tmp_path: Path) -> None:
    one = migrations(tmp_path / "one", _0002_b="b", _0010_d="d")
    two = migrations(tmp_path / "two", _0001_a="a", _0003_c__sqlite="c", _0010_d__postgresql="e")
    names = {d: [m.name for m in load_migrations(d, [one, two])] for d in ("sqlite", "postgresql")}
    assert names["sqlite"] == ["0001_a", "0002_b", "0003_c", "0010_d"]
    assert names["postgresql"] == ["0001_a", "0002_b", "0010_d"]
    assert load_migrations("postgresql", [one, two])[-1].scripts == ("d", "e")


def test_type_words_are_translated_for_sqlite(tmp_path: Path) -> None:
    text = "CREATE TABLE t (id UUID, at BIGINT, name TEXT DEFAULT 'UUID')"
    folder = migrations(tmp_path, _0001_t=text)
    (sqlite,) = load_migrations("sqlite", [folder])
    assert sqlite.scripts == ("CREATE TABLE t (id TEXT, at INTEGER, name TEXT DEFAULT 'UUID')",)
    (postgresql,) = load_migrations("postgresql", [folder])
    assert postgresql.scripts == (text,)


def test_words_of_another_dialect_are_dropped(tmp_path: Path) -> None:
    text = 'CREATE TABLE t (id {identity}, key TEXT COLLATE "C") WITHOUT ROWID'
    folder = migrations(tmp_path, _0001_t=text)
    (sqlite,) = load_migrations("sqlite", [folder])
    (postgresql,) = load_migrations("postgresql", [folder])
    assert sqlite.scripts == (
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT) WITHOUT ROWID",
    )
    assert postgresql.scripts == (
        f'CREATE TABLE t (id {IDENTITY["postgresql"]}, key TEXT COLLATE "C")',
    )


def test_a_check_lists_the_states_of_an_enumeration(tmp_path: Path) -> None:
    marker = "(state TEXT {check state RunState except NEW, RUNNING})"
    folder = migrations(tmp_path, _0001_t=f"CREATE TABLE t {marker}")
    (migration,) = load_migrations("sqlite", [folder])
    states = "(state TEXT CHECK (state IN ('COMPLETED', 'FAILED', 'ABORTED')))"
    assert migration.scripts == (f"CREATE TABLE t {states}",)

    frozen = migrations(tmp_path / "frozen", _0001_t=f"CREATE TABLE t {states}")
    assert load_migrations("sqlite", [frozen])[0].checksum == migration.checksum


@pytest.mark.parametrize("marker", ["{check state Nothing}", "{check state RunState except OLD}"])
def test_a_check_of_unknown_states_is_refused(tmp_path: Path, marker: str) -> None:
    folder = migrations(tmp_path, _0001_t=f"CREATE TABLE t (state TEXT {marker})")
    with pytest.raises(ValueError, match=r"0001_t\.sql: "):
        load_migrations("sqlite", [folder])


@pytest.mark.parametrize("other", ["_0001_b", "_1_a", "_0001_B", "_name"])
def test_a_migration_with_a_bad_number_or_name_is_refused(tmp_path: Path, other: str) -> None:
    folder = migrations(tmp_path, **{"_0001_a": "a", other: "b"})
    with pytest.raises(ValueError, match=r"has the number of|not the name of a migration"):
        load_migrations("sqlite", [folder])


def test_a_script_is_split_at_the_ends_of_statements() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = ';'; DELETE FROM c; END;"
    script = f"-- First; really.\nCREATE TABLE a (b TEXT);\n{trigger}\nDROP TABLE x -- no end\n"
    assert list(split_script(script)) == [
        "-- First; really.\nCREATE TABLE a (b TEXT);",
        trigger,
        "DROP TABLE x -- no end",
    ]
    assert list(split_script("SELECT 1;\n-- Nothing more.\n")) == ["SELECT 1;"]
