"""Notes: the smallest table that tests of databases write to."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from penstock.db import Database, open_database

STATEMENTS = """
-- name: note
-- Write a note.
INSERT INTO notes (text) VALUES (:text)

-- name: add_notes
-- Write many notes.
INSERT INTO notes (text) {rows text text}

-- name: forget_notes
-- Forget many notes.
DELETE FROM notes WHERE text IN ({rows text text})

-- name: notes
-- All notes.
SELECT text FROM notes ORDER BY text
"""


class Note(msgspec.Struct):
    text: str


@contextmanager
def migrated(url: str, capability: Path) -> Iterator[Database]:
    """Open a migrated database with this capability in addition to its own."""
    with closing(open_database(url, extra=[capability])) as database:
        database.migrate()
        yield database


def note(db: Database, text: str) -> None:
    with db.write() as tx:
        tx.execute("note", text=text)


def notes(db: Database) -> list[str]:
    with db.read() as tx:
        return [text for (text,) in tx.fetch("notes")]
