"""Loss of the connection to PostgreSQL, and other behavior specific to PostgreSQL."""

import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import psycopg
import pytest
from psycopg.pq import PipelineStatus

from penstock.db import Database, open_database, postgres_connection
from penstock.db.database import Overtaken, Sent
from penstock.db.fast.pipeline import Pipeline
from penstock.db.postgres import PostgresDatabase
from penstock.errors import Unavailable
from tests.contract.noting import STATEMENTS, Note, migrated, note, notes
from tests.databases import Pool, capability_folder
from tests.patience import HANG_SECONDS
from tests.servers import PostgresServer

MORE_STATEMENTS = """
-- name: plan_of_a_lookup
-- How the server would find notes by their text.
EXPLAIN SELECT n.text FROM {each texts text AS k} JOIN notes n ON n.text = k.value

-- name: refer
-- Write a row that refers to another, which is looked for by the commit.
INSERT INTO referring (id, other) VALUES (:id, :other)

-- name: add_referring
-- Write many rows that refer to others.
INSERT INTO referring (id, other) {rows id bigint, other bigint}

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

LONG = "x" * 1000


class Referring(msgspec.Struct):
    id: int
    other: int


@pytest.fixture
def url(postgres: PostgresServer, postgres_pool: Pool) -> Iterator[str]:
    fresh = postgres_pool.copy()
    yield fresh
    postgres.drop_database(fresh)


@pytest.fixture
def capability(tmp_path: Path) -> Path:
    """A capability folder with the table and statements of these tests."""
    return capability_folder(tmp_path, STATEMENTS + MORE_STATEMENTS, {"9001_notes": TABLES})


@pytest.fixture
def db(url: str, capability: Path) -> Iterator[Database]:
    with migrated(url, capability) as database:
        yield database


def cut_off(url: str) -> int:
    """End every other session on this database and wait until they are gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        # A session that ended by itself meanwhile counts as not ended: look again.
        ended = connection.execute(
            "SELECT pid, pg_terminate_backend(pid, 120000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        ).fetchall()
        left = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s)", [[pid for pid, _ in ended]]
        ).fetchall()
    assert not left
    return len(ended)


def test_idle_connections_that_were_cut_are_replaced(db: Database, url: str) -> None:
    note(db, "before")
    assert notes(db) == ["before"]
    assert cut_off(url) >= 2
    assert notes(db) == ["before"]
    note(db, "later")
    assert notes(db) == ["before", "later"]


def test_a_write_that_loses_its_connection_is_rolled_back(db: Database, url: str) -> None:
    def lose() -> None:
        with db.write() as tx:
            tx.execute("note", text="lost")
            cut_off(url)
            tx.execute("note", text="lost as well")

    with pytest.raises(Unavailable, match="PostgreSQL"):
        lose()
    note(db, "found")
    assert notes(db) == ["found"]


def test_a_read_that_loses_its_connection_raises_unavailable(db: Database, url: str) -> None:
    def lose() -> None:
        with db.read() as tx:
            tx.fetch("notes")
            cut_off(url)
            tx.fetch("notes")

    with pytest.raises(Unavailable, match="PostgreSQL"):
        lose()
    assert notes(db) == []


def test_a_killed_server_is_unavailable_until_its_restart(capability: Path) -> None:
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


def test_an_error_caught_inside_a_block_still_rolls_back(db: Database) -> None:
    def catch_error() -> None:
        with db.write() as tx:
            tx.execute("note", text="good")
            tx.execute("note", text=None)
            with pytest.raises(psycopg.errors.NotNullViolation):
                tx.fetch("notes")

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        catch_error()
    note(db, "later")
    assert notes(db) == ["later"]


def test_a_failed_commit_rolls_back(db: Database) -> None:
    def write_dangling_row() -> None:
        with db.write() as tx:
            tx.execute("note", text="good")
            tx.execute("refer", id=1, other=2)

    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        write_dangling_row()
    note(db, "later")
    assert notes(db) == ["later"]


def send_note(db: Database, after: int | Sent, text: str, *, other: int = 1) -> Sent:
    """Send a note and a row that refers to itself by default."""
    return db.send(
        [("add_notes", [Note(text)]), ("add_referring", [Referring(1, other)])], after=after
    )


def test_a_failed_commit_undoes_a_sent_write_and_later_ones(db: Database) -> None:
    with db.write() as tx:
        last = tx.epoch
    first = send_note(db, last, "good", other=2)
    second = send_note(db, first, "behind")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        first.land()
    with pytest.raises(Overtaken):
        second.land()
    note(db, "later")
    assert notes(db) == ["later"]


def test_a_sent_write_on_a_lost_connection_raises_unavailable(db: Database, url: str) -> None:
    with db.write() as tx:
        last = tx.epoch
        tx.execute("note", text="before")
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE notes")
        first = send_note(db, last, "lost")
        second = send_note(db, first, "lost as well")
        with psycopg.connect(url, autocommit=True) as killer:
            killer.execute(
                "SELECT pg_terminate_backend(pid, 120000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
        for write in (first, second):
            with pytest.raises(Unavailable, match="PostgreSQL"):
                write.land()
    note(db, "later")
    assert notes(db) == ["before", "later"]


class DelayedPoll:
    """A poll object that waits for an event before it polls."""

    def __init__(self, ready: select.poll) -> None:
        self._ready = ready
        self.begins = threading.Event()

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        self.begins.wait(HANG_SECONDS)
        return self._ready.poll(timeout)


def test_an_answer_read_while_sending_reaches_the_waiting_thread(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libpq reads while it sends.

    Afterwards nothing more arrives that would wake the waiting thread.
    """
    assert isinstance(db, PostgresDatabase)
    with db.write() as tx:
        last = tx.epoch
    first = db.send([("add_notes", [Note("short")])], after=last)
    late = DelayedPoll(db._writer._incoming)
    monkeypatch.setattr(db._writer, "_incoming", late)
    with ThreadPoolExecutor(1) as waiting:
        answer = waiting.submit(first.land)
        second = db.send([("add_notes", [Note(LONG)] * 10_000)], after=first)
        late.begins.set()
        answer.result(HANG_SECONDS)
        waiting.submit(second.land).result(HANG_SECONDS)
    assert len(notes(db)) == 10_001


class PausingLock:
    """A lock whose holder, once its pipeline has failed, releases it until more was sent."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pg = pipeline._pg
        self._lock = pipeline._using
        self.has_failed, self.has_sent = threading.Event(), threading.Event()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        is_first = (
            self._pg.pipeline_status == PipelineStatus.ABORTED and not self.has_failed.is_set()
        )
        self._lock.release()
        if is_first:
            self.has_failed.set()
            self.has_sent.wait(HANG_SECONDS)


def test_a_write_sent_during_a_failed_answer_gets_its_own(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libpq drops the end of an answer if more is sent before the answer is fetched."""
    assert isinstance(db, PostgresDatabase)
    with db.write() as tx:
        last = tx.epoch
    note(db, "before")
    first = send_note(db, last, "late")
    pausing = PausingLock(db._writer)
    monkeypatch.setattr(db._writer, "_using", pausing)
    with ThreadPoolExecutor(1) as waiting:
        answer = waiting.submit(first.land)
        assert pausing.has_failed.wait(HANG_SECONDS)
        second = send_note(db, first, "on top of it")
        pausing.has_sent.set()
        with pytest.raises(Overtaken):
            answer.result(HANG_SECONDS)
        with pytest.raises(Overtaken):
            second.land()
    note(db, "later")
    assert notes(db) == ["before", "later"]


def test_a_refused_write_does_not_disturb_writes_already_sent(db: Database) -> None:
    with db.write() as tx:
        last = tx.epoch
    first = send_note(db, last, "good")
    with pytest.raises(psycopg.DataError):
        send_note(db, first, "nul \x00 inside")
    first.land()
    note(db, "later")
    assert notes(db) == ["good", "later"]


def test_text_with_a_nul_is_refused_and_later_writes_succeed(db: Database) -> None:
    with pytest.raises(psycopg.DataError):
        note(db, "nul \x00 inside")
    with pytest.raises(psycopg.DataError), db.write() as tx:
        tx.write("add_notes", [Note("nul \x00 inside")])
    note(db, "plain")
    assert notes(db) == ["plain"]


def test_a_read_without_a_free_connection_waits_then_fails(url: str, capability: Path) -> None:
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


def test_a_read_only_server_is_unavailable(url: str) -> None:
    """Hosts of PostgreSQL make it read-only when its disk is nearly full."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',"
            " current_database()); END $$"
        )
    with closing(open_database(url)) as database, pytest.raises(Unavailable, match="read-only"):
        database.migrate()


def test_a_server_that_never_answers_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The minimum of libpq.
    monkeypatch.setitem(postgres_connection._PATIENCE, "connect_timeout", "2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        with pytest.raises(Unavailable, match="timeout"):
            open_database(url)


def test_a_cut_network_is_noticed_soon(db: Database, url: str) -> None:
    """A URL may set a different timeout."""
    assert isinstance(db, PostgresDatabase)
    assert _settings(db) >= {("tcp_user_timeout", "30000"), ("connect_timeout", "10")}
    with closing(open_database(f"{url}&tcp_user_timeout=7000")) as database:
        assert isinstance(database, PostgresDatabase)
        assert ("tcp_user_timeout", "7000") in _settings(database)


def _settings(db: PostgresDatabase) -> set[tuple[str, str]]:
    options = db._writer._pg.info
    return {(o.keyword.decode(), o.val.decode()) for o in options if o.val is not None}


def test_a_bigint_parameter_accepts_a_small_number(db: Database) -> None:
    """PostgreSQL types a parameter beside a bare number as int4 unless a cast says otherwise."""
    with db.read() as tx:
        assert tx.fetch("later", at=2**53) == [(2**53 + 1,)]


def test_the_writer_uses_indexes_from_the_first_row(db: Database) -> None:
    with db.write() as tx:
        plan = "\n".join(line for (line,) in tx.fetch("plan_of_a_lookup", texts=["a"]))
    assert "notes_text" in plan
    assert "Seq Scan" not in plan
