"""What pruning leaves of lots: the run that worked on each last, and the version each has."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from penstock import ids
from penstock.catalog.commands import DatasetName
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.retention import prune
from penstock.catalog.writes import open_write_queue
from penstock.clock import DAY, Micros, format_time, parse_time
from penstock.db import Database, open_database
from penstock.errors import Invalid
from penstock.locks import pruning
from penstock.locks.commands import (
    ClaimLots,
    ClaimRef,
    CompleteClaims,
    FailClaims,
    LockingEvent,
    RegisterLots,
    ResubmitLots,
    WireJob,
)
from penstock.locks.commands.holds import HoldWork
from penstock.locks.pruning import prune_log
from penstock.locks.rows import LogRow
from tests.invariants import broken_invariants
from tests.simulation.tables import STATEMENTS, visible

NOW: Micros = parse_time("2026-11-15T09:30:00Z")
RAW, CLEAN = DatasetName("ns", "raw"), DatasetName("ns", "clean")
TRICKY = 'a "quoted" {lot} of älter Zeit'
# An escape that PostgreSQL cannot read as text, and a facet within a facet.
HOSTILE = b'{"nul":{"is":"\\u0000"},"deep":{"penstock_lot":{"lot":"1"}}}'


class Past:
    """A catalog whose clock stands where it is told."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = NOW
        self._catalog = open_write_queue(
            database, clock=lambda: self.now, batch_events_max=64, queue_length_max=64
        )
        self._catalog.start()

    def do(self, command: Any) -> Any:
        return self._catalog.submit(command).result()

    def work(self, lot: str, *, days: float, fails: bool = False) -> str:
        """Work on a lot so many days before now."""
        self.now = round(NOW - days * DAY)
        [claim] = self.do(ClaimLots("ns", "job", "worker", lots=(lot,)))
        ref = ClaimRef(claim.id, claim.token)
        [ended] = self.do(FailClaims((ref,)) if fails else CompleteClaims((ref,)))
        assert ended.refused is None
        self.now = NOW
        return str(claim.id)

    def report(self, run: str, facets: bytes, *, days: float, job: str) -> None:
        """A run that others started, with facets word for word."""
        at = format_time(round(NOW - days * DAY))
        event = {
            "eventType": "COMPLETE",
            "eventTime": at,
            "run": {"runId": run, "facets": msgspec.Raw(facets)},
            "job": {"namespace": "ns", "name": job},
            "outputs": [{"namespace": "ns", "name": f"made by {job}"}],
        }
        self.do(LockingEvent(read_event(msgspec.json.encode(event), Limits())))

    def prune(self) -> None:
        prune(self.database, lambda: NOW, 30 * DAY, who="ann", dry_run=False, pause=lambda _: None)

    def seen(self) -> tuple[set[str], set[str]]:
        """The runs and the versions that are there."""
        with self.database.read() as tx:
            found = visible(tx)
        return {row["id"] for row in found["run"]}, {row["id"] for row in found["version"]}

    def stop(self) -> None:
        self._catalog.stop()


@pytest.fixture
def past(database_url: str) -> Iterator[Past]:
    database = open_database(database_url, extra=[STATEMENTS])
    database.migrate()
    past = Past(database)
    past.now = round(NOW - 200 * DAY)
    past.do(WireJob("ns", "job", (RAW,), (CLEAN,), back_off_seconds=0))
    past.do(RegisterLots("ns", "raw", ("1", "2", "3", TRICKY), "ann"))
    yield past
    past.stop()
    database.close()


def _lot_versions(past: Past) -> set[str]:
    with past.database.read() as tx:
        return {row[0] for row in tx.fetch("every_lot_version")}


def test_the_last_run_of_each_lot_and_its_version_are_kept(past: Past) -> None:
    failed = past.work("1", days=100, fails=True)
    last = past.work("1", days=99)
    first = past.work("2", days=98)
    past.do(ResubmitLots("ann", "wrong", "ns", "job", ("2",)))
    again = past.work("2", days=97)
    tricky = past.work(TRICKY, days=96)
    newest = past.work("3", days=95)
    past.prune()
    runs, versions = past.seen()
    assert {last, again, tricky, newest} <= runs
    assert not {failed, first} & runs
    assert _lot_versions(past) <= versions


def test_a_run_with_several_lots_is_kept_for_any_of_them(past: Past) -> None:
    past.report("many", b'{"penstock_lot":{"lots":["x","y"]}}', days=90, job="reported")
    past.do(ResubmitLots("ann", "wrong", "ns", "reported", ("x",)))
    past.report("again", b'{"penstock_lot":{"lot":"x"}}', days=80, job="reported")
    past.report("last", b'{"penstock_lot":{"lot":"z"}}', days=70, job="reported")
    past.prune()
    runs, versions = past.seen()
    assert {ids.run_id(name) for name in ("many", "again", "last")} <= runs
    assert _lot_versions(past) <= versions


def test_what_a_job_made_and_read_before_it_was_wired_otherwise_is_kept(past: Past) -> None:
    """Its lots are still there, though its last run on them made and read something else."""
    past.do(WireJob("ns", "use", (CLEAN,), ()))
    made = {past.work(lot, days=90) for lot in ("1", "2")}
    past.now = NOW - 80 * DAY
    past.do(RegisterLots("ns", "raw", ("1", "2"), "ann", renew=True))
    past.do(WireJob("ns", "job", (DatasetName("ns", "better"),), (DatasetName("ns", "other"),)))
    past.do(RegisterLots("ns", "better", ("1", "2"), "ann"))
    for lot in ("1", "2"):
        past.work(lot, days=70)
    past.prune()
    assert broken_invariants(past.database, lambda: NOW) == []
    assert made <= past.seen()[0]
    assert len(past.do(ClaimLots("ns", "use", "worker", count=2))) == 2


def test_no_facet_that_somebody_sends_stops_pruning(past: Past) -> None:
    for number, job in enumerate(("a", "b", "a", "b")):
        past.report(f"run {number}", HOSTILE, days=90 - number, job=job)
        lot = b'{"penstock_lot":{"lot":"\\u0000"},' + HOSTILE[1:]
        past.report(f"lot {number}", lot, days=90 - number, job=job)
        past.report(f"lot {number}", lot, days=90 - number, job=job)
    before = past.seen()[0]
    past.prune()
    runs = past.seen()[0]
    assert len(runs) < len(before)
    claim = past.do(ClaimLots("ns", "job", "worker", lots=("1",)))
    assert [found.lot for found in claim] == ["1"]


def _log(past: Past) -> list[tuple[str, str, str | None]]:
    with past.database.read() as tx:
        rows = tx.rows(LogRow, "every_lot_log")
    return [(row.action, row.lot, row.run_id) for row in rows]


def _prune_log(past: Past, *, dry_run: bool = False) -> int:
    return prune_log(
        past.database, lambda: NOW, 30 * DAY, dry_run=dry_run, pause=lambda seconds: None
    )


def test_the_log_keeps_what_tells_how_lots_came_to_be_as_they_are(past: Past) -> None:
    failed = past.work("1", days=100, fails=True)
    last = past.work("1", days=99)
    first = past.work("2", days=98)
    past.now = round(NOW - 97 * DAY)
    past.do(ResubmitLots("ann", "wrong", "ns", "job", ("2",)))
    again = past.work("2", days=96)
    past.now = round(NOW - 95 * DAY)
    past.do(HoldWork("ann", "wait", "ns", "job", "3"))
    past.now = NOW
    young = past.work(TRICKY, days=1)
    counted = _prune_log(past, dry_run=True)
    past.prune()
    before = _log(past)
    gone = [row for row in before if row[0] == "resubmit" or row[2] in (failed, first)]
    assert len(gone) == 5
    assert counted == _prune_log(past, dry_run=True) == len(gone)
    assert _log(past) == before
    assert _prune_log(past) == len(gone)
    kept = _log(past)
    assert sorted(kept) == sorted(row for row in before if row not in gone)
    assert {run for _, _, run in kept if run} == {last, again, young}
    assert [row[:2] for row in kept].count(("hold", "3")) == 1
    assert {lot for action, lot, _ in kept if action == "register"} == {"1", "2", "3", TRICKY}
    assert _prune_log(past) == 0


def test_a_long_log_is_forgotten_in_batches(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "BATCH_ROWS", 3)
    past.now = round(NOW - 50 * DAY)
    for priority in range(10):
        past.do(HoldWork("ann", "wait", "ns", "job", "1", hold=priority % 2 == 0))
    past.now = NOW
    past.do(HoldWork("ann", "wait", "ns", "job", "2"))
    assert _prune_log(past, dry_run=True) == _prune_log(past) == 10
    assert [row[0] for row in _log(past)].count("hold") == 1
    with pytest.raises(Invalid, match="90d"):
        prune_log(past.database, lambda: NOW, 0, dry_run=True)
