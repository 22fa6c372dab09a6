"""What may be deleted by hand, and what becomes of the lot of it."""

import pytest

from penstock.errors import Conflict
from penstock.ingest.receiving.checkm import ManifestKind, write
from penstock.ingest.values import Batch
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site, row
from tests.web import content

BODY = b"x,y\n1,2\n"


def submit(site: Site, *missing: str) -> Batch:
    """A batch of two files, some of which are not there."""
    rows = [row(f"{site.web.url}/{name}", BODY) for name in ("a.csv", "b.csv")]
    for each in rows:
        if each.name not in missing:
            site.web.on(f"/{each.name}", content(BODY))
    return site.deposit(site.web.on("/b.checkm", content(write(ManifestKind.FILES, rows))))


def test_what_has_completed_is_not_deleted_by_hand(site: Site) -> None:
    [batch] = site.run(submit(site))
    with pytest.raises(Conflict, match=f"^batch {batch.id} is completed and cannot become deleted"):
        site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    for job in site.jobs(batch):
        with pytest.raises(Conflict, match="is completed and cannot become deleted: that comes by"):
            site.desk.delete_job(ADMIN, job.id, confirmed=True)
    assert [job.status for job in site.jobs(batch)] == [IngestState.COMPLETED] * 2


def test_the_completed_job_of_a_failed_batch_stays(site: Site) -> None:
    [batch] = site.run(submit(site, "b.csv"))
    assert batch.status is BatchState.FAILED
    done = site.by_name(batch)["a.csv"]
    with pytest.raises(Conflict, match="that comes by itself, and is not done by hand"):
        site.desk.delete_job(ADMIN, done.id, confirmed=True)
    assert site.job(done) == done
