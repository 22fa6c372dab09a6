"""Deposits that are deleted before their object is stored: nothing of them is left."""

import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import NotFound, Unavailable
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.archive.register import WriterRow, list_writers
from penstock.ingest.models import Batch, IngestJob
from penstock.objects import Objects
from penstock.schema.ingest import Finding
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site
from tests.patience import HANG_SECONDS
from tests.web import content

BODY = b"x,y\n1,2\n" * 1000
STUCK_AT = "system/mrt-dc.xml"  # when the deposited file is stored


class Storage:
    """An object store that takes everything but one file, or takes that only when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        self.asked, self.goes_on = threading.Event(), threading.Event()
        real = Objects.put

        def put(objects: Objects, key: str, data: Any, **options: Any) -> None:
            if key.endswith(STUCK_AT):
                data = b"".join(data)
                self._take()
            real(objects, key, data, **options)

        monkeypatch.setattr(Objects, "put", put)

    def _take(self) -> None:
        self.asked.set()
        if self.is_full:
            raise Unavailable("the disk is full")
        assert self.goes_on.wait(HANG_SECONDS)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    return Storage(monkeypatch)


def submit(site: Site, name: str = "map.csv", **more: Any) -> Batch:
    return site.deposit(site.web.on(f"/{name}", content(BODY)), **more)


def failed(site: Site) -> tuple[Batch, IngestJob]:
    """A batch whose only job has begun to store a new object, and failed."""
    [batch] = site.run(submit(site))
    job = site.only_job(batch)
    assert (batch.status, job.status) == (BatchState.FAILED, IngestState.FAILED)
    assert "the disk is full" in job.message
    assert any(name.endswith("map.csv") for name in stored(site))
    return batch, job


def stored(site: Site) -> list[str]:
    """What lies in the storage root, but for what makes it one."""
    folder = Path(site.plane.settings.objects.removeprefix("file://")) / "ocfl"
    files = [path.relative_to(folder) for path in folder.rglob("*")]
    return [str(file) for file in files if file.parts[0] != "extensions" and len(file.parts) > 1]


def writers(site: Site) -> list[WriterRow]:
    with site.plane.catalog.read() as tx:
        return list_writers(tx, "", 10)


def findings(site: Site, *, repair: bool = False) -> list[Finding]:
    return [step for step in site.desk.check(ADMIN, repair=repair) if isinstance(step, Finding)]


def check_nothing_is_left(site: Site) -> None:
    assert stored(site) == []
    assert writers(site) == []
    assert findings(site) == []
    site.check()


def test_a_job_that_is_deleted_while_its_object_is_half_stored(
    site: Site, storage: Storage
) -> None:
    _, job = failed(site)
    assert findings(site) == []
    site.desk.delete_job(ADMIN, job.id, confirmed=True)
    check_nothing_is_left(site)


def test_a_batch_that_is_deleted_while_its_object_is_half_stored(
    site: Site, storage: Storage
) -> None:
    batch, _ = failed(site)
    site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    check_nothing_is_left(site)


def test_a_job_that_is_resumed_is_stored(site: Site, storage: Storage) -> None:
    batch, job = failed(site)
    storage.is_full = False
    storage.goes_on.set()
    site.desk.resume_job(ADMIN, job.id)
    with site.working():
        site.reach(batch, IngestState.COMPLETED)
    assert site.content(site.job(job).identifiers.primary) == {"map.csv": BODY}
    site.check()


def test_content_that_cannot_be_removed_is_found_by_a_check(
    site: Site, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job = failed(site)
    with monkeypatch.context() as patch:
        patch.setattr(Depository, "abandon", _refuse)
        site.desk.delete_job(ADMIN, job.id, confirmed=True)
        with pytest.raises(NotFound):
            site.job(job)
        assert [finding.repaired for finding in findings(site, repair=True)] == [False]
    [found] = findings(site)
    assert (found.target, found.repairable, found.repaired) == (f"ingest job {job.id}", True, False)
    assert job.identifiers.primary is not None
    assert job.identifiers.primary in found.what
    assert stored(site) != []
    [found] = findings(site, repair=True)
    assert found.repaired
    check_nothing_is_left(site)


def _refuse(depository: Depository, ark: str, key: str) -> None:
    raise Unavailable("the disk is away")


def test_a_worker_that_stores_a_deleted_job_leaves_nothing(site: Site, storage: Storage) -> None:
    storage.is_full = False
    batch = submit(site)
    with site.working():
        assert storage.asked.wait(HANG_SECONDS)
        job = site.only_job(batch)
        site.desk.fail_job(ADMIN, job.id)
        site.desk.delete_job(ADMIN, job.id, confirmed=True)
        storage.goes_on.set()
    check_nothing_is_left(site)


def test_the_current_writer_is_not_replaced(site: Site, storage: Storage) -> None:
    [batch] = site.run(submit(site, local_id="mine"))
    [again] = site.run(submit(site, "other.csv", local_id="mine"))
    [writer] = writers(site)
    assert writer.key == site.only_job(again).configuration.key
    site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    assert writers(site) == [writer]
    assert any(name.endswith("other.csv") for name in stored(site))
    assert not any(name.endswith("map.csv") for name in stored(site))
    site.desk.delete_batch(ADMIN, again.id, confirmed=True)
    check_nothing_is_left(site)


def test_the_next_deposit_removes_content_left_behind(
    site: Site, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    [batch] = site.run(submit(site, local_id="mine"))
    job = site.only_job(batch)
    with monkeypatch.context() as patch:
        patch.setattr(Depository, "abandon", _refuse)
        site.desk.delete_job(ADMIN, job.id, confirmed=True)
    [writer] = writers(site)
    before = {name for name in stored(site) if name.endswith("map.csv")}
    [again] = site.run(submit(site, "other.csv", local_id="mine"))
    [now] = writers(site)
    assert (now.ark, now.key) == (writer.ark, site.only_job(again).configuration.key)
    assert before
    assert not before & set(stored(site))
    site.desk.delete_batch(ADMIN, again.id, confirmed=True)
    check_nothing_is_left(site)


def test_the_folder_of_a_batch_that_is_no_more_is_found_by_a_check(site: Site) -> None:
    [batch] = site.run(site.deposit(site.web.on("/a.csv", content(b"a"))))
    other = site.deposit(site.web.on("/b.csv", content(b"b")))
    folders = [site.folder / name for name in (batch.id, other.id, "bid0000000999", "mine")]
    for folder in folders:
        (folder / "jid0000000001").mkdir(parents=True, exist_ok=True)
    for repaired in (False, True):
        [finding] = findings(site, repair=repaired)
        assert finding.target == str(site.folder / "bid0000000999")
        assert finding.what == "is the working folder of a batch that does not exist"
        assert (finding.repairable, finding.repaired) == (True, repaired)
    assert findings(site, repair=False) == []
    assert [folder.exists() for folder in folders] == [True, True, False, True]
