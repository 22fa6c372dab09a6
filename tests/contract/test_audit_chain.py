"""The hash chain of the audit log, on both databases."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from penstock.access import audit
from penstock.access.caller import called_from
from penstock.access.keys import Keys
from penstock.clock import system_clock
from penstock.db import Database, open_database
from penstock.schema.admin import KeyRole
from tests.contract.broken import FOLDER

WRITERS, KEYS_EACH = 4, 10


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url, extra=[FOLDER])) as opened:
        opened.migrate()
        yield opened


def chain_errors(database: Database) -> list[str]:
    with database.read() as tx:
        return list(audit.broken_links(tx))


def test_writers_in_several_processes_extend_one_chain(database_url: str) -> None:
    """Each process has its own connection, like the servers that share one PostgreSQL."""

    def write(writer: int) -> None:
        with closing(open_database(database_url)) as own:
            keys = Keys(own, clock=system_clock)
            for number in range(KEYS_EACH):
                keys.create(f"key {writer} {number}", KeyRole.READER, who=f"writer {writer}")

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(write, range(WRITERS)))

    with closing(open_database(database_url)) as opened:
        assert chain_errors(opened) == []
        with opened.read() as tx:
            assert len(audit.entries(tx, 100)) == WRITERS * KEYS_EACH


def test_an_entry_records_the_address_of_its_caller(database: Database) -> None:
    with database.write() as tx, called_from("203.0.113.7"):
        audit.append(tx, 1, "boss", "hold lot", "1")

    with database.read() as tx:
        [entry] = audit.entries(tx, 10)
    assert entry.address == "203.0.113.7"
