"""What failed at its very beginning, and how it begins again where its payload is not at fault."""

import errno
import os

import pytest

from penstock.errors import Conflict
from penstock.ingest.desk import Resumed
from penstock.ingest.receiving.checkm import ManifestKind, write
from penstock.ingest.values import Batch, PayloadType
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
    with monkeypatch.context() as patch, site.working("pending"):
        patch.setattr(os, "fsync", full)
        until(lambda: len(looked) > 1 or site.only_job(batch).status is not IngestState.PENDING)
    assert site.only_job(batch).status is IngestState.PENDING
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
    assert site.desk.resume_batch(ADMIN, batch.id) == [Resumed(job.id, IngestState.PENDING)]
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
