"""The folder that ingest works in may be lost while daemons work: what waits for it does so."""

import logging
import shutil

import pytest

from penstock.errors import Unavailable
from penstock.ingest.receiving.checkm import ManifestKind, write
from penstock.ingest.stages import downloading
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import Site, row
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


def test_a_download_that_finds_no_folder_says_which_and_why(site: Site) -> None:
    with site.working("batch-pending", "pending", "estimating", "provisioning"):
        batch = site.deposit(site.web.on("/a.csv", content(b"a")))
        job = site.reach(batch, IngestState.DOWNLOADING)
    lose_folder(site)
    with pytest.raises(Unavailable, match=f"the ingest folder {site.folder} cannot be made: .* is"):
        downloading.work(site.shop, job)
    site.folder.unlink()
