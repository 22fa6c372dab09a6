"""A client that offers another protocol is answered over HTTP/1.1, and its body arrives whole."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.serving import API, Running, path, run_event, running
from tests.doors.wires import body, connected, everything, status
from tests.patience import HANG_SECONDS

H2C = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"
JAVA = Path(__file__).with_name("SendEvent.java")


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def wide_event(run: str, size: int) -> bytes:
    """An event of about this size."""
    event = run_event(run)
    event["run"]["facets"] = {"wide": {"_producer": "x", "_schemaURL": "y", "text": "a" * size}}
    return json.dumps(event).encode()


def request(event: bytes, upgrade: str, connection: str = "") -> bytes:
    start = f"POST {API}/lineage HTTP/1.1\r\nHost: localhost\r\n{connection}{upgrade}"
    return f"{start}Content-Length: {len(event)}\r\n\r\n".encode() + event


def is_known(food: Running, run: str) -> bool:
    return food.client.get(path("jobs", "runs", run)).is_success


@pytest.mark.parametrize("size", [10, 1_000_000])
@pytest.mark.parametrize(
    "upgrade", [H2C, "Connection: upgrade\r\nUpgrade: websocket\r\n"], ids=["h2c", "websocket"]
)
def test_the_body_of_a_request_that_offers_an_upgrade_arrives(
    food: Running, upgrade: str, size: int
) -> None:
    with connected(food.server.url) as wire:
        for run in ("first", "second"):
            wire.sendall(request(wide_event(run, size), upgrade))
            answer = wire.recv(65536)

            assert (status(answer), body(answer)) == (201, b"{}")
            assert is_known(food, run)


def test_a_head_that_arrives_in_pieces_may_offer_an_upgrade(food: Running) -> None:
    whole = request(wide_event("pieces", 10), H2C)
    with connected(food.server.url) as wire:
        for at in range(0, len(whole), 7):
            wire.sendall(whole[at : at + 7])

        assert status(wire.recv(65536)) == 201


def test_requests_sent_ahead_may_offer_an_upgrade(food: Running) -> None:
    runs = [f"run {number}" for number in range(3)]
    with connected(food.server.url) as wire:
        wire.sendall(b"".join(request(wide_event(run, 10), H2C) for run in runs))
        wire.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answers = everything(wire)

    assert answers.count(b"HTTP/1.1 201 ") == 3
    assert answers.count(b"HTTP/1.1 200 ") == 1
    assert all(is_known(food, run) for run in runs)


def test_an_upgrade_beside_close_still_closes(food: Running) -> None:
    with connected(food.server.url) as wire:
        wire.sendall(request(wide_event("closed", 10), "Upgrade: h2c\r\n", "Connection: close\r\n"))
        assert status(everything(wire)) == 201

    with connected(food.server.url) as wire:
        both = "Connection: close, Upgrade\r\n"
        wire.sendall(request(wide_event("both", 10), "Upgrade: h2c\r\n", both))
        assert status(everything(wire)) == 201


def test_a_tunnel_is_refused(food: Running) -> None:
    with connected(food.server.url) as wire:
        wire.sendall(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\nhello")

        assert status(everything(wire)) == 400


def test_curl_with_http2_sends_an_event(food: Running, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_bytes(wide_event("curl", 100_000))
    words = ["curl", "--silent", "--http2", "--data-binary", f"@{event}", "--header", "Expect:"]
    words += ["--write-out", " %{http_code} %{http_version}", f"{food.server.url}{API}/lineage"]

    done = subprocess.run(words, capture_output=True, timeout=HANG_SECONDS, check=True)

    assert done.stdout == b"{} 201 1.1"
    assert is_known(food, "curl")


def test_java_sends_events_with_its_defaults(food: Running, tmp_path: Path) -> None:
    sizes = {"small": 10, "large": 1_000_000, "last": 10}
    for run, size in sizes.items():
        (tmp_path / run).write_bytes(wide_event(run, size))
    words = ["java", "-XX:TieredStopAtLevel=1", str(JAVA), f"{food.server.url}{API}/lineage"]
    words += [str(tmp_path / run) for run in sizes]

    done = subprocess.run(words, capture_output=True, timeout=HANG_SECONDS, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().split("\n")[:-1] == ["201 HTTP_1_1"] * 3
    assert all(is_known(food, run) for run in sizes)
