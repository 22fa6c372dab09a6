"""Priorities that people set, and what becomes of them on the way."""

import pytest

from penstock.errors import Conflict
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Gate, Site
from tests.patience import HANG_SECONDS
from tests.web import raw

BODY = b"x,y\n1,2\n" * 1000
WITHOUT_LENGTH = raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", BODY)


def test_a_priority_that_a_person_set_stays(site: Site) -> None:
    batches = [site.deposit(site.web.on(f"/{n}.csv", WITHOUT_LENGTH)) for n in (1, 2)]
    with site.working("batch-pending"):
        early, _ = (site.reach(batch, IngestState.PENDING) for batch in batches)
    site.desk.prioritize_job(ADMIN, early.id, 50)
    with site.working("pending", "estimating"):
        priorities = [site.reach(each, IngestState.PROVISIONING).priority for each in batches]
    assert priorities == [50, 15]
    site.desk.prioritize_batch(ADMIN, batches[1].id, 40)
    with site.working():
        priorities = [site.reach(each, IngestState.COMPLETED).priority for each in batches]
    assert priorities == [50, 40]


def test_a_job_keeps_its_worker_when_its_priority_is_changed(site: Site) -> None:
    gate = Gate(site, BODY)
    batch = site.deposit(gate.url)
    with site.working():
        assert gate.asked.wait(HANG_SECONDS)
        job = site.only_job(batch)
        assert site.desk.prioritize_batch(ADMIN, batch.id, 1) == 1
        changed = site.job(job)
        assert (changed.priority, changed.locked_by) == (1, job.locked_by)
        gate.open()
        assert site.ended(batch).status is BatchState.COMPLETED
    assert site.job(job).priority == 1
    assert len(site.web.requests_to("/gated.csv")) == 1


def test_only_open_jobs_get_another_priority(site: Site) -> None:
    batch = site.deposit(site.web.on("/1.csv", WITHOUT_LENGTH))
    with pytest.raises(Conflict, match=f"batch {batch.id} is pending, and has no jobs yet"):
        site.desk.prioritize_batch(ADMIN, batch.id, 1)
    site.run(batch)
    job = site.only_job(batch)
    with pytest.raises(Conflict, match=f"batch {batch.id} is completed, and none of its jobs is"):
        site.desk.prioritize_batch(ADMIN, batch.id, 1)
    with pytest.raises(Conflict, match=f"ingest job {job.id} is completed, so it has no priority"):
        site.desk.prioritize_job(ADMIN, job.id, 1)
    assert site.only_job(batch) == job
    assert site.audited()[-1][1] == "priority 1: refused"
