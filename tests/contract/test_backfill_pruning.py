"""Old backfills that have ended are pruned with their lots."""

import pytest

from penstock import ids
from penstock.clock import DAY, Micros, parse_time
from penstock.db import Database
from penstock.errors import Invalid
from penstock.operations import operation
from penstock.operations.backfills.commands import BACKFILLS
from penstock.operations.backfills.rows import BackfillLotRow, BackfillRow, LotOutcome
from penstock.operations.operation import prune_operations
from penstock.schema.operations import BackfillAction
from penstock.states import BackfillState

NOW: Micros = parse_time("2026-11-15T09:30:00Z")
JOB = ids.job_id("ns", "arc")


def write(database: Database, state: BackfillState, created: int, since: int, lots: int) -> str:
    """Write a backfill that began some days ago and has been in its state for some days."""
    backfill_id = ids.new_id()
    at = NOW - created * DAY, NOW - since * DAY
    row = BackfillRow(backfill_id, JOB, state, "{}", 0, "{}", "ann", "", 0, at[1], at[0])
    going = [
        BackfillLotRow(backfill_id, f"{number:03d}", LotOutcome.DONE, BackfillAction.RUN, at[1])
        for number in range(lots)
    ]
    with database.write() as tx:
        tx.write("put_backfills", [row])
        tx.write("put_backfill_lots", going)
    return backfill_id


def kept(database: Database) -> dict[str, int]:
    """Return the remaining backfills, and how many lots each has."""
    with database.read() as tx:
        rows = tx.rows(BackfillRow, "last_backfills", most=100, namespace="")
        return {
            row.id: len(tx.fetch("some_backfill_lots", backfill_id=row.id, most=1000))
            for row in rows
        }


def prune(database: Database, *, dry_run: bool = False) -> int:
    return prune_operations(
        BACKFILLS, database, lambda: NOW, 30 * DAY, dry_run=dry_run, pause=lambda seconds: None
    )


def test_old_ended_backfills_are_pruned(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "BATCH_ROWS", 4)
    old = [write(database, BackfillState.DONE, 90 + n, 80, lots=n) for n in range(10)]
    old.append(write(database, BackfillState.CANCELLED, 50, 40, lots=3))
    stay = {
        write(database, BackfillState.DONE, 90, 10, lots=5): 5,
        write(database, BackfillState.RUNNING, 90, 90, lots=5): 5,
        write(database, BackfillState.PAUSED, 90, 90, lots=0): 0,
        write(database, BackfillState.DONE, 5, 4, lots=1): 1,
    }
    assert prune(database, dry_run=True) == len(old)
    assert len(kept(database)) == len(old) + len(stay)
    assert prune(database) == len(old)
    assert kept(database) == stay
    with database.read() as tx:
        left = [tx.fetch("some_backfill_lots", backfill_id=gone, most=1) for gone in old]
    assert left == [[]] * len(old)
    assert prune(database) == 0


def test_pruning_needs_an_age(database: Database) -> None:
    with pytest.raises(Invalid, match="90d"):
        prune_operations(BACKFILLS, database, lambda: NOW, 0, dry_run=True)
