"""The truth table of locks: what a row with each role and status keeps others from doing."""

import pytest

from penstock.locks.lock_rules import FREE, Locks, locks_of, readable, usable, writable
from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status

# One line for each row of the table: read by others, write by others, same job again.
OUTPUT = {
    None: (False, False),
    Status.RUNNING: (True, True),
    Status.READY: (False, True),
    Status.RESUBMIT: (True, False),
    Status.ERROR: (True, False),
    Status.PENDING: (True, True),
    Status.HOLD: (True, True),
    Status.DONE: (True, True),  # anything else
}
INPUT = {
    None: False,
    Status.ERROR: False,
    Status.RUNNING: True,
    Status.DONE: True,
    Status.HOLD: True,  # anything else
    Status.PENDING: True,
    Status.READY: True,
    Status.RESUBMIT: True,
}
STATUSES = (None, *Status)


def test_the_table_below_has_a_row_for_no_row_and_for_every_status() -> None:
    assert set(OUTPUT) == set(INPUT) == set(STATUSES)


@pytest.mark.parametrize("status", STATUSES)
def test_an_output_row_locks_reads_and_writes_of_everybody(status: Status | None) -> None:
    read, write = OUTPUT[status]
    assert locks_of(DatasetRole.OUTPUT, status) == Locks(read=read, write=write, local=False)


@pytest.mark.parametrize("status", STATUSES)
def test_an_input_row_locks_its_own_job_and_nobody_else(status: Status | None) -> None:
    assert locks_of(DatasetRole.INPUT, status) == Locks(
        read=False, write=False, local=INPUT[status]
    )


@pytest.mark.parametrize("role", DatasetRole)
def test_no_row_is_no_lock(role: DatasetRole) -> None:
    assert locks_of(role, None) == FREE == Locks(read=False, write=False, local=False)


@pytest.mark.parametrize("status", STATUSES)
def test_a_lot_is_read_when_it_is_there_and_not_locked(status: Status | None) -> None:
    assert readable(status) == (status is not None and not OUTPUT[status][0])


def test_only_a_lot_that_is_ready_is_read() -> None:
    assert [status for status in STATUSES if readable(status)] == [Status.READY]


@pytest.mark.parametrize("status", STATUSES)
def test_a_lot_is_made_when_no_row_forbids_it(status: Status | None) -> None:
    assert writable(status) == (not OUTPUT[status][1])


@pytest.mark.parametrize("status", STATUSES)
def test_a_job_uses_a_lot_when_its_own_row_does_not_forbid_it(status: Status | None) -> None:
    assert usable(status) == (not INPUT[status])
