"""Our object store goes away while daemons work: what needs it waits, then goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.config import Settings
from penstock.ingest.receiving.checkm import ManifestKind, write
from penstock.ingest.values import Batch, PayloadType
from penstock.plane import Plane
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import PAUSE_SECONDS_MAX, Moment, Site, row
from tests.databases import sqlite_database
from tests.doors.waiting import until
from tests.mail import MailServer
from tests.object_server import new_bucket
from tests.web import Web, content
from tests.wire import Wire

BODY = b"x,y\n1,2\n"


@pytest.fixture
def site(
    wire: Wire, object_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    monkeypatch.setattr("penstock.ingest.workshop._AWAY_SECONDS", PAUSE_SECONDS_MAX)
    monkeypatch.setattr("penstock.ingest.workshop.TROUBLE_SECONDS", PAUSE_SECONDS_MAX)
    with Web() as web, MailServer.start() as mail:
        clock = Moment()
        settings = Settings(
            database=sqlite_database(tmp_path / "penstock.db"),
            objects=new_bucket(object_server),
            ingest_folder=str(tmp_path / "work"),
            smtp=mail.url,
            mail_from="penstock@example.org",
            space_free_mb=0,
        )
        with Plane.open(settings, clock) as plane:
            found = Site(plane, clock, web, mail)
            found.make_collection()
            yield found


def waits(site: Site, what: str) -> None:
    until(lambda: what in site.shop.waits)
    assert "try again when the store answers" in site.shop.waits[what]


def completes(site: Site, batch: Batch) -> None:
    with site.working():
        assert site.ended(batch).status is BatchState.COMPLETED
    assert site.only_job(batch).retry_count == 0


def test_a_batch_whose_manifest_was_uploaded_waits(site: Site, wire: Wire) -> None:
    rows = [row(site.web.on("/a.csv", content(BODY)), BODY)]
    batch = site.deposit(site.upload("b.checkm", write(ManifestKind.FILES, rows)))
    wire.cut()
    with site.working("batch-pending"):
        waits(site, batch.id)
    assert site.batch(batch).status is BatchState.PENDING
    wire.mend()
    completes(site, batch)


@pytest.mark.parametrize("stage", ["estimating", "downloading", "processing", "recording"])
def test_a_job_waits_in_its_stage(site: Site, wire: Wire, stage: str) -> None:
    batch = site.deposit(site.upload("a.csv", BODY), type=PayloadType.FILE)
    before = ["batch-pending", "pending", "estimating", "provisioning", "downloading", "processing"]
    at = before.index(stage) if stage in before else len(before)
    with site.working(*before[:at]):
        job = site.reach(batch, IngestState(stage))
    site.shop._depositories.clear()  # another worker takes it up
    wire.cut()
    with site.working(stage):
        waits(site, job.id)
    assert site.job(job).status == stage
    wire.mend()
    completes(site, batch)
