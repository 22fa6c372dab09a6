"""The folder that ingest works in may be lost while daemons work: what waits for it does so."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import Unavailable
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import Batch, IngestJob
from penstock.ingest.stages import downloading
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site, row
from tests.acceptance.test_ingest_flow import BOTH, zipped
from tests.doors.waiting import until
from tests.web import content


def lose_folder(site: Site) -> None:
    """Put a file in its place."""
    shutil.rmtree(site.folder)
    site.folder.write_bytes(b"")


@pytest.mark.parametrize("kind", [ManifestKind.FILES, ManifestKind.OBJECT])
def test_a_manifest_is_read_when_the_folder_is_back(
    site: Site, kind: ManifestKind, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rows = [row(site.web.on("/a.csv", content(b"a")))]
    url = site.web.on("/a.checkm", content(write(kind, rows)))
    with site.working():
        lose_folder(site)
        batch = site.deposit(url, type=kind)
        reason = f"stays pending: the ingest folder {site.folder} cannot be made: {site.folder} is"
        until(lambda: reason in caplog.text)
        site.folder.unlink()
        assert site.ended(batch).status is BatchState.COMPLETED


def test_space_is_given_when_the_folder_is_back(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with site.working():
        lose_folder(site)
        batch = site.deposit(site.web.on("/a.csv", content(b"a")))
        until(lambda: f"provisioning: the ingest folder {site.folder} cannot" in caplog.text)
        site.folder.unlink()
        assert site.ended(batch).status is BatchState.COMPLETED
    assert "Traceback" not in caplog.text


def test_a_download_without_a_folder_names_it(site: Site) -> None:
    with site.working("batch-pending", "pending", "estimating", "provisioning"):
        batch = site.deposit(site.web.on("/a.csv", content(b"a")))
        job = site.reach(batch, IngestState.DOWNLOADING)
    lose_folder(site)
    with pytest.raises(Unavailable, match=f"the ingest folder {site.folder} cannot be made: .* is"):
        downloading.work(site.context, job)
    site.folder.unlink()


def fetched(site: Site, name: str, payload: bytes) -> tuple[Batch, IngestJob, Path]:
    """A batch, its job that is to be processed, and the job's files."""
    batch = site.deposit(site.web.on(f"/{name}", content(payload)))
    with site.working("batch-pending", "pending", "estimating", "provisioning", "downloading"):
        job = site.reach(batch, IngestState.PROCESSING)
    return batch, job, Path(job.configuration.working_dir) / "producer"


def lose_a_file(producer: Path) -> None:
    (producer / "about/legend.txt").unlink()


def cut_a_file(producer: Path) -> None:
    (producer / "map.csv").write_bytes(b"x,y")


@pytest.mark.parametrize("spoil", [lose_a_file, cut_a_file])
def test_a_container_of_which_files_are_lost_is_unpacked_again(
    site: Site, spoil: Callable[[Path], None]
) -> None:
    batch, job, producer = fetched(site, "maps.zip", zipped(BOTH))
    spoil(producer)
    assert [each.status for each in site.run(batch)] == [BatchState.COMPLETED]
    assert site.content(site.job(job).identifiers.primary) == BOTH


def test_a_file_that_was_cut_is_fetched_again(site: Site) -> None:
    batch, job, producer = fetched(site, "map.csv", b"x,y\n1,2\n")
    cut_a_file(producer)
    assert [each.status for each in site.run(batch)] == [BatchState.COMPLETED]
    assert site.content(site.job(job).identifiers.primary) == {"map.csv": b"x,y\n1,2\n"}


@pytest.mark.parametrize("name", ["map.csv", "maps.zip"])
def test_a_file_whose_bytes_have_changed_is_fetched_again_by_a_resume(
    site: Site, name: str
) -> None:
    payload = zipped(BOTH) if name.endswith(".zip") else BOTH[name]
    batch, job, producer = fetched(site, name, payload)
    bytes_now = bytearray((producer / "map.csv").read_bytes())
    bytes_now[0] ^= 1
    (producer / "map.csv").write_bytes(bytes_now)
    assert [each.status for each in site.run(batch)] == [BatchState.FAILED]
    assert "resume the job, and it is fetched again" in site.job(job).message
    site.desk.resume_job(ADMIN, job.id)
    with site.working():
        until(lambda: site.job(job).status is IngestState.COMPLETED)
    assert site.content(site.job(job).identifiers.primary)["map.csv"] == BOTH["map.csv"]
