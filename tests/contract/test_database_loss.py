"""What happens when PostgreSQL goes away, and the other things only it does."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import psycopg
import pytest

from penstock.db import Database, open_database
from penstock.errors import Unavailable
from tests.databases import capability_folder
from tests.servers import PostgresServer

STATEMENTS = """
-- name: note
-- Write a note.
INSERT INTO notes (text) VALUES (:text)

-- name: add_notes
-- Write many notes.
INSERT INTO notes (text) {rows text text}

-- name: notes
-- All notes.
SELECT text FROM notes ORDER BY text

-- name: plan_of_a_lookup
-- How the server would find notes by their text.
EXPLAIN SELECT n.text FROM {each texts text AS k} JOIN notes n ON n.text = k.value

-- name: refer
-- Write a row that refers to another, which is looked for by the commit.
INSERT INTO referring (id, other) VALUES (:id, :other)

-- name: later
-- One microsecond later.
SELECT :at + 1
"""

TABLES = """
CREATE TABLE notes (text TEXT NOT NULL);
CREATE INDEX notes_text ON notes (text);
CREATE TABLE referring (
    id    BIGINT PRIMARY KEY,
    other BIGINT NOT NULL REFERENCES referring (id) DEFERRABLE INITIALLY DEFERRED
);
"""


class Note(msgspec.Struct):
    text: str


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    fresh = postgres.create_database()
    yield fresh
    postgres.drop_database(fresh)


@pytest.fixture
def capability(tmp_path: Path) -> Path:
    """A capability folder with the table and statements of these tests."""
    return capability_folder(tmp_path, STATEMENTS, {"9001_notes": TABLES})


@pytest.fixture
def db(url: str, capability: Path) -> Iterator[Database]:
    database = open_database(url, extra=[capability])
    database.migrate()
    yield database
    database.close()


def cut_off(url: str) -> int:
    """End every other session on this database, and wait until they are gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 120000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert all(gone for (gone,) in ended)
    return len(ended)


def note(db: Database, text: str) -> None:
    with db.write() as tx:
        tx.execute("note", text=text)


def notes(db: Database) -> list[str]:
    with db.read() as tx:
        return [text for (text,) in tx.fetch("notes")]


def test_connections_that_were_cut_while_idle_are_replaced(db: Database, url: str) -> None:
    note(db, "before")
    assert notes(db) == ["before"]
    assert cut_off(url) >= 2
    assert notes(db) == ["before"]
    note(db, "later")
    assert notes(db) == ["before", "later"]


def test_a_write_that_loses_its_connection_is_unavailable_and_undone(
    db: Database, url: str
) -> None:
    def lose() -> None:
        with db.write() as tx:
            tx.execute("note", text="lost")
            cut_off(url)
            tx.execute("note", text="lost as well")

    with pytest.raises(Unavailable, match="PostgreSQL"):
        lose()
    note(db, "found")
    assert notes(db) == ["found"]


def test_a_read_that_loses_its_connection_is_unavailable(db: Database, url: str) -> None:
    def lose() -> None:
        with db.read() as tx:
            tx.fetch("notes")
            cut_off(url)
            tx.fetch("notes")

    with pytest.raises(Unavailable, match="PostgreSQL"):
        lose()
    assert notes(db) == []


def test_a_server_that_dies_is_unavailable_until_it_is_back(capability: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="penstock-pg-", dir="/tmp"))
    server = PostgresServer.start(folder)
    try:
        db = open_database(server.url(), extra=[capability])
        db.migrate()
        note(db, "kept")
        assert notes(db) == ["kept"]
        server.kill()
        for use in (notes, lambda db: note(db, "lost")):
            with pytest.raises(Unavailable, match="PostgreSQL"):
                use(db)
        server.restart()
        assert notes(db) == ["kept"]
        note(db, "later")
        assert notes(db) == ["kept", "later"]
        db.close()
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(params=["whenever", "after"])
def after(request: pytest.FixtureRequest, db: Database) -> int | None:
    """The epoch of the write that must be the last one, if that is asked for."""
    with db.write() as tx:
        return tx.epoch if request.param == "after" else None


def test_an_error_that_the_block_swallows_still_undoes_it(db: Database, after: int | None) -> None:
    def swallow() -> None:
        with db.write(after=after) as tx:
            tx.execute("note", text="good")
            tx.execute("note", text=None)
            with pytest.raises(psycopg.errors.NotNullViolation):
                tx.fetch("notes")

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        swallow()
    note(db, "later")
    assert notes(db) == ["later"]


def test_a_commit_that_fails_undoes_it(db: Database, after: int | None) -> None:
    def refer() -> None:
        with db.write(after=after) as tx:
            tx.execute("note", text="good")
            tx.execute("refer", id=1, other=2)

    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        refer()
    note(db, "later")
    assert notes(db) == ["later"]


def test_text_with_a_nul_is_refused_and_the_next_write_is_good(db: Database) -> None:
    with pytest.raises(psycopg.DataError):
        note(db, "nul \x00 inside")
    with pytest.raises(psycopg.DataError), db.write() as tx:
        tx.write("add_notes", [Note("nul \x00 inside")])
    note(db, "plain")
    assert notes(db) == ["plain"]


def test_readings_that_hold_every_connection_make_others_wait_and_then_refuse(
    url: str, capability: Path
) -> None:
    database = open_database(url, extra=[capability], wait_seconds=0.05)
    try:
        database.migrate()
        with ExitStack() as held:
            for _ in range(8):
                held.enter_context(database.read()).fetch("notes")
            with pytest.raises(Unavailable, match="all 8 connections"), database.read():
                pytest.fail("a ninth connection")
        assert notes(database) == []
    finally:
        database.close()


def test_a_bigint_may_meet_a_small_number(db: Database) -> None:
    """PostgreSQL takes a parameter beside a bare number as int4 unless it is told better."""
    with db.read() as tx:
        assert tx.fetch("later", at=2**53) == [(2**53 + 1,)]


def test_the_writer_uses_indexes_from_the_first_row_on(db: Database) -> None:
    with db.write() as tx:
        plan = "\n".join(line for (line,) in tx.fetch("plan_of_a_lookup", texts=["a"]))
    assert "notes_text" in plan
    assert "Seq Scan" not in plan
