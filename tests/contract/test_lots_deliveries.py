"""Subscribers are told at least once, in order, and none is held up by another."""

import json
import socket
import threading
from functools import partial

import pytest

from penstock.access import audit
from penstock.catalog.events.known_facets import DatasetName
from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, NotFound
from penstock.locks.commands import WireJob
from penstock.signing import verify
from penstock.subscribers.commands import (
    SUBSCRIBERS_MAX,
    WAIT_SECONDS_MAX,
    AcquireSubscriber,
    DeleteSubscriber,
    FailDelivery,
    MoveCursor,
    RenewSubscribers,
    retry_seconds,
)
from tests.contract.outbox_desk import NEVER, Gate, IngestService, deliveries, desk, firsts, lots
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.web import Answer, Request, Web, drip, hang_up, head, redirect, reset, status

pytestmark = pytest.mark.one_database

__all__ = ["desk"]


def test_a_webhook_gets_every_event_in_order_and_signed(desk: IngestService) -> None:
    with Web() as web:
        desk.publish("before")
        desk.subscribe(web.on("/lots", status(204)), secret="s3cret")
        desk.publish("1", "2")
        run = desk.work()
        with desk.deliverer():
            desk.wait_for(4)
        found = web.requests_to("/lots", "POST")
    assert deliveries(found) == ["pager-2", "pager-3", "pager-4"]
    for request in found:
        assert request.headers["content-type"] == "application/json"
        assert verify("s3cret", request.headers["penstock-signature"], request.body, desk.now)
        assert not verify("other", request.headers["penstock-signature"], request.body, desk.now)
    last = json.loads(found[-1].body)
    assert last.pop("version")
    assert last == {
        "id": 4,
        "at": "2026-11-15T09:30:00.000Z",
        "kind": "published",
        "dataset": {"namespace": "shop", "name": "clean"},
        "lot": "1",
        "state": "complete",
        "job": {"namespace": "shop", "name": "tidy"},
        "run": run,
    }


def test_a_commit_wakes_the_deliverer(desk: IngestService) -> None:
    """There is no sweep here that could do it instead."""
    with Web() as web:
        desk.subscribe(web.on("/lots", status(200)))
        with desk.deliverer(sweep_seconds=NEVER, lease_seconds=NEVER):
            for lot in ("1", "2", "3"):
                desk.publish(lot)
                desk.wait_for(int(lot))
            assert lots(web.requests_to("/lots", "POST")) == ["1", "2", "3"]


def test_what_no_commit_told_is_found_by_the_sweep(desk: IngestService) -> None:
    with Web() as web:
        desk.subscribe(web.on("/lots", status(503), status(200)))
        desk.publish("1")
        with desk.deliverer(sweep_seconds=0.05):
            until(lambda: desk.subscriber().failures == 1)
            desk.pass_seconds(1)  # nobody commits anything
            desk.wait_for(1)
        assert deliveries(web.requests_to("/lots", "POST")) == ["pager-1", "pager-1"]


def test_only_what_is_asked_for_is_told(desk: IngestService) -> None:
    other = DatasetName("farm", "raw")
    with Web() as web:
        for name, asks in (
            ("all", {}),
            ("shop", {"namespace": "shop"}),
            ("raw", {"dataset": "raw"}),
            ("farm-raw", {"namespace": "farm", "dataset": "raw"}),
        ):
            desk.subscribe(web.on(f"/{name}", status(200)), name, **asks)
        desk.catalog.submit(WireJob("farm", "reader", (other,), ())).result()
        desk.publish("1")
        desk.work()
        desk.publish("2", dataset=other)
        with desk.deliverer():
            desk.wait_for(3, "all", "shop", "raw", "farm-raw")
        told = {
            name: [
                delivery.rpartition("-")[2]
                for delivery in deliveries(web.requests_to(path, "POST"))
            ]
            for name, path in ((n, f"/{n}") for n in ("all", "shop", "raw", "farm-raw"))
        }
    assert told == {
        "all": ["1", "2", "3"],
        "shop": ["1", "2"],
        "raw": ["1", "3"],
        "farm-raw": ["3"],
    }


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(500, body=b"no room"), "was answered 500 (no room)"),
        (status(404), "was answered 404"),
        (redirect("http://127.0.0.1:1/"), "was answered 302"),
        (hang_up, "was not answered"),
        (reset, "was not answered"),
    ],
)
def test_what_is_not_taken_is_tried_again_and_nothing_overtakes_it(
    desk: IngestService, answer: Answer, said: str
) -> None:
    with Web() as web:
        desk.subscribe(web.on("/lots", status(200), answer, answer, status(200)))
        desk.publish("1", "2", "3")
        with desk.deliverer(sweep_seconds=0.05):
            until(lambda: desk.subscriber().failures == 1)
            row = desk.subscriber()
            assert row.cursor == 1
            assert f"delivery pager-2 {said}" in row.error
            assert row.next_try_at == desk.now + 1_000_000
            desk.pass_seconds(1)
            until(lambda: desk.subscriber().failures == 2)
            assert desk.subscriber().next_try_at == desk.now + 2_000_000
            desk.pass_seconds(2)
            desk.wait_for(3)
        row = desk.subscriber()
        assert (row.failures, row.error, row.delivered_at) == (0, "", desk.now)
        assert row.failed_at is not None
        found = deliveries(web.requests_to("/lots", "POST"))
    assert found == ["pager-1", "pager-2", "pager-2", "pager-2", "pager-3"]


def test_a_receiver_that_nobody_hears_is_tried_again(desk: IngestService) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        desk.subscribe(f"http://127.0.0.1:{closed.getsockname()[1]}/lots")
        desk.publish("1")
        with desk.deliverer():
            until(lambda: desk.subscriber().failures == 1)
    assert "was not answered" in desk.subscriber().error
    assert desk.subscriber().cursor == 0


def test_a_receiver_can_ask_to_be_left_alone_for_a_while(desk: IngestService) -> None:
    with Web() as web:
        desk.subscribe(web.on("/lots", status(429, {"Retry-After": 90})))
        desk.publish("1")
        with desk.deliverer():
            until(lambda: desk.subscriber().failures == 1)
    assert desk.subscriber().next_try_at == desk.now + 90_000_000


def test_it_is_tried_ever_more_rarely_but_always_again() -> None:
    assert [retry_seconds(count) for count in (1, 2, 3, 4)] == [1, 2, 4, 8]
    assert retry_seconds(10_000) == WAIT_SECONDS_MAX


def test_slow_and_failing_receivers_hold_nobody_up(desk: IngestService) -> None:
    gate = Gate()
    with Web() as web:
        desk.subscribe(web.on("/slow", drip([head(200, {"Content-Length": 0})], gate.wait)), "slow")
        desk.subscribe(web.on("/broken", status(500)), "broken")
        desk.subscribe(web.on("/good", status(200)), "good")
        desk.publish(*map(str, range(20)))
        with desk.deliverer():
            desk.wait_for(20, "good")
            until(lambda: desk.subscriber("broken").failures == 1)
            assert desk.subscriber("slow").cursor == 0
            desk.publish("20")
            desk.wait_for(21, "good")
            gate.open()
            desk.wait_for(21, "slow")
        assert lots(web.requests_to("/slow", "POST")) == list(map(str, range(21)))
        assert desk.subscriber("broken").cursor == 0


def test_a_receiver_that_keeps_us_waiting_is_given_up_and_tried_again(desk: IngestService) -> None:
    gate = Gate()
    with Web() as web:
        slow = drip([head(200, {"Content-Length": 0})], gate.wait)
        desk.subscribe(web.on("/lots", slow, status(200)))
        desk.publish("1")
        with desk.deliverer(answer_seconds_max=0.3, sweep_seconds=0.05):
            until(lambda: desk.subscriber().failures == 1)
            assert "takes too long" in desk.subscriber().error
            until(partial(_was_told_in_time, desk))
        gate.open()


def _was_told_in_time(desk: IngestService) -> bool:
    """On a slow machine it may be given up more than once."""
    found = desk.subscriber()
    desk.now = max(desk.now, found.next_try_at)
    return found.cursor == 1


def test_stopping_does_not_wait_for_a_receiver(desk: IngestService) -> None:
    gate, asked = Gate(), threading.Event()

    def slow(request: Request, connection: socket.socket) -> None:
        asked.set()
        gate.wait()

    with Web() as web:
        desk.subscribe(web.on("/lots", slow))
        desk.publish("1")
        with desk.deliverer():
            assert asked.wait(HANG_SECONDS)
        gate.open()
    assert desk.subscriber().cursor == 0


def test_a_lease_is_kept_for_as_long_as_the_receiver_takes(desk: IngestService) -> None:
    """A second deliverer gets nothing of it meanwhile, and all of it once the first is gone."""
    gate = Gate()
    with Web() as web:
        slow = drip([head(200, {"Content-Length": 0})], gate.wait)
        desk.subscribe(web.on("/lots", slow))
        desk.publish("1", "2")
        with desk.deliverer(lease_seconds=0.3) as first:
            until(lambda: bool(web.requests_to("/lots", "POST")))
            owner = desk.subscriber().owner
            with desk.deliverer(sweep_seconds=0.05) as second:
                for _ in range(5):
                    held = desk.subscriber().lease_until
                    desk.pass_seconds(0.1)
                    first.wake()
                    until(partial(_is_kept, desk, held))
                    second.wake()
                assert desk.subscriber().owner == owner
                gate.open()
                desk.wait_for(2)
        assert deliveries(web.requests_to("/lots", "POST")) == ["pager-1", "pager-2"]


def _is_kept(desk: IngestService, held: Micros) -> bool:
    return desk.subscriber().lease_until > held


def test_several_deliverers_share_the_work_and_keep_the_order(desk: IngestService) -> None:
    with Web() as web:
        urls = {f"s{n}": web.on(f"/s{n}", status(200)) for n in range(4)}
        for name, url in urls.items():
            desk.subscribe(url, name)
        with desk.deliverer(), desk.deliverer(), desk.deliverer():
            for lot in range(30):
                desk.publish(str(lot))
            desk.wait_for(30, *urls)
        for name in urls:
            assert lots(web.requests_to(f"/{name}", "POST")) == list(map(str, range(30)))


def test_a_changed_subscriber_is_told_at_its_new_place_from_where_it_was(
    desk: IngestService,
) -> None:
    with Web() as web:
        desk.subscribe(web.on("/old", status(200), status(500)), secret="one")
        desk.publish("1", "2")
        with desk.deliverer():
            until(lambda: desk.subscriber().failures == 1)
            changed = desk.subscribe(web.on("/new", status(200)))
            assert (changed.cursor, changed.failures, changed.secret) == (1, 0, "one")
            desk.wait_for(2)
        assert lots(web.requests_to("/new", "POST")) == ["2"]


def test_events_can_be_told_again(desk: IngestService) -> None:
    with Web() as web:
        url = web.on("/lots", status(200))
        desk.subscribe(url)
        desk.publish("1", "2")
        with desk.deliverer():
            desk.wait_for(2)
            desk.subscribe(url, after=0)
            until(lambda: len(web.requests_to("/lots", "POST")) == 4)
            desk.wait_for(2)
        found = deliveries(web.requests_to("/lots", "POST"))
    assert found == ["pager-1", "pager-2"] * 2
    assert firsts(found) == ["pager-1", "pager-2"]


def test_a_secret_stays_until_it_is_taken_away(desk: IngestService) -> None:
    url = "https://example.org/lots"
    assert desk.subscribe(url, secret="one").secret == "one"
    assert desk.subscribe(url).secret == "one"
    assert desk.subscribe(url, secret=None).secret is None


@pytest.mark.parametrize(
    "asks",
    [
        {"url": "ftp://example.org/"},
        {"url": "https://"},
        {"url": "https://me:hunter2@example.org/"},
        {"url": "https://example.org/a b"},
        {"url": "https://example.org:99999/"},
        {"name": "a/b"},
        {"name": ""},
        {"secret": ""},
        {"secret": "two words"},
        {"after": -1},
    ],
)
def test_what_cannot_be_is_refused(desk: IngestService, asks: dict[str, object]) -> None:
    with pytest.raises(Invalid) as refused:
        desk.subscribe(**{"url": "https://example.org/", **asks})  # type: ignore[arg-type]
    assert "hunter2" not in str(refused.value)


def test_there_is_an_end_to_how_many_there_can_be(desk: IngestService) -> None:
    for number in range(SUBSCRIBERS_MAX):
        desk.subscribe("https://example.org/", f"s{number}")
    with pytest.raises(Conflict, match="delete one to add another"):
        desk.subscribe("https://example.org/", "one-more")
    desk.subscribe("https://example.org/changed", "s0")


def test_a_subscriber_cannot_become_one_of_other_events(desk: IngestService) -> None:
    desk.subscribe("https://example.org/")
    with pytest.raises(Conflict, match="another name"):
        desk.subscribe("https://example.org/", kind="openlineage")


def test_what_administrators_do_is_in_the_record(desk: IngestService) -> None:
    desk.subscribe("https://example.org/", secret="s3cret")
    desk.catalog.submit(DeleteSubscriber("admin", "pager")).result()
    with desk.catalog.read() as tx:
        entries = [(e.who, e.action, e.target) for e in audit.entries(tx, 10)]
        assert "s3cret" not in str(audit.entries(tx, 10))
    assert entries[:2] == [
        ("admin", "delete subscriber", "pager"),
        ("admin", "set subscriber", "pager"),
    ]
    with pytest.raises(NotFound, match="pager"):
        desk.catalog.submit(DeleteSubscriber("admin", "pager")).result()


def test_a_stale_token_changes_nothing(desk: IngestService) -> None:
    desk.subscribe("https://example.org/")
    desk.publish("1", "2")
    submit = desk.catalog.submit
    first = submit(AcquireSubscriber("pager", "one", 10)).result()
    with pytest.raises(Conflict, match="one delivers"):
        submit(AcquireSubscriber("pager", "two", 10)).result()
    desk.pass_seconds(11)
    second = submit(AcquireSubscriber("pager", "two", 10)).result()
    assert second.token > first.token
    for stale in (
        MoveCursor("pager", first.token, 2, 10, True),
        FailDelivery("pager", first.token, 2, "no"),
    ):
        with pytest.raises(Conflict, match="nothing was changed"):
            submit(stale).result()
    assert submit(RenewSubscribers((("pager", first.token),), 10)).result() == {"pager"}
    assert desk.subscriber() == second
    assert submit(RenewSubscribers((("pager", second.token),), 10)).result() == set()


def test_what_was_let_go_is_not_kept(desk: IngestService) -> None:
    desk.subscribe("https://example.org/")
    submit = desk.catalog.submit
    held = submit(AcquireSubscriber("pager", "one", 10)).result()
    submit(MoveCursor("pager", held.token, 0, 0, False)).result()
    assert submit(RenewSubscribers((("pager", held.token),), 10)).result() == set()
    assert submit(AcquireSubscriber("pager", "two", 10)).result().owner == "two"


def test_a_receiver_is_called_directly_on_this_machine(
    desk: IngestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with Web() as web:
        desk.subscribe(web.on("/lots", status(200)))
        desk.publish("1")
        with desk.deliverer():
            desk.wait_for(1)
        assert len(web.requests_to("/lots", "POST")) == 1
