"""SQLite files that are removed, replaced or damaged while they are in use."""

import os
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.db import Database, open_database
from penstock.db.sqlite import SqliteDatabase
from penstock.errors import Invalid, Unavailable
from tests.contract.noting import STATEMENTS, Note, migrated, note, notes
from tests.databases import capability_folder

GONE = "was removed .* put back the former file"
DAMAGED_ROWS = 2000


@pytest.fixture
def capability(tmp_path: Path) -> Path:
    tables = "CREATE TABLE notes (text TEXT NOT NULL);"
    return capability_folder(tmp_path / "capability", STATEMENTS, {"9001_notes": tables})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder / "a b#%.db"


@pytest.fixture
def db(file: Path, capability: Path) -> Iterator[Database]:
    with migrated(f"sqlite:///{file}", capability) as database:
        note(database, "before")
        yield database


def assert_every_call_fails(db: Database, reason: str) -> None:
    with pytest.raises(Unavailable, match=reason):
        note(db, "lost")
    with pytest.raises(Unavailable, match=reason):
        notes(db)
    with pytest.raises(Unavailable, match=reason):
        db.send([("add_notes", [Note("lost")])], after=1).land()


def test_an_unmounted_folder_refuses_calls_until_it_returns(db: Database, file: Path) -> None:
    folder = file.parent
    folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    assert_every_call_fails(db, GONE)
    assert list(folder.iterdir()) == []
    folder.rmdir()
    folder.with_name("elsewhere").rename(folder)
    note(db, "later")
    assert notes(db) == ["before", "later"]


def test_a_removed_file_accepts_no_more_calls(db: Database, file: Path) -> None:
    file.unlink()
    assert_every_call_fails(db, GONE)
    assert not file.exists()


def test_a_replaced_file_is_neither_read_nor_written(db: Database, file: Path) -> None:
    original = file.with_name("kept")
    file.rename(original)
    shutil.copy(original, file)
    before = file.read_bytes()
    assert_every_call_fails(db, "another file is in its place")
    assert file.read_bytes() == before
    original.rename(file)
    assert notes(db) == ["before"]


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_missing_log_file_refuses_every_call(db: Database, file: Path, ending: str) -> None:
    Path(f"{file}{ending}").unlink()
    assert_every_call_fails(db, f"{ending} of the database was removed")


def test_a_file_removed_during_a_write_fails_that_write(db: Database, file: Path) -> None:
    def remove_during_write() -> None:
        with db.write() as tx:
            tx.execute("note", text="lost")
            file.unlink()

    with pytest.raises(Unavailable, match=GONE):
        remove_during_write()


def test_a_removed_file_is_not_created_again(db: Database, file: Path) -> None:
    """A new reading connection must not create an empty file."""
    file.rename(file.with_name("kept"))
    assert_every_call_fails(db, GONE)
    assert not file.exists()


def test_other_connections_that_close_do_not_remove_the_log(file: Path, capability: Path) -> None:
    """The last connection to close removes the log, but not while another one has the file open."""
    url = f"sqlite:///{file}"
    with migrated(url, capability) as database:
        for text in ("one", "two"):
            with migrated(url, capability) as other:
                note(other, text)
        note(database, "three")
        assert notes(database) == ["one", "three", "two"]


def test_damage_is_reported_while_the_file_is_in_use(file: Path, capability: Path) -> None:
    url = f"sqlite:///{file}"
    with migrated(url, capability) as database, database.write() as tx:
        tx.write("add_notes", [Note("x" * 200)] * DAMAGED_ROWS)
    with file.open("r+b") as stream:  # its end, where the rows are
        stream.seek(-DAMAGED_ROWS * 100, os.SEEK_END)
        stream.write(b"\xff" * DAMAGED_ROWS * 100)
    with migrated(url, capability) as database:
        with pytest.raises(Unavailable, match=r"is damaged; .* restore a backup"):
            notes(database)
        with pytest.raises(Unavailable, match="is damaged"), database.write() as tx:
            tx.fetch("notes")


def test_damage_of_the_header_is_reported_at_start(file: Path) -> None:
    open_database(f"sqlite:///{file}").close()
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(Unavailable, match="is damaged"):
        open_database(f"sqlite:///{file}").migrate()


def test_a_failing_disk_is_reported(db: Database) -> None:
    """A file size limit simulates the disk: SQLite gets both errors from the same system call."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(
            Unavailable, match=r"could not be read or written because of a disk error"
        ):
            note(db, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    note(db, "later")
    assert notes(db) == ["before", "later"]


def test_a_read_only_file_is_reported(db: Database) -> None:
    """A read-only connection gives the same error of SQLite as a read-only disk."""
    assert isinstance(db, SqliteDatabase)
    db._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(Unavailable, match="cannot be written to"):
        note(db, "lost")
    assert notes(db) == ["before"]


def test_a_database_of_another_program_is_refused_and_unchanged(file: Path) -> None:
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE users (id INTEGER)")
    other.execute("CREATE TABLE schema_migrations (version TEXT)")
    other.close()
    before = file.read_bytes()
    with pytest.raises(Invalid, match=r"another program: .*\(schema_migrations, users\)"):
        open_database(f"sqlite:///{file}")
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]
