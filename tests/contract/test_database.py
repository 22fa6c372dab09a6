"""The contract of `Database`, on SQLite and PostgreSQL."""

import itertools
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psycopg
import pytest

from penstock.db import Database, open_database
from penstock.errors import Unavailable
from tests.databases import capability_folder

TABLES = """
CREATE TABLE things (id UUID PRIMARY KEY, name TEXT, at BIGINT, flag BIGINT CHECK (flag IN (0, 1)));
CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO counters (name, value) VALUES ('c', 0);
"""
STATEMENTS = """
-- name: put_things
-- Write things, new or known.
INSERT INTO things (id, name, at, flag) {rows id uuid, name text, at bigint, flag boolean}
ON CONFLICT (id) DO UPDATE SET name = excluded.name, at = excluded.at, flag = excluded.flag

-- name: put_long_things
-- The same with names that may be long.
INSERT INTO things (id, name, at, flag) {rows id uuid, name long, at bigint, flag boolean}

-- name: add_things
-- Write new things only.
INSERT INTO things (id, name, at) {rows id uuid, name text, at bigint}

-- name: add_ids
-- Write things of which only the id is known.
INSERT INTO things (id) {rows id uuid}

-- name: rename_things
-- Change the names of many things.
UPDATE things SET name = r.name FROM ({rows id uuid, name text}) AS r WHERE things.id = r.id

-- name: add_thing
-- Write one new thing.
INSERT INTO things (id, name, at, flag) VALUES (:id, :name, :at, :flag)

-- name: things
-- All things, or those of a moment.
SELECT id, name, at, flag FROM things WHERE CAST(:at AS BIGINT) IS NULL OR at = :at ORDER BY id

-- name: things_by_ids
-- The things with these ids.
SELECT t.id, t.name, t.at, t.flag FROM {each ids uuid AS k} JOIN things t ON t.id = k.value
ORDER BY t.id

-- name: echo_texts
-- A list as rows.
SELECT k.value FROM {each items text AS k}

-- name: echo_numbers
-- A list as rows.
SELECT k.value FROM {each items bigint AS k}

-- name: value
-- The counter.
SELECT value FROM counters WHERE name = 'c'

-- name: set_value
-- Change the counter.
UPDATE counters SET value = :value WHERE name = 'c'
"""
DRIVER_ERRORS = (sqlite3.DatabaseError, psycopg.DatabaseError)
INTEGRITY_ERRORS = (sqlite3.IntegrityError, psycopg.IntegrityError)
Opener = Callable[..., Database]


NEXT = itertools.count(1)


def new_id() -> str:
    """Return an id that sorts after all earlier ones."""
    return f"00000000-0000-7000-8000-{next(NEXT):012x}"


class Thing(msgspec.Struct, frozen=True):
    id: str
    name: str | None = None
    at: int | None = None
    flag: bool | None = None
    beside: str = "no column has this"


@pytest.fixture
def capability(tmp_path: Path) -> Path:
    """A capability folder with the tables and statements of these tests."""
    return capability_folder(tmp_path / "capability", STATEMENTS, {"9001_things": TABLES})


@pytest.fixture
def opener(own_url: str, capability: Path) -> Iterator[Opener]:
    """A function that opens the test's database, any number of times."""
    opened: list[Database] = []

    def open_again(wait_seconds: float = 30) -> Database:
        opened.append(open_database(own_url, extra=[capability], wait_seconds=wait_seconds))
        return opened[-1]

    yield open_again
    for database in opened:
        database.close()


@pytest.fixture
def db(opener: Opener) -> Database:
    database = opener()
    database.migrate()
    return database


def things(db: Database) -> list[tuple[object, ...]]:
    with db.read() as tx:
        return tx.fetch("things", at=None)


def value(db: Database) -> int:
    with db.read() as tx:
        return int(tx.fetch("value")[0][0])


def test_every_later_read_sees_a_write(db: Database, opener: Opener) -> None:
    with db.write() as tx:
        tx.execute("set_value", value=7)
    assert value(db) == value(opener()) == 7


def test_a_read_keeps_the_snapshot_of_its_first_statement(db: Database) -> None:
    with db.read() as tx:
        before = tx.fetch("value")
        with db.write() as other:
            other.execute("set_value", value=7)
        assert tx.fetch("value") == before == [(0,)]
        assert tx.fetch_many([("value", {})]) == [before]
    assert value(db) == 7


def test_many_threads_read_at_once(db: Database) -> None:
    together = threading.Barrier(6)

    def read_value() -> int:
        with db.read() as tx:
            together.wait()
            return int(tx.fetch("value")[0][0])

    with ThreadPoolExecutor(6) as pool:
        assert [f.result() for f in [pool.submit(read_value) for _ in range(6)]] == [0] * 6


def test_a_read_cannot_write(db: Database) -> None:
    with pytest.raises(DRIVER_ERRORS), db.read() as tx:
        tx.execute("set_value", value=7)
    assert value(db) == 0


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_write_block_that_raises_stores_nothing(db: Database, error: type[BaseException]) -> None:
    def fail() -> None:
        with db.write() as tx:
            tx.execute("set_value", value=7)
            tx.write("add_ids", [Thing(new_id())])
            assert tx.fetch("value") == [(7,)]
            raise error

    with pytest.raises(error):
        fail()
    assert (value(db), things(db)) == (0, [])


def test_a_failed_write_raises_and_the_next_one_succeeds(db: Database) -> None:
    thing = Thing(new_id())
    with db.write() as tx:
        tx.write("add_ids", [thing])

    def retry() -> None:
        with db.write() as tx:
            tx.execute("set_value", value=7)
            tx.write("add_ids", [thing])
            for _ in range(50):
                tx.write("add_ids", [Thing(new_id())])
                tx.execute("set_value", value=8)

    with pytest.raises(INTEGRITY_ERRORS):
        retry()
    assert (value(db), len(things(db))) == (0, 1)
    with db.write() as tx:
        tx.execute("set_value", value=9)
    assert value(db) == 9


def test_a_failed_write_raises_at_the_next_read(db: Database) -> None:
    def write_and_read() -> None:
        with db.write() as tx:
            tx.execute("add_thing", id=new_id(), name="n", at=1, flag=2)
            tx.fetch_many([("value", {}), ("things", {"at": None})])

    with pytest.raises(INTEGRITY_ERRORS):
        write_and_read()
    assert things(db) == []


def test_each_write_of_any_connection_adds_one_to_the_epoch(db: Database, opener: Opener) -> None:
    def epoch(database: Database) -> int:
        with database.write() as tx:
            return tx.epoch

    other = opener()
    first = epoch(db)
    assert epoch(db) == first + 1
    assert epoch(other) == first + 2
    assert epoch(db) == first + 3
    with pytest.raises(RuntimeError), db.write():
        raise RuntimeError
    assert epoch(db) == first + 4


def test_writers_of_two_databases_take_turns(db: Database, opener: Opener) -> None:
    epochs: list[int] = []

    def add(database: Database) -> None:
        for _ in range(25):
            with database.write() as tx:
                epochs.append(tx.epoch)
                (((now,),),) = tx.fetch_many([("value", {})])
                tx.execute("set_value", value=now + 1)

    with ThreadPoolExecutor(4) as pool:
        for work in [pool.submit(add, database) for database in (db, opener()) * 2]:
            work.result()
    assert value(db) == 100
    assert epochs == list(range(epochs[0], epochs[0] + 100))


def test_a_writer_that_waits_too_long_gets_an_error(db: Database, opener: Opener) -> None:
    hasty = opener(wait_seconds=0.05)
    with db.write() as tx:
        tx.execute("set_value", value=7)
        with pytest.raises(Unavailable), hasty.write():
            pytest.fail("two writers at once")
    with hasty.write() as tx:
        assert tx.fetch("value") == [(7,)]


def test_a_write_inside_a_write_is_refused(db: Database) -> None:
    with pytest.raises(RuntimeError, match="writing already"), db.write(), db.write():
        pytest.fail("waited for itself")
    with db.write() as tx:
        tx.execute("set_value", value=1)
    assert value(db) == 1


TEXTS = ["", "it's", '"q"', "back\\slash", "{a,b}", "NULL", "null", "ü☃😀", "\n\t", "%s :x $1 ?"]
NUMBERS = [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)]


def test_a_list_parameter_works_as_a_table(db: Database) -> None:
    with db.read() as tx:
        assert tx.fetch("echo_texts", items=TEXTS) == [(text,) for text in TEXTS]
        assert tx.fetch("echo_texts", items=[None, "a"]) == [(None,), ("a",)]
        assert tx.fetch("echo_numbers", items=NUMBERS) == [(number,) for number in NUMBERS]
        assert tx.fetch("echo_numbers", items=()) == []


@pytest.mark.parametrize("put", ["put_things", "put_long_things"])
def test_rows_come_back_as_they_were_written(db: Database, put: str) -> None:
    expected = [Thing(new_id(), text, None, True) for text in [*TEXTS, "ü" * 100_000]]
    expected += [Thing(new_id(), None, number, False) for number in [*NUMBERS, None]]
    with db.write() as tx:
        tx.write(put, expected)
        tx.write(put, [])
        rows = tx.rows(Thing, "things_by_ids", ids=[thing.id for thing in expected])
    assert rows == expected
    assert things(db) == [(t.id, t.name, t.at, int(t.flag or False)) for t in rows]
    with db.read() as tx:
        assert tx.fetch("things_by_ids", ids=[new_id()]) == []
        assert tx.fetch("things_by_ids", ids=[]) == []


def test_written_rows_may_replace_and_change_existing_ones(db: Database) -> None:
    one, two = Thing(new_id(), "one"), Thing(new_id(), "two")
    with db.write() as tx:
        tx.write("add_things", [one, two])
        tx.write("put_things", [Thing(one.id, "uno", 1)])
        tx.write("rename_things", [Thing(two.id, "due"), Thing(new_id(), "nobody")])
    assert things(db) == [(one.id, "uno", 1, None), (two.id, "due", None, None)]


def test_single_values_come_back_as_they_were_written(db: Database) -> None:
    ids = [new_id() for _ in range(3)]
    with db.write() as tx:
        tx.execute("add_thing", id=ids[0], name="it's :x", at=2**63 - 1, flag=True)
        tx.execute("add_thing", id=ids[1], name=None, at=None, flag=False)
        tx.execute("add_thing", id=ids[2], name="", at=5, flag=0)
    with db.read() as tx:
        assert tx.fetch("things", at=None) == [
            (ids[0], "it's :x", 2**63 - 1, 1),
            (ids[1], None, None, 0),
            (ids[2], "", 5, 0),
        ]
        assert tx.fetch_one("things", at=5) == (ids[2], "", 5, 0)
        assert tx.fetch_one("things", at=6) is None


def test_several_reads_return_in_order_and_see_earlier_writes(db: Database) -> None:
    thing = Thing(new_id(), "new")
    with db.write() as tx:
        tx.execute("set_value", value=3)
        tx.write("add_things", [thing])
        assert tx.fetch_many(
            [
                ("echo_texts", {"items": ["a"]}),
                ("value", {}),
                ("things_by_ids", {"ids": [thing.id]}),
            ]
        ) == [[("a",)], [(3,)], [(thing.id, "new", None, None)]]
        assert tx.fetch_many([]) == []


def test_large_batches_and_large_results_do_not_block_each_other(db: Database) -> None:
    batches = [[Thing(new_id(), "x" * 1000) for _ in range(500)] for _ in range(8)]
    with db.write() as tx:
        for batch in batches:
            tx.write("add_things", batch)
        answers = tx.fetch_many([("things", {"at": None})] * 3)
        for batch in batches:
            tx.write("put_things", batch)
            tx.execute("set_value", value=1)
    assert [len(answer) for answer in answers] == [4000] * 3
    assert value(db) == 1


def test_an_invalid_call_is_refused_without_side_effects(db: Database) -> None:
    with db.write() as tx:
        tx.execute("set_value", value=7)
        with pytest.raises(LookupError, match="no statement 'nowhere'"):
            tx.execute("nowhere")
        with pytest.raises(TypeError, match="set_value was called without its parameter value"):
            tx.execute("set_value", worth=8)
        with pytest.raises(TypeError, match="value has no"):
            tx.write("value", [Thing(new_id())])
    assert value(db) == 7


KILLED = """
import os, signal, sys
from pathlib import Path
from penstock.db import open_database
db = open_database(sys.argv[1], extra=[Path(sys.argv[2])])
with db.write() as tx:
    tx.execute("set_value", value=1)
with db.write() as tx:
    tx.execute("set_value", value=2)
    tx.fetch("value")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_exactly_its_committed_writes(
    db: Database, own_url: str, capability: Path
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, own_url, capability], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert value(db) == 1
    with db.write() as tx:
        tx.execute("set_value", value=3)
    assert value(db) == 3


def test_a_closed_database_refuses_every_call(opener: Opener) -> None:
    database = opener()
    database.migrate()
    with database.read() as tx:
        tx.fetch("value")
    database.close()
    with pytest.raises(Unavailable, match="closed"), database.read():
        pytest.fail("read from a closed database")
    with pytest.raises(Unavailable, match="closed"), database.write():
        pytest.fail("wrote to a closed database")
