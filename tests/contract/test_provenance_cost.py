"""The cost of provenance: independent of other data."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock import ids
from penstock.arcs.arrivals.arrival import ArrivedRow, Placed
from penstock.catalog.entities.runs import lot_facets
from penstock.catalog.rows import replace
from penstock.db import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.statements import load_statements
from penstock.ingest.archive.register import StoredRow
from penstock.ingest.lots import BatchLotRow
from penstock.locks.rows import LogRow
from penstock.lots.rows import ManifestRow
from penstock.provenance.history import LotName, lot_at
from penstock.provenance.trace import walk_back
from penstock.schema.catalog import DatasetRole
from penstock.states import ManifestState
from tests.contract.catalog_rows import NAMESPACE, NOW, edge, job, run, version
from tests.contract.test_reading_cost import Counted
from tests.contract.test_replay_cost import DATASETS, JOBS, LOTS, fill
from tests.plans import filled, is_given, walks

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("provenance_cost")

PART = job("part")
TOP = DATASETS[2]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """External lots, deposits and arrivals, and the outputs of two jobs."""
    with filled(request, tmp_path_factory, fill, _fill) as found:
        yield found


def _fill(tx: Transaction) -> None:
    tx.write("put_jobs", [PART])
    for place, each in enumerate(JOBS):
        tx.write("put_edges", [edge(each, DatasetRole.INPUT, DATASETS[place])])
        tx.write("put_edges", [edge(each, DatasetRole.OUTPUT, DATASETS[place + 1])])
    log, manifests, runs = [], [], []
    objects, batches, stored = [], [], []
    raw = DATASETS[0].id
    for number in range(LOTS):
        lot, batch = f"lot {number}", f"bid{number:010}"
        log.append(LogRow(NOW, "register", lot, None, raw, None, "", "READY", "ann", ""))
        objects.append(ArrivedRow(raw, f"x/{number}", lot, Placed.ASSIGNED, 1, "m", "", NOW, NOW))
        counts = (1, 1, "0", "a")
        told = (ManifestState.COMPLETE, "key", *counts)
        batches.append(BatchLotRow(batch, "maps", "ann", raw, lot, 1, *told, 0, NOW))
        ark = f"ark:/99999/{number}"
        kept = (f"key {number}", NAMESPACE, "maps", batch, f"jid{number}", "l", "d", 1, 1, "t")
        stored.append(StoredRow(ark, 1, *kept, ids.derived_id("run", ark), NOW))
        for place, each in enumerate(JOBS):
            ran = run(each, number)
            for action in ("claim", "complete"):
                log.append(LogRow(NOW, action, lot, each.id, None, ran.id, "", "", "w", ""))
            made = version(DATASETS[place + 1], number + 1).id
            manifests.append(ManifestRow(made, DATASETS[place + 1].id, lot, *told, NOW))
            runs.append(replace(run(PART, 2 * number + place), parent_run_id=ran.id))
    tx.write("add_lot_log", log)
    tx.write("put_lot_manifests", manifests)
    tx.write("put_runs", runs)
    tx.write("put_arrived_objects", objects)
    tx.write("put_batch_lots", batches)
    tx.write("put_stored_objects", stored)


@pytest.mark.parametrize("as_of", [None, NOW + 10**12])
def test_provenance_cost_is_independent_of_other_lots(
    database: Database, as_of: int | None
) -> None:
    with database.read() as tx:
        counted = Counted(tx)
        asked = lot_at(counted, LotName(TOP.id, NAMESPACE, "top", "lot 77"), as_of)
        walk = walk_back(counted, {asked.version_id: "lot 77"})
    made = [(node.version.name, node.lot, node.depth) for node in walk.nodes.values()]
    assert made == [("top", "lot 77", 0), ("clean", "lot 77", 1), ("raw", "lot 77", 2)]
    assert [each.who for told in walk.registered.values() for each in told] == ["ann"]
    assert counted.statements <= 30


def test_provenance_scans_only_what_it_returns(database: Database, url: str) -> None:
    (folder,) = (each for each in capability_folders() if each.name == "provenance")
    written = (folder / "statements" / "provenance.sql").read_text()
    examples = _examples()
    named = {line.split()[-1] for line in written.splitlines() if line.startswith("-- name:")}
    assert named == set(examples)
    statements = load_statements(database.dialect, capability_folders())
    assert {
        name: found
        for name, params in examples.items()
        if (found := walks(url, statements[name], params, is_given))
    } == {}


def _examples() -> dict[str, dict[str, Any]]:
    """Return the statements with typical parameters."""
    numbers = range(50)
    lots = [f"lot {number}" for number in numbers]
    of_lot = {"dataset_id": DATASETS[0].id, "lot": "lot 7"}
    of_made = {"dataset_id": TOP.id, "lot": "lot 7"}
    stretch = {"dataset_id": TOP.id, "at": NOW + 2_000_000_000, "until": NOW + 2_050_000_000}
    runs = [run(JOBS[0], number).id for number in numbers]
    versions = [version(TOP, number + 1).id for number in numbers]
    keys = [DATASETS[0].id + lot for lot in lots]
    claims = [JOBS[0].id + ran + lot for ran, lot in zip(runs, lots, strict=True)]
    return {
        "lot_now": of_made,
        "versions_with_manifests": of_made,
        "versions_made_of_lot": of_made,
        "registrations_of_lots": {"keys": keys},
        "version_declared_from": {**stretch, "facets": lot_facets("lot 7")},
        "versions_declared_like": {**stretch, "pattern": "%lot 7%", "most": 50},
        "publications": {"ids": versions},
        "versions_in_full": {"ids": versions},
        "runs_in_full": {"ids": runs},
        "versions_read_by_runs": {"keys": [ran + lot for ran, lot in zip(runs, lots, strict=True)]},
        "claimers_of_runs": {"keys": claims},
        "parts_of_runs": {"ids": runs},
        "arrived_in_lot": {**of_lot, "most": 50},
        "count_arrived_in_lot": of_lot,
        "batches_of_lots": {"keys": keys[:5]},
        "objects_by_arks": {"arks": [f"ark:/99999/{number}" for number in numbers[:5]]},
        "lots_of_dataset_from": {"dataset_id": TOP.id, "after": "lot 5", "most": 50},
    }
