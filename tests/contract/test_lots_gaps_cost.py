"""The cost of a gap report: stretches are counted, and lots are read only in mixed ones."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from penstock import ids
from penstock.catalog.rows import replace
from penstock.clock import DAY, parse_time
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import Statement, load_statements
from penstock.locks.gaps.gaps import RANGES_MAX, load_gaps
from penstock.locks.gaps.spans import Span
from penstock.locks.rows import LotJobDatasetRow, LotJobRow, StatusRow
from penstock.locks.work_state import new_work
from penstock.lots.rows import ManifestRow
from penstock.schema.catalog import DatasetRole
from penstock.schema.gaps import GapKind, Gaps
from penstock.schema.locks import Stale
from penstock.schema.lot_ids import Interval
from penstock.schema.lots import Status
from penstock.states import ManifestState, WorkState
from tests.contract.catalog_rows import NAMESPACE, NOW, dataset, job
from tests.contract.test_reading_cost import CountingTransaction
from tests.plans import filled_database, large_reads, plan_steps

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("lots_gaps_cost")

RAW, CLEAN, OTHER = dataset("raw"), dataset("clean"), dataset("other")
LOAD, READ = job("load"), job("read")
DAYS = 35
START = parse_time("2026-01-01T00:00:00Z")
SPAN = Span(Interval.MINUTES_5, START, START + DAYS * DAY)
LOTS = list(SPAN.lots())
HOLES = (LOTS[1000], LOTS[5000], LOTS[8000])
EMPTY = LOTS[7000]
LARGE_ALIASES = ("s", "w", "m")  # the aliases of status, work and manifests in these statements
BY_LOT = re.compile(r"lot(=|>\?|<\?)")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Ten thousand lots of each of two datasets, few of them missing."""
    with filled_database(request, tmp_path_factory, _fill) as url:
        yield url


def _fill(tx: Transaction) -> None:
    tx.write("put_datasets", [RAW, CLEAN, OTHER])
    tx.write("put_jobs", [LOAD, READ])
    inputs, outputs = (msgspec.json.encode([row.id]).decode() for row in (RAW, CLEAN))
    wired = LotJobRow(LOAD.id, inputs, outputs, 60, 5, 10, 0, 1, Stale.IGNORE, NOW, NOW)
    tx.write("put_lot_jobs", [wired])
    wires = [(RAW.id, DatasetRole.INPUT), (CLEAN.id, DatasetRole.OUTPUT)]
    tx.write("put_lot_job_datasets", [LotJobDatasetRow(d, role, LOAD.id) for d, role in wires])
    work, status, manifests = [], [], []
    for lot in LOTS:
        for written_dataset in (CLEAN, OTHER):
            if lot in HOLES and written_dataset is CLEAN:
                continue
            version = ids.derived_id(written_dataset.name, lot)
            rows = (
                (DatasetRole.OUTPUT, LOAD.id, Status.READY),
                (DatasetRole.INPUT, READ.id, Status.DONE),
            )
            for role, job_id, state in rows:
                status.append(
                    StatusRow(written_dataset.id, lot, role, job_id, state, "", None, version, NOW)
                )
            manifest_state = ManifestState.EMPTY if lot == EMPTY else ManifestState.COMPLETE
            manifests.append(
                ManifestRow(
                    version, written_dataset.id, lot, manifest_state, "key", 1, 1, "0" * 64, "", NOW
                )
            )
        doing = WorkState.WAITING if lot in HOLES else WorkState.DONE
        work.append(replace(new_work(LOAD.id, lot, 0, doing, NOW), tries=1))
    tx.write("put_lot_status", status)
    tx.write("put_lot_manifests", manifests)
    tx.write("put_lot_work", work)


class _Fetched(CountingTransaction):
    """A transaction that also counts the rows it returns."""

    def __init__(self, tx: Transaction) -> None:
        super().__init__(tx)
        self.rows_given = 0

    def fetch(self, statement: str, /, **params: object) -> list[tuple[Any, ...]]:
        rows = super().fetch(statement, **params)
        self.rows_given += len(rows)
        return rows

    def fetch_many(
        self, asks: Sequence[tuple[str, Mapping[str, object]]]
    ) -> list[list[tuple[Any, ...]]]:
        answers = super().fetch_many(asks)
        self.rows_given += sum(map(len, answers))
        return answers


def report(database: Database, days: int, *, with_causes: bool = False) -> tuple[Gaps, _Fetched]:
    with database.read() as tx:
        counted = _Fetched(tx)
        gaps = load_gaps(
            counted, NAMESPACE, "clean", SPAN.start, SPAN.start + days * DAY, NOW,
            with_causes=with_causes,
        )  # fmt: skip
    return gaps, counted


def test_whole_days_are_counted_instead_of_read(database: Database) -> None:
    gaps, counted = report(database, DAYS)
    assert gaps.totals == {GapKind.WAITING: len(HOLES), GapKind.EMPTY: 1}
    # One count per day, the lots of four days, and a few reads at the start.
    assert counted.rows_given < DAYS + 4 * 288 + 250
    few, less = report(database, 3)
    assert (few.ranges, less.rows_given < 3 + 250) == ([], True)


def test_a_longer_range_costs_no_more_statements(database: Database) -> None:
    (_, short), (_, long) = report(database, 10), report(database, DAYS)
    assert short.statements == long.statements <= 12
    gaps, cause_reads = report(database, DAYS, with_causes=True)
    assert cause_reads.statements - long.statements <= 10 * len(gaps.ranges) < RANGES_MAX


def test_no_statement_scans_rows_that_it_does_not_count(database: Database, url: str) -> None:
    statements = load_statements(database.dialect, capability_folders())
    assert {
        name: walks
        for name, params in gap_examples().items()
        if (walks := _walks(url, statements[name], params))
    } == {}


def gap_examples() -> dict[str, dict[str, Any]]:
    """Return every statement of a report with its parameters for one day."""
    a_day = SPAN.stretches()[20]
    of_dataset = {
        "dataset_id": CLEAN.id,
        "width": SPAN.width,
        "keys": [a_day.key],
        "first": a_day.first,
        "last": a_day.last,
        "head": a_day.head,
        "interval": str(a_day.interval),
    }
    of_jobs = {"jobs": [LOAD.id]}
    return {
        "interval_of_dataset": {"dataset_id": CLEAN.id},
        "sample_lots": {"dataset_id": CLEAN.id, "most": 100},
        "count_ready_lots": of_dataset,
        "count_other_lots": of_dataset,
        "count_odd_manifests": of_dataset,
        "count_awaited_lots": {**of_dataset, **of_jobs},
        "known_lots": of_dataset,
        "other_lots": of_dataset,
        "odd_manifests": of_dataset,
        "awaited_lots": {**of_dataset, **of_jobs},
        "read_lots_named": {"dataset_id": CLEAN.id, "lots": [a_day.first]},
    }


def _walks(url: str, statement: Statement, params: dict[str, Any]) -> list[str]:
    """Return the steps of a plan that read more than one day of lots and of readers."""
    if url.startswith("sqlite"):
        steps = plan_steps(url, statement, params)
        return [step for step in steps if _is_long(step, statement)]
    return large_reads(url, statement, params, 2 * 288)


def _is_long(step: str, statement: Statement) -> bool:
    """A plan must search a large table by lot. In the order of an index, a limit is enough."""
    words = step.split()
    if words[0] not in ("SCAN", "SEARCH") or words[1] not in LARGE_ALIASES:
        return False
    return not BY_LOT.search(step) and "most" not in statement.params
