"""Files of this machine, objects of a bucket, uploaded payloads; and how large things are."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Invalid, NotFound, PenstockError, Unavailable
from penstock.ingest.intake.fetching import FetchStopped, FileRequest, size_of
from tests.contract.fetching_desk import BODY, OTHER, IngestService, digest, open_desk
from tests.web import Answer, content, hang_up, head, raw, redirect, status


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[IngestService]:
    with open_desk(tmp_path) as desk:
        yield desk


def test_files_of_this_machine_are_copied(desk: IngestService, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b").write_bytes(BODY)
    url = f"file://{tmp_path}/in/a%20b"
    assert size_of(desk.client, FileRequest(url, "a"), desk.places) == len(BODY)
    assert desk.fetch(url, digest=digest(BODY)).size == len(BODY)
    assert desk.content() == BODY
    with pytest.raises(Invalid, match="add it to the collection's places"):
        desk.fetch(f"file://{tmp_path}/out", "b")
    with pytest.raises(NotFound, match="No such file"):
        desk.fetch(f"file://{tmp_path}/in/missing", "b")
    assert desk.fetch(url).is_new is False


def test_a_stopped_copy_continues(desk: IngestService, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(BODY * 3)
    url = f"file://{tmp_path}/in/a"
    with pytest.raises(FetchStopped):
        desk.fetch(url, stop=lambda: desk.at_hand > 0)
    (part,) = desk.parts()
    assert part.stat().st_size == len(BODY)
    assert desk.fetch(url, digest=digest(BODY * 3)).size == 3 * len(BODY)


def test_a_replaced_file_is_copied_again(desk: IngestService, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(BODY * 3)
    url = f"file://{tmp_path}/in/a"
    with pytest.raises(FetchStopped):
        desk.fetch(url, stop=lambda: desk.at_hand > 0)
    (tmp_path / "in" / "b").write_bytes(OTHER * 3)
    (tmp_path / "in" / "b").replace(tmp_path / "in" / "a")
    assert desk.fetch(url).digests["sha-512"] == digest(OTHER * 3, "sha512")


def test_a_file_changed_during_the_copy_is_copied_again(
    desk: IngestService, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a"
    file.write_bytes(BODY * 3)
    os.utime(file, (0, 0))

    def overwrite(change: int) -> None:
        if change == len(BODY) and file.stat().st_mtime == 0:
            with file.open("r+b") as there:
                there.write(OTHER * 3)

    assert desk.fetch(f"file://{file}", progress=overwrite).size == 3 * len(BODY)
    assert desk.content() == OTHER * 3


@pytest.fixture
def bucket(desk: IngestService, monkeypatch: pytest.MonkeyPatch) -> IngestService:
    """A desk whose server is the S3 endpoint of the environment."""
    settings = {
        "AWS_ENDPOINT": desk.web.url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return desk


def stored(body: bytes, **options: Any) -> Answer:
    return content(body, modified="Sun, 15 Nov 2026 12:00:00 GMT", **options)


def test_objects_of_a_bucket_are_fetched(bucket: IngestService) -> None:
    bucket.web.on("/bucket/in/a%20b", stored(BODY))
    url = "s3://bucket/in/a%20b"
    assert size_of(bucket.client, FileRequest(url, "a"), bucket.places) == len(BODY)
    assert bucket.fetch(url, digest=digest(BODY)).size == len(BODY)
    assert bucket.content() == BODY
    assert "key/" in bucket.web.requests_to("/bucket/in/a%20b")[0].headers["authorization"]


def test_an_object_is_resumed_while_it_is_the_same(bucket: IngestService) -> None:
    bucket.web.on("/bucket/in/a", stored(BODY * 3))
    with pytest.raises(FetchStopped):
        bucket.fetch("s3://bucket/in/a", stop=lambda: bucket.at_hand > 0)
    (part,) = bucket.parts()
    kept = part.stat().st_size
    bucket.fetch("s3://bucket/in/a", digest=digest(BODY * 3))
    assert bucket.ranges("/bucket/in/a") == [None, f"bytes={kept}-"]


def test_an_overwritten_object_is_fetched_again(bucket: IngestService) -> None:
    bucket.web.on("/bucket/in/a", stored(BODY * 3))
    with pytest.raises(FetchStopped):
        bucket.fetch("s3://bucket/in/a", stop=lambda: bucket.at_hand > 0)
    bucket.web.on("/bucket/in/a", stored(OTHER * 3, etag='"two"'))
    found = bucket.fetch("s3://bucket/in/a")
    assert found.digests["sha-512"] == digest(OTHER * 3, "sha512")


def test_an_object_that_is_cut_off_comes_whole_in_the_end(bucket: IngestService) -> None:
    bucket.web.on("/bucket/in/a", stored(BODY * 3, cut_after=1_500_000), stored(BODY * 3))
    assert bucket.fetch("s3://bucket/in/a", digest=digest(BODY * 3)).size == 3 * len(BODY)


@pytest.mark.parametrize(
    ("key", "answer", "kind"),
    [
        ("in/missing", status(404), NotFound),
        ("in/private", status(403), Invalid),
        ("in/broken", hang_up, Unavailable),
        ("out/a", status(200), Invalid),
        ("in/../out", status(200), Invalid),
        ("in//a", status(200), Invalid),
    ],
)
def test_objects_that_cannot_be_fetched(
    bucket: IngestService, key: str, answer: Answer, kind: type[PenstockError]
) -> None:
    bucket.web.on(f"/bucket/{key}", answer)
    bucket.refused(kind, f"s3://bucket/{key}", tries=1)
    assert size_of(bucket.client, FileRequest(f"s3://bucket/{key}", "a"), bucket.places) is None


def test_uploaded_payloads_come_from_the_hook(desk: IngestService) -> None:
    @contextmanager
    def uploads(url: str) -> Iterator[Iterator[bytes]]:
        assert url == "payload:batch/one"
        yield iter([b"up", b"loaded"])

    assert desk.fetch("payload:batch/one", uploads=uploads).size == 8
    assert desk.content() == b"uploaded"
    with pytest.raises(Invalid, match="may not be fetched"):
        desk.fetch("payload:batch/one", "other")


@pytest.mark.parametrize(
    ("answer", "size"),
    [
        (content(BODY), len(BODY)),
        (content(b""), 0),
        (redirect("/there"), 3),
        (status(404), None),
        (status(503), None),
        (hang_up, None),
        (raw(head(200, {})), None),
        (raw(b"garbage\r\n\r\n"), None),
        (redirect("http://169.254.169.254/"), None),
        (redirect("/a"), None),
        (content(BODY, headers={"Content-Encoding": "gzip"}), None),
        (content(BODY, headers={"X-Long": "y" * 1_000_000}), None),
    ],
)
def test_the_size_is_estimated_without_failing(
    desk: IngestService, answer: Any, size: int | None
) -> None:
    desk.web.on("/there", content(b"abc"))
    wanted = FileRequest(desk.web.on("/a", answer), "a")
    assert size_of(desk.client, wanted, desk.places) == size
    assert desk.web.requests_to("/a") == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "http://",
        "ftp://h/a",
        "file:///x",
        "s3://b/k",
        "payload:a",
        "http://10.0.0.1/",
    ],
)
def test_the_size_of_a_refused_url_is_unknown(desk: IngestService, url: str) -> None:
    assert size_of(desk.client, FileRequest(url, "a"), desk.places) is None
