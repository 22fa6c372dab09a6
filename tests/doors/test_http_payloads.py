"""Payloads are uploaded as they arrive, and are there whole or not at all."""

import hashlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest

from penstock.objects import Objects
from penstock.schema.admin import KeyRole
from penstock.server.requests import UPLOADS_MAX
from tests.doors.ingesting import Ingesting, good, ingesting
from tests.doors.serving import path
from tests.doors.waiting import until

MIB = 1024 * 1024
LIMIT = 20 * MIB
PIECE = bytes(range(256)) * 256


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Ingesting]:
    with ingesting(database_url, tmp_path / "in", payload_bytes_max=LIMIT) as site:
        yield site


def pieces(total: int) -> Iterator[bytes]:
    while total > 0:
        yield PIECE[:total]
        total -= len(PIECE)


@contextmanager
def begun(site: Ingesting, name: str, head: str, first: bytes = b"") -> Iterator[socket.socket]:
    """An upload as it goes over the wire, to be broken off."""
    server = urlsplit(site.server.server.url)
    assert server.hostname is not None
    target = path("ingest", "payloads", name)
    start = f"POST {target} HTTP/1.1\r\nHost: {server.netloc}\r\n{head}\r\n\r\n"
    with socket.create_connection((server.hostname, server.port or 0)) as wire:
        wire.sendall(start.encode() + first)
        yield wire


def uploads(site: Ingesting) -> int:
    return site.server.server._api.state.uploads


def test_a_payload_of_several_megabytes_is_kept_byte_by_byte(site: Ingesting) -> None:
    total = 9 * MIB + 17
    content = b"".join(pieces(total))
    whole = good(site.client.post(path("ingest", "payloads", "big.bin"), content=content), 201)
    in_parts = good(
        site.client.post(path("ingest", "payloads", "big.bin"), content=pieces(total)), 201
    )
    assert whole["url"] != in_parts["url"]
    store = Objects.open(site.server.plane.settings.objects)
    for answer in (whole, in_parts):
        assert answer["size"] == total
        assert answer["digests"] == {"sha-256": hashlib.sha256(content).hexdigest()}
        kept = answer["url"].removeprefix("payload:")
        assert kept.endswith("/big.bin")
        assert store.get(f"payloads/{kept}") == content


def test_an_upload_is_spent_only_by_a_submission_that_was_made(site: Ingesting) -> None:
    uploaded = good(site.client.post(path("ingest", "payloads", "x.txt"), content=b"x"), 201)
    body = {"collection": "maps", "url": uploaded["url"]}
    batches = path("ingest", "batches")
    for change in ({"name": "../x"}, {"collection": "ghost"}, {"primaryId": "ark123"}):
        assert site.client.post(batches, json=body | change).status_code in (404, 422)
    made = good(site.client.post(batches, json=body | {"name": "x"}), 201)
    assert (made["payloadName"], made["key"]) == ("x", None)
    again = site.client.post(batches, json=body | {"name": "x"})
    assert again.status_code == 409
    assert f"was submitted already, as batch {made['id']}" in again.json()["message"]


NAMES = ["roads.csv", "Réport #1 (100%).csv", "why?.csv", "a%2Fb.csv", "漢字 .csv", "#7", "x;y&z=1"]


def test_what_was_uploaded_is_ingested_under_its_own_name(site: Ingesting) -> None:
    batches = {}
    for name in NAMES:
        target = path("ingest", "payloads", "x").removesuffix("x") + quote(name, safe="")
        answer = good(site.client.post(target, content=name.encode()), 201)
        batches[name] = site.submit(answer["url"])
        assert batches[name]["payloadName"] == name
    with site.working():
        for name, batch in batches.items():
            assert site.ended(batch["id"])["status"] == "completed", name
            (job,) = site.jobs(batch["id"])
            query = {"ark": job["primaryId"]}
            files = good(site.client.get(path("ingest", "objects", "files"), params=query))
            assert f"producer/{name}" in [file["name"] for file in files["files"]]


def test_an_empty_payload_is_a_payload(site: Ingesting) -> None:
    answer = good(site.client.post(path("ingest", "payloads", "empty")), 201)
    assert answer["size"] == 0
    assert answer["digests"] == {"sha-256": hashlib.sha256().hexdigest()}
    assert len(site.uploaded()) == 1


def test_an_upload_that_breaks_off_leaves_nothing(site: Ingesting) -> None:
    chunk = f"{len(PIECE):x}\r\n".encode() + PIECE + b"\r\n"
    broken = [
        (f"Content-Length: {8 * MIB}", PIECE * 4),
        ("Transfer-Encoding: chunked", chunk * 4),
        (f"Content-Length: {8 * MIB}", b""),
    ]
    for head, first in broken:
        with begun(site, "half.bin", head, first):
            until(lambda: uploads(site) == 1)
        until(lambda: uploads(site) == 0)
        assert site.uploaded() == []
    assert site.client.get("/livez").status_code == 200


def test_what_is_over_the_limit_is_refused_and_leaves_nothing(site: Ingesting) -> None:
    target = path("ingest", "payloads", "big.bin")
    answer = site.client.post(target, content=pieces(LIMIT + 1))
    assert answer.status_code == 413
    assert f"larger than {LIMIT} bytes" in answer.json()["message"]
    assert site.uploaded() == []
    assert good(site.client.post(target, content=pieces(LIMIT)), 201)["size"] == LIMIT


def test_a_length_over_the_limit_is_refused_before_anything_is_sent(site: Ingesting) -> None:
    with begun(site, "big.bin", f"Content-Length: {LIMIT + 1}") as wire:
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer
        assert b"larger than" in answer


def test_a_large_upload_may_be_larger_than_other_bodies(database_url: str, tmp_path: Path) -> None:
    with ingesting(database_url, tmp_path / "in", body_bytes_max=1000) as site:
        answer = site.client.post(path("ingest", "payloads", "x.bin"), content=pieces(MIB))
        assert good(answer, 201)["size"] == MIB


@pytest.mark.parametrize(
    ("name", "reason"),
    [("..", "a folder in a path"), ("a/b", "slash"), ("a\nb", "control"), ("x" * 300, "300 bytes")],
)
def test_a_name_that_no_file_may_have_is_refused(site: Ingesting, name: str, reason: str) -> None:
    target = path("ingest", "payloads", "x").removesuffix("x") + quote(name, safe="").replace(
        ".", "%2E"
    )
    answer = site.client.post(target, content=b"x")
    assert answer.status_code == 422
    assert reason in answer.json()["message"]
    assert site.uploaded() == []


def test_bytes_are_kept_as_they_come(site: Ingesting) -> None:
    target = path("ingest", "payloads", "x.gz")
    answer = site.client.post(target, content=b"x", headers={"content-encoding": "gzip"})
    assert answer.status_code == 400
    assert "'gzip'" in answer.json()["message"]
    plain = site.client.post(target, content=b"x", headers={"content-encoding": "identity"})
    assert good(plain, 201)["size"] == 1


def test_only_writers_upload(site: Ingesting) -> None:
    target = path("ingest", "payloads", "x")
    reader = site.server.key("r", KeyRole.READER)
    answer = site.client.post(target, content=pieces(4 * MIB), headers=reader)
    assert answer.status_code == 403
    assert site.uploaded() == []
    writer = site.server.key("w", KeyRole.WRITER, "elsewhere")
    assert good(site.client.post(target, content=b"x", headers=writer), 201)


def test_a_full_disk_is_told_and_leaves_nothing(
    site: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.objects.folder.os.fsync", full)
    answer = site.client.post(path("ingest", "payloads", "x"), content=pieces(MIB))
    assert answer.status_code == 503
    assert "No space left" in answer.json()["message"]
    assert site.uploaded() == []


def test_slow_uploads_hold_up_nobody_else(site: Ingesting) -> None:
    with ExitStack() as slow:
        for _ in range(UPLOADS_MAX):
            slow.enter_context(begun(site, "slow", f"Content-Length: {MIB}", b"x"))
        until(lambda: uploads(site) == UPLOADS_MAX)
        for target in (path("namespaces"), path("ingest", "batches"), "/metrics"):
            assert site.client.get(target).status_code == 200
        assert site.submit(site.file("a.csv"))["status"] == "pending"
        answer: httpx.Response = site.client.post(path("ingest", "payloads", "x"), content=b"x")
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
    until(lambda: uploads(site) == 0)
    assert good(site.client.post(path("ingest", "payloads", "x"), content=b"x"), 201)
