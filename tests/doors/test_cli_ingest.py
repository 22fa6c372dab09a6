"""`penstock ingest`: submitted, worked on, followed and put right by real commands."""

import json
import re
import socket
import threading
import zipfile
from collections.abc import Iterator
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import pytest

from penstock.ingest import progress
from tests.databases import sqlite_database
from tests.doors.commands import Terminal
from tests.doors.ingest_site import Site, collection, ended, site, submitted
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.web import Request, head

# One worker has the site that these tests share.
pytestmark = pytest.mark.xdist_group("cli_ingest")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site on SQLite with a worker; every test has a collection of its own in it."""
    folder = tmp_path_factory.mktemp("ingest")
    with site(folder, sqlite_database(folder / "penstock.db")) as made, made.start():
        yield made


@pytest.fixture(params=["postgresql", "zookeeper"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A site on another database, or with its queue in ZooKeeper."""
    if request.param == "zookeeper":
        queue: str = request.getfixturevalue("zookeeper_url")
        with site(tmp_path, sqlite_database(tmp_path / "penstock.db"), queue=queue) as made:
            yield made
        return
    with site(tmp_path, request.getfixturevalue("postgres_url")) as made:
        yield made


@pytest.fixture
def maps(here: Site, penstock: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A collection that may read from the web server, where there is a worker."""
    monkeypatch.setenv("PENSTOCK_URL", here.url)
    return collection(here, penstock, f"maps-{tmp_path.name}")


def test_a_batch_from_submission_to_update_report(
    elsewhere: Site, penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", elsewhere.url)
    collection(elsewhere, penstock, "maps")
    manifest = elsewhere.manifest({"a.csv": b"a" * 1000, "b.csv": b"b"}, missing=["c.csv"])
    with elsewhere.start() as worker:
        failed = penstock("ingest", "submit", "maps", str(manifest), "--wait")
        assert failed.code == 1
        batch = failed.out.strip()
        assert "c.csv has failed:" in failed.err
        assert f"batch {batch} of maps has failed; 2 completed, 1 failed" in failed.err
        assert "404" in penstock("ingest", "report", batch).text

        elsewhere.serve("c.csv", b"c")
        resumed = penstock("ingest", "resume", batch)
        assert "downloading" in resumed.text
        assert f"penstock ingest update-report {batch}" in resumed.err
        assert penstock("ingest", "watch", batch, "--interval", "0.1").code == 1
        told = penstock("ingest", "update-report", batch).text
        assert "is reported again: update-reporting" in told
        done = penstock("ingest", "watch", batch, "--interval", "0.1")
        assert f"batch {batch} of maps is completed; 3 completed" in done.text
        assert "1 more completed, 0 open" in penstock("ingest", "report", batch).text
        assert penstock("ingest", "check").text == "there are no faults\n"
        assert "processes all stages, 8 jobs at a time" in worker.log()
        assert "HTTP Request" not in worker.log()
    stored = penstock("ingest", "objects", "--json").document["objects"]
    assert {each["title"] for each in stored} == {"title of a.csv", "title of b.csv", "c.csv"}


def test_nothing_there_says_what_to_do_first(
    elsewhere: Site, penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", elsewhere.url)
    assert "penstock ingest collections set" in penstock("ingest", "collections", "list").text
    listed = penstock("ingest", "list")
    assert listed.text == "there are no batches\n"
    assert "penstock ingest submit" in listed.err
    assert penstock("ingest", "queue").text == "the queue is empty\n"
    assert penstock("ingest", "objects").text == "there are no stored objects yet\n"
    assert penstock("ingest", "jobs").text == "no ingest job is failed\n"
    refused = penstock("ingest", "submit", "maps", "https://example.org/a")
    assert (refused.code, "penstock ingest collections set" in refused.complaint) == (1, True)


def test_a_folder_is_packed_and_comes_back_file_by_file(
    here: Site, penstock: Terminal, maps: str, tmp_path: Path
) -> None:
    folder = tmp_path / "scans"
    (folder / "inside").mkdir(parents=True)
    (folder / "a b.txt").write_bytes(b"a")
    (folder / "inside" / "ü.bin").write_bytes(bytes(3_000_000))
    described = ("--what", "Old town", "--who", "Ann", "--local-id", "loc1", "--when", "2026")
    batch = ended(penstock, maps, str(folder), *described)
    (job,) = penstock("ingest", "jobs", batch, "--json").document["jobs"]
    assert (job["status"], job["payloadName"]) == ("completed", "scans.tar")
    shown = penstock("ingest", "objects", job["primaryId"], "--json").document
    sizes = {file["name"]: file["size"] for file in shown["files"]}
    assert sizes["producer/a b.txt"] == 1
    assert sizes["producer/inside/ü.bin"] == 3_000_000
    assert shown["versions"][0]["title"] == "Old town"
    one = penstock("ingest", "objects", job["primaryId"], "--version", "1").text
    assert "producer/a b.txt" in one


def test_an_update_keeps_its_title_unless_cleared(
    here: Site, penstock: Terminal, maps: str
) -> None:
    update = ("--local-id", "loc2", "--mode", "update")
    ended(penstock, maps, here.serve("a.csv", b"a"), "--local-id", "loc2", "--what", "Old town")

    batch = ended(penstock, maps, here.serve("b.csv", b"b"), *update)
    ended(penstock, maps, here.serve("c.csv", b"c"), *update, "--clear", "what")

    (job,) = penstock("ingest", "jobs", batch, "--json").document["jobs"]
    shown = penstock("ingest", "objects", job["primaryId"], "--json").document
    titles = [version["title"] for version in shown["versions"]]
    assert titles == ["c.csv", "Old town", "Old town"]


def test_files_and_archives_are_uploaded_and_checked(
    here: Site, penstock: Terminal, maps: str, tmp_path: Path
) -> None:
    file = tmp_path / "map.tif"
    file.write_bytes(b"map")
    right = f"sha256:{sha256(b'map').hexdigest()}"
    wrong = f"md5:{md5(b'other', usedforsecurity=False).hexdigest()}"
    refused = penstock("ingest", "submit", maps, str(file), "--digest", wrong)
    assert refused.code == 2
    assert "has the md5 digest" in refused.complaint
    assert "nothing was uploaded" in refused.complaint
    first = ended(penstock, maps, str(file), "--digest", right)
    archive = tmp_path / "scans.zip"
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("x/one.txt", "1")
        target.writestr("two.txt", "2")
    second = ended(penstock, maps, str(archive), "--submitter", "ann", "--mode", "update")
    shown = penstock("ingest", "show", second, "--json").document
    assert (shown["status"], shown["payloadType"]) == ("completed", "container")
    assert (shown["submitter"], shown["mode"]) == ("ann", "update")
    assert penstock("ingest", "show", first, "--json").document["payloadType"] == "file"
    assert "completed" in penstock("ingest", "show", first).text


def test_a_manifest_with_a_fault_is_not_uploaded(
    penstock: Terminal, maps: str, tmp_path: Path
) -> None:
    manifest = tmp_path / "bad.checkm"
    profile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest"
    head = f"#%checkm_0.7\n#%profile | {profile}\n"
    manifest.write_text(f"{head}https://example.org/a | sha-256 | 12 | | | a\n#%eof\n")
    refused = penstock("ingest", "submit", maps, str(manifest))
    assert refused.code == 2
    assert f"{manifest}: line 3: the sha-256 digest" in refused.complaint
    manifest.write_text(f"{head}https://example.org/a | md5 | 12\nb\n#%eof\n")
    first, second = penstock("ingest", "submit", maps, str(manifest)).err.splitlines()
    assert first.startswith(f"penstock: {manifest}: line 3: the md5 digest")
    assert second.startswith("  line 4: the URL 'b' is not absolute")
    manifest.write_text(f"{head}https://example.org/a | | | | | a\n#%eof\n")
    other = penstock("ingest", "submit", maps, str(manifest), "--type", "manifest_of_files")
    assert (other.code, "is of the kind object_manifest" in other.complaint) == (2, True)
    assert penstock("ingest", "list", "--collection", maps, "--json").document == {"batches": []}


def test_the_faults_of_a_manifest_are_shown_line_by_line(
    here: Site, penstock: Terminal, maps: str
) -> None:
    profile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest"
    text = f"#%checkm_0.7\n#%profile | {profile}\nhttps://example.org/a | md5 | 12\nb\n#%eof\n"
    batch = ended(penstock, maps, here.serve("bad.checkm", text.encode()))
    shown = penstock("ingest", "show", batch).text
    assert re.search(r"^message +line 3: the md5 .*\n +line 4: the URL 'b' is", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.txt"], "'nowhere.txt' is neither a file"),
        (["ftp://example.org/a"], "may not be fetched; use http, https, s3, file"),
        (["http://127.0.0.1:1/a"], "add it to the collection's places"),
        (["file:///etc/passwd"], "listed places only"),
        (["https://example.org/a", "--digest", "12"], "write it like sha-256:HEX"),
        (["https://example.org/a", "--type", "tree"], "--type"),
        (["empty"], "has no files"),
        (["linked"], "is a link, and only files and folders can be packed"),
        (["blank"], "the name 'a ' in blank begins or ends with a blank; rename it"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_payloads_that_are_refused(
    penstock: Terminal, maps: str, tmp_path: Path, arguments: list[str], told: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "blank").mkdir()
    (tmp_path / "blank" / "a ").touch()
    (tmp_path / "linked" / "passwd").symlink_to("/etc/passwd")
    refused = penstock("ingest", "submit", maps, *arguments)
    assert refused.code in (1, 2)
    assert told in refused.complaint


def test_a_long_download_shows_how_far_it_is(
    elsewhere: Site, penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", elsewhere.url)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    collection(elsewhere, penstock, "slow")
    rest = threading.Event()

    def answer(request: Request, connection: socket.socket) -> None:
        connection.sendall(head(200, {"Content-Length": 8000}))
        if request.method == "GET":
            connection.sendall(b"a" * 4000)
            rest.wait(HANG_SECONDS)
            connection.sendall(b"b" * 4000)

    url = elsewhere.web.on("/slow.csv", answer)

    def job() -> dict[str, Any]:
        jobs: list[dict[str, Any]] = penstock("ingest", "jobs", batch, "--json").document["jobs"]
        return jobs[0] if jobs else {"download": None, "status": ""}

    with elsewhere.working():
        batch = submitted(penstock, "slow", url)
        until(lambda: (job()["download"] or {}).get("bytes") == 4000)
        assert job()["download"]["total"] == 8000
        shown = penstock("ingest", "job", job()["id"]).text
        rest.set()
        until(lambda: job()["status"] == "completed")

    assert "of 8" in shown
    assert "(50 %)" in shown
    assert job()["download"] is None


def test_files_are_shown_with_type_and_time(here: Site, penstock: Terminal, maps: str) -> None:
    manifest = (
        "#%checkm_0.7\n#%profile | mrt-ingest-manifest\n"
        f"{here.serve('t.csv', b't')} | | | | 2026-11-15 | t.csv | text/csv\n#%eof\n"
    )
    batch = ended(penstock, maps, here.serve("t.checkm", manifest.encode()))

    (job,) = penstock("ingest", "jobs", batch, "--json").document["jobs"]
    shown = penstock("ingest", "objects", job["primaryId"], "--json").document
    [file] = [each for each in shown["files"] if each["name"] == "producer/t.csv"]
    assert (file["mimeType"], file["lastModified"]) == ("text/csv", "2026-11-15")
    assert "text/csv" in penstock("ingest", "objects", job["primaryId"]).text


def test_one_key_is_one_batch(penstock: Terminal, maps: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    first = submitted(penstock, maps, str(file), "--key", "monday")
    again = penstock("ingest", "submit", maps, str(file), "--key", "monday")
    assert again.text.strip() == first
    assert "was submitted with this key before" in again.err
    document = penstock("ingest", "submit", maps, str(file), "--key", "x", "--json").document
    assert document["id"] != first


def test_one_key_with_other_bytes_is_refused(penstock: Terminal, maps: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    first = ended(penstock, maps, str(file), "--key", "friday")
    file.write_text("b")

    refused = penstock("ingest", "submit", maps, str(file), "--key", "friday")

    assert refused.code == 1
    assert (
        f"is that of batch {first}, which was submitted with another payload" in refused.complaint
    )
    assert "use another key" in refused.complaint


def test_one_key_with_another_title_is_refused(here: Site, penstock: Terminal, maps: str) -> None:
    url = here.serve("saturday", b"a")
    submitted(penstock, maps, url, "--key", "saturday", "--what", "One")

    refused = penstock("ingest", "submit", maps, url, "--key", "saturday", "--what", "Two")

    assert "submitted with another what" in refused.complaint


def test_one_key_with_another_url_is_refused(here: Site, penstock: Terminal, maps: str) -> None:
    urls = [here.serve(name, b"a") for name in ("tuesday", "wednesday")]
    batch = submitted(penstock, maps, urls[0], "--key", "tuesday")
    same, other = (penstock("ingest", "submit", maps, url, "--key", "tuesday") for url in urls)
    assert same.text.strip() == batch
    assert "under this key before" not in same.err
    assert (other.code, f"is that of batch {batch}" in other.complaint) == (1, True)


def test_watch_tells_of_failures_and_ends_by_how_the_batch_ended(
    here: Site, penstock: Terminal, maps: str
) -> None:
    manifest = here.manifest({"one": b"1" * 5000}, missing=["two"])
    batch = ended(penstock, maps, str(manifest))
    seen = penstock("ingest", "watch", batch)
    assert seen.code == 1
    assert re.search(r"^jid\d{10} two has failed: .*404", seen.out, re.MULTILINE)
    assert f"{batch} failed: 1 completed, 1 failed; 5.0 KB of 5.0 KB\n" in seen.out
    assert f"penstock ingest resume {batch}" in seen.out
    (line,) = penstock("ingest", "watch", batch, "--json").out.splitlines()
    document = json.loads(line)
    assert document["batch"]["status"] == "failed"
    assert document["bytesFetched"] == document["bytesWanted"] == 5000
    assert [job["payloadName"] for job in document["failures"]] == ["two"]
    assert penstock("ingest", "watch", "bid9999999999").code == 1
    assert penstock("ingest", "watch", batch, "--interval", "0").code == 2


def test_watch_draws_on_a_terminal(
    here: Site, penstock: Terminal, maps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = ended(penstock, maps, here.serve("three", b"3"))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", penstock("ingest", "watch", batch).text)
    assert f"batch {batch} of {maps}: completed" in drawn
    assert re.search(r"^completed +━+ +1", drawn, re.MULTILINE)
    assert re.search(r"^downloading +━+ +0", drawn, re.MULTILINE)


def test_jobs_are_listed_and_shown_with_where_a_resume_goes(
    here: Site, penstock: Terminal, maps: str
) -> None:
    manifest = here.manifest({"four": b"4", "five": b"5"}, missing=["six"])
    batch = ended(penstock, maps, str(manifest))
    assert "404" in penstock("ingest", "jobs", batch).text
    first = penstock("ingest", "jobs", batch, "--limit", "1")
    (job,) = re.findall(r"jid\d{10}", first.text)
    assert f"--after {job}" in first.err
    rest = penstock("ingest", "jobs", batch, "--after", job, "--json").document["jobs"]
    assert [each["status"] for each in rest] == ["completed", "failed"]
    failed = rest[1]["id"]
    mine = penstock("ingest", "jobs", "--collection", maps, "--json").document["jobs"]
    assert [each["id"] for each in mine] == [failed]
    shown = penstock("ingest", "job", failed)
    assert re.search(r"resumes with +downloading", shown.text)
    assert f"penstock ingest resume {failed}" in shown.err
    told = penstock("ingest", "resume", failed, "--why", "it is back").text
    assert "continues with downloading\n" in told
    assert "there is no batch" in penstock("ingest", "jobs", "bid9999999999").complaint
    listed = penstock("ingest", "list", "--collection", maps)
    assert "2 completed" in listed.text
    assert penstock("ingest", "list", "--status", "lost").code == 2
