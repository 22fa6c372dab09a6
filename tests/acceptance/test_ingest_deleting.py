"""What may be deleted by hand, and what becomes of the lot of it."""

import pytest

from penstock.arcs.queries import manifest_rows
from penstock.catalog.commands import DatasetName
from penstock.clock import DAY
from penstock.errors import Conflict, NotFound, Unavailable
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import Batch, BatchChange, IngestHoldKind, JobChange
from penstock.ingest.stages import STAGE_NAMES, clean_up
from penstock.ingest.transitions import move_job
from penstock.locks.commands import HoldLot, WireJob
from penstock.locks.explain.why import explain_work
from penstock.locks.queries.lots import get_lot, list_log_of_lot
from penstock.lots.outbox import events_after
from penstock.schema.lots import Lot
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site, row
from tests.doors.waiting import until
from tests.ingest_stores import new_jobs
from tests.invariants import assert_all_holds
from tests.web import content

NS = "default"
BODY = b"x,y\n1,2\n"


def submit(site: Site, *missing: str) -> Batch:
    """A batch of two files, some of which are not there."""
    rows = [row(f"{site.web.url}/{name}", BODY) for name in ("a.csv", "b.csv")]
    for each in rows:
        if each.name not in missing:
            site.web.on(f"/{each.name}", content(BODY))
    return site.deposit(site.web.on("/b.checkm", content(write(ManifestKind.FILES, rows))))


def test_a_completed_job_cannot_be_deleted(site: Site) -> None:
    [batch] = site.run(submit(site))
    with pytest.raises(Conflict, match=f"^batch {batch.id} is completed and cannot become deleted"):
        site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    for job in site.jobs(batch):
        with pytest.raises(Conflict, match="is completed and cannot become deleted: Penstock"):
            site.desk.delete_job(ADMIN, job.id, confirmed=True)
    assert [job.status for job in site.jobs(batch)] == [IngestState.COMPLETED] * 2


def test_the_completed_job_of_a_failed_batch_stays(site: Site) -> None:
    [batch] = site.run(submit(site, "b.csv"))
    assert batch.status is BatchState.FAILED
    done = site.by_name(batch)["a.csv"]
    with pytest.raises(Conflict, match="Penstock makes this move itself; administrators cannot"):
        site.desk.delete_job(ADMIN, done.id, confirmed=True)
    assert site.job(done) == done


# The lot of a batch that is deleted.


def shown(site: Site, lot: str) -> Lot:
    with site.plane.catalog.read() as tx:
        return get_lot(tx, NS, "maps", lot)


def keys(site: Site, lot: str) -> list[str]:
    """What tells the lot's state to tools that only list the store."""
    folder = f"datasets/namespace={NS}/name=maps/version=1/lot={lot}"
    found = [entry.key.removeprefix(f"{folder}/") for entry in site.plane.objects.list(folder)]
    return [key.split("/")[0] for key in found if "attempt=" not in key]


def reason(site: Site, lot: str) -> str:
    """Why a reader does not work on the lot."""
    with site.plane.catalog.read() as tx:
        return explain_work(tx, NS, "reader", lot, site.clock()).sentence


def reported_twice(site: Site) -> Batch:
    """A batch that was reported with a failed job, and reported anew with it."""
    [batch] = site.run(submit(site, "b.csv"))
    site.desk.update_report(ADMIN, batch.id)
    [batch] = site.run(batch)
    assert batch.status is BatchState.FAILED
    maps, other = DatasetName(NS, "maps"), DatasetName(NS, "other")
    site.plane.catalog.submit(WireJob(NS, "reader", (maps,), (other,))).result()
    return batch


def test_the_lot_of_a_batch_that_is_deleted_is_removed(site: Site) -> None:
    batch = reported_twice(site)
    assert "announced, and not complete yet" in reason(site, batch.id)
    site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    with site.plane.catalog.read() as tx:
        [last, *_] = list_log_of_lot(tx, NS, "maps", batch.id, 10, 0)
        events = [(each.kind, each.state) for each in events_after(tx, 0, 10)]
        manifests = manifest_rows(tx, [shown(site, batch.id).version or ""])
    assert (shown(site, batch.id).status, keys(site, batch.id)) == ("ERROR", ["state=removed"])
    assert [row.state for row in manifests.values()] == ["removed"]
    assert events == [("announced", "partial"), ("announced", "partial"), ("removed", "removed")]
    assert (last.action, last.who, last.why) == ("remove", "ann", f"batch {batch.id} was deleted")
    assert "was removed at" in reason(site, batch.id)
    assert_all_holds(site.plane.settings)


def test_a_lot_that_is_held_meanwhile_is_removed_and_stays_held(site: Site) -> None:
    batch = reported_twice(site)
    catalog = site.plane.catalog
    catalog.submit(HoldLot("eve", "look", NS, "maps", batch.id)).result()
    site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    assert shown(site, batch.id).status == "HOLD"
    catalog.submit(HoldLot("eve", "seen", NS, "maps", batch.id, hold=False)).result()
    assert shown(site, batch.id).status == "ERROR"
    assert "was removed at" in reason(site, batch.id)


def test_a_deletion_that_was_cut_off_is_done_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = reported_twice(site)

    def away(change: BatchChange) -> None:
        raise Unavailable("the queue is away")

    with monkeypatch.context() as patch:
        patch.setattr(site.context.store, "change_batch", away)
        with pytest.raises(Unavailable):
            site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    assert (shown(site, batch.id).status, keys(site, batch.id)) == ("ERROR", ["state=removed"])


def test_the_lot_of_a_completed_batch_outlives_it(site: Site) -> None:
    [batch] = site.run(submit(site))
    site.clock.ahead += 31 * DAY
    assert clean_up.go_round(site.context) == 1
    assert (shown(site, batch.id).status, keys(site, batch.id)) == ("READY", ["state=complete"])


# Batches whose jobs are held.


def held_in_part(site: Site) -> Batch:
    """A batch with a job that has begun, and one that is held."""
    batch = submit(site)
    with site.working("batch-pending"):
        until(lambda: site.batch(batch).status is BatchState.PROCESSING)
    first, _ = site.jobs(batch)
    site.desk.prioritize_job(ADMIN, first.id, 0)
    [begun] = site.context.store.claim_jobs(IngestState.PENDING, 1)
    moved = move_job(begun, IngestState.ESTIMATING, site.clock())
    site.context.store.change_jobs([JobChange(begun, moved)])
    site.desk.hold_batch(ADMIN, batch.id)
    return batch


def test_a_batch_is_deleted_when_all_its_open_jobs_are_held(site: Site) -> None:
    batch = held_in_part(site)
    with pytest.raises(
        Conflict, match=f"^batch {batch.id} is processing, and 1 of its jobs is und"
    ):
        site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    with site.working():
        until(lambda: site.by_name(batch)["a.csv"].status is IngestState.COMPLETED)
    with pytest.raises(Conflict, match="cannot be brought back"):
        site.desk.delete_batch(ADMIN, batch.id, confirmed=False)
    assert site.batch(batch).status is BatchState.PROCESSING
    site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    with pytest.raises(NotFound):
        site.batch(batch)
    with site.working():
        assert site.run(submit(site))[0].status is BatchState.COMPLETED
    with site.plane.catalog.read() as tx, pytest.raises(NotFound):
        get_lot(tx, NS, "maps", batch.id)


def test_a_batch_that_is_about_to_be_reported_is_not_deleted(site: Site) -> None:
    batch = submit(site)
    with site.working(*(stage for stage in STAGE_NAMES if "report" not in stage)):
        until(lambda: site.batch(batch).status is BatchState.REPORTING)
    with pytest.raises(Conflict, match="is reporting and cannot become deleted"):
        site.desk.delete_batch(ADMIN, batch.id, confirmed=True)


def test_a_batch_of_which_no_job_is_pending_is_not_held(site: Site) -> None:
    batch = held_in_part(site)
    with pytest.raises(Conflict) as refused:
        site.desk.hold_batch(ADMIN, batch.id)
    assert str(refused.value) == (
        f"no job of batch {batch.id} is pending: 1 has begun and cannot be held, 1 is held "
        "already; to stop everything, hold the queue"
    )
    site.desk.release_batch(ADMIN, batch.id)
    assert site.run(batch)[0].status is BatchState.COMPLETED


def test_the_jobs_that_a_batch_has_already_are_held_and_released_with_it(site: Site) -> None:
    batch = submit(site)
    [claimed] = site.context.store.claim_batches(BatchState.PENDING, 1)
    site.context.store.release([site.context.store.add_jobs(claimed, new_jobs(claimed, 1))])
    assert site.desk.hold_batch(ADMIN, batch.id).status is BatchState.HELD
    assert [job.status for job in site.jobs(batch)] == [IngestState.HELD]
    assert site.desk.release_batch(ADMIN, batch.id).status is BatchState.PENDING
    assert [job.status for job in site.jobs(batch)] == [IngestState.PENDING]


def test_the_hold_of_a_collection_goes_with_it(site: Site) -> None:
    site.make_collection("brief")
    site.desk.hold(ADMIN, IngestHoldKind.COLLECTION, "brief")
    site.desk.delete_collection(ADMIN, "brief")
    assert site.context.store.holds() == []
    site.make_collection("brief")
    site.web.on("/map.csv", content(BODY))
    [batch] = site.run(site.deposit(f"{site.web.url}/map.csv", "brief"))
    assert batch.status is BatchState.COMPLETED
