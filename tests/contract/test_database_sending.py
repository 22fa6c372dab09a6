"""Sent writes: one takes effect directly after the write it follows, or not at all."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import psycopg
import pytest

from penstock.db import Database, open_database
from penstock.db.database import Overtaken, Sent
from tests.contract.noting import STATEMENTS, Note, migrated, notes
from tests.databases import capability_folder
from tests.patience import HANG_SECONDS

TABLE = "CREATE TABLE notes (text TEXT NOT NULL CHECK (text <> 'bad'));"
LONG = "x" * 200_000  # more than a socket accepts at once
BAD = (sqlite3.IntegrityError, psycopg.errors.CheckViolation)
PAIRS = 40


@pytest.fixture
def capability(tmp_path: Path) -> Path:
    return capability_folder(tmp_path / "capability", STATEMENTS, {"9001_notes": TABLE})


@pytest.fixture
def db(own_url: str, capability: Path) -> Iterator[Database]:
    with migrated(own_url, capability) as database:
        yield database


def epoch(db: Database) -> int:
    """Return the epoch after a write."""
    with db.write() as tx:
        return tx.epoch


def send_notes(db: Database, after: int | Sent, *texts: str) -> Sent:
    return db.send([("add_notes", [Note(text) for text in texts])], after=after)


def assert_next_write_succeeds(db: Database, notes_before: list[str]) -> None:
    """Check that the failed write left nothing and that the next one succeeds."""
    assert notes(db) == notes_before
    last = epoch(db)
    send_notes(db, last, "next").land()
    assert notes(db) == sorted([*notes_before, "next"])
    assert epoch(db) == last + 2


def test_a_sent_write_succeeds_without_other_writers(db: Database) -> None:
    last = epoch(db)
    for step, text in enumerate("abc"):
        write = send_notes(db, last + step, text)
        assert write.epoch == last + step + 1
        write.land()
    assert notes(db) == ["a", "b", "c"]


def test_a_write_may_be_sent_after_an_unanswered_one(db: Database) -> None:
    last: int | Sent = epoch(db)
    for text in "abc":
        first = send_notes(db, last, text)
        second = send_notes(db, first, text + text)
        first.land()
        second.land()
        last = second
    assert notes(db) == ["a", "aa", "b", "bb", "c", "cc"]


def test_a_sent_write_fails_whole_after_another_writer(db: Database) -> None:
    last = epoch(db)
    epoch(db)
    with pytest.raises(Overtaken):
        send_notes(db, last, "late").land()
    assert_next_write_succeeds(db, [])


@pytest.mark.parametrize("by", ["the same program", "another program"])
def test_a_write_sent_after_a_late_one_fails_too(
    db: Database, own_url: str, capability: Path, by: str
) -> None:
    """The other writer's epoch is the one that the late write would have had."""
    last = epoch(db)
    other = open_database(own_url, extra=[capability]) if by == "another program" else db
    assert epoch(other) == last + 1
    if other is not db:
        other.close()
    first = send_notes(db, last, "late")
    second = send_notes(db, first, "on top of it")
    for write in (first, second):
        with pytest.raises(Overtaken):
            write.land()
    assert_next_write_succeeds(db, [])


def test_a_bad_row_fails_its_write_and_later_ones(
    db: Database,
) -> None:
    first = send_notes(db, epoch(db), LONG, "bad", "skipped")
    second = send_notes(db, first, "on top of it")
    with pytest.raises(BAD):
        first.land()
    with pytest.raises(Overtaken):
        second.land()
    assert_next_write_succeeds(db, [])


def test_a_write_sent_before_a_bad_one_stays(db: Database) -> None:
    first = send_notes(db, epoch(db), "good")
    second = send_notes(db, first, "bad")
    first.land()
    with pytest.raises(BAD):
        second.land()
    assert_next_write_succeeds(db, ["good"])


def test_two_concurrent_senders_each_get_their_own_answer(db: Database) -> None:
    """Answers arrive in the order of sending, whichever caller asks first."""
    last = epoch(db)
    first = send_notes(db, last, "first")
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(lambda: send_notes(db, last, "second").land())
        wait([answer], timeout=0.3)  # an earlier answer must not be returned to this caller
        try:
            first.land()
        except Overtaken:
            answer.result(HANG_SECONDS)
            assert notes(db) == ["second"]
        else:
            assert isinstance(answer.exception(HANG_SECONDS), Overtaken)
            assert notes(db) == ["first"]


def test_a_thread_sends_while_another_one_waits(db: Database) -> None:
    """A thread that sends must pass the answers it reads to the thread that waits."""
    last: int | Sent = epoch(db)
    with ThreadPoolExecutor(1) as waiting:
        for _ in range(PAIRS):
            first = send_notes(db, last, *("short",) * 3)
            answer = waiting.submit(first.land)
            last = send_notes(db, first, LONG, LONG, LONG, LONG)
            answer.result(HANG_SECONDS)
            waiting.submit(last.land).result(HANG_SECONDS)
    assert len(notes(db)) == 7 * PAIRS


# Escapes of JSON, PostgreSQL, SQLite and our own markers; and an escaped NUL.
ODD = [
    "",
    "it's",
    '"q"',
    "back\\slash",
    "\\u0000",
    "\\\\u0000",
    '{"a": "\\u0000"}',
    "ü☃😀",
    "\n\t\x01",
]
NUL_ERRORS = (sqlite3.DataError, psycopg.DataError)


@pytest.mark.parametrize("times", [1, 5])  # a few rows are sent in another form than many
def test_texts_arrive_unchanged(db: Database, times: int) -> None:
    send_notes(db, epoch(db), *ODD * times).land()
    assert sorted(notes(db)) == sorted(ODD * times)


@pytest.mark.parametrize("text", ["a\x00b", "\\\x00", "\x00"])
def test_text_with_a_nul_is_refused_not_truncated(db: Database, text: str) -> None:
    last = epoch(db)
    with pytest.raises(NUL_ERRORS):
        send_notes(db, last, "before", "beside", text).land()
    assert_next_write_succeeds(db, [])


def test_statements_take_effect_in_the_order_sent(db: Database) -> None:
    a, b = [Note("a")], [Note("b")]
    last = epoch(db)
    for step, writes in enumerate(
        [
            [("add_notes", a), ("forget_notes", a), ("add_notes", b)],
            [("add_notes", a), ("forget_notes", b), ("forget_notes", [])],
            [("forget_notes", a), ("add_notes", b), ("add_notes", a)],
        ]
    ):
        db.send(writes, after=last + step).land()
        assert notes(db) == [["b"], ["a"], ["a", "b"]][step]


def test_an_empty_write_counts_as_a_write(db: Database) -> None:
    last = epoch(db)
    db.send([], after=last).land()
    assert epoch(db) == last + 2
