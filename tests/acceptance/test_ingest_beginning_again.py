"""What failed at its very beginning, and how it begins again where its payload is not at fault."""

import errno
import os
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from penstock.cli.ingest.start import WorkLoop
from penstock.cli.stopping import StopSignals
from penstock.errors import Conflict, NotFound, Unavailable
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import Batch, NewJob
from penstock.ingest.service import ResumeResult
from penstock.ingest.stages import batch_pending
from penstock.locks.queries.lots import get_lot
from penstock.schema.ingest import PayloadType
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site, row
from tests.doors.waiting import until
from tests.web import Answer, content, status

BODY = b"x,y\n1,2\n"


def submit_object(site: Site, answer: Answer | None = None) -> Batch:
    """A batch of one object, whose manifest is served like this."""
    manifest = write(ManifestKind.OBJECT, [row(site.web.on("/a.csv", content(BODY)), BODY)])
    url = site.web.on("/object.checkm", answer or content(manifest))
    return site.deposit(url, type=PayloadType.OBJECT_MANIFEST)


def test_a_job_waits_while_there_is_no_space_for_its_manifest(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def full(file: int) -> None:
        looked.append(file)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    batch = submit_object(site)
    with site.working("batch-pending"):
        site.reach(batch, IngestState.PENDING)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with site.working("pending"):
            until(lambda: len(looked) > 1 or site.only_job(batch).status is not IngestState.PENDING)
    job = site.only_job(batch)
    assert job.status is IngestState.PENDING
    assert "no space left" in site.context.runtime.waits[job.id]
    with StopSignals(1) as signals:  # it does not stay for ever, either
        WorkLoop(site.context, ["pending"], signals).wait(once=True)
    [batch] = site.run(batch)
    assert batch.status is BatchState.COMPLETED


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(503), "/object.checkm could not be fetched in 4 tries"),
        (status(404), "/object.checkm is not there: the server answers 404 Not Found"),
    ],
)
def test_a_job_whose_manifest_could_not_be_had_begins_again(
    site: Site, answer: Answer, why: str
) -> None:
    [batch] = site.run(submit_object(site, answer))
    job = site.only_job(batch)
    assert (batch.status, job.status) == (BatchState.FAILED, IngestState.FAILED)
    assert why in job.message
    assert "an administrator can resume it from the beginning" in site.letter()
    submit_object(site)
    assert site.desk.resume_batch(ADMIN, batch.id) == [ResumeResult(job.id, IngestState.PENDING)]
    with site.working():
        job = site.reach(batch, IngestState.COMPLETED)
    assert (job.retry_count, job.can_begin_again) == (1, False)


@pytest.mark.parametrize("stage", [IngestState.PENDING, IngestState.ESTIMATING])
def test_a_job_that_an_administrator_stopped_at_its_beginning_begins_again(
    site: Site, stage: IngestState
) -> None:
    batch = submit_object(site)
    with site.working("batch-pending", *(["pending"] if stage is IngestState.ESTIMATING else [])):
        job = site.reach(batch, stage)
    site.desk.fail_job(ADMIN, job.id)
    [batch] = site.run(batch)
    assert "correct the payload" not in site.letter()
    assert site.desk.resume_job(ADMIN, job.id).status is IngestState.PENDING
    with site.working():
        site.reach(batch, IngestState.COMPLETED)


def test_a_job_that_failed_for_good_stays_so(site: Site) -> None:
    [batch] = site.run(submit_object(site, content(b"#%checkm_0.7\n")))
    job = site.only_job(batch)
    with pytest.raises(Conflict, match="correct the payload and submit it again"):
        site.desk.resume_job(ADMIN, job.id)
    assert site.job(job) == job


# Batches.


def submit_batch(site: Site, answer: Answer | None = None, **rest: str) -> Batch:
    """A batch of one file, whose manifest is served like this."""
    manifest = write(ManifestKind.FILES, [row(site.web.on("/a.csv", content(BODY)), BODY)])
    return site.deposit(site.web.on("/b.checkm", answer or content(manifest)), **rest)


CUT_OFF = content(b"#%checkm_0.7\n")


def test_a_batch_whose_manifest_cannot_be_read_stays_failed_and_is_no_lot(site: Site) -> None:
    [batch] = site.run(submit_batch(site, CUT_OFF))
    with pytest.raises(
        Conflict, match=f"^batch {batch.id} failed before its jobs were made: the m"
    ):
        site.desk.update_report(ADMIN, batch.id)
    after = site.batch(batch)
    assert replace(after, locked_by=batch.locked_by) == batch  # it may have been let go since
    with site.plane.catalog.read() as tx, pytest.raises(NotFound):
        get_lot(tx, "default", "maps", batch.id)


@pytest.mark.parametrize("answer", [CUT_OFF, status(503)])
def test_a_batch_is_resumed_once_its_manifest_can_be_read(site: Site, answer: Answer) -> None:
    [batch] = site.run(submit_batch(site, answer, key="monday"))
    assert batch.status is BatchState.FAILED
    assert f"penstock ingest resume {batch.id}" in site.letter()
    assert submit_batch(site, key="monday").id == batch.id
    assert site.desk.resume_batch(ADMIN, batch.id) == []
    assert site.batch(batch).status is BatchState.PENDING
    [batch] = site.run(batch)
    assert (batch.status, batch.jobs) == (BatchState.COMPLETED, 1)


def test_a_batch_that_failed_during_expansion_is_resumed_not_reported(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number}.csv" for number in range(3)]
    rows = [row(site.web.on(f"/{name}", content(BODY)), BODY) for name in names]
    manifest = content(write(ManifestKind.FILES, rows))
    batch = site.deposit(site.web.on("/b.checkm", manifest))
    [claimed] = site.context.store.claim_batches(BatchState.PENDING, 1)
    monkeypatch.setattr(batch_pending, "_AT_ONCE", 1)
    add = site.context.store.add_jobs

    def die(batch: Batch, jobs: Sequence[NewJob]) -> Batch:
        if batch.jobs == 2:
            raise Unavailable("the machine is gone")
        return add(batch, jobs)

    with monkeypatch.context() as patch:
        patch.setattr(site.context.store, "add_jobs", die)
        with pytest.raises(Unavailable):
            batch_pending.work(site.context, claimed)
    site.context.store.release([claimed])
    (site.context.storage.batch_folder(batch.id) / "system" / "manifest.checkm").unlink()
    site.web.on("/b.checkm", status(404))
    with site.working():
        until(lambda: site.batch(batch).status is BatchState.FAILED)
        site.at_rest(batch)
    with pytest.raises(Conflict, match="failed before its jobs were made"):
        site.desk.update_report(ADMIN, batch.id)
    site.web.on("/b.checkm", manifest)
    site.desk.resume_batch(ADMIN, batch.id)
    [batch] = site.run(batch)
    assert (batch.status, sorted(site.by_name(batch))) == (BatchState.COMPLETED, names)


def test_a_batch_that_was_reported_does_not_begin_again(site: Site) -> None:
    [batch] = site.run(submit_object(site, content(b"nonsense")))
    [refused] = site.desk.resume_batch(ADMIN, batch.id)
    assert (refused.stage, site.batch(batch)) == (None, batch)
