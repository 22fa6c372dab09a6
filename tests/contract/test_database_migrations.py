"""Migrations: each one is applied once and completely, even if several programs start together."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from penstock.db import Database, open_database
from penstock.db.database import Overtaken
from penstock.errors import Conflict, Invalid, Unavailable
from tests.databases import capability_folder

ROWS = """
-- name: note
-- Write a note.
INSERT INTO notes (text) VALUES (:text)

-- name: notes
-- All notes.
SELECT text FROM notes ORDER BY text
"""
NOTES = "CREATE TABLE notes (text TEXT);\n"
SQLITE_ONLY = """
CREATE TRIGGER loud AFTER INSERT ON notes BEGIN
    UPDATE notes SET text = upper(text); UPDATE notes SET text = text || ';';
END;
"""
POSTGRES_ONLY = """
CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.text := upper(NEW.text) || ';'; RETURN NEW; END; $$;
CREATE TRIGGER loud BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION shout();
"""
Opener = Callable[[], Database]


@pytest.fixture
def capability(tmp_path: Path) -> Path:
    """A capability folder to which a test may add migrations."""
    return capability_folder(tmp_path / "capability", ROWS, {"9001_notes": NOTES})


@pytest.fixture
def opener(blank_url: str, capability: Path) -> Iterator[Opener]:
    """A function that opens the test's database as a newly started program does."""
    opened: list[Database] = []

    def open_again() -> Database:
        started = shutil.copytree(capability, capability.with_name(f"capability {len(opened)}"))
        opened.append(open_database(blank_url, extra=[started]))
        return opened[-1]

    yield open_again
    for database in opened:
        database.close()


def notes(db: Database) -> list[str]:
    with db.read() as tx:
        return [text for (text,) in tx.fetch("notes")]


def note(db: Database, text: str) -> None:
    with db.write() as tx:
        tx.execute("note", text=text)


def test_a_migration_is_applied_once(opener: Opener, capability: Path) -> None:
    db = opener()
    applied = db.migrate()
    assert (applied[0], applied[-1]) == ("0001_writer", "9001_notes")
    assert applied == sorted(applied)
    assert db.migrate() == opener().migrate() == []
    (capability / "migrations" / "9002_more.sql").write_text(
        "INSERT INTO notes (text) VALUES ('more');"
    )
    assert opener().migrate() == ["9002_more"]
    assert notes(db) == ["more"]


def test_a_dialect_adds_statements_to_a_migration(opener: Opener, capability: Path) -> None:
    (capability / "migrations" / "9001_notes.sqlite.sql").write_text(SQLITE_ONLY)
    (capability / "migrations" / "9001_notes.postgresql.sql").write_text(POSTGRES_ONLY)
    db = opener()
    db.migrate()
    note(db, "one")
    assert notes(db) == ["ONE;"]


def test_a_failed_migration_changes_nothing_and_can_be_corrected(
    opener: Opener, capability: Path
) -> None:
    second = capability / "migrations" / "9002_more.sql"
    second.write_text("INSERT INTO notes (text) VALUES ('half'); INSERT INTO nowhere VALUES (1);")
    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
        opener().migrate()
    assert notes(opener()) == []
    second.write_text("INSERT INTO notes (text) VALUES ('whole');")
    db = opener()
    assert db.migrate() == ["9002_more"]
    assert notes(db) == ["whole"]


def test_a_changed_migration_is_refused_once_applied(opener: Opener, capability: Path) -> None:
    opener().migrate()
    (capability / "migrations" / "9001_notes.sql").write_text(NOTES + "-- Another thought.\n")
    (capability / "migrations" / "9002_more.sql").write_text("DROP TABLE notes;")
    with pytest.raises(Conflict, match=r"9001_notes was applied with checksum .* new migration"):
        opener().migrate()
    assert notes(opener()) == []


def test_a_database_newer_than_the_program_is_refused(opener: Opener, blank_url: str) -> None:
    opener().migrate()
    older = open_database(blank_url)
    try:
        with pytest.raises(Conflict, match="9001_notes, which this version of Penstock does not"):
            older.migrate()
    finally:
        older.close()


def test_an_old_program_stops_writing_after_a_newer_one_migrates(
    opener: Opener, capability: Path
) -> None:
    """Its cached rows are invalid too: a migration is a write like any other."""
    older = opener()
    older.migrate()
    with older.write() as tx:
        tx.execute("note", text="in time")
        epoch = tx.epoch
    (capability / "migrations" / "9002_more.sql").write_text("UPDATE notes SET text = 'migrated';")
    newer = opener()
    assert newer.migrate() == ["9002_more"]
    with pytest.raises(Overtaken):
        older.send([], after=epoch).land()
    with pytest.raises(Unavailable, match="migrations that this version of Penstock does not know"):
        note(older, "late")
    assert notes(older) == ["migrated"]
    note(newer, "new")
    assert notes(newer) == ["migrated", "new"]


def test_a_database_of_another_program_is_refused_and_unchanged(blank_url: str) -> None:
    """That includes a program with a ledger of migrations of the same name."""
    run_sql(blank_url, "CREATE TABLE users (id INTEGER)")
    with pytest.raises(Invalid, match=r"another program: .*\(users\)"):
        open_database(blank_url)
    run_sql(blank_url, "CREATE TABLE schema_migrations (version INTEGER)")
    with pytest.raises(Invalid, match=r"another program: .*\(schema_migrations, users\)"):
        open_database(blank_url)
    run_sql(blank_url, "DROP TABLE users")
    run_sql(blank_url, "DROP TABLE schema_migrations")
    open_database(blank_url).close()


def test_tables_of_other_programs_do_no_harm(opener: Opener, blank_url: str) -> None:
    opener().migrate()
    run_sql(blank_url, "CREATE TABLE users (id INTEGER)")
    assert opener().migrate() == []


def run_sql(url: str, sql: LiteralString) -> None:
    """Change the database as another program does."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute(sql)
    else:
        with psycopg.connect(url) as connection:
            connection.execute(sql)


STARTING = """
import sys
from pathlib import Path
from penstock.db import open_database
print("ready", flush=True)
sys.stdin.readline()
db = open_database(sys.argv[1], extra=[Path(sys.argv[2])])
print(*db.migrate(), flush=True)
with db.write() as tx:
    tx.execute("note", text="from a process")
db.close()
"""


def test_programs_that_start_together_apply_each_migration_once(
    opener: Opener, blank_url: str, capability: Path
) -> None:
    for number in range(9002, 9020):
        text = f"INSERT INTO notes (text) VALUES ('{number}');"
        (capability / "migrations" / f"{number}_more.sql").write_text(text)
    command = [sys.executable, "-c", STARTING, blank_url, str(capability)]
    pipe = subprocess.PIPE
    programs = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda program: program.communicate("go\n")[0], programs))
    assert [program.returncode for program in programs] == [0, 0, 0]
    applied = " ".join(answers).split()
    db = opener()
    assert db.migrate() == []
    assert len(applied) == len(set(applied))
    assert {"0001_writer", "9001_notes", "9019_more"} <= set(applied)
    assert notes(db) == [*map(str, range(9002, 9020)), *["from a process"] * 3]
