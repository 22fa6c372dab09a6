"""Callbacks to a real HTTP server, patient and impatient; signatures checked independently."""

import hashlib
import hmac
import socket
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import outgoing
from penstock.clock import SECOND, Micros, parse_time
from penstock.errors import Invalid, Unavailable
from penstock.ingest.intake.outbound import open_client
from penstock.ingest.intake.places import Places
from penstock.ingest.notifications.callbacks import call_back, verify
from penstock.signing import sign
from tests.doors.waiting import until
from tests.web import Answer, Request, Web, drip, hang_up, head, raw, redirect, reset, status

NOW = parse_time("2026-11-15T10:00:00Z")
SECRET = "geheim-ä"
BODY = '{"job":"jid0000000001","title":"Karte von Köln"}'.encode()
KEY = "bid0000000001.jid0000000001"
OK = status(200)


@pytest.fixture(name="web")
def _web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture(name="client")
def _client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, follow_redirects=True) as client:
        yield client


class Caller:
    """Calls back, and remembers how long it was told to sleep."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.slept: list[float] = []

    def call(
        self,
        url: str,
        secret: str | None = SECRET,
        *,
        key: str = KEY,
        tries: int = 4,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        call_back(
            self.client,
            url,
            secret,
            BODY,
            key=key,
            now=NOW,
            tries=tries,
            sleep=self.slept.append,
            stop=stop,
        )


@pytest.fixture(name="caller")
def _caller(client: httpx.Client) -> Caller:
    return Caller(client)


def posts(web: Web) -> list[Request]:
    return web.requests_to("/hook", "POST")


def signed_by_hand(at: Micros) -> str:
    seconds = at // 1_000_000
    text = str(seconds).encode() + b"." + BODY
    digest = hmac.new(SECRET.encode(), text, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def test_a_callback_is_one_signed_post_of_json(web: Web, caller: Caller) -> None:
    caller.call(web.on("/hook", OK))
    (request,) = posts(web)
    assert request.body == BODY
    assert request.headers["content-type"] == "application/json"
    assert request.headers["penstock-delivery"] == KEY
    assert request.headers["penstock-signature"] == signed_by_hand(NOW)
    assert verify(SECRET, request.headers["penstock-signature"], request.body, NOW)
    assert caller.slept == []


def test_without_a_secret_nothing_is_signed(web: Web, caller: Caller) -> None:
    caller.call(web.on("/hook", OK), None)
    assert "penstock-signature" not in posts(web)[0].headers


def test_through_the_guarded_door(web: Web) -> None:
    url = web.on("/hook", status(503), OK)
    with open_client(Places((f"{web.url}/",))) as client:
        Caller(client).call(url)
    assert len(posts(web)) == 2


def test_the_door_refuses_a_private_address_at_once(web: Web) -> None:
    url = web.on("/hook", OK)
    with open_client(Places()) as client:
        caller = Caller(client)
        with pytest.raises(Invalid, match=r"127\.0\.0\.1"):
            caller.call(url)
    assert posts(web) == []
    assert caller.slept == []


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_every_2xx_is_good(web: Web, caller: Caller, code: int) -> None:
    caller.call(web.on("/hook", status(code)))
    assert len(posts(web)) == 1


@pytest.mark.parametrize(
    "trouble",
    [*map(status, (408, 425, 429, 500, 502, 503, 504)), hang_up, reset, raw(b"garbage\r\n\r\n")],
)
def test_trouble_that_passes_is_tried_again(web: Web, caller: Caller, trouble: Answer) -> None:
    caller.call(web.on("/hook", trouble, trouble, OK))
    assert len(posts(web)) == 3
    assert caller.slept == [1.0, 4.0]


def test_every_try_is_the_same_delivery_under_a_fresh_signature(web: Web, caller: Caller) -> None:
    caller.call(web.on("/hook", status(503, {"Retry-After": 50}), status(500), OK))
    requests = posts(web)
    assert {request.headers["penstock-delivery"] for request in requests} == {KEY}
    assert {request.body for request in requests} == {BODY}
    moments = [NOW, NOW + 50 * SECOND, NOW + 54 * SECOND]
    signatures = [request.headers["penstock-signature"] for request in requests]
    assert signatures == [signed_by_hand(moment) for moment in moments]


def test_trouble_that_stays_ends_after_some_tries(web: Web, caller: Caller) -> None:
    url = web.on("/hook", status(503, body=b"under \n\x1b[31mrepair"))
    with pytest.raises(Unavailable) as caught:
        caller.call(f"{url}?token=s3cret#s3cret")
    assert str(caught.value) == (
        f"the callback to {url} was answered 503 (under [31mrepair); "
        "it was tried 4 times, so look at the receiver and try again"
    )
    assert len(posts(web)) == 4
    assert caller.slept == [1.0, 4.0, 16.0]


@pytest.mark.parametrize(
    ("asked", "pause"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("3600", 60.0),
        ("Sun, 15 Nov 2026 10:00:20 GMT", 20.0),
        ("Sun, 15 Nov 2026 09:00:00 GMT", 0.0),
        ("Sun, 15 Nov 2026 10:00:20 -0000", 20.0),
        ("soon", 1.0),
        ("-5", 1.0),
        ("Sun, 99 Nov 2026 10:00:20 GMT", 1.0),
        ("9" * 400, 1.0),
    ],
)
def test_retry_after_is_heeded_within_reason(
    web: Web, caller: Caller, asked: str, pause: float
) -> None:
    caller.call(web.on("/hook", status(429, {"Retry-After": asked}), OK))
    assert caller.slept == [pause]


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 409, 410, 413, 422])
def test_a_refusal_is_final(web: Web, caller: Caller, code: int) -> None:
    url = web.on("/hook", status(code, body="unbekannte Sammlung: Köln".encode()), OK)
    with pytest.raises(Invalid) as caught:
        caller.call(url)
    assert str(caught.value) == (
        f"the callback to {url} was answered {code} (unbekannte Sammlung: Köln); "
        "correct the callback's URL or its receiver"
    )
    assert len(posts(web)) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_final_and_not_followed(web: Web, caller: Caller, code: int) -> None:
    elsewhere = web.on("/elsewhere", OK)
    words = f"was answered {code} .a redirect to {elsewhere}, which is not followed.; correct the"
    with pytest.raises(Invalid, match=words):
        caller.call(web.on("/hook", redirect(elsewhere, code)))
    assert web.requests_to("/elsewhere", "POST") == web.requests_to("/elsewhere") == []


def test_a_receiver_that_takes_too_long(web: Web) -> None:
    done = threading.Event()
    url = web.on("/hook", drip([head(200, {"Content-Length": 0})], done.wait))
    with httpx.Client(trust_env=False, timeout=0.2) as client:
        caller = Caller(client)
        with pytest.raises(Unavailable, match=r"was not answered \(it takes too long to answer\)"):
            caller.call(url, tries=2)
    until(lambda: len(posts(web)) == 2)  # whoever is given up may be heard only after that
    done.set()


def test_nobody_listens(caller: Caller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closing:
        port = closing.getsockname()[1]
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}/hook was not answered .*refused"):
        caller.call(f"http://user:s3cret@127.0.0.1:{port}/hook")


def test_a_2xx_counts_although_its_body_is_cut_off(web: Web, caller: Caller) -> None:
    caller.call(web.on("/hook", raw(head(200, {"Content-Length": 100}), b"so far")))
    assert len(posts(web)) == 1


def test_an_answer_without_end_is_not_read_to_its_end(web: Web, caller: Caller) -> None:
    sent = []

    def endless() -> Iterator[bytes]:
        yield head(400, {})
        while True:
            sent.append(b"word " * 10_000)
            yield sent[-1]

    with pytest.raises(Invalid, match=r"was answered 400 \(word word") as caught:
        caller.call(web.on("/hook", drip(endless())))
    assert len(str(caught.value)) < 500


def test_a_slow_body_does_not_hold_the_worker(
    web: Web, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "_ANSWER_SECONDS_MAX", 0.0)
    sent = []

    def byte_by_byte() -> Iterator[bytes]:
        yield head(200, {})
        while True:
            sent.append(b"o")
            yield b"o"

    pace = threading.Event()
    caller.call(web.on("/hook", drip(byte_by_byte(), lambda: pace.wait(0.002))))
    assert len(posts(web)) == 1
    assert len(sent) < 10_000


def test_a_stopping_worker_ends_between_tries(web: Web, caller: Caller) -> None:
    url = web.on("/hook", status(503))
    with pytest.raises(Unavailable, match="was answered 503; this worker is stopping"):
        caller.call(url, stop=lambda: bool(caller.slept))
    assert len(posts(web)) == 1


def test_a_worker_that_has_stopped_does_not_call(web: Web, caller: Caller) -> None:
    url = web.on("/hook", OK)
    with pytest.raises(Unavailable, match="was not made: this worker is stopping"):
        caller.call(url, stop=lambda: True)
    assert posts(web) == []


@pytest.mark.parametrize("key", ["", "a b", "a\r\nX-Evil: 1", "ä", "x" * 201])
def test_a_key_cannot_add_a_header(web: Web, caller: Caller, key: str) -> None:
    with pytest.raises(Invalid, match="cannot name a delivery"):
        caller.call(web.on("/hook", OK), key=key)
    assert posts(web) == []


def test_an_empty_secret_is_refused(web: Web, caller: Caller) -> None:
    with pytest.raises(Invalid, match=r"the secret for .* is empty"):
        caller.call(web.on("/hook", OK), "")
    assert posts(web) == []


@pytest.mark.parametrize("url", ["ftp://example.org/hook", "hook", "http://[::1", "http://a:b:c/"])
def test_a_url_that_cannot_be_called(caller: Caller, url: str) -> None:
    with pytest.raises(Invalid, match="cannot be called; write it like https://host/path"):
        caller.call(url)
    assert caller.slept == []


GOOD = signed_by_hand(NOW)
DIGEST = GOOD.partition("v1=")[2]


@pytest.mark.parametrize(
    "header",
    [
        GOOD,
        f"t={NOW // SECOND}, v1={DIGEST}",
        f"t={NOW // SECOND},v1={'0' * 64},v1={DIGEST}",
        f"t={NOW // SECOND},v0=other,v1={DIGEST}",
    ],
)
def test_a_receiver_takes_a_good_signature(header: str) -> None:
    assert verify(SECRET, header, BODY, NOW)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "t=",
        "garbage",
        f"v1={DIGEST}",
        f"t={NOW // SECOND}",
        f"t={NOW // SECOND},v1=",
        f"t={NOW // SECOND},v1={DIGEST[:-1]}",
        f"t={NOW // SECOND},v1={DIGEST.upper()}",
        f"t={NOW // SECOND},v1=ä\udc80",
        f"t={NOW // SECOND},v0={DIGEST}",
        f"t={NOW // SECOND + 1},v1={DIGEST}",
        f"t={NOW // SECOND},t={NOW // SECOND},v1={DIGEST}",
        f"t=-{NOW // SECOND},v1={DIGEST}",
        f"t=٣,v1={DIGEST}",
        f"t={'9' * 5000},v1={DIGEST}",
    ],
)
def test_a_receiver_refuses_a_bad_signature(header: str | None) -> None:
    assert not verify(SECRET, header, BODY, NOW)


def test_a_signature_is_for_one_body_one_secret_and_about_now() -> None:
    assert not verify(SECRET, GOOD, BODY + b" ", NOW)
    assert not verify("other", GOOD, BODY, NOW)
    for late in (-300, 300):
        assert verify(SECRET, GOOD, BODY, NOW + late * SECOND)
    for late in (-301, 301):
        assert not verify(SECRET, GOOD, BODY, NOW + late * SECOND)
        assert verify(SECRET, GOOD, BODY, NOW + late * SECOND, tolerance_seconds=301)


def test_no_secret_is_never_right() -> None:
    assert not verify("", sign("", BODY, NOW), BODY, NOW)


@given(secret=st.text(min_size=1), body=st.binary(), other=st.binary())
def test_only_the_signed_body_verifies(secret: str, body: bytes, other: bytes) -> None:
    header = sign(secret, body, NOW)
    assert verify(secret, header, body, NOW)
    assert verify(secret, header, other, NOW) == (other == body)
