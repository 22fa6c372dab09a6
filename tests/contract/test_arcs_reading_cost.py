"""The cost of reads of arcs and lots after much work: no long scans."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.db import Database
from penstock.db.folders import capability_folders
from penstock.db.statements import load_statements
from tests.contract.arc_rows import (
    ARCS,
    BACKFILL,
    CLEAN,
    DATASETS,
    DONE,
    LOTS,
    RAW,
    TOP,
    backfill_of,
    fill,
    run_of,
    uri_of,
    version_of,
)
from tests.contract.catalog_rows import NAMESPACE, NOW
from tests.plans import costly_steps, filled_database, is_parameter_scan, reads

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("arcs_reading_cost")

PAGE = 50
MOST = 500
READ_AT_MOST = 2 * MOST  # rows of one table, by one statement: the counts of each arc
FOLDERS = [f for f in capability_folders() if f.name in ("arcs", "lots", "operations")]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two arcs that have done twenty thousand lots each, with all their other rows."""
    with filled_database(request, tmp_path_factory, fill) as url:
        yield url


def test_no_read_of_arcs_or_lots_scans_unreturned_rows(database: Database, url: str) -> None:
    every = load_statements(database.dialect, capability_folders())
    statements = {name: every[name] for name in load_statements(database.dialect, FOLDERS)}
    examples = _examples()
    # test_replay_cost covers the statements of replays.
    assert {name for name in reads(statements) if "replay" not in name} == set(examples)
    assert {
        name: steps
        for name, params in examples.items()
        if (steps := costly_steps(url, statements[name], params, _is_small, READ_AT_MOST))
    } == {}


def _examples() -> dict[str, dict[str, Any]]:
    return {**_of_arcs(), **_of_arc_lots(), **_of_arrivals(), **_of_backfills(), **_of_lots()}


def _of_arcs() -> dict[str, dict[str, Any]]:
    arc, lots = ARCS[1], LOTS[DONE - PAGE : DONE]
    runs = [run_of(arc, number) for number in range(PAGE)]
    return {
        "all_arcs": {},
        "store_begun_at": {"url": "file:///nowhere"},
        "arcs_by_ids": {"ids": [each.id for each in ARCS]},
        "arc_parts_of_lots": {"job_id": arc.id, "lots": lots},
        "arc_attempts_by_ids": {"ids": runs},
        "arc_attempts_of_lot": {"job_id": arc.id, "lot": LOTS[-1]},
        "running_lots": {},
        "run_states": {"ids": runs},
        "listed_attempts": {"ids": runs},
        "published_manifests": {"ids": [each.id for each in DATASETS], "lot": LOTS[10]},
        "soonest_retry": {},
        "manifests_of_lots": {"dataset_id": CLEAN.id, "lots": lots},
        "unsettled_keys_after": {"owner_id": arc.id, "lot": "", "most": PAGE},
    }


def _of_arc_lots() -> dict[str, dict[str, Any]]:
    arcs = {"ids": [each.id for each in ARCS]}
    of_arc = {"job_id": ARCS[1].id}
    outputs = {"outputs": [TOP.id]}
    lots = {"lots": LOTS[DONE - PAGE : DONE]}
    page = {**of_arc, "after": LOTS[5], "most": PAGE}
    return {
        "arc_counts": {**arcs, "most": MOST, "lots": 5 * PAGE},
        "arcs_with_ready_lots": arcs,
        "arc_lots_after": page,
        "running_arc_lots_after": page,
        "done_arc_lots_after": {**page, **outputs},
        "partial_arc_lots_after": {**page, **outputs},
        "missing_arc_lots_after": page,
        "attempts_on_lots": {**of_arc, **lots},
        "gated_lots": {**of_arc, **outputs, **lots},
        "count_gated_lots": {"outputs": [CLEAN.id, TOP.id], "most": MOST},
    }


def _of_arrivals() -> dict[str, dict[str, Any]]:
    of_dataset = {"dataset_id": RAW.id}
    return {
        "all_arrivals": {},
        "arrivals_by_ids": {"ids": [RAW.id]},
        "arrival_by_name": {"namespace": NAMESPACE, "name": RAW.name},
        "arrived_objects_by_uris": {
            **of_dataset,
            "uris": [uri_of(number) for number in range(DONE - PAGE, DONE + PAGE)],
        },
        "arrived_objects_of_lots": {**of_dataset, "lots": LOTS[:PAGE]},
        "refused_objects": {**of_dataset, "after": "", "most": PAGE},
    }


def _of_backfills() -> dict[str, dict[str, Any]]:
    goes = {"backfill_id": BACKFILL}
    most = {"most": PAGE}
    return {
        "backfills_by_ids": {"ids": [BACKFILL, backfill_of(7)]},
        "last_backfills": {**most, "namespace": ""},
        "running_backfills": {},
        "going_backfill_lots": goes,
        "failed_backfill_lots": {**goes, **most, "job_id": ARCS[0].id},
        "ended_backfills": {**most, "before": NOW, "created_at": NOW - 500, "id": backfill_of(500)},
        "some_backfill_lots": {**goes, **most},
        "open_lots_to_repair": {**most, "job_id": ARCS[0].id},
        "partial_lots_to_repair": {**most, "job_id": ARCS[0].id, "outputs": [CLEAN.id, TOP.id]},
        "held_lots_to_repair": {**most, "job_id": ARCS[0].id},
        "stale_lots_to_repair": {**most, "job_id": ARCS[0].id},
    }


def _of_lots() -> dict[str, dict[str, Any]]:
    behind = {"after": 100}  # the position of one subscriber
    page = {**behind, "most": MOST}
    return {
        "lot_datasets_by_ids": {"ids": [each.id for each in DATASETS]},
        "lot_landings_by_ids": {"ids": [RAW.id]},
        "lot_manifests_by_versions": {"ids": [version_of(CLEAN, n) for n in range(PAGE)]},
        "lot_manifests_of_lot": {"dataset_id": CLEAN.id, "lot": LOTS[10]},
        "lot_events_after": page,
        "last_lot_event": {},
        "next_lot_event": behind,
        "oldest_lot_events": page,
        "run_ends_after": page,
        "last_run_end": {},
        "next_run_end": behind,
        "oldest_run_ends": page,
        "pruned_upto": {"outbox": "lots"},
        "all_subscribers": {},
        "subscribers_by_names": {"names": ["behind", "lineage"]},
    }


def _is_small(step: str) -> bool:
    """Return whether the scan reads a list parameter, declarations, a small index or a subquery.

    Events are read from the end and backfills from the newest. Reading past these still fails the
    test.
    """
    inner = ("SCAN a", "SCAN c")  # counts or claims
    few = (
        "lot_work_leases",
        "lot_work_renewed",
        "lot_work_later",
        "backfills_running",
        "backfills_by_age",
    )
    declared = ("arcs_by_name", "arrivals_by_name", "sqlite_autoindex_subscribers_1")
    return is_parameter_scan(step) or step in (*inner, "SCAN e") or step.endswith((*few, *declared))
