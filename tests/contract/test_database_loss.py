"""What happens when PostgreSQL goes away, and the other things only it does."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from penstock.db import Database, open_database
from penstock.errors import Unavailable
from tests.servers import PostgresServer

STATEMENTS = """
-- name: note
-- Write a note.
INSERT INTO notes (text) VALUES (:text)

-- name: notes
-- All notes.
SELECT text FROM notes ORDER BY text
"""


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    fresh = postgres.create_database()
    yield fresh
    postgres.drop_database(fresh)


@pytest.fixture
def db(url: str, tmp_path: Path) -> Iterator[Database]:
    for kind, name, text in (
        ("statements", "portable.sql", STATEMENTS),
        ("migrations", "9001_notes.sql", "CREATE TABLE notes (text TEXT NOT NULL);"),
    ):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / name).write_text(text)
    database = open_database(url, extra=[tmp_path])
    database.migrate()
    yield database
    database.close()


def cut_off(url: str) -> int:
    """End every other session on this database, and wait until they are gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
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


def test_a_server_that_restarts_is_found_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    pass


def test_an_error_that_the_block_swallows_still_undoes_it(db: Database) -> None:
    def swallow() -> None:
        with db.write() as tx:
            tx.execute("note", text="good")
            tx.execute("note", text=None)
            with pytest.raises(psycopg.errors.NotNullViolation):
                tx.fetch("notes")

    with pytest.raises((psycopg.Error, Unavailable)):
        swallow()
    assert notes(db) == []


@pytest.mark.parametrize("text", ["nul \x00 inside"])
def test_text_with_a_nul_is_refused_and_the_next_write_is_good(db: Database, text: str) -> None:
    with pytest.raises(psycopg.DataError):
        note(db, text)
    note(db, "plain")
    assert notes(db) == ["plain"]
