"""A write that counts only if nobody else wrote meanwhile: all of it is there, or nothing."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from penstock.db import Database, open_database
from penstock.db.database import Overtaken
from tests.databases import capability_folder

STATEMENTS = """
-- name: note
-- Write a note.
INSERT INTO notes (text) VALUES (:text)

-- name: notes
-- All notes.
SELECT text FROM notes ORDER BY text
"""
TABLE = "CREATE TABLE notes (text TEXT NOT NULL);"
LONG = "x" * 200_000  # more than is kept back before it is sent
NO_NOTE = (sqlite3.IntegrityError, psycopg.errors.NotNullViolation)


@pytest.fixture
def db(blank_url: str, tmp_path: Path) -> Iterator[Database]:
    extra = capability_folder(tmp_path / "capability", STATEMENTS, {"9001_notes": TABLE})
    database = open_database(blank_url, extra=[extra])
    database.migrate()
    yield database
    database.close()


def epoch(db: Database) -> int:
    """Of a write that was just made."""
    with db.write() as tx:
        return tx.epoch


def note(db: Database, last: int, *texts: str | None, error: Exception | None = None) -> None:
    with db.write(after=last) as tx:
        for text in texts:
            tx.execute("note", text=text)
        if error is not None:
            raise error
        assert tx.epoch == last + 1


def notes(db: Database) -> list[str]:
    with db.read() as tx:
        return [text for (text,) in tx.fetch("notes")]


def check_goes_on(db: Database) -> None:
    """What failed left nothing, and the next one is good."""
    assert notes(db) == []
    last = epoch(db)
    note(db, last, "next")
    assert notes(db) == ["next"]
    assert epoch(db) == last + 2


def test_it_is_there_when_nobody_else_wrote(db: Database) -> None:
    last = epoch(db)
    for step, text in enumerate("abc"):
        note(db, last + step, text)
    assert notes(db) == ["a", "b", "c"]


def test_nothing_of_it_is_there_when_somebody_else_did(db: Database) -> None:
    last = epoch(db)
    epoch(db)
    with pytest.raises(Overtaken):
        note(db, last, "late")
    check_goes_on(db)


def test_nothing_of_it_is_there_when_its_block_raises(db: Database) -> None:
    last = epoch(db)
    with pytest.raises(ZeroDivisionError):
        note(db, last, LONG, "half", error=ZeroDivisionError())
    assert epoch(db) == last + 1
    check_goes_on(db)


def test_nothing_of_it_is_there_when_a_statement_fails(db: Database) -> None:
    with pytest.raises(NO_NOTE):
        note(db, epoch(db), LONG, None, "skipped")
    check_goes_on(db)
