"""What becomes of a batch when its collection gets another dataset, other lots, another storage."""

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import NotFound
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import Batch
from penstock.ingest.stages import STAGE_NAMES
from penstock.locks.queries.lots import get_lot, list_log_of_lot
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site, row
from tests.contract.provenance_site import name_of, provenance
from tests.doors.waiting import until
from tests.invariants import assert_all_holds
from tests.web import content, status

NS = "default"
BODY = b"x,y\n1,2\n"


@pytest.fixture
def failed(site: Site) -> Batch:
    """A batch that was reported while a file of it was missing."""
    site.web.on("/a.csv", content(BODY))
    site.web.on("/b.csv", status(404))
    rows = [row(f"{site.web.url}/{name}", BODY) for name in ("a.csv", "b.csv")]
    url = site.web.on("/b.checkm", content(write(ManifestKind.FILES, rows)))
    [batch] = site.run(site.deposit(url))
    assert status_of(site, "maps", batch.id) == "PENDING"
    return batch


def change(site: Site, **profile: Any) -> None:
    collection = site.make_collection(**profile)
    until(lambda: site.context.collections.get("maps") == collection)  # it is kept for a second


def completed(site: Site, batch: Batch, **profile: Any) -> None:
    """Change the collection, have what failed done, and have it reported anew."""
    change(site, **profile)
    site.web.on("/b.csv", content(BODY))
    site.desk.resume_batch(ADMIN, batch.id)
    with site.working():
        site.at_rest(batch)
        site.desk.update_report(ADMIN, batch.id)
        assert site.ended(batch).status is BatchState.COMPLETED


def status_of(site: Site, dataset: str, lot: str) -> str | None:
    with site.plane.catalog.read() as tx:
        try:
            return get_lot(tx, NS, dataset, lot).status
        except NotFound:
            return None


def last_said_of(site: Site, batch: Batch) -> str | None:
    with site.plane.catalog.read() as tx:
        return list_log_of_lot(tx, NS, "maps", batch.id, 1, 0)[0].why


def test_a_batch_is_a_lot_of_the_dataset_that_its_collection_has_at_last(
    site: Site, failed: Batch
) -> None:
    completed(site, failed, dataset="charts")
    assert status_of(site, "charts", failed.id) == "READY"
    told = provenance(site.plane, name_of(site.plane, NS, "charts", failed.id))
    [deposit] = told.versions[0].deposits
    assert (deposit.batch, deposit.depositor, len(deposit.objects)) == (failed.id, "jo", 2)
    assert_all_holds(site.plane.settings)


def test_where_a_batch_was_announced_it_is_removed_when_it_comes_elsewhere(
    site: Site, failed: Batch
) -> None:
    completed(site, failed, dataset="charts")
    assert status_of(site, "maps", failed.id) == "ERROR"
    assert last_said_of(site, failed) == f"batch {failed.id} is now in {NS}/charts {failed.id}"


def test_a_batch_that_was_announced_is_removed_when_it_becomes_part_of_an_interval(
    site: Site, failed: Batch
) -> None:
    completed(site, failed, lots="PT1H")
    assert status_of(site, "maps", failed.id) == "ERROR"
    assert f"batch {failed.id} is now in {NS}/maps 2" in (last_said_of(site, failed) or "")


def test_a_storage_changed_before_recording_has_to_be_restored(site: Site, tmp_path: Path) -> None:
    batch = site.deposit(site.web.on("/a.csv", content(BODY)))
    with site.working(*STAGE_NAMES[: STAGE_NAMES.index("recording")], "provisioning"):
        site.reach(batch, IngestState.RECORDING)
    change(site, storage=f"file://{tmp_path}/other")
    with site.working("recording"):
        job = site.reach(batch, IngestState.FAILED)
    assert "had another storage when it was stored, put that back and resume" in job.message
    change(site)
    site.desk.resume_job(ADMIN, job.id)
    with site.working("recording"):
        site.reach(batch, IngestState.NOTIFY)
