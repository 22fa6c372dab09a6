"""A transaction as one SQLite statement: every write statement of the package fits in."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.db import open_database
from penstock.db.database import Overtaken
from penstock.db.fast.one_statement import OneStatementWriter
from penstock.db.folders import capability_folders
from penstock.db.sqlite import SqliteTransaction
from penstock.db.statements import expand, from_json, load_statements

STATEMENTS = load_statements("sqlite", capability_folders())
WRITTEN = [name for name, statement in STATEMENTS.items() if statement.columns]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "penstock.db"
    with closing(open_database(f"sqlite:///{path}")) as database:
        database.migrate()
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        yield opened


@pytest.fixture
def writer(connection: sqlite3.Connection) -> OneStatementWriter:
    writing = SqliteTransaction(connection, STATEMENTS)
    return OneStatementWriter(STATEMENTS, connection.execute, writing.write)


def epoch(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute(STATEMENTS["last_epoch"].sql).fetchone()
    return int(number)


def test_every_write_statement_can_be_part_of_one(
    writer: OneStatementWriter, connection: sqlite3.Connection
) -> None:
    writing = [name for name in WRITTEN if name != "write_transaction"]
    assert {"put_runs", "put_lot_status", "put_arcs", "put_search_docs"} <= set(writing)
    last = epoch(connection)
    writer.write(last + 1, [(name, "[]") for name in writing])
    assert epoch(connection) == last + 1


def test_a_failed_part_undoes_all_and_allows_a_retry(
    writer: OneStatementWriter, connection: sqlite3.Connection
) -> None:
    last = epoch(connection)
    good, bad = ("put_tags", '[["pii", null]]'), ("put_sources", '[["s", null, null, null, 0, 0]]')
    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        writer.write(last + 1, [good, bad])
    with pytest.raises(Overtaken):
        writer.write(last + 2, [good])
    assert (epoch(connection), connection.in_transaction) == (last, False)
    sql = STATEMENTS["read_tag"].sql
    assert connection.execute(sql, {"name": "pii"}).fetchall() == []
    writer.write(last + 1, [good])
    assert connection.execute(sql, {"name": "pii"}).fetchall() == [("pii", None)]


def test_rows_are_read_from_a_json_of_lists() -> None:
    statement = expand("put", "INSERT INTO t (id, n) {rows id uuid, n bigint}", "sqlite")
    assert from_json(statement, "new.text") == (
        "INSERT INTO t (id, n) SELECT column1 AS id, column2 AS n FROM (SELECT "
        "json_extract(value, '$[0]') AS column1, json_extract(value, '$[1]') AS column2 "
        "FROM json_each(new.text)) WHERE true"
    )
