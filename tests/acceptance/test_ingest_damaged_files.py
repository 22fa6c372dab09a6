"""Stored files that were lost or cut off, and what updates and checks make of them."""

import threading
from pathlib import Path

import pytest

from penstock.ingest.models import Batch, IngestJob
from penstock.provenance.checks import Grounds
from penstock.provenance.checks.run import check
from penstock.schema.ingest import Finding, SubmissionMode
from penstock.schema.provenance import Verdict
from penstock.states import INGEST_STAGES, BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site
from tests.web import content

MAP = b"x,y\n1,2\n" * 1000
LEGEND = "Köln, 1571\n".encode()


def deposit(site: Site, path: str, body: bytes, mode: SubmissionMode) -> Batch:
    url = site.web.on(path, content(body))
    [batch] = site.run(site.deposit(url, local_id="k1", mode=mode))
    return batch


def stored_file(site: Site, ark: str | None, name: str) -> Path:
    """Where the store has the content of a file."""
    assert ark is not None
    depository = site.context.storage.depository(site.context.collections.get("maps"))
    [key] = [file.key for file in depository.files(ark) if file.name == name]
    return Path(depository.url.removeprefix("file://")) / key


def object_with_map(site: Site) -> tuple[IngestJob, Path]:
    job = site.only_job(deposit(site, "/map.csv", MAP, SubmissionMode.ADD))
    return job, stored_file(site, job.identifiers.primary, "producer/map.csv")


def lost(site: Site) -> list[str]:
    """What `penstock ingest check` finds."""
    steps = site.desk.check(ADMIN, repair=False)
    return [f"{step.target} {step.what}" for step in steps if isinstance(step, Finding)]


def verdict(site: Site) -> Verdict:
    """What `penstock check` says about stored objects, without --deep."""
    plane = site.plane
    grounds = Grounds(
        plane.database, lambda: plane.objects, plane.context, plane.clock, stop=threading.Event()
    )
    [found] = [each for each in check(grounds) if each.name == "stored-objects"]
    return found


@pytest.mark.parametrize("damage", [b"", None])
def test_an_update_of_a_damaged_file_fails(site: Site, damage: bytes | None) -> None:
    job, path = object_with_map(site)
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)

    batch = deposit(site, "/legend.txt", LEGEND, SubmissionMode.UPDATE)

    failed = site.only_job(batch)
    assert failed.status is IngestState.FAILED
    assert "producer/map.csv" in failed.message
    assert "resume the job" in failed.message
    assert site.versions(str(job.identifiers.primary)) == [1]

    path.write_bytes(MAP)
    with site.working():
        site.desk.resume_batch(ADMIN, batch.id)
        site.reach(batch, IngestState.COMPLETED)
    assert site.content(job.identifiers.primary) == {"map.csv": MAP, "legend.txt": LEGEND}


def test_an_update_checks_digests_if_asked(site: Site) -> None:
    site.make_collection(inherited="digest")
    _, path = object_with_map(site)
    path.write_bytes(MAP.swapcase())

    batch = deposit(site, "/legend.txt", LEGEND, SubmissionMode.UPDATE)

    assert "producer/map.csv has another digest" in site.only_job(batch).message
    path.write_bytes(MAP)


def test_an_update_of_an_update_checks_every_file(site: Site) -> None:
    _, path = object_with_map(site)
    deposit(site, "/legend.txt", LEGEND, SubmissionMode.UPDATE)
    path.write_bytes(MAP[:-1])

    batch = deposit(site, "/more.txt", b"more", SubmissionMode.UPDATE)

    assert "producer/map.csv has 7,999 bytes instead of 8,000" in site.only_job(batch).message
    path.write_bytes(MAP)


def test_a_deposit_of_the_same_bytes_restores_them(site: Site) -> None:
    job, path = object_with_map(site)
    path.unlink()

    batch = deposit(site, "/again.csv", MAP, SubmissionMode.ADD)

    assert site.only_job(batch).status is IngestState.COMPLETED
    assert site.content(job.identifiers.primary) == {"again.csv": MAP}
    assert path.read_bytes() == MAP


def test_checks_find_a_file_that_is_missing(site: Site) -> None:
    job, path = object_with_map(site)
    assert lost(site) == []
    assert verdict(site).holds
    path.unlink()

    expected = f"object {job.identifiers.primary} producer/map.csv is missing"
    assert [words.partition(" (")[0] for words in lost(site)] == [expected]
    assert [words.partition(" (")[0] for words in verdict(site).first] == [expected]
    path.write_bytes(MAP)


def test_checks_find_a_file_that_was_cut_off(site: Site) -> None:
    job, path = object_with_map(site)
    deposit(site, "/legend.txt", LEGEND, SubmissionMode.UPDATE)
    path.write_bytes(b"")

    words = "producer/map.csv has 0 bytes instead of 8,000"
    [found] = lost(site)
    assert found.startswith(f"object {job.identifiers.primary} {words}")
    assert words in verdict(site).first[0]
    path.write_bytes(MAP)


def test_a_lot_does_not_list_a_file_without_bytes(site: Site) -> None:
    with site.working("batch-pending", *(stage.value for stage in INGEST_STAGES)):
        batch = site.deposit(site.web.on("/map.csv", content(MAP)))
        job = site.reach(batch, IngestState.COMPLETED)
    path = stored_file(site, job.identifiers.primary, "producer/map.csv")
    path.unlink()

    [batch] = site.run(batch)

    assert batch.status is BatchState.COMPLETED
    assert "it is not published as a lot" in batch.message
    assert str(path.name) in batch.message
    path.write_bytes(MAP)
