"""Deposits on their way through every stage, and what is there afterwards."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.clock import DAY
from penstock.ingest.archive.arks import check_character
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.intake.deposits import DepositRequest
from penstock.ingest.queue.port import BatchFilter
from penstock.ingest.stages import clean_up
from penstock.objects import Objects
from penstock.schema.ingest import SubmissionMode
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import DEPOSITOR, Site, row
from tests.web import content

Files = Mapping[str, bytes]

MAP = b"x,y\n1,2\n" * 1000
LEGEND = "Köln, 1571\n".encode()
BOTH: Files = {"map.csv": MAP, "about/legend.txt": LEGEND}


class Payload(NamedTuple):
    """What to submit, and the files of each object that comes of it, by the payload's name."""

    url: str
    objects: Mapping[str, Files]


def serve(site: Site, path: str, body: bytes) -> str:
    return site.web.on(path, content(body))


def zipped(files: Files) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return packed.getvalue()


def tarred(files: Files) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return packed.getvalue()


def serve_files(site: Site) -> bytes:
    """An object manifest of files that the web has."""
    rows = [
        row(serve(site, "/in/map.csv", MAP), MAP),
        row(serve(site, "/in/legend.txt", LEGEND), name="about/legend.txt"),
    ]
    return write(ManifestKind.OBJECT, rows)


def serve_batch(site: Site, kind: ManifestKind, payloads: Files) -> str:
    rows = [row(serve(site, f"/in/{name}", body), body) for name, body in payloads.items()]
    return serve(site, "/in/batch.checkm", write(kind, rows))


def a_file(site: Site, tmp_path: Path) -> Payload:
    return Payload(serve(site, "/in/map.csv", MAP), {"map.csv": {"map.csv": MAP}})


def a_zip(site: Site, tmp_path: Path) -> Payload:
    return Payload(serve(site, "/in/maps.zip", zipped(BOTH)), {"maps.zip": BOTH})


def a_tar_gz(site: Site, tmp_path: Path) -> Payload:
    return Payload(serve(site, "/in/maps.tar.gz", tarred(BOTH)), {"maps.tar.gz": BOTH})


def an_object_manifest(site: Site, tmp_path: Path) -> Payload:
    return Payload(serve(site, "/in/o.checkm", serve_files(site)), {"o.checkm": BOTH})


def a_manifest_of_manifests(site: Site, tmp_path: Path) -> Payload:
    legend = row(serve(site, "/in/legend.txt", LEGEND), LEGEND)
    members = {
        "both.checkm": serve_files(site),
        "legend.checkm": write(ManifestKind.OBJECT, [legend]),
    }
    url = serve_batch(site, ManifestKind.MANIFESTS, members)
    return Payload(url, {"both.checkm": BOTH, "legend.checkm": {"legend.txt": LEGEND}})


def a_manifest_of_containers(site: Site, tmp_path: Path) -> Payload:
    members = {"a.zip": zipped(BOTH), "b.tgz": tarred({"legend.txt": LEGEND})}
    url = serve_batch(site, ManifestKind.CONTAINERS, members)
    return Payload(url, {"a.zip": BOTH, "b.tgz": {"legend.txt": LEGEND}})


def a_manifest_of_files(site: Site, tmp_path: Path) -> Payload:
    files = {"map.csv": MAP, "legend.txt": LEGEND, "empty": b""}
    url = serve_batch(site, ManifestKind.FILES, files)
    return Payload(url, {name: {name: body} for name, body in files.items()})


def an_uploaded_file(site: Site, tmp_path: Path) -> Payload:
    return Payload(site.upload("maps.zip", zipped(BOTH)), {"maps.zip": BOTH})


def a_local_file(site: Site, tmp_path: Path) -> Payload:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "map.csv").write_bytes(MAP)
    site.make_collection(places=(f"file://{inbox}/", f"{site.web.url}/"))
    return Payload(f"file://{inbox}/map.csv", {"map.csv": {"map.csv": MAP}})


@pytest.mark.parametrize(
    "make",
    [
        a_file,
        a_zip,
        a_tar_gz,
        an_object_manifest,
        a_manifest_of_manifests,
        a_manifest_of_containers,
        a_manifest_of_files,
        an_uploaded_file,
        a_local_file,
    ],
)
def test_a_deposit_of_each_type(
    site: Site, tmp_path: Path, make: Callable[[Site, Path], Payload]
) -> None:
    payload = make(site, tmp_path)
    [batch] = site.run(site.deposit(payload.url))
    jobs = site.by_name(batch)
    assert (batch.status, batch.message) == (BatchState.COMPLETED, "")
    assert set(jobs) == set(payload.objects)
    for name, job in jobs.items():
        assert (job.status, job.message) == (IngestState.COMPLETED, "")
        assert job.last_successful_status is IngestState.NOTIFY
        assert job.space_needed > 0 or name == "empty"
        assert site.content(job.identifiers.primary) == payload.objects[name]
        described = site.content(job.identifiers.primary, part="system")
        assert set(described) == {"mrt-erc.txt", "mrt-dc.xml", "mrt-manifest.txt"}
        assert f"where: {job.identifiers.primary}\n".encode() in described["mrt-erc.txt"]
        site.check_recorded(job)
        assert not Path(job.configuration.working_dir).exists()
    ids = tuple(sorted(job.id for job in jobs.values()))
    report = site.report(batch)
    assert (report.successful_jobs, report.still_open) == (ids, ())
    check_told(site, batch.id, ids)


def check_told(site: Site, batch_id: str, jobs: tuple[str, ...]) -> None:
    """Every callback came after the catalog had the object, and the mail after all of them."""
    calls = site.receiver.calls
    assert sorted(call.said["ingestJob"] for call in calls) == list(jobs)
    assert all(call.recorded and call.signed and call.letters == 0 for call in calls)
    counts = f"{len(jobs)} completed, 0 failed"
    assert site.letters() == [f"[Penstock] batch {batch_id} of maps: {counts}"]
    assert site.mail.recipients == [(DEPOSITOR,)]
    assert all(job in site.letter() for job in jobs)


def test_the_description_is_stored_with_the_object(site: Site) -> None:
    told = {"who": "Braun & Hogenberg", "what": "Köln", "when": "1571", "where": "Köln"}
    batch = site.deposit(serve(site, "/map.csv", MAP), local_id="k1; k2", **told)
    [batch] = site.run(batch)
    job = site.only_job(batch)
    ark = job.identifiers.primary
    assert job.identifiers.local_id == ("k1", "k2")
    described = site.content(ark, part="system")
    assert described["mrt-erc.txt"].decode() == (
        "erc:\nwho: Braun & Hogenberg\nwhat: Köln\nwhen: 1571\n"
        f"where: {ark}\nwhere: k1\nwhere: k2\nwhere: Köln\n"
    )
    dublin_core = described["mrt-dc.xml"].decode()
    assert "<dc:creator>Braun &amp; Hogenberg</dc:creator>" in dublin_core
    assert f"<dc:identifier>{ark}</dc:identifier>" in dublin_core
    assert site.stored(job).title == "Köln"


def test_a_callback_reports_the_stored_object(site: Site) -> None:
    batch = site.deposit(serve(site, "/map.csv", MAP), local_id="k1")
    [batch] = site.run(batch)
    job = site.only_job(batch)
    stored = site.stored(job)
    [call] = site.receiver.calls
    assert call.key == job.configuration.key
    assert call.said == {
        "batch": batch.id,
        "ingestJob": job.id,
        "collection": "maps",
        "submitter": "jo",
        "ark": job.identifiers.primary,
        "localIds": ["k1"],
        "payload": "map.csv",
        "status": "completed",
        "objectVersion": 1,
        "location": stored.location,
        "digest": stored.digest,
        "runId": stored.run_id,
    }


def test_one_key_is_one_batch(site: Site) -> None:
    url = serve(site, "/map.csv", MAP)
    site.make_collection("charts")
    asked = DepositRequest(collection="maps", url=url, submitter="jo", key="monday")
    first, again = site.desk.submit(asked), site.desk.submit(asked)
    assert (first.is_new, again.is_new) == (True, False)
    assert again.batch == first.batch
    site.run(first.batch)
    later = site.desk.submit(asked)
    assert (later.is_new, later.batch.status) == (False, BatchState.COMPLETED)
    elsewhere = site.deposit(url, "charts", key="monday")
    assert elsewhere.id != first.batch.id
    assert len(site.context.store.batches(BatchFilter(), 10)) == 2


def test_a_depositor_gets_a_confirmation(site: Site) -> None:
    site.make_collection("told", confirm=True, callback=None)
    url = serve_batch(site, ManifestKind.FILES, {"map.csv": MAP, "legend.txt": LEGEND})
    [batch] = site.run(site.deposit(url, "told"))
    assert site.letters() == [
        f"[Penstock] batch {batch.id} of told: queued, 2 jobs",
        f"[Penstock] batch {batch.id} of told: 2 completed, 0 failed",
    ]
    assert "Your batch was queued with 2 jobs." in site.letter(0)


def deposit_again(site: Site, body: bytes, path: str = "/map.csv", **rest: Any) -> str | None:
    """Deposit these bytes; the ARK that they got."""
    [batch] = site.run(site.deposit(serve(site, path, body), **rest))
    assert batch.status is BatchState.COMPLETED, site.only_job(batch).message
    return site.only_job(batch).identifiers.primary


def test_a_local_id_finds_its_object(site: Site) -> None:
    ark = deposit_again(site, MAP, local_id="k1")
    assert ark is not None
    assert ark.startswith("ark:/99999/fk4")
    assert ark.endswith(check_character(ark[len("ark:/") : -1]))
    assert deposit_again(site, LEGEND, local_id="k1") == ark
    assert deposit_again(site, MAP, primary_id=ark) == ark
    assert site.versions(ark) == [3, 2, 1]
    assert [site.content(ark, version)["map.csv"] for version in (1, 2, 3)] == [MAP, LEGEND, MAP]
    assert deposit_again(site, MAP) != ark


def test_local_ids_belong_to_an_owner(site: Site) -> None:
    site.make_collection("sheets", owner="library")
    site.make_collection("atlases", owner="library")
    ark = deposit_again(site, MAP, local_id="k1")
    shared = deposit_again(site, MAP, collection="sheets", local_id="k1")
    assert shared != ark
    assert deposit_again(site, MAP, collection="atlases", local_id="k1") == shared


def test_a_local_id_of_another_object_is_refused(site: Site) -> None:
    first = deposit_again(site, MAP, local_id="k1")
    second = deposit_again(site, MAP, local_id="k2")
    url = serve(site, "/map.csv", LEGEND)
    [batch] = site.run(site.deposit(url, local_id="k1", primary_id=second))
    job = site.only_job(batch)
    assert (batch.status, job.status) == (BatchState.FAILED, IngestState.FAILED)
    assert job.last_successful_status is IngestState.DOWNLOADING
    assert job.message == (
        f"local id 'k1' of maps stands for {first}, not for {second}; "
        "correct the identifiers and submit the object again"
    )
    assert first is not None
    assert second is not None
    assert (site.versions(first), site.versions(second)) == ([1], [1])


@pytest.mark.parametrize(
    ("mode", "kept"),
    [(SubmissionMode.ADD, {"b.txt"}), (SubmissionMode.UPDATE, {"a.txt", "b.txt"})],
)
def test_a_new_version_has_the_files_of_its_mode(
    site: Site, mode: SubmissionMode, kept: set[str]
) -> None:
    ark = deposit_again(site, MAP, "/a.txt", local_id="k1")
    assert deposit_again(site, LEGEND, "/b.txt", local_id="k1", mode=mode) == ark
    assert set(site.content(ark)) == kept
    assert site.content(ark, 1) == {"a.txt": MAP}


def test_two_deposits_of_one_object_at_once_are_two_versions(site: Site) -> None:
    names = [f"sheet {number}" for number in range(6)]
    rows = [
        row(serve(site, f"/{number}.csv", name.encode()), local_id="k1", title=name)
        for number, name in enumerate(names)
    ]
    url = serve(site, "/batch.checkm", write(ManifestKind.FILES, rows))
    [batch] = site.run(site.deposit(url))
    assert batch.status is BatchState.COMPLETED
    [ark] = {job.identifiers.primary for job in site.jobs(batch)}
    assert ark is not None
    versions = [site.stored(job).version for job in site.jobs(batch)]
    assert sorted(versions) == [1, 2, 3, 4, 5, 6]
    assert site.versions(ark) == [6, 5, 4, 3, 2, 1]
    for job in site.jobs(batch):
        title = str(job.configuration.erc_what)
        [stored] = site.content(ark, site.stored(job).version).values()
        assert stored == title.encode()


def test_completed_batches_are_cleaned_up_after_keep_days(site: Site) -> None:
    site.make_collection(keep_days=7)
    payload = site.upload("maps.zip", zipped(BOTH))
    [batch, other] = site.run(
        site.deposit(payload), site.deposit(serve_batch(site, ManifestKind.FILES, BOTH))
    )
    objects = Objects.open(site.plane.settings.objects)
    ark = site.only_job(batch).identifiers.primary
    assert ark is not None
    site.clock.ahead = 7 * DAY - DAY // 2
    assert clean_up.go_round(site.context) == 0
    assert objects.exists("payloads/u1/maps.zip")
    site.clock.ahead = 7 * DAY + DAY // 2
    assert clean_up.go_round(site.context) == 2
    assert site.context.store.batches(BatchFilter(), 10) == []
    assert site.jobs(batch) == site.jobs(other) == []
    assert not objects.exists("payloads/u1/maps.zip")
    assert list(site.folder.iterdir()) == []
    assert site.content(ark) == BOTH
    assert site.versions(ark) == [1]
