"""What happens to lots as server-sent events: without a gap, whoever comes and goes."""

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
import pytest

from penstock.client import Client, Unreachable
from penstock.clock import HOUR
from penstock.schema.admin import KeyRole
from penstock.server import relay
from penstock.server.requests import RequestContext
from penstock.server.routes import lot_events as stream
from penstock.subscribers.pruning import prune_outbox
from tests.doors.serving import API, Running, running
from tests.doors.test_http_stop import server_process
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.servers import free_port

STREAM = f"{API}/events/stream"


@pytest.fixture
def shop(database_url: str) -> Iterator[Running]:
    """Datasets raw of shop and of farm can have lots."""
    with running(database_url) as server:
        wire(server)
        yield server


def wire(server: Running) -> None:
    with Client(server.server.url) as client:
        for namespace in ("shop", "farm"):
            client.wire_job(namespace, "tidy", inputs=["raw"], outputs=["clean"])


def publish(server: Running, *lots: str, namespace: str = "shop") -> None:
    with Client(server.server.url, server.token) as client:
        client.register_lots(namespace, "raw", lots)


class Reader:
    """One who reads a stream block by block, as it comes."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream"
        self._lines = answer.iter_lines()

    def block(self) -> dict[str, str]:
        """The next block, as its fields; a comment's name is empty."""
        found: dict[str, str] = {}
        for line in self._lines:
            if not line:
                return found
            name, _, value = line.partition(":")
            found[name] = value.strip()
        return found

    def events(self, count: int) -> list[dict[str, Any]]:
        """The next events; the name, the number and the data of each belong together."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            block = self.block()
            assert block, "the stream has ended"
            if "data" in block:
                event = json.loads(block["data"])
                assert (block["id"], block["event"]) == (str(event["id"]), event["kind"])
                found.append(event)
        return found

    def lots(self, count: int) -> list[str]:
        return [event["lot"] for event in self.events(count)]


@contextmanager
def reading(
    server: Running, headers: dict[str, str] | None = None, **query: Any
) -> Iterator[Reader]:
    with server.client.stream("GET", STREAM, params=query, headers=headers) as answer:
        yield Reader(answer)


def test_it_begins_now_and_tells_what_happens(shop: Running) -> None:
    publish(shop, "before")
    with reading(shop) as reader:
        assert reader.block() == {"": "following", "id": "1"}
        publish(shop, "1")
        [event] = reader.events(1)
        assert event.pop("version")
        assert event.pop("at")
        assert event == {
            "id": 2,
            "kind": "published",
            "dataset": {"namespace": "shop", "name": "raw"},
            "lot": "1",
            "state": "complete",
            "job": None,
            "run": None,
        }
        publish(shop, "2", "3")
        assert reader.lots(2) == ["2", "3"]


def test_it_goes_on_after_an_event(shop: Running) -> None:
    publish(shop, *map(str, range(5)))
    with reading(shop, after=0) as reader:
        assert reader.lots(5) == ["0", "1", "2", "3", "4"]
    with reading(shop, after=3) as reader:
        assert reader.lots(2) == ["3", "4"]
    with reading(shop, {"last-event-id": "4"}, after=1) as reader:
        publish(shop, "5")
        assert reader.lots(2) == ["4", "5"]


def test_long_histories_come_page_by_page(shop: Running) -> None:
    lots = [str(number) for number in range(2 * relay.PAGE + 7)]
    publish(shop, *lots)
    with reading(shop, after=0) as reader:
        publish(shop, "last")
        assert reader.lots(len(lots) + 1) == [*lots, "last"]


def test_only_what_is_asked_for_is_sent(shop: Running) -> None:
    with (
        reading(shop, namespace="farm") as farm,
        reading(shop, dataset="raw") as raw,
        reading(shop, namespace="shop", dataset="clean") as clean,
    ):
        publish(shop, "1")
        publish(shop, "2", namespace="farm")
        with Client(shop.server.url) as client:
            for claim in client.claims("shop/tidy"):
                with claim:
                    assert claim.lot == "1"
        assert farm.lots(1) == ["2"]
        assert raw.lots(2) == ["1", "2"]
        assert [event["dataset"]["name"] for event in clean.events(1)] == ["clean"]


def test_a_key_of_a_namespace_sees_its_own_only(shop: Running) -> None:
    key = shop.key("farmer", KeyRole.READER, "farm")
    publish(shop, "1")
    publish(shop, "2", namespace="farm")
    with reading(shop, key, after=0) as reader:
        assert reader.lots(1) == ["2"]
        publish(shop, "3")
        publish(shop, "4", namespace="farm")
        assert reader.lots(1) == ["4"]
    answer = shop.client.get(STREAM, params={"namespace": "shop"}, headers=key)
    assert answer.status_code == 403


def test_a_comment_comes_while_nothing_happens(
    shop: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the number of what was passed over, so that nobody reads that again."""
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.05)
    with reading(shop, namespace="farm") as reader:
        assert reader.block() == {"": "following", "id": "0"}
        assert reader.block() == {"": "still here", "id": "0"}
        publish(shop, "1")
        until(lambda: reader.block() == {"": "still here", "id": "1"})


def test_what_comes_while_a_key_is_asked_for_is_sent(
    shop: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing had happened for a while; now it does, before the comment that says so is sent."""
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.05)
    lots = iter(["1", "2", "3"])

    async def may_stay(context: RequestContext) -> bool:
        lot = next(lots, None)
        if lot is not None:
            await asyncio.to_thread(publish, shop, lot)
            [follower] = context.state.relay._followers
            await follower.news.wait()
        return True

    monkeypatch.setattr(stream, "may_stay", may_stay)
    told: list[dict[str, str]] = []
    with reading(shop) as reader:
        while not told or told[-1]["id"] != "3":
            told.append(reader.block())
    assert [block["id"] for block in told if "data" in block] == ["1", "2", "3"]


def test_a_revoked_key_is_sent_away(shop: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.05)
    key = shop.key("guest", KeyRole.READER)
    with reading(shop, key) as reader:
        assert reader.block()
        shop.plane.keys.revoke("guest", who="test")
        until(lambda: reader.block() == {})


def test_a_revoked_key_gets_no_event_more(shop: Running) -> None:
    """A busy stream never comes to the comment of a quiet one."""
    key = shop.key("guest", KeyRole.READER)
    with reading(shop, key) as reader:
        assert reader.block()
        publish(shop, "1")
        assert reader.lots(1) == ["1"]
        shop.plane.keys.revoke("guest", who="test")

        publish(shop, "2", "3")

        assert reader.block() == {}


def test_a_stream_without_a_key_ends_with_the_first_key(shop: Running) -> None:
    with reading(shop) as reader:
        assert reader.block()
        shop.key("first", KeyRole.READER)

        publish(shop, "1")

        assert reader.block() == {}


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"last-event-id": "x"}, "", 400),
        ({"last-event-id": "9" * 30}, "", 400),
        ({"last-event-id": "9" * 5000}, "", 400),
        ({}, "after=-1", 422),
        ({}, "after=x", 400),
    ],
)
def test_what_makes_no_sense_is_refused(
    shop: Running, headers: dict[str, str], query: str, status: int
) -> None:
    answer = shop.client.get(f"{STREAM}?{query}", headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"


def test_whoever_comes_back_too_late_is_told_so(shop: Running) -> None:
    publish(shop, "1", "2", "3")
    plane = shop.plane
    later = plane.clock() + 2 * HOUR
    assert prune_outbox(plane.database, lambda: later, HOUR, dry_run=False) == 3
    answer = shop.client.get(STREAM, headers={"last-event-id": "1"})
    assert answer.status_code == 409
    assert "continue after 3" in answer.json()["message"]
    with reading(shop, after=0) as reader:
        publish(shop, "4")
        assert reader.lots(1) == ["4"]


def test_head_has_no_body(shop: Running) -> None:
    answer = shop.client.head(STREAM)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"


def test_many_who_follow_share_one_reader(shop: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event is read from the database once for all, after they have caught up."""
    asked: list[int] = []
    read = relay.read_frames

    def counted(database: Any, after: int, most: int = relay.PAGE) -> list[relay.Frame]:
        found = read(database, after, most)
        if found:
            asked.append(after)
        return found

    monkeypatch.setattr(relay, "read_frames", counted)
    readers = 20
    with httpx.Client(
        base_url=shop.server.url,
        limits=httpx.Limits(max_connections=100),
        timeout=HANG_SECONDS,
        verify=False,
    ) as client:
        answers = [
            client.send(client.build_request("GET", STREAM), stream=True) for _ in range(readers)
        ]
        all_of_them = [Reader(answer) for answer in answers]
        for reader in all_of_them:
            assert reader.block() == {"": "following", "id": "0"}
        until(lambda: len(shop.server._api.state.relay._followers) == readers)
        for lot in ("1", "2", "3"):
            publish(shop, lot)
            for reader in all_of_them:
                assert reader.lots(1) == [lot]
        for answer in answers:
            answer.close()
    assert sorted(asked) == sorted(set(asked))
    assert len(asked) <= 3
    until(lambda: not shop.server._api.state.relay._followers)


def test_a_reader_that_takes_nothing_is_dropped(
    shop: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "WAITING_MAX", 1200)
    host, port = shop.client.base_url.host, shop.client.base_url.port
    assert port is not None
    with closing(socket.socket()) as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect((host, port))
        lazy.sendall(f"GET {STREAM} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        followers = shop.server._api.state.relay._followers
        until(lambda: len(followers) == 1)
        with reading(shop) as reader:
            until(lambda: len(followers) == 2)
            seen = 0
            while len(followers) == 2:
                publish(shop, *(f"{seen}-{number}-{'x' * 150}" for number in range(1000)))
                assert len(reader.lots(1000)) == 1000
                seen += 1
            publish(shop, "last")
            assert reader.lots(1) == ["last"]


def test_there_is_an_end_to_how_many_can_follow(
    shop: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "FOLLOWERS_MAX", 1)
    with reading(shop) as reader:
        assert reader.block()
        until(lambda: len(shop.server._api.state.relay._followers) == 1)
        assert shop.client.get(STREAM).status_code == 429


def test_readers_do_not_keep_a_server_that_is_told_to_stop(database_url: str) -> None:
    with server_process(database_url) as server:
        with httpx.stream("GET", f"{server.url}{STREAM}", timeout=HANG_SECONDS) as answer:
            reader = Reader(answer)
            assert reader.block() == {"": "following", "id": "0"}
            server.process.send_signal(signal.SIGTERM)
            assert reader.block() == {}
        server.ends_well()


def test_the_client_follows_and_loses_nothing_while_servers_come_and_go(database_url: str) -> None:
    """Lots are published all the while; the server stops and starts again on the same port."""
    port = free_port()
    seen: list[str] = []
    enough = threading.Event()

    def follow() -> None:
        with Client(f"http://127.0.0.1:{port}") as client:
            for event in client.lot_events(after=0):
                seen.append(event.lot)
                if event.lot == "end":
                    break
        enough.set()

    thread = threading.Thread(target=follow)
    expected: list[str] = []
    for life in range(3):
        with running(database_url, port=port) as server:
            wire(server)
            if life == 0:
                thread.start()
            for number in range(10):
                publish(server, f"{life}-{number}")
                expected.append(f"{life}-{number}")
            until(lambda: len(seen) >= 5)
            if life == 2:
                publish(server, "end")
                assert enough.wait(HANG_SECONDS)
    thread.join()
    assert seen == [*expected, "end"]


def test_the_client_says_at_once_when_there_is_no_server() -> None:
    with Client(f"http://127.0.0.1:{free_port()}") as client, pytest.raises(Unreachable):
        next(client.lot_events())
