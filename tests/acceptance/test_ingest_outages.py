"""Our object store goes away while daemons work: what needs it waits, then goes on."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.config import Settings
from penstock.errors import Away, Unavailable
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import Batch
from penstock.ingest.notifications.mail import Mailer, MailLetter
from penstock.ingest.stages import STAGE_NAMES
from penstock.ingest.workers.pool import Workers
from penstock.plane import Plane
from penstock.schema.ingest import PayloadType
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import DEPOSITOR, ENDED, PAUSE_SECONDS_MAX, Site, row
from tests.clocks import AdjustableClock
from tests.databases import sqlite_database
from tests.doors.waiting import until
from tests.mail import MailServer
from tests.object_server import new_bucket
from tests.web import Web, content, status
from tests.wire import Wire

BODY = b"x,y\n1,2\n"


@pytest.fixture
def objects(object_server: str) -> str:
    return new_bucket(object_server)


@pytest.fixture
def site(
    wire: Wire, objects: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    monkeypatch.setattr("penstock.ingest.context.AWAY_RETRY_SECONDS", PAUSE_SECONDS_MAX)
    monkeypatch.setattr("penstock.ingest.context.RETRY_SECONDS", PAUSE_SECONDS_MAX)
    with Web() as web, MailServer.start() as mail:
        clock = AdjustableClock()
        settings = Settings(
            database=sqlite_database(tmp_path / "penstock.db"),
            objects=objects,
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
    until(lambda: what in site.context.runtime.waits)
    assert "try again when the store answers" in site.context.runtime.waits[what]


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
    site.context.storage._depositories.clear()  # another worker takes it up
    wire.cut()
    with site.working(stage):
        waits(site, job.id)
    assert site.job(job).status == stage
    wire.mend()
    completes(site, batch)


def test_a_mail_server_that_hangs_is_left_alone_for_a_while(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.ingest.notifications.letters._PATIENCE_SECONDS", 0.0)
    impatient = Mailer.open(site.mail.url, "penstock@example.org", timeout_seconds=0.2)
    tried: list[MailLetter] = []
    monkeypatch.setattr(site.context.outbound, "mailer", impatient)
    monkeypatch.setattr(Mailer, "send", _noting(tried, Mailer.send))
    site.mail.hang()
    url = site.web.on("/a.csv", content(BODY))
    batches = [site.deposit(url, type=PayloadType.FILE) for _ in range(3)]
    for ended in site.run(*batches):
        assert ended.status is BatchState.COMPLETED
        assert f"the mail to {DEPOSITOR} is not sent yet: the mail server" in ended.message
    assert len(tried) <= 2  # one of each daemon that mails, at the same time


def _noting(
    tried: list[MailLetter], send: Callable[[Mailer, MailLetter], bool]
) -> Callable[[Mailer, MailLetter], bool]:
    def noting(mailer: Mailer, letter: MailLetter) -> bool:
        tried.append(letter)
        return send(mailer, letter)

    return noting


def test_a_callback_that_is_not_taken_holds_up_no_other_collection(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.context.runtime, "pause", lambda seconds: None)
    site.make_collection("far", callback=site.web.on("/deaf", status(503)), priority=0)
    rows = [row(site.web.on(f"/{n}.csv", content(BODY)), BODY) for n in range(20)]
    far = site.deposit(site.upload("far.checkm", write(ManifestKind.FILES, rows)), "far")
    near = site.deposit(rows[0].url, type=PayloadType.FILE)
    with site.working(*(name for name in STAGE_NAMES if name != "notify")):
        until(lambda: {job.status for job in site.jobs(far)} == {IngestState.NOTIFY})
        site.reach(near, IngestState.NOTIFY)
    with site.working("notify", concurrency=1):
        site.reach(near, IngestState.COMPLETED)
        failed = [job for job in site.jobs(far) if job.status is IngestState.FAILED]
        assert 0 < len(failed) < len(rows) / 2


def test_an_unreachable_queue_is_logged_once(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[BatchState] = []

    def away(status: BatchState, *_: object) -> list[Batch]:
        asked.append(status)
        raise Unavailable("there is no room left; free some, then try again")

    monkeypatch.setattr("penstock.ingest.workers.daemon.RETRY_SECONDS", 0.01)
    monkeypatch.setattr(site.context.store, "claim_batches", away)
    with site.working("batch-pending"):
        until(lambda: len(asked) > 3)
    assert [line for line in caplog.messages if "no room left" in line] == [
        "batch-pending: there is no room left; free some, then try again"
    ]


def test_a_worker_continues_after_an_unknown_fault(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[str] = []

    def odd() -> None:
        beats.append("beat")
        if len(beats) == 2:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(site.context.store, "keep_alive", odd)
    workers = Workers(site.context, ["clean-up"])
    monkeypatch.setattr(workers, "_beat_seconds", 0.01)
    workers.start()
    try:
        until(lambda: len(beats) > 3)
    finally:
        workers.stop()
        site.context.runtime.stopping.clear()


class TestOneStorageOfSeveral:
    """A collection keeps its objects in a bucket of its own, which goes away."""

    @pytest.fixture
    def objects(self, tmp_path: Path) -> str:
        return f"file://{tmp_path / 'objects'}"

    @pytest.mark.parametrize("stage", ["processing", "batch-reporting"])
    def test_it_holds_up_no_other_collection(
        self, site: Site, wire: Wire, object_server: str, stage: str
    ) -> None:
        site.make_collection("far", storage=new_bucket(object_server), priority=0)
        # More than a daemon has at hand.
        rows = [row(site.web.on(f"/{n}.csv", content(BODY)), BODY) for n in range(20)]
        url = site.web.on("/far.checkm", content(write(ManifestKind.FILES, rows)))
        far = site.deposit(url, "far")
        near = site.deposit(rows[0].url, type=PayloadType.FILE)
        later = {"batch-reporting"}
        reached = {IngestState.COMPLETED}
        if stage == "processing":
            later |= {"processing", "recording", "notify"}
            reached = {IngestState.PROCESSING}
        with site.working(*(name for name in STAGE_NAMES if name not in later)):
            until(lambda: {job.status for job in site.jobs(far)} == reached)
            until(lambda: {job.status for job in site.jobs(near)} == reached)
        site.context.storage._depositories.clear()  # another worker takes it up
        wire.cut()
        with site.working(concurrency=1):
            assert site.ended(near).status is BatchState.COMPLETED
        assert site.batch(far).status not in ENDED
        wire.mend()
        with site.working():
            assert site.ended(far).status is BatchState.COMPLETED

    def test_other_storages_open_while_one_hangs(
        self, site: Site, wire: Wire, object_server: str
    ) -> None:
        far = site.make_collection("far", storage=new_bucket(object_server))
        near = site.context.collections.get("maps")
        wire.stall()
        with ThreadPoolExecutor(2) as threads:
            opening = threads.submit(site.context.storage.depository, far)
            until(wire.met.is_set)
            assert (
                threads.submit(site.context.storage.depository, near)
                .result()
                .url.startswith("file:")
            )
            assert not opening.done()
            wire.cut()
            with pytest.raises(Away):
                opening.result()
