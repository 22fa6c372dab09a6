"""The contract of `Database.listen`, on SQLite and PostgreSQL."""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from penstock.db import Database, open_database
from penstock.errors import Unavailable
from tests.contract.noting import migrated
from tests.databases import capability_folder
from tests.servers import PostgresServer

CHANNEL = "notes_told"
LONG = 60.0
STATEMENTS = """
-- name: note
-- Write a note.
INSERT INTO notes (text) VALUES (:text)
"""
TABLE = "CREATE TABLE notes (text TEXT NOT NULL);"
TRIGGER = f"""
CREATE FUNCTION tell_of_notes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('{CHANNEL}', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER notes_told AFTER INSERT ON notes
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_notes();
"""


@pytest.fixture
def capability(tmp_path: Path) -> Path:
    """A capability folder with a table that notifies of its rows."""
    migrations = {"9001_notes": TABLE, "9001_notes.postgresql": TRIGGER}
    return capability_folder(tmp_path / "capability", STATEMENTS, migrations)


@pytest.fixture
def db(own_url: str, capability: Path) -> Iterator[Database]:
    with migrated(own_url, capability) as database:
        yield database


def note(database: Database, text: str = "hello") -> None:
    with database.write() as tx:
        tx.execute("note", text=text)


def test_a_wait_without_commits_times_out(db: Database) -> None:
    with db.listen(CHANNEL) as listener:
        assert not listener.wait(0)
        assert not listener.wait(0.2)


def test_a_commit_before_the_wait_is_not_missed(db: Database) -> None:
    with db.listen(CHANNEL) as listener:
        note(db)
        assert listener.wait(LONG)
        assert not listener.wait(0.1)


def test_a_commit_during_the_wait_ends_it(db: Database) -> None:
    with db.listen(CHANNEL) as listener, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(listener.wait, LONG)
        note(db)
        assert waiting.result()


def test_a_commit_of_another_connection_ends_the_wait(
    db: Database, own_url: str, capability: Path
) -> None:
    other = open_database(own_url, extra=[capability])
    try:
        with db.listen(CHANNEL) as listener:
            note(other)
            assert listener.wait(LONG)
    finally:
        other.close()


def test_a_rollback_does_not_end_the_wait(db: Database) -> None:
    def fail_after_note() -> None:
        with db.write() as tx:
            tx.execute("note", text="never")
            raise ZeroDivisionError

    with db.listen(CHANNEL) as listener:
        with pytest.raises(ZeroDivisionError):
            fail_after_note()
        assert not listener.wait(0.2)


def test_a_commit_wakes_every_listener(db: Database) -> None:
    with db.listen(CHANNEL) as one, db.listen(CHANNEL) as another:
        note(db)
        assert one.wait(LONG)
        assert another.wait(LONG)


def test_another_thread_can_end_a_wait(db: Database) -> None:
    with db.listen(CHANNEL) as listener, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(listener.wait, LONG)
        listener.wake()
        assert waiting.result()
        assert not listener.wait(0.1)


def test_a_call_to_wake_before_the_wait_is_not_lost(db: Database) -> None:
    with db.listen(CHANNEL) as listener:
        for _ in range(10_000):
            listener.wake()
        waited = threading.Event()
        while not waited.is_set():
            assert listener.wait(LONG)
            if not listener.wait(0.05):
                waited.set()
    listener.wake()  # harmless after the end


def test_a_commit_on_another_channel_does_not_end_the_wait(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    database = open_database(url)
    with database.listen("mine") as listener, psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_notify('theirs', '')")
        assert not listener.wait(0.2)
        other.execute("SELECT pg_notify('mine', '')")
        assert listener.wait(LONG)
    database.close()
    postgres.drop_database(url)


def test_a_lost_connection_is_replaced_and_ends_the_wait(
    postgres: PostgresServer, capability: Path
) -> None:
    url = postgres.create_database()
    database = open_database(url, extra=[capability])
    database.migrate()
    with database.listen(CHANNEL) as listener:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert listener.wait(LONG)
        assert not listener.wait(0.1)
        note(database)
        assert listener.wait(LONG)
    database.close()
    postgres.drop_database(url)


def test_a_listener_waits_for_a_stopped_server(capability: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="penstock-pg-", dir="/tmp"))
    server = PostgresServer.start(folder)
    try:
        database = open_database(server.url(), extra=[capability])
        database.migrate()
        with database.listen(CHANNEL) as listener:
            server.kill()
            assert not listener.wait(0.5)
            with (
                pytest.raises(Unavailable, match="PostgreSQL"),
                database.listen(CHANNEL) as nobody,
            ):
                nobody.wait(0)
            server.restart()
            assert listener.wait(LONG)
            note(database)
            assert listener.wait(LONG)
        database.close()
    finally:
        server.stop()
        shutil.rmtree(folder)
