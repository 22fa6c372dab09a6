"""Answers and audit entries for wrong keys over hours."""

from contextlib import suppress

import pytest

from penstock.access import audit
from penstock.access.wrong_keys import LIMIT, WrongKeys
from penstock.db import Database
from penstock.errors import Busy

pytestmark = pytest.mark.one_database

HOURS = 5


class ManualClock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def audit_entries(database: Database) -> list[audit.AuditEntry]:
    with database.read() as tx:
        return audit.entries(tx, 1000)


def test_hours_of_wrong_keys_make_few_audit_entries(database: Database) -> None:
    hours = ManualClock()
    wrong_keys = WrongKeys(database, clock=lambda: 1, seconds=hours)
    for _ in range(HOURS * 3600):
        hours.seconds += 1
        with suppress(Busy):
            wrong_keys.note("203.0.113.7")
    wrong_keys.close()

    entries = audit_entries(database)

    assert len(entries) < 15
    assert sum(int(entry.detail.split()[0]) for entry in entries) == HOURS * 3600
    assert {entry.address for entry in entries} == {"203.0.113.7"}


def test_each_address_has_its_own_limit(database: Database) -> None:
    wrong_keys = WrongKeys(database, clock=lambda: 1, seconds=ManualClock())
    for _ in range(LIMIT):
        wrong_keys.note("203.0.113.7")
    with pytest.raises(Busy):
        wrong_keys.note("203.0.113.7")

    wrong_keys.note("203.0.113.8")

    wrong_keys.close()


def test_an_ipv6_network_counts_as_one_caller(database: Database) -> None:
    wrong_keys = WrongKeys(database, clock=lambda: 1, seconds=ManualClock())
    for number in range(LIMIT):
        wrong_keys.note(f"2001:db8::{number:x}")
    with pytest.raises(Busy):
        wrong_keys.note("2001:db8::ffff")

    wrong_keys.close()


def test_an_address_may_try_again_after_a_minute(database: Database) -> None:
    hours = ManualClock()
    wrong_keys = WrongKeys(database, clock=lambda: 1, seconds=hours)
    for _ in range(LIMIT):
        wrong_keys.note("203.0.113.7")
    hours.seconds = 61

    wrong_keys.note("203.0.113.7")

    wrong_keys.close()
