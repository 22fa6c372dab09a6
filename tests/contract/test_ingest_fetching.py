"""Files come whole and right, or not at all, from servers that do what servers do."""

import errno
import gzip
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Invalid, NotFound, PenstockError, TooLarge, Unavailable
from penstock.ingest.intake.fetching import FetchedFile, FetchStopped, FileRequest, fetch_all
from penstock.ingest.intake.outbound import open_client
from penstock.ingest.intake.places import Places
from tests.contract.fetching_desk import BODY, OTHER, IngestService, digest, open_desk
from tests.patience import HANG_SECONDS
from tests.web import Request, Web, content, drip, hang_up, head, raw, redirect, reset, status


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[IngestService]:
    with open_desk(tmp_path) as desk:
        yield desk


def test_a_file_comes_with_its_digests(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY))
    found = desk.fetch(url, "deep/er/a.bin", digest=digest(BODY, "md5"), algorithm="md5")
    digests = {"sha-512": digest(BODY, "sha512"), "md5": digest(BODY, "md5")}
    assert found == FetchedFile("deep/er/a.bin", len(BODY), digests, is_new=True)
    assert desk.content("deep/er/a.bin") == BODY
    assert desk.at_hand == len(BODY)
    assert desk.web.requests_to("/a")[0].headers["accept-encoding"] == "identity"


def test_an_empty_file_is_a_file(desk: IngestService) -> None:
    url = desk.web.on("/a", content(b""))
    assert desk.fetch(url, size=0, digest=digest(b"")).size == 0
    assert desk.content() == b""


def test_a_file_that_is_there_and_good_is_not_fetched_again(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY))
    first = desk.fetch(url)
    for known in ({}, {"size": len(BODY)}, {"digest": digest(BODY).upper()}):
        again = desk.fetch(url, **known)
        assert not again.is_new
        assert again.digests["sha-512"] == first.digests["sha-512"]
    assert len(desk.web.requests) == 1


def test_a_file_that_is_there_and_wrong_is_fetched_again(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY))
    for known in ({"size": len(BODY)}, {"digest": digest(BODY)}):
        (desk.folder / "a.bin").write_bytes(b"wrong")
        assert desk.fetch(url, **known).is_new
        assert desk.content() == BODY


def test_a_length_that_is_too_long_counts_as_cut_off(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, length=len(BODY) + 1, etag=None))
    assert "in 4 tries" in desk.refused(Unavailable, url)


def test_a_length_that_is_too_short_does_not_pass_for_the_file(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY, length=1000))
    assert "wrong sha-256" in desk.refused(Invalid, url, digest=digest(BODY))
    message = desk.refused(Invalid, url, size=len(BODY))
    assert f"has 1,000 bytes, but {len(BODY):,} were expected" in message


def test_a_file_without_a_length_must_have_the_expected_size(desk: IngestService) -> None:
    url = desk.web.on("/a", raw(head(200, {}), b"12345"))
    assert desk.fetch(url, "good", size=5).size == 5
    (desk.folder / "good").unlink()
    assert "cut off after 5 of 6 bytes" in desk.refused(Unavailable, url, size=6)
    assert "more than the 4 bytes" in desk.refused(Invalid, url, size=4)


def test_a_chunked_file_that_is_cut_off_is_not_taken_for_whole(desk: IngestService) -> None:
    start = head(200, {"Transfer-Encoding": "chunked"})
    cut, whole = raw(start, b"5\r\nhello\r\n"), raw(start, b"5\r\nhello\r\n0\r\n\r\n")
    url = desk.web.on("/a", cut, whole)
    assert desk.fetch(url).size == 5
    assert len(desk.web.requests_to("/a")) == 2


def test_wrong_bytes_are_refused_at_once_and_removed(desk: IngestService) -> None:
    url = desk.web.on("/a", content(OTHER))
    message = desk.refused(Invalid, url, digest=digest(BODY))
    assert f"expected {digest(BODY)}, found {digest(OTHER)}" in message
    assert len(desk.web.requests) == 1
    assert desk.parts() == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [(404, NotFound), (410, NotFound), (401, Invalid), (403, Invalid), (204, Invalid)],
)
def test_a_final_answer_is_not_asked_for_again(
    desk: IngestService, code: int, kind: type[PenstockError]
) -> None:
    url = desk.web.on("/a", status(code))
    assert f"the server answers {code}" in desk.refused(kind, url + "?token=secret")
    assert len(desk.web.requests) == 1


@pytest.mark.parametrize("code", [408, 425, 429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(desk: IngestService, code: int) -> None:
    url = desk.web.on("/a", status(code, {"Retry-After": 3}), content(BODY))
    assert desk.fetch(url).size == len(BODY)
    assert sum(desk.slept) == 3


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": 3600}, 60),
        (
            {
                "Retry-After": "Sun, 15 Nov 2026 12:00:05 GMT",
                "Date": "Sun, 15 Nov 2026 12:00:00 GMT",
            },
            5,
        ),
        ({"Retry-After": "Sun, 15 Nov 2026 12:00:05 GMT"}, 1),
        ({"Retry-After": "soon"}, 1),
    ],
)
def test_retry_after_is_honoured_up_to_a_minute(
    desk: IngestService, headers: dict[str, str | int], seconds: int
) -> None:
    desk.fetch(desk.web.on("/a", status(503, headers), content(BODY)))
    assert sum(desk.slept) == seconds


@pytest.mark.parametrize("failure", [hang_up, reset, raw(b"garbage\r\n\r\n"), status(500)])
def test_a_connection_that_breaks_is_made_again(desk: IngestService, failure: Any) -> None:
    url = desk.web.on("/a", failure, content(BODY))
    assert desk.fetch(url).size == len(BODY)


def test_nobody_at_the_address(desk: IngestService) -> None:
    with Web() as gone:
        url = f"{gone.url}/a"
    with open_client(Places((url,))) as client:
        desk.client, desk.places = client, Places((url,))
        assert "Connection refused" in desk.refused(Unavailable, url)


def test_a_server_that_stalls_is_left_and_asked_again(tmp_path: Path) -> None:
    ended = threading.Event()
    start = head(200, {"Content-Length": 8, "ETag": '"one"'}) + b"com"

    def stall(request: Request, connection: socket.socket) -> None:
        connection.sendall(start)
        ended.wait(HANG_SECONDS)

    with open_desk(tmp_path, timeout_seconds=2) as desk:  # within which the rest has to come
        url = desk.web.on("/a", stall, content(b"complete"))
        assert desk.fetch(url).size == 8
        assert desk.ranges("/a") == [None, "bytes=3-"]
        ended.set()


def test_a_slow_server_is_waited_for(desk: IngestService) -> None:
    turn = threading.Semaphore(0)
    pieces = [head(200, {"Content-Length": 5}), *(bytes([letter]) for letter in b"drips")]
    url = desk.web.on("/a", drip(pieces, lambda: turn.acquire(timeout=HANG_SECONDS)))
    turn.release()
    turn.release()
    found = desk.fetch(url, progress=lambda change: turn.release() if change else None)
    assert found.size == 5
    assert desk.content() == b"drips"


def test_redirects_are_followed_and_checked(desk: IngestService) -> None:
    desk.web.on("/there", content(BODY))
    assert desk.fetch(desk.web.on("/a", redirect("/there"))).size == len(BODY)
    (desk.folder / "a.bin").unlink()
    desk.web.on("/loop", redirect("/loop"))
    assert "redirects too often" in desk.refused(Invalid, f"{desk.web.url}/loop")
    for target in ("http://169.254.169.254/", "http://localhost:80/", "file:///etc/passwd"):
        url = desk.web.on("/b", redirect(target))
        with pytest.raises(Invalid):
            desk.fetch(url)
        assert len(desk.web.requests_to("/b")) == 1
        desk.web.requests.clear()


def test_a_file_that_comes_compressed_needs_a_digest(desk: IngestService) -> None:
    packed = gzip.compress(BODY)
    url = desk.web.on("/a", content(packed, headers={"Content-Encoding": "gzip"}))
    assert "Content-Encoding gzip" in desk.refused(Invalid, url)
    assert "wrong sha-256" in desk.refused(Invalid, url, digest=digest(BODY))
    desk.fetch(url, digest=digest(packed))
    assert desk.content() == packed


def test_a_limit_holds_by_header_and_while_streaming(desk: IngestService) -> None:
    says = desk.web.on("/a", content(BODY))
    assert "more than the 1,000 bytes" in desk.refused(TooLarge, says, bytes_max=1000)
    silent = desk.web.on("/b", raw(head(200, {}), BODY))
    assert "more than the 1,000 bytes" in desk.refused(TooLarge, silent, bytes_max=1000)
    assert desk.fetch(says, bytes_max=len(BODY)).size == len(BODY)
    assert desk.parts() == []


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", "a\\b", "a\0b", "", "."])
def test_a_name_that_leaves_the_folder_is_refused(desk: IngestService, name: str) -> None:
    assert "cannot be stored" in desk.refused(Invalid, f"{desk.web.url}/a", name=name)
    assert desk.web.requests == []


def test_a_name_below_a_file_is_refused(desk: IngestService) -> None:
    url = desk.web.on("/a", content(BODY))
    desk.fetch(url, "a")
    with pytest.raises(Unavailable, match="could not be stored as 'a/b'"):
        desk.fetch(url, "a/b")


def test_an_unknown_algorithm_is_refused(desk: IngestService) -> None:
    url = f"{desk.web.url}/a"
    message = desk.refused(Invalid, url, algorithm="crc64", digest="00")
    assert "sha-512, sha-512/256" in message


def test_a_full_disk_is_reported(desk: IngestService, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    url = desk.web.on("/a", content(BODY))
    monkeypatch.setattr(os, "fsync", full)
    message = desk.refused(Unavailable, url)
    assert f"no space left in {desk.folder}" in message


def test_waiting_ends_when_the_work_is_stopped(desk: IngestService) -> None:
    url = desk.web.on("/a", status(503, {"Retry-After": 60}))
    with pytest.raises(FetchStopped):
        desk.fetch(url, stop=lambda: len(desk.slept) >= 2)
    assert desk.slept == [1.0, 1.0]


def test_many_files_come_at_once(desk: IngestService) -> None:
    bodies = {f"f/{number}": BODY[:number] for number in range(40)}
    wanted = [
        FileRequest(desk.web.on(f"/{name}", content(body)), name) for name, body in bodies.items()
    ]
    left = desk.folder.parent / ".producer.parts" / "of-a-killed-process.note"
    left.parent.mkdir()
    left.write_bytes(b"{}")
    told: list[int] = []
    found = fetch_all(
        desk.client, wanted, desk.folder, places=desk.places, concurrency=4, progress=told.append
    )
    assert [file.name for file in found] == list(bodies)
    assert {file.name: desk.content(file.name) for file in found} == bodies
    assert sum(told) == sum(map(len, bodies.values()))
    assert [path.name for path in desk.folder.parent.iterdir()] == ["producer"]


def test_the_first_failure_stops_the_rest(desk: IngestService) -> None:
    asked = threading.Event()

    def endless(request: Request, connection: socket.socket) -> None:
        connection.sendall(head(200, {"ETag": '"one"'}))
        asked.set()
        while True:
            connection.sendall(b"x" * 1000)

    def missing(request: Request, connection: socket.socket) -> None:
        asked.wait(HANG_SECONDS)
        status(404)(request, connection)

    urls = [desk.web.on("/0", endless), desk.web.on("/1", missing)]
    urls += [desk.web.on(f"/{number}", content(BODY)) for number in range(2, 20)]
    wanted = [FileRequest(url, url.rpartition("/")[2]) for url in urls]
    with pytest.raises(NotFound, match=f"{urls[1]} is not there"):
        fetch_all(desk.client, wanted, desk.folder, places=desk.places, concurrency=2)
    assert desk.names() == []
    assert len(desk.web.requests) == 2


def test_a_second_fetch_gets_only_missing_files(desk: IngestService) -> None:
    urls = [desk.web.on(f"/{number}", content(BODY)) for number in range(3)]
    desk.web.on("/1", status(404), content(BODY))
    wanted = [FileRequest(url, str(number)) for number, url in enumerate(urls)]
    with pytest.raises(NotFound):
        fetch_all(desk.client, wanted, desk.folder, places=desk.places, concurrency=1)
    again = fetch_all(desk.client, wanted, desk.folder, places=desk.places)
    assert [file.is_new for file in again] == [False, True, True]


def test_many_files_have_one_limit_together(desk: IngestService) -> None:
    wanted = [
        FileRequest(desk.web.on(f"/{number}", content(BODY)), str(number)) for number in range(4)
    ]
    room = 4 * len(BODY)
    with pytest.raises(TooLarge, match="the files together"):
        fetch_all(desk.client, wanted, desk.folder, places=desk.places, bytes_max=room - 1)
    found = fetch_all(desk.client, wanted, desk.folder, places=desk.places, bytes_max=room)
    assert sum(file.size for file in found) == room


def test_no_files_and_doubled_names(desk: IngestService) -> None:
    assert fetch_all(desk.client, [], desk.folder, places=desk.places) == []
    twice = [FileRequest(f"{desk.web.url}/{name}", "same") for name in "ab"]
    with pytest.raises(Invalid, match="have one name"):
        fetch_all(desk.client, twice, desk.folder, places=desk.places)
