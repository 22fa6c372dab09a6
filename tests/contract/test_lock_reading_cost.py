"""The cost of reads of locks after much work: few statements, and no long scans."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from penstock import ids
from penstock.catalog.entities.runs import lot_facets
from penstock.catalog.rows import replace
from penstock.clock import HOUR
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import load_statements
from penstock.locks.explain.no_work import explain_no_work
from penstock.locks.explain.why import explain_work
from penstock.locks.queries import claims
from penstock.locks.queries import lots as reading_lots
from penstock.locks.queries.overview import get_overview
from penstock.locks.rows import (
    HOLD_SENTINEL,
    CheckRow,
    GatedWorkRow,
    LogRow,
    LotJobDatasetRow,
    LotJobRow,
    ReasonsRow,
    StatusRow,
    WorkRow,
)
from penstock.lots.rows import LotEventRow
from penstock.schema.catalog import DatasetRole
from penstock.schema.locks import Stale
from penstock.schema.lot_ids import sort_key
from penstock.schema.lots import Status
from penstock.states import WorkState
from tests.contract.catalog_rows import NAMESPACE, NOW, dataset, job, run
from tests.contract.test_lots_gaps_cost import gap_examples
from tests.contract.test_reading_cost import CountingTransaction
from tests.plans import costly_steps, filled_database, reads

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("lock_reading_cost")

DONE = 20_000
OPEN = 200  # in each state
PAGE = 50
MOST = 500
FAR = NOW + HOUR
READ_AT_MOST = 2_500  # rows of one table, by one statement: the page and the counts

RAW, CLEAN = dataset("raw"), dataset("clean")
LOAD = job("load")
OPEN_STATES = [state for state in WorkState if state != WorkState.DONE]
STATES = [WorkState.DONE] * DONE + [state for state in OPEN_STATES for _ in range(OPEN)]
LOTS = [(f"lot {number}", state) for number, state in enumerate(STATES)]
LOCKS = [folder for folder in capability_folders() if folder.name == "locks"]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One job that has done twenty thousand lots and has some in every other state."""
    with filled_database(request, tmp_path_factory, _fill) as url:
        yield url


def run_of(number: int) -> str:
    return run(LOAD, number).id


def _fill(tx: Transaction) -> None:
    tx.write("put_datasets", [RAW, CLEAN])
    tx.write("put_jobs", [LOAD])
    inputs, outputs = (msgspec.json.encode([row.id]).decode() for row in (RAW, CLEAN))
    wired = LotJobRow(LOAD.id, inputs, outputs, 60, 5, 10, 0, 1, Stale.IGNORE, NOW, NOW)
    tx.write("put_lot_jobs", [wired])
    wires = [(RAW.id, DatasetRole.INPUT), (CLEAN.id, DatasetRole.OUTPUT)]
    tx.write("put_lot_job_datasets", [LotJobDatasetRow(d, role, LOAD.id) for d, role in wires])
    work, status, log = [], [], []
    for number, (lot, state) in enumerate(LOTS):
        run_id = run_of(number)
        work.append(_work(lot, state, run_id, number))
        for dataset_id, role in wires:
            stands = Status.READY if role == DatasetRole.OUTPUT else Status.DONE
            output = StatusRow(dataset_id, lot, role, LOAD.id, stands, "", run_id, None, NOW)
            status.append(output)
        for action in ("claim", "complete"):
            log.append(LogRow(NOW, action, lot, LOAD.id, None, run_id, "READY", "DONE", "w", ""))
    tx.write("put_lot_work", work)
    tx.write("put_lot_status", status)
    tx.write("add_lot_log", log)
    tx.write(
        "put_runs",
        [
            replace(run(LOAD, number), facets=lot_facets(lot, 1))
            for number, (lot, _) in enumerate(LOTS)
        ],
    )
    _fill_versions(tx)


def _fill_versions(tx: Transaction) -> None:
    """Write a check result and a version of every lot, and holds on some."""
    checks, events = [], []
    for number, (lot, state) in enumerate(LOTS):
        run_id, at = run_of(number), NOW + number
        version_id = ids.run_version_id(CLEAN.id, run_id)
        success = int(state != WorkState.HELD)
        checks.append(CheckRow(version_id, "rows", "", CLEAN.id, lot, success, "", run_id, at))
        events.append(LotEventRow(at, "published", CLEAN.id, lot, "", version_id, LOAD.id, run_id))
    tx.write("put_lot_checks", checks)
    tx.write("add_lot_events", events)
    held = [lot for lot, state in LOTS if state == WorkState.HELD]
    tx.write("put_lot_turns", [GatedWorkRow.of(LOAD.id, lot, (RAW.id,), None) for lot, _ in LOTS])
    tx.write("put_lot_reasons", [ReasonsRow.of(CLEAN.id, lot, (RAW.id,)) for lot in held])


def _work(lot: str, state: WorkState, run_id: str, number: int) -> WorkRow:
    return WorkRow(
        job_id=LOAD.id,
        lot=lot,
        lot_key=sort_key(lot),
        rank=0,
        state=state,
        tries=1,
        token=1,
        run_id=run_id,
        owner="w",
        lease_seconds=60,
        lease_until=NOW + number,
        not_before=NOW + number,
        since=NOW,
        error="",
        stale_since=NOW if number < OPEN else 0,
    )


def _reads() -> dict[str, Callable[[Transaction, int], object]]:
    load = (NAMESPACE, "load")
    return {
        "locks": lambda tx, limit: claims.list_locks(tx, NOW, limit=limit, offset=0),
        "locks of a dataset": lambda tx, limit: claims.list_locks(
            tx, NOW, namespace=NAMESPACE, dataset="raw", limit=limit, offset=0
        ),
        "lots": lambda tx, limit: reading_lots.list_lots(tx, NAMESPACE, "raw", limit, 0),
        "named lots": lambda tx, limit: reading_lots.list_named_lots(
            tx, NAMESPACE, "raw", limit, 0
        ),
        "work": lambda tx, limit: reading_lots.list_work(tx, *load, None, limit, 0),
        "held": lambda tx, limit: reading_lots.list_work(tx, *load, WorkState.HELD, limit, 0),
        "done": lambda tx, limit: reading_lots.list_work(tx, *load, WorkState.DONE, limit, 0),
        "log": lambda tx, limit: reading_lots.list_log_of_job(tx, *load, None, limit, 0),
        "nothing": lambda tx, limit: explain_no_work(tx, *load),
        "why": lambda tx, limit: explain_work(tx, *load, "lot 7", NOW),
        "claim": lambda tx, limit: claims.get_claim(tx, run_of(7)),
        "standing": lambda tx, limit: get_overview(tx, None, NOW),
    }


def test_a_long_page_costs_no_more_statements(database: Database) -> None:
    def statements(limit: int) -> dict[str, int]:
        counts = {}
        for name, read in _reads().items():
            with database.read() as tx:
                counted = CountingTransaction(tx)
                read(counted, limit)
            counts[name] = counted.statements
        return counts

    assert statements(limit=1) == statements(limit=100)
    assert max(statements(limit=100).values()) <= 10


def test_no_read_of_locks_scans_finished_work(database: Database, url: str) -> None:
    statements = load_statements(database.dialect, LOCKS)
    examples = {**_of_lists(), **_of_work(), **_of_lots()}
    assert reads(statements) == {*examples, *gap_examples()}
    assert {
        name: steps
        for name, params in examples.items()
        if (steps := costly_steps(url, statements[name], params, read_at_most=READ_AT_MOST))
    } == {}


def _of_lists() -> dict[str, dict[str, Any]]:
    """Return the statements of lists with the parameters of a typical call."""
    page = {"limit": PAGE, "offset": 0}
    most = {"most": MOST}
    of_job, of_jobs = {"job_id": LOAD.id}, {"ids": [LOAD.id]}
    of_all = {"namespace": None, "looked_at": MOST}
    held = {"state": "HELD"}
    return {
        "standing_of_jobs": {**of_all, **most, "jobs": PAGE},
        "oldest_work": {"looked_at": MOST},
        "stuck_lots": {**of_all, **most, "limit": PAGE},
        "whole_holds": {"namespace": NAMESPACE, "limit": PAGE},
        "newest_lots": {"namespace": None, "most": PAGE, "datasets": PAGE},
        "lots_by_hour": {**most, "namespace": NAMESPACE, "slot": HOUR, "after": NOW},
        "read_held_lots": {**page, "namespace": "", "reason": "%"},
        "count_held_lots": {**most, "namespace": NAMESPACE, "reason": "%"},
        "read_open_counts": {**of_job, **most},
        "read_live_claims": {**page, "namespace": None, "lot": None},
        "count_live_claims": {**most, "namespace": NAMESPACE, "lot": None},
        "read_live_claims_of_jobs": {**page, **of_jobs, "lot": None},
        "count_live_claims_of_jobs": {**most, **of_jobs, "lot": None},
        "read_work": {**page, **of_job},
        "read_done_work": {**page, **of_job},
        "read_ready_work": {**page, **of_job},
        "read_running_work": {**page, **of_job},
        "read_stuck_work": {**page, **of_job, **held},
        "read_stale_work": {**page, "namespace": NAMESPACE, "job": ""},
        "count_work": {**of_job, **most},
        "count_done_work": {**of_job, **most},
        "count_ready_work": {**of_job, **most},
        "count_running_work": {**of_job, **most},
        "count_stuck_work": {**of_job, **most, **held},
        "read_log_of_job": {**page, **of_job},
        "oldest_lot_log": {"most": PAGE, "after": 100},
    }


def _of_work() -> dict[str, dict[str, Any]]:
    """Return the statements of a job's work and its inputs."""
    of_job, of_jobs, most = {"job_id": LOAD.id}, {"ids": [LOAD.id]}, {"most": PAGE}
    lot, lots = {"lot": "lot 7"}, {"lots": [name for name, _ in LOTS[:PAGE]]}
    page = {"limit": PAGE, "offset": 0}
    early, late = {"now": NOW}, {"now": FAR}
    return {
        "lot_jobs_by_ids": of_jobs,
        "read_lot_job": {"id": LOAD.id},
        "read_lot_jobs": of_jobs,
        "open_work_of_job": of_job,
        "lot_work_by_lots": {**of_job, **lots},
        "ready_work": {**of_job, **most},
        "newest_ready_work": {**of_job, **most, "rank": 0},
        "next_ready_rank": {**of_job, "rank": 0},
        "read_claim_namespaces": {"ids": [run_of(7), run_of(8)]},
        "read_claimed_run": {"id": run_of(7)},
        "read_claimer": {**of_job, **lot, "run_id": run_of(7)},
        "read_work_of_lot": {**of_jobs, **lot},
        "read_turns_of_lot": {**of_jobs, **lot},
        "lot_turns": {**of_job, **lots},
        "all_turn_keepers": {},
        "read_log_of_work": {**page, **of_job, **lot},
        "read_log_of_run": {**page, **of_job, "lots": ["lot 7"], "run_id": run_of(7)},
        "lots_met_by_job": {**of_job, **most, "after": "lot 5"},
        "expired_work": {**early, **most},
        "due_work": {**early, **most},
        "early_work": {**late, **most},
        "endless_work": {**late, **most},
        "sweep_is_due": {
            **early,
            "renewed_at_most": FAR,
            "not_before_at_most": FAR,
            "due_at_most": FAR,
        },
        "due_clocks": early,
        "clocks_ahead": late,
    }


def _of_lots() -> dict[str, dict[str, Any]]:
    """Return the statements of a dataset's lots: their states and the reasons."""
    page, most = {"limit": PAGE, "offset": 0}, {"most": PAGE}
    of_dataset, of_datasets = {"dataset_id": CLEAN.id}, {"ids": [RAW.id, CLEAN.id]}
    names = [name for name, _ in LOTS[:PAGE]]
    lot, lots = {"lot": "lot 7"}, {"lots": names}
    return {
        "read_lots": {**page, **of_dataset},
        "read_named_lots": {**page, **of_dataset, "most": PAGE},
        "count_lots": {**of_dataset, "most": MOST},
        "read_lot": {**of_dataset, **lot},
        "lot_outputs": {**of_dataset, **lots},
        "lot_inputs": {**lots, "dataset_id": RAW.id, "job_id": LOAD.id},
        "ready_lots_of_dataset": {**of_dataset, **most, "after": "lot 5"},
        "read_output_statuses": {"keys": [CLEAN.id + name for name in names]},
        "read_input_statuses": {"keys": [RAW.id + LOAD.id + name for name in names]},
        "read_consumers": {**lots, "dataset_id": RAW.id, "nowhere": HOLD_SENTINEL},
        "read_log_of_lot": {**page, **of_dataset, **lot, "jobs": [LOAD.id], "named": "{}"},
        "read_makers_of_lot": {**of_datasets, **lot},
        "read_readers_of_lot": {"keys": [RAW.id + LOAD.id], **lot},
        "read_writers_of_datasets": of_datasets,
        "read_jobs_of_dataset": of_dataset,
        "read_jobs_of_lot": {**of_dataset, **lot},
        "lot_jobs_by_datasets": of_datasets,
        "read_dataset_names": of_datasets,
        "read_dataset_checks": {**page, **of_dataset},
        "read_dataset_checks_failed": {**page, **of_dataset},
        "read_lot_checks": {**of_dataset, **lot},
        "all_lot_holds": {},
        "lot_holds_by_ids": of_datasets,
        "read_held_gates": of_datasets,
        "read_holds_of_lot": {**lot, "jobs": [LOAD.id], "datasets": [RAW.id]},
        "lot_reasons": {**of_dataset, **lots},
        "lot_reasons_of_lot": {"lot": LOTS[-1][0]},
        "read_reasons_of_lot": {**of_datasets, **lot},
        "first_held_lot": of_dataset,
        "held_outputs": {"keys": [CLEAN.id + LOAD.id + n for n in names], "nowhere": HOLD_SENTINEL},
        "lot_readers": {"dataset_id": RAW.id, **lot},
        "lot_clocks_by_ids": of_datasets,
        "find_lots": {
            "first": "lot 7",
            "last": "lot 7~",
            "namespace": NAMESPACE,
            **most,
            "limit": PAGE,
        },
    }
