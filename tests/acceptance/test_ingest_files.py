"""What is said about single files, and the digests by which they are checked."""

import hashlib
import zlib
from typing import Any

import pytest

from penstock.ingest.intake.checkm import ManifestKind, parse, write
from penstock.ingest.models import IngestJob
from penstock.schema.ingest import SubmissionMode
from penstock.states import IngestState
from tests.acceptance.ingest_site import Site, row
from tests.web import content

BODY = b"x,y\n1,2\n"
DIGESTS = {
    "adler-32": f"{zlib.adler32(BODY):08x}",
    "crc-32": f"{zlib.crc32(BODY):08x}",
    "sha-512/256": hashlib.new("sha512_256", BODY).hexdigest(),
}
SAID: dict[str, Any] = {"modified": "2026-11-15T09:30:00Z", "mime": "text/csv"}


def deposit(site: Site, manifest: bytes, **rest: Any) -> IngestJob:
    [batch] = site.run(site.deposit(site.web.on("/in.checkm", content(manifest)), **rest))
    return site.only_job(batch)


def listed(site: Site, job: IngestJob) -> dict[str, tuple[str | None, str | None]]:
    """The type and time of each file, as the stored manifest lists them."""
    stored = site.content(job.identifiers.primary, part="system")["mrt-manifest.txt"]
    return {each.name: (each.mime, each.modified) for each in parse(stored).rows}


def test_type_and_time_of_a_file_are_stored_and_inherited(site: Site) -> None:
    url = site.web.on("/map.csv", content(BODY))
    deposit(site, write(ManifestKind.OBJECT, [row(url, **SAID)]), local_id="k1")
    other = row(site.web.on("/b.csv", content(b"b")), mime="text/plain")

    manifest = write(ManifestKind.OBJECT, [other])
    job = deposit(site, manifest, local_id="k1", mode=SubmissionMode.UPDATE)

    assert listed(site, job) == {
        "map.csv": ("text/csv", "2026-11-15T09:30:00Z"),
        "b.csv": ("text/plain", None),
    }
    depository = site.context.storage.depository(site.context.collections.get("maps"))
    files = depository.described_files(str(job.identifiers.primary))
    [file] = [each for each in files if each.name == "producer/map.csv"]
    assert (file.mime, file.modified) == ("text/csv", "2026-11-15T09:30:00Z")


def test_type_and_time_of_a_row_of_files_are_stored(site: Site) -> None:
    url = site.web.on("/map.csv", content(BODY))
    job = deposit(site, write(ManifestKind.FILES, [row(url, **SAID)]))

    assert listed(site, job) == {"map.csv": ("text/csv", "2026-11-15T09:30:00Z")}


@pytest.mark.parametrize("algorithm", DIGESTS)
def test_digests_of_merritt_are_checked(site: Site, algorithm: str) -> None:
    url = site.web.on("/map.csv", content(BODY))
    good = row(url, algorithm=algorithm, digest=DIGESTS[algorithm])
    bad = row(url, algorithm=algorithm, digest="0" * len(DIGESTS[algorithm]))

    right = deposit(site, write(ManifestKind.OBJECT, [good]))
    wrong = deposit(site, write(ManifestKind.OBJECT, [bad]))

    assert (right.status, right.message) == (IngestState.COMPLETED, "")
    assert wrong.status is IngestState.FAILED
    assert f"has the wrong {algorithm}" in wrong.message


def test_a_checksum_without_leading_zeros_is_that_number(site: Site) -> None:
    body = b"\x00"  # its Adler-32 is 00010001
    line = f"{site.web.on('/z', content(body))} | Adler32 | 10001 | | | z |"
    manifest = f"#%checkm_0.7\n#%profile | mrt-ingest-manifest\n{line}\n#%eof\n"

    job = deposit(site, manifest.encode())

    assert (job.status, job.message) == (IngestState.COMPLETED, "")


def test_an_authority_of_four_digits_is_taken(site: Site) -> None:
    url = site.web.on("/map.csv", content(BODY))
    [batch] = site.run(site.deposit(url, primary_id="ark:/1234/x5"))
    assert site.only_job(batch).identifiers.primary == "ark:/1234/x5"


def test_a_repeated_local_id_is_one(site: Site) -> None:
    url = site.web.on("/map.csv", content(BODY))
    [batch] = site.run(site.deposit(url, local_id="k1; k2;k1"))
    assert site.only_job(batch).identifiers.local_id == ("k1", "k2")
