"""Servers, manifests and archives that are not what they should be, and how a deposit recovers."""

import errno
import io
import logging
import os
import socket
import tarfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import bagit
import pytest

from penstock.errors import Conflict, Invalid
from penstock.ingest.intake.checkm import CheckmRow, ManifestKind, write
from penstock.ingest.models import Batch, IngestJob
from penstock.ingest.service import ResumeResult
from penstock.ingest.transitions import resume_stage
from penstock.schema.ingest import PayloadType
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Site, row
from tests.doors.waiting import until
from tests.web import Answer, Request, content, drip, head, redirect, status

pytestmark = pytest.mark.parametrize("site", ["sqlite", "zookeeper"], indirect=True)

BODY = b"x,y\n1,2\n" * 1000
HALF = len(BODY) // 2
FORBIDDEN = "http://169.254.169.254/latest/meta-data"


def slowly(body: bytes) -> Answer:
    """A server that takes its time over every piece."""
    pieces = [body[at : at + 1000] for at in range(0, len(body), 1000)]
    first = head(200, {"Content-Length": len(body)})
    return drip([first, *pieces], wait=lambda: threading.Event().wait(0.01))


def serve(site: Site, answers: Mapping[str, tuple[Answer, ...]]) -> None:
    for name, script in answers.items():
        site.web.on(f"/{name}", *script)


# What each server does, and why its job fails.
GOOD: Mapping[str, tuple[Answer, ...]] = {
    "good": (content(BODY),),
    "slow": (slowly(BODY),),
    "busy": (status(503, {"Retry-After": 1}), content(BODY)),
    "cut": (content(BODY, cut_after=HALF), content(BODY)),
}
BAD: Mapping[str, tuple[Answer, ...]] = {
    "forever": (content(BODY, cut_after=1000),),
    "short": (content(BODY, length=len(BODY) + 10, etag=None, ranges=False),),
    "long": (content(BODY + b"more"),),
    "inside": (redirect(FORBIDDEN),),
    "wrong": (content(BODY.replace(b"2", b"3")),),
    "gone": (status(404),),
    "down": (status(503),),
}
WHY = {
    "forever": "/forever could not be fetched in 4 tries, the last time because peer closed",
    "short": "/short could not be fetched in 4 tries, the last time because peer closed",
    "long": "/long has more than the 8,000 bytes that were expected; correct the file and resume",
    "inside": f"{FORBIDDEN} may not be fetched: 169.254.169.254 is not a public address",
    "wrong": "/wrong has the wrong sha-256: expected ",
    "gone": "/gone is not there: the server answers 404 Not Found; check the URL",
    "down": "/down could not be fetched in 4 tries, the last time because the server answers 503",
}


def submit_all(site: Site) -> Batch:
    """One batch with a file from each server."""
    serve(site, {**GOOD, **BAD})
    urls = [f"{site.web.url}/{name}" for name in (*GOOD, *BAD)]
    rows = [row(url, None if url.endswith("/short") else BODY) for url in urls]
    url = site.web.on("/batch.checkm", content(write(ManifestKind.FILES, rows)))
    return site.deposit(url)


def ids(jobs: Mapping[str, IngestJob], names: Any) -> tuple[str, ...]:
    return tuple(sorted(jobs[name].id for name in names))


def test_one_batch_from_servers_that_misbehave(site: Site) -> None:
    [batch] = site.run(submit_all(site))
    jobs = site.by_name(batch)
    assert batch.status is BatchState.FAILED
    for name in GOOD:
        assert (jobs[name].status, jobs[name].message) == (IngestState.COMPLETED, ""), name
        assert site.content(jobs[name].identifiers.primary) == {name: BODY}
    for name, why in WHY.items():
        assert jobs[name].status is IngestState.FAILED, name
        assert jobs[name].last_successful_status is IngestState.PROVISIONING
        assert why in jobs[name].message
    assert site.web.requests_to("/cut")[1].headers["range"] == f"bytes={HALF}-"
    assert len(site.web.requests_to("/down")) == 4
    report = site.report(batch)
    assert report.kind == "status"
    assert report.successful_jobs == ids(jobs, GOOD)
    assert report.failed_jobs == report.still_open == ids(jobs, BAD)
    assert site.letters() == [f"[Penstock] batch {batch.id} of maps: 4 completed, 7 failed"]
    for name in BAD:
        assert f"  {jobs[name].id}  {name}\n      {jobs[name].message}\n" in site.letter()
    assert {call.said["payload"] for call in site.receiver.calls} == set(GOOD)


def test_a_batch_is_resumed_when_its_servers_work_again(site: Site) -> None:
    [batch] = site.run(submit_all(site))
    jobs = site.by_name(batch)
    mended = [name for name in BAD if name != "gone"]
    serve(site, {name: (content(BODY),) for name in mended})
    asked = len(site.web.requests)
    resumed = site.desk.resume_batch(ADMIN, batch.id)
    assert sorted(resumed) == [ResumeResult(job, IngestState.DOWNLOADING) for job in ids(jobs, BAD)]
    with site.working():
        assert site.at_rest(batch).status is BatchState.FAILED
        site.desk.update_report(ADMIN, batch.id)
        batch = site.ended(batch)
    jobs = site.by_name(batch)
    assert batch.status is BatchState.FAILED
    assert {jobs[name].status for name in mended} == {IngestState.COMPLETED}
    assert {jobs[name].retry_count for name in BAD} == {1}
    assert {jobs[name].retry_count for name in GOOD} == {0}
    later = [request.path for request in site.web.requests[asked:]]
    assert sorted(path for path in later if path != "/callback") == sorted(f"/{n}" for n in BAD)
    assert site.web.requests_to("/forever")[-1].headers["range"] == "bytes=4000-"
    report = site.report(batch)
    assert report.kind == "update"
    assert report.newly_successful == ids(jobs, mended)
    assert report.still_open == ids(jobs, ["gone"])
    assert site.letters()[1].endswith(": update, 6 more completed, 1 open")

    serve(site, {"gone": (content(BODY),)})
    site.desk.resume_batch(ADMIN, batch.id)
    with site.working():
        site.at_rest(batch)
        site.desk.update_report(ADMIN, batch.id)
        batch = site.ended(batch)
    assert batch.status is BatchState.COMPLETED
    assert site.report(batch).newly_successful == ids(jobs, ["gone"])
    assert site.report(batch).still_open == ()
    assert site.letters()[2].endswith(": update, 1 more completed, 0 open")


def test_a_resume_keeps_good_files(site: Site) -> None:
    good = {"a.csv": BODY, "b.csv": BODY[:HALF]}
    rows = [row(site.web.on(f"/{name}", content(body)), body) for name, body in good.items()]

    def missing(request: Request, connection: socket.socket) -> None:
        if request.method == "GET":
            until(lambda: {path.name for path in site.folder.rglob("*.csv")} == set(good))
        status(404)(request, connection)

    rows.append(row(site.web.on("/c.csv", missing), BODY))
    url = site.web.on("/object.checkm", content(write(ManifestKind.OBJECT, rows)))
    [batch] = site.run(site.deposit(url, type=PayloadType.OBJECT_MANIFEST))
    assert "/c.csv is not there" in site.only_job(batch).message
    site.web.on("/c.csv", content(BODY))
    site.desk.resume_batch(ADMIN, batch.id)
    with site.working():
        job = site.reach(batch, IngestState.COMPLETED)
    assert site.content(job.identifiers.primary) == {**good, "c.csv": BODY}
    for path, times in {"/a.csv": 1, "/b.csv": 1, "/c.csv": 2, "/object.checkm": 1}.items():
        assert len(site.web.requests_to(path)) == times, path


def test_a_resume_after_storage_was_broken(site: Site, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.write_bytes(b"a file where a folder should be")
    site.make_collection("vaulted", storage=f"file://{vault}")
    [batch] = site.run(site.deposit(site.web.on("/map.csv", content(BODY)), "vaulted"))
    job = site.only_job(batch)
    assert (job.status, job.last_successful_status) == (
        IngestState.FAILED,
        IngestState.DOWNLOADING,
    )
    assert str(vault) in job.message
    assert job.identifiers.primary is None  # only the storage knows which ARKs are free
    vault.unlink()
    assert site.desk.resume_job(ADMIN, job.id).status is IngestState.PROCESSING
    with site.working():
        job = site.reach(batch, IngestState.COMPLETED)
    assert len(site.web.requests_to("/map.csv")) == 1
    assert job.identifiers.primary is not None
    assert list(vault.rglob("map.csv"))


def test_a_callback_that_is_never_taken(site: Site) -> None:
    site.receiver.answers = 500
    [batch] = site.run(site.deposit(site.web.on("/map.csv", content(BODY))))
    job = site.only_job(batch)
    assert (batch.status, job.status) == (BatchState.FAILED, IngestState.FAILED)
    assert job.last_successful_status is IngestState.RECORDING
    assert job.message == (
        f"the callback to {site.web.url}/callback was answered 500; it was tried 4 times, "
        "so look at the receiver and try again"
    )
    site.check_recorded(job)
    site.receiver.answers = 200
    asked = len(site.web.requests)
    assert site.desk.resume_batch(ADMIN, batch.id) == [ResumeResult(job.id, IngestState.NOTIFY)]
    with site.working():
        site.reach(batch, IngestState.COMPLETED)
    assert [request.path for request in site.web.requests[asked:]] == ["/callback"]
    assert {call.key for call in site.receiver.calls} == {job.configuration.key}
    assert len(site.receiver.calls) == 5
    assert all(call.signed and call.recorded for call in site.receiver.calls)
    assert site.versions(str(job.identifiers.primary)) == [1]


def test_corrupt_manifests_fail_their_jobs_for_good(site: Site) -> None:
    good = write(ManifestKind.OBJECT, [row(site.web.on("/a.csv", content(BODY)), BODY)])
    members = {
        "good": good,
        "wrong-digest": good,
        "cut-off": good[:-7],
        "bad-line": good.replace(b"| sha-256 |", b"| sha-257 |"),
        "escapes": good.replace(b"| a.csv", b"| ../a.csv"),
    }
    rows = [row(site.web.on(f"/{name}", content(body)), body) for name, body in members.items()]
    rows[1] = row(rows[1].url, BODY, size=None)
    url = site.web.on("/batch.checkm", content(write(ManifestKind.MANIFESTS, rows)))
    [batch] = site.run(site.deposit(url))
    jobs = site.by_name(batch)
    assert jobs.pop("good").status is IngestState.COMPLETED
    for job in jobs.values():
        assert (job.status, job.last_successful_status) == (IngestState.FAILED, None)
    assert "/wrong-digest has the wrong sha-256: expected " in jobs["wrong-digest"].message
    assert jobs["cut-off"].message.startswith("the manifest is cut off: it has no line #%eof")
    line = good.splitlines().index(b"#%eof")
    assert jobs["bad-line"].message.startswith(f"line {line}: algorithm 'sha-257' is unknown")
    assert jobs["escapes"].message.startswith(f"line {line}: the name '../a.csv' leaves its folder")
    refused = site.desk.resume_batch(ADMIN, batch.id)
    assert {each.job_id: each.stage for each in refused} == {job.id: None for job in jobs.values()}
    for each in refused:
        assert each.refused == (
            f"ingest job {each.job_id} failed before any stage succeeded and cannot be resumed; "
            "correct the payload and submit it again"
        )
    with pytest.raises(Conflict, match="correct the payload and submit it again"):
        site.desk.resume_job(ADMIN, jobs["cut-off"].id)
    assert site.letter().count("it cannot be resumed: correct the payload") == 4


@pytest.mark.parametrize(
    ("answer", "deposit", "message"),
    [
        (status(404), {}, "/b.checkm is not there: the server answers 404 Not Found"),
        (content(b"#%checkm_0.7\n"), {}, "the manifest is cut off: it has no line #%eof"),
        (
            content(b"x"),
            {"algorithm": "sha-256", "digest": "0" * 64},
            "/b.checkm has the wrong sha-256: expected 0000",
        ),
    ],
)
def test_a_batch_manifest_that_cannot_be_read_fails_the_batch(
    site: Site, answer: Answer, deposit: dict[str, Any], message: str
) -> None:
    [batch] = site.run(site.deposit(site.web.on("/b.checkm", answer), **deposit))
    assert (batch.status, batch.jobs, site.jobs(batch)) == (BatchState.FAILED, 0, [])
    assert message in batch.message
    assert site.letters() == [f"[Penstock] batch {batch.id} of maps: failed, nothing was stored"]
    assert batch.message in site.letter()


def test_a_batch_waits_while_the_disk_is_full(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def full(file: int) -> None:
        looked.append(file)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    rows = [row(site.web.on("/map.csv", content(BODY)), BODY)]
    url = site.web.on("/b.checkm", content(write(ManifestKind.FILES, rows)))
    with monkeypatch.context() as patch, site.working("batch-pending"):
        patch.setattr(os, "fsync", full)
        batch = site.deposit(url)
        until(lambda: len(looked) > 1 or site.batch(batch).status is not BatchState.PENDING)
    assert (site.batch(batch).status, site.letters()) == (BatchState.PENDING, [])
    [batch] = site.run(batch)
    assert (batch.status, batch.jobs) == (BatchState.COMPLETED, 1)


def test_a_job_fails_on_a_full_disk_and_is_resumed(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        [batch] = site.run(site.deposit(site.web.on("/map.csv", content(BODY))))
    assert site.only_job(batch).message.startswith("the disk is full: [Errno 28] No space left")
    assert [each.message for each in caplog.records if each.levelno >= logging.ERROR] == []
    site.desk.resume_batch(ADMIN, batch.id)
    with site.working():
        site.reach(batch, IngestState.COMPLETED)


def fail(site: Site, name: str, body: bytes, **profile: Any) -> str:
    """Deposit a payload that fails while it is downloaded: why it fails."""
    site.make_collection("strict", **profile)
    [batch] = site.run(site.deposit(site.web.on(f"/{name}", content(body)), "strict"))
    job = site.only_job(batch)
    assert (batch.status, job.status) == (BatchState.FAILED, IngestState.FAILED)
    assert not [path for path in site.folder.rglob("*") if path.name == "escaped"]
    return job.message


def zipped(name: str, body: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, body)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.zip", lambda: zipped("../escaped", b"x"), "'../escaped' leaves its folder by '..'"),
        ("a.tgz", lambda: b"not an archive", "the archive a.tgz "),
    ],
)
def test_archives_that_no_one_should_unpack(
    site: Site, name: str, make: Callable[[], bytes], message: str
) -> None:
    assert message in fail(site, name, make())


def test_the_limits_of_a_collection(site: Site) -> None:
    assert "more than the 100 bytes" in fail(site, "a.csv", BODY, bytes_max=100)
    two = write(ManifestKind.OBJECT, [CheckmRow(line=0, url="http://x.org/", name=n) for n in "ab"])
    job_type = {"type": PayloadType.OBJECT_MANIFEST}
    url = site.web.on("/two.checkm", content(two))
    site.make_collection("few", files_max=1)
    site.make_collection("sure", digests="require")
    [few, sure] = site.run(site.deposit(url, "few", **job_type), site.deposit(url, "sure"))
    assert "names 2 files; collection few takes 1 in one object" in site.only_job(few).message
    assert "a has no digest, which collection sure requires" in site.only_job(sure).message


def make_bag(folder: Path) -> Path:
    (folder / "bag").mkdir()
    (folder / "bag" / "map.csv").write_bytes(BODY)
    bagit.make_bag(str(folder / "bag"), {"Contact-Name": "Jo"}, checksums=["sha512"])
    return folder / "bag"


def pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder, folder.name)
    return packed.getvalue()


def test_a_bag_is_verified(site: Site, tmp_path: Path) -> None:
    bag = make_bag(tmp_path)
    whole = pack(bag)
    (bag / "data" / "map.csv").write_bytes(BODY[:-1] + b"!")
    url = site.web.on("/bag.tar.gz", content(pack(bag)))
    [batch] = site.run(site.deposit(url))
    job = site.only_job(batch)
    assert (job.status, job.last_successful_status) == (
        IngestState.FAILED,
        IngestState.PROVISIONING,
    )
    assert job.message.startswith("the bag is not valid: ")
    assert "data/map.csv sha512 validation failed" in job.message

    site.web.on("/bag.tar.gz", content(whole))
    site.desk.resume_batch(ADMIN, batch.id)
    with site.working():
        job = site.reach(batch, IngestState.COMPLETED)
    stored = site.content(job.identifiers.primary)
    assert stored["bag/data/map.csv"] == BODY
    assert "bag/manifest-sha512.txt" in stored


def test_a_callback_that_redirects_fails_with_the_reason(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = f"{site.web.url}/elsewhere"
    site.web.on("/callback", redirect(elsewhere, 302))
    [batch] = site.run(site.deposit(site.web.on("/map.csv", content(b"1"))))

    failed = site.only_job(batch)
    assert failed.status is IngestState.FAILED
    assert f"answered 302 (a redirect to {elsewhere}, which is not followed)" in failed.message
    assert "correct the callback's URL" in failed.message
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("path", ["/a%", "/[", "/" + "a" * 7_000, "/%zz?\x00"])
def test_an_odd_url_fails_in_plain_words(site: Site, path: str) -> None:
    try:
        [batch] = site.run(site.deposit(f"{site.web.url}{path}", name="a", type=PayloadType.FILE))
    except Invalid as refused:
        message = str(refused)
    else:
        message = site.only_job(batch).message
    assert "while downloading" not in message
    assert ("; " in message) or (" is not there" in message)


def test_a_redirect_to_no_url_fails_in_plain_words(site: Site) -> None:
    url = site.web.on("/map.csv", redirect("http:elsewhere"))
    [batch] = site.run(site.deposit(url))
    message = site.only_job(batch).message
    assert f"{url} cannot be fetched, because it or a redirect from it is not a URL" in message
    assert "resume the job" in message


def test_a_wrong_digest_advises_a_resume(site: Site) -> None:
    url = site.web.on("/map.csv", content(b"1"))
    [batch] = site.run(site.deposit(url, algorithm="md5", digest="0" * 32))
    job = site.only_job(batch)
    assert "correct the file and resume the job, or correct the digest" in job.message
    assert resume_stage(job) is IngestState.DOWNLOADING
