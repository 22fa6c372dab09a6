"""What a client may not do to a server: send too much, too many or too slowly."""

import json
import logging
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.doors.serving import API, path, run_event, running
from tests.doors.waiting import until
from tests.doors.wires import body, connected, everything, is_answered, status
from tests.running import serving

GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
POST = f"POST {API}/lineage HTTP/1.1\r\nHost: localhost\r\n".encode()
KIB = 1024


def refusal(answer: bytes, code: int) -> str:
    assert status(answer) == code, answer
    assert b"connection: close" in answer
    document = json.loads(body(answer))
    assert document["code"] == code
    return str(document["message"])


def test_many_headers_are_refused(database_url: str) -> None:
    with running(database_url, header_count_max=10) as server:
        with connected(server.server.url) as wire:
            wire.sendall(GET + b"".join(b"a%d: b\r\n" % i for i in range(10)) + b"\r\n")

            assert "10 headers" in refusal(everything(wire), 431)

        with connected(server.server.url) as wire:
            wire.sendall(GET + b"".join(b"a%d: b\r\n" % i for i in range(9)) + b"\r\n")

            assert status(wire.recv(65536)) == 200


@pytest.mark.parametrize(
    "start",
    [
        GET + b"a: " + b"b" * 3000 + b"\r\n\r\n",
        GET + b"a: " + b"b" * 3000,
        GET + b"a" * 3000,
        b"GET /" + b"a" * 3000,
        b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["a value", "a value without end", "a name without end", "a URL without end", "a URL"],
)
def test_a_large_head_is_refused(database_url: str, start: bytes) -> None:
    with running(database_url, header_bytes_max=2 * KIB) as server:
        with connected(server.server.url) as wire:
            wire.sendall(start)

            assert "2048 bytes" in refusal(everything(wire), 431)

        assert server.client.get("/livez").is_success


def test_headers_behind_a_body_are_limited_too(database_url: str) -> None:
    with (
        running(database_url, header_count_max=10) as server,
        connected(server.server.url) as wire,
    ):
        wire.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        wire.sendall(b"".join(b"a%d: b\r\n" % i for i in range(20)))

        assert "10 headers" in refusal(everything(wire), 431)


def test_a_silent_connection_is_closed(database_url: str) -> None:
    with (
        running(database_url, first_request_seconds=1) as server,
        connected(server.server.url) as wire,
    ):
        assert everything(wire) == b""


def test_a_connection_that_sends_only_empty_lines_is_closed(database_url: str) -> None:
    with (
        running(database_url, first_request_seconds=1) as server,
        connected(server.server.url) as wire,
    ):
        wire.sendall(b"\r\n\r\n")

        assert everything(wire) == b""


@pytest.mark.parametrize("start", [b"G", GET, GET + b"a: b"])
def test_headers_that_do_not_arrive_get_408(database_url: str, start: bytes) -> None:
    with (
        running(database_url, header_seconds=1) as server,
        connected(server.server.url) as wire,
    ):
        wire.sendall(start)

        assert "within 1 seconds" in refusal(everything(wire), 408)


@pytest.mark.parametrize(
    "rest",
    [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"],
    ids=["a length", "chunks"],
)
def test_a_body_that_does_not_arrive_gets_408(database_url: str, rest: bytes) -> None:
    with (
        running(database_url, silence_seconds=1) as server,
        connected(server.server.url) as wire,
    ):
        wire.sendall(POST + rest)

        assert "within 1 seconds" in refusal(everything(wire), 408)


def test_a_client_that_reads_nothing_of_its_answer_is_cut_off(database_url: str) -> None:
    with running(database_url, silence_seconds=1) as server:
        wide = {"_producer": "x", "_schemaURL": "y", "text": "a" * 8_000_000}
        event = run_event("wide", job={"namespace": "n", "name": "j", "facets": {"wide": wide}})
        assert server.client.post(f"{API}/lineage", json=event).is_success
        with socket.socket() as wire:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.connect((server.server.url.split("/")[2].split(":")[0], _port(server.server.url)))
            wire.sendall(f"GET {API}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            until(lambda: len(server.server.connections) == 2)

            until(lambda: len(server.server.connections) == 1)


def test_one_address_cannot_take_all_connections(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        running(database_url, connections_per_address_max=3) as server,
        ExitStack() as stack,
        caplog.at_level(logging.WARNING),
    ):
        wires = [stack.enter_context(connected(server.server.url)) for _ in range(3)]
        assert all(is_answered(wire) for wire in wires)
        with connected(server.server.url) as refused:
            message = refusal(everything(refused), 503)
            port = refused.getsockname()[1]

        assert "one address may have 3 connections" in message
        assert all(is_answered(wire) for wire in wires)
        assert any("one address" in record.getMessage() for record in caplog.records)
        wires[0].close()
        until(lambda: len(server.server.connections) == 2)
        assert server.client.get("/livez").is_success
        assert port


def test_a_proxy_has_the_connections_of_all_its_clients(database_url: str) -> None:
    with (
        running(database_url, connections_per_address_max=2, proxies="127.0.0.0/8") as server,
        ExitStack() as stack,
    ):
        wires = [stack.enter_context(connected(server.server.url)) for _ in range(5)]

        assert all(is_answered(wire) for wire in wires)


def test_an_idle_connection_gives_way_when_the_server_is_full(database_url: str) -> None:
    with running(database_url, connections_max=2) as server, ExitStack() as stack:
        idle, busy = (stack.enter_context(connected(server.server.url)) for _ in range(2))
        assert is_answered(idle)
        busy.sendall(GET)

        assert server.client.get("/livez").is_success
        assert everything(idle) == b""
        busy.sendall(b"\r\n")
        assert status(busy.recv(65536)) == 200


def test_a_full_server_without_idle_connections_answers_503(database_url: str) -> None:
    with running(database_url, connections_max=2) as server, ExitStack() as stack:
        busy = [stack.enter_context(connected(server.server.url)) for _ in range(2)]
        for wire in busy:
            wire.sendall(GET)
        until(lambda: len(server.server.connections) == 2)
        with connected(server.server.url) as wire:
            answer = everything(wire)

        assert "2 connections already" in refusal(answer, 503)
        assert b"retry-after: 1" in answer


def test_refusals_are_logged_with_the_address_and_not_each(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/penstock.db", header_count_max=10) as server:
        for _ in range(30):
            with connected(server.url) as wire:
                wire.sendall(GET + b"a: b\r\n" * 20 + b"\r\n")
                port = wire.getsockname()[1]
                assert status(everything(wire)) == 431
        lines = [json.loads(line) for line in server.log().splitlines()]

    refused = [line for line in lines if line["message"].startswith("refused")]
    assert 1 <= len(refused) < 10
    assert refused[0]["client"].startswith("127.0.0.1:")
    assert port


def test_the_server_raises_its_limit_of_descriptors(tmp_path: Path) -> None:
    launcher = ("prlimit", "--nofile=64:512")
    with serving(f"sqlite:///{tmp_path}/penstock.db", launcher=launcher) as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()

    [line] = [each for each in limits.splitlines() if each.startswith("Max open files")]
    assert line.split()[3:5] == ["512", "512"]


def test_silent_clients_do_not_lock_out_others_when_descriptors_are_few(tmp_path: Path) -> None:
    launcher = ("prlimit", "--nofile=64:64")
    with (
        serving(f"sqlite:///{tmp_path}/penstock.db", launcher=launcher) as server,
        ExitStack() as stack,
    ):
        for _ in range(100):
            stack.enter_context(connected(server.url))

        with server.client() as client:
            assert client.get("/livez").is_success
            assert client.get(path("namespaces")).is_success
        assert "the limit of 64 open files allows 16 connections" in server.log()
        assert "an idle connection was closed to make room" in server.log()


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
