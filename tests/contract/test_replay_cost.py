"""The cost of a replay in a large database: it grows with its own lots, without long scans."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from penstock import ids
from penstock.catalog.entities.runs import lot_facets
from penstock.catalog.rows import JobRow, replace
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import load_statements
from penstock.locks.commands.wiring import default_wiring
from penstock.locks.rows import EXTERNAL_JOB, HOLD_SENTINEL, LotJobDatasetRow, StatusRow, WorkRow
from penstock.operations.replays.plan import find_steps, make_plan
from penstock.operations.replays.rows import ReplayRow, StepCounts, StepEdgeRow, StepRow
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import sort_key
from penstock.schema.lots import Status
from penstock.states import ReplayState, StepState, WorkState
from tests.contract.catalog_rows import (
    NAMESPACE,
    NOW,
    dataset,
    job,
    job_version,
    run,
    touched,
    version,
)
from tests.contract.test_reading_cost import CountingTransaction
from tests.plans import costly_steps, filled_database, is_parameter_scan

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("replay_cost")

LOTS = 5_000
STEPS = 20_000
DATASETS = [dataset(name) for name in ("raw", "clean", "top")]
JOBS = [job("clean"), job("top")]
REPLAY = ids.derived_id("a replay")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two jobs that have done five thousand lots each, and a replay of all of them."""
    with filled_database(request, tmp_path_factory, fill) as url:
        yield url


def fill(tx: Transaction) -> None:
    """Write everything."""
    tx.write("put_datasets", DATASETS)
    tx.write("put_jobs", JOBS)
    tx.write("put_job_versions", [job_version(each) for each in JOBS])
    for index, each in enumerate(JOBS):
        reads, writes = DATASETS[index].id, DATASETS[index + 1].id
        lot_job = replace(
            default_wiring(each.id, NOW), inputs=f'["{reads}"]', outputs=f'["{writes}"]'
        )
        tx.write("put_lot_jobs", [lot_job])
        wires = [(reads, DatasetRole.INPUT), (writes, DatasetRole.OUTPUT)]
        tx.write("put_lot_job_datasets", [LotJobDatasetRow(d, r, each.id) for d, r in wires])
    for begin in range(0, LOTS, 5000):
        _fill_lots(tx, range(begin, min(begin + 5000, LOTS)))
    _fill_replay(tx)


def _fill_lots(tx: Transaction, numbers: range) -> None:
    versions, runs, touches, status, work = [], [], [], [], []
    for number in numbers:
        lot = f"lot {number}"
        raw = replace(version(DATASETS[0], number + 1), facets=lot_facets(lot))
        versions.append(raw)
        before = raw
        source = DATASETS[0].id
        status.append(_status(source, lot, DatasetRole.OUTPUT, EXTERNAL_JOB, None, raw.id))
        for index, each in enumerate(JOBS):
            ran = run(each, number, facets=lot_facets(lot, 1))
            ran = replace(ran, job_version_id=job_version(each).id)
            output = version(DATASETS[index + 1], number + 1, ran, published_at=ran.ended_at)
            versions.append(output)
            runs.append(ran)
            touches += [
                touched(ran, DatasetRole.INPUT, before),
                touched(ran, DatasetRole.OUTPUT, output),
            ]
            status += [
                _status(before.dataset_id, lot, DatasetRole.INPUT, each.id, ran.id, before.id),
                _status(output.dataset_id, lot, DatasetRole.OUTPUT, each.id, ran.id, output.id),
            ]
            work.append(_work(each, lot, ran.id))
            before = output
    tx.write("put_versions", versions)
    tx.write("put_runs", runs)
    tx.write("put_run_datasets", touches)
    tx.write("put_lot_status", status)
    tx.write("put_lot_work", work)


def _status(
    dataset_id: str, lot: str, role: DatasetRole, job_id: str, run_id: str | None, version_id: str
) -> StatusRow:
    stands = Status.READY if role == DatasetRole.OUTPUT else Status.DONE
    return StatusRow(dataset_id, lot, role, job_id, stands, "", run_id, version_id, NOW)


def _work(of: JobRow, lot: str, run_id: str) -> WorkRow:
    return WorkRow(
        job_id=of.id,
        lot=lot,
        lot_key=sort_key(lot),
        rank=0,
        state=WorkState.DONE,
        tries=1,
        token=1,
        run_id=run_id,
        owner="w",
        lease_seconds=60,
        lease_until=0,
        not_before=0,
        since=NOW,
        error="",
    )


def _fill_replay(tx: Transaction) -> None:
    """Write a replay with half of its steps done and three running."""
    counts = msgspec.json.encode(StepCounts(pending=STEPS)).decode()
    state = ReplayState.RUNNING
    row = ReplayRow(REPLAY, NAMESPACE, "{}", state, 1, counts, 4, "ann", "", 0, NOW, NOW)
    closed = replace(row, state=ReplayState.DONE, is_open=0)
    others = [replace(closed, id=ids.derived_id("replay", str(n))) for n in range(1000)]
    tx.write("put_replays", [row, *others])
    steps, edges = [], []
    for number in range(1, STEPS + 1):
        stands = StepState.DONE if number < STEPS // 2 else StepState.PENDING
        if stands is StepState.PENDING and number < STEPS // 2 + 3:
            stands = StepState.GOING
        of, lot = JOBS[number % 2].id, f"lot {number // 2}"
        waits = 0 if number % 2 else 1
        values = (REPLAY, number, of, lot, number % 2, stands, waits, None, None, 1, "", NOW)
        steps.append(StepRow(*values))
        edges.append(StepEdgeRow(REPLAY, number, number + 1))
    tx.write("put_replay_steps", steps)
    tx.write("put_replay_edges", edges)


def test_the_cost_of_a_lot_depends_only_on_its_downstream(
    database: Database,
) -> None:
    target = ReplayTarget(namespace=NAMESPACE, dataset="raw", lot="lot 77")
    with database.read() as tx:
        counted = CountingTransaction(tx)
        _, plan = make_plan(counted, target, 4)
    assert [f"{step.job} {step.lot}" for step in plan.steps] == ["clean lot 77", "top lot 77"]
    assert counted.statements <= 15


def test_thousands_of_lots_need_no_more_statements_than_one(
    database: Database,
) -> None:
    with database.read() as tx:
        counted = CountingTransaction(tx)
        steps = find_steps(counted, ReplayTarget(namespace=NAMESPACE, job="clean"))
    assert len(steps.work) == 2 * LOTS
    assert [list(before) for before in steps.before[:4]] == [[], [0], [], [2]]
    assert counted.statements <= 15


def test_no_replay_statement_scans_unreturned_rows(database: Database, url: str) -> None:
    statements = load_statements(database.dialect, capability_folders())
    examples = _examples()
    others = ("put_", "forget_", "broken_", "checked_")  # a check reads everything
    names = {name for name in statements if "replay" in name and not name.startswith(others)}
    assert names == set(examples)
    assert {
        name: steps
        for name, params in examples.items()
        if (steps := costly_steps(url, statements[name], params, _is_small))
    } == {}


def _examples() -> dict[str, dict[str, Any]]:
    lots = [f"lot {number}" for number in range(50)]
    runs = [run(JOBS[0], number).id for number in range(50)]
    versions = [version(DATASETS[1], number + 1).id for number in range(50)]
    of_lot = {"dataset_id": DATASETS[1].id, "lot": "lot 7"}
    span = {"start": NOW + 2_000_000_000, "end": NOW + 2_050_000_000}
    replay = {"replay_id": REPLAY}
    some = {"numbers": list(range(1, 50))}
    page = {**replay, "first": STEPS // 2, "most": 50}
    return {
        "replay_readers": {"ids": versions},
        "replay_made": {"ids": runs},
        "replay_runs": {"ids": runs},
        "replay_work": {"keys": [JOBS[0].id + lot for lot in lots]},
        "replay_outputs": {"keys": [DATASETS[1].id + lot for lot in lots]},
        "replay_kept": {"keys": [JOBS[0].id + lot for lot in lots], "nowhere": HOLD_SENTINEL},
        "replay_lot": of_lot,
        "replay_versions_of_lot": of_lot,
        "replay_versions": {"ids": versions},
        "replay_published": {"dataset_id": DATASETS[1].id, **span},
        "replay_lot_of_batch": {"batch": "bid0000000001"},
        "replay_job_version": {"id": job_version(JOBS[0]).id},
        "replay_runs_ended": {"job_id": JOBS[0].id, **span},
        "replays_by_ids": {"ids": [REPLAY]},
        "last_replays": {"most": 10, "namespace": ""},
        "open_replays": {},
        "ended_replays": {"before": NOW, "created_at": NOW, "id": REPLAY, "most": 50},
        "some_replay_steps": {**replay, "most": 50},
        "replay_steps_by_numbers": {**replay, **some},
        "replay_steps_of_work": {**replay, "keys": [JOBS[0].id + lot for lot in lots]},
        "replay_steps_in_state": {**replay, "state": "going", "most": 100_000},
        "next_replay_steps": {**replay, "most": 50},
        "replay_steps_after": {**replay, **some},
        "read_replay_steps": page,
        "read_replay_steps_in_state": {**page, "state": "going"},
    }


def _is_small(step: str) -> bool:
    """Return whether the scan reads a list parameter, or replays in the requested order."""
    return is_parameter_scan(step) or step.endswith(("replays_by_age", "replays_open"))
