"""Large bodies: received up to a limit, within a budget that all requests share."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from penstock.schema.admin import KeyRole
from tests.doors.serving import API, path, run_event, running
from tests.doors.waiting import until
from tests.doors.wires import body, connected, everything, status

MIB = 1024 * 1024
GZIP = {"content-encoding": "gzip"}


def event_of(size: int, run: str) -> bytes:
    """An event of about this size, which packs well."""
    event = run_event(run, eventType="COMPLETE")
    event["run"]["facets"] = {"wide": {"_producer": "x", "_schemaURL": "y", "text": "a" * size}}
    return json.dumps(event).encode()


def test_events_as_large_as_the_limit_are_received(database_url: str) -> None:
    with running(database_url) as server:
        for size in (34 * MIB, 63 * MIB):
            event = event_of(size, f"wide {size}")
            answer = server.client.post(f"{API}/lineage", content=event)

            assert answer.status_code == 201, answer.text
            run = server.client.get(path("jobs", "runs", f"wide {size}")).json()
            assert run["state"] == "COMPLETED"
            assert len(run["facets"]["wide"]["text"]) == size


def test_a_refused_large_body_is_answered_before_the_close(database_url: str) -> None:
    """A client that writes all of its request first still reads why it was refused."""
    large = b" " * (20 * MIB)
    targets = (f"{API}/lineage", path("ingest", "payloads", "x.bin"))
    limits: dict[str, Any] = {"body_bytes_max": MIB, "payload_bytes_max": MIB}
    with running(database_url, **limits) as server:
        for target in targets:
            for _ in range(5):
                with connected(server.server.url) as wire:
                    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\n"
                    wire.sendall(f"{head}Content-Length: {len(large)}\r\n\r\n".encode())
                    wire.sendall(large)
                    answer = everything(wire)

                assert status(answer) == 413
                assert b"connection: close" in answer
                assert f"larger than {MIB} bytes" in json.loads(body(answer))["message"]


def test_bodies_over_the_budget_get_429(database_url: str) -> None:
    with running(database_url, bodies_bytes_max=MIB) as server:
        budget = server.server.budget

        def send(number: int) -> httpx.Response:
            packed = gzip.compress(event_of(MIB // 4, f"r{number}"))
            return server.client.post(f"{API}/lineage", content=packed, headers=GZIP)

        with ThreadPoolExecutor(3) as callers:
            with server.plane.database.write():  # nothing is committed meanwhile
                waiting = [callers.submit(send, number) for number in range(3)]
                until(lambda: budget.held > 3 * MIB // 4)
                refused = send(3)
            answers = [each.result() for each in waiting]

        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert f"at most {MIB} in all" in refused.json()["message"]
        assert [each.status_code for each in answers] == [201] * 3
        assert budget.held == 0
        assert send(3).status_code == 201
        assert server.client.get(f"{API}/events?limit=0").json()["totalCount"] == 4


def test_what_a_request_holds_is_given_back_however_it_ends(database_url: str) -> None:
    with running(database_url, body_bytes_max=MIB) as server:
        target = f"{API}/lineage"
        too_much = gzip.compress(b" " * 2 * MIB)
        assert server.client.post(target, content=too_much, headers=GZIP).status_code == 413
        assert server.client.post(target, content=b"{" * MIB).status_code == 413
        assert server.client.post(target, content=b"x" * MIB).status_code == 400
        cut = gzip.compress(event_of(MIB // 2, "cut"))[:-9]
        assert server.client.post(target, content=cut, headers=GZIP).status_code == 400
        with connected(server.server.url) as wire:
            wire.sendall(f"POST {target} HTTP/1.1\r\nHost: localhost\r\n".encode())
            wire.sendall(b"Content-Length: 100000\r\n\r\n" + b" " * 50_000)
            until(lambda: server.server.budget.held > 0)

        until(lambda: server.server.budget.held == 0)


def test_a_body_larger_than_the_whole_budget_is_not_asked_to_come_back(database_url: str) -> None:
    with running(database_url, bodies_bytes_max=MIB) as server:
        answer = server.client.post(f"{API}/lineage", content=event_of(2 * MIB, "r"))

        assert answer.status_code == 413
        assert f"larger than {MIB} bytes" in answer.json()["message"]


def test_other_calls_are_answered_while_a_hostile_body_is_read(database_url: str) -> None:
    """The body nests nothing, but has millions of brackets to look at."""
    hostile = b'{"ownerName":[' + b"[]," * (8 * MIB) + b"[]]}"
    with running(database_url) as server, ThreadPoolExecutor(1) as callers:
        target = path("namespaces", "food")
        writing = callers.submit(server.client.put, target, content=hostile)
        until(lambda: server.server.budget.held >= len(hostile))
        others = 0
        while not writing.done():
            assert server.client.get("/livez").is_success
            others += 1

        assert writing.result().status_code == 422
        assert others > 3


def test_a_key_has_a_rate_of_its_own(database_url: str) -> None:
    with running(database_url) as server:
        slow, other = server.key("slow", KeyRole.WRITER), server.key("other", KeyRole.WRITER)
        admin = server.key("admin", KeyRole.ADMIN)
        target = path("keys", "slow", "rates")
        limited = server.client.put(target, json={"requestsPerSecond": 1}, headers=admin)
        assert (limited.json()["requestsPerSecond"], limited.json()["bytesPerSecond"]) == (1, None)

        answers = [server.client.get(path("namespaces"), headers=slow) for _ in range(5)]

        assert answers[0].is_success
        refused = answers[-1]
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert "key 'slow' sends more than 1 requests per second" in refused.json()["message"]
        assert server.client.get(path("namespaces"), headers=other).is_success
        [entry] = server.client.get(
            path("audit"), params={"action": "key limit"}, headers=admin
        ).json()["entries"]
        assert (entry["who"], entry["target"]) == ("admin", "slow")
        assert entry["detail"] == "1 requests per second"
        assert server.client.put(target, json={}, headers=admin).is_success
        until(lambda: server.client.get(path("namespaces"), headers=slow).is_success)


def test_a_key_that_sent_too_many_bytes_waits(database_url: str) -> None:
    with running(database_url, key_bytes_per_second=50_000) as server:
        writer = server.key("w", KeyRole.WRITER)
        packed = gzip.compress(event_of(MIB, "r"))
        target = f"{API}/lineage"

        first = server.client.post(target, content=packed, headers={**GZIP, **writer})
        second = server.client.post(target, content=packed, headers={**GZIP, **writer})

        assert first.status_code == 201
        assert second.status_code == 429
        assert "50000 bytes per second" in second.json()["message"]
        assert 10 <= int(second.headers["retry-after"]) <= 20
        reader = server.key("r", KeyRole.READER)
        assert server.client.get(path("namespaces"), headers=reader).is_success


def test_a_rate_of_zero_lifts_the_default(database_url: str) -> None:
    with running(database_url, key_requests_per_second=1) as server:
        admin = server.key("admin", KeyRole.ADMIN)
        document = {"name": "free", "role": "reader", "requestsPerSecond": 0}
        token = server.client.post(path("keys"), json=document, headers=admin).json()["token"]
        free = {"authorization": f"Bearer {token}"}

        statuses = [
            server.client.get(path("namespaces"), headers=free).status_code for _ in range(10)
        ]

        assert statuses == [200] * 10


def test_a_rate_that_is_none_is_refused(database_url: str) -> None:
    with running(database_url) as server:
        admin = server.key("admin", KeyRole.ADMIN)
        for document in ({"requestsPerSecond": -1}, {"requestsPerSecond": "1"}, {"perSecond": 1}):
            target = path("keys", "admin", "rates")
            assert server.client.put(target, json=document, headers=admin).status_code == 422
        target = path("keys", "ghost", "rates")
        assert server.client.put(target, json={}, headers=admin).status_code == 404
