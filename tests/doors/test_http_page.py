"""The page is served at `/` beside the API, and a hint tells it that something has changed."""

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.server.pages import Site
from penstock.server.responses import Message, Receive, Scope, Send
from penstock.web.files import Files
from tests.doors.serving import API, Running, post, run_event, running

PAGE = b"<!doctype html><title>page</title>"
SCRIPT = b"export {};" * 100
HTML = {"accept": "text/html,*/*"}


async def api(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers as the API does when there is nothing."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"the API answers"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(PAGE)
    (tmp_path / "assets" / "a-1234.js.gz").write_bytes(gzip.compress(SCRIPT))
    return tmp_path


def get(folder: Path, path: str, **headers: str) -> httpx.Response:
    site = Site(api, frozenset({"api"}), Files(folder))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=site)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def test_the_page_is_at_the_top_and_at_every_address_that_it_draws(folder: Path) -> None:
    for path in ("/", "/datasets/s3%3A%2F%2Flake/a%2Fb", "/jobs"):
        answer = get(folder, path, **HTML)
        assert (answer.status_code, answer.content) == (200, PAGE)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_what_is_not_a_page_is_the_apis(folder: Path) -> None:
    for path, headers in (("/api/v1/x", HTML), ("/jobs", {"accept": "application/json"})):
        assert get(folder, path, **headers).text == "the API answers"


def test_a_file_with_its_digest_in_its_name_is_kept_for_ever(folder: Path) -> None:
    answer = get(folder, "/assets/a-1234.js", **{"accept-encoding": "gzip"})
    assert answer.content == SCRIPT
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/javascript")
    plain = get(folder, "/assets/a-1234.js", **{"accept-encoding": "identity"})
    assert plain.content == SCRIPT
    assert "content-encoding" not in plain.headers


def test_a_file_is_unpacked_once_for_all_clients(folder: Path) -> None:
    site = Site(api, frozenset({"api"}), Files(folder))
    request = {"method": "GET", "path": "/assets/a-1234.js", "headers": [], "http_version": "1.0"}
    scope = {"type": "http", **request}
    messages: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the page reads no body")

    async def send(message: Message) -> None:
        messages.append(message)

    for _ in range(2):
        asyncio.run(site(scope, receive, send))

    first, second = (each["body"] for each in messages if each["type"] == "http.response.body")
    assert first == SCRIPT
    assert first is second


def test_what_the_browser_has_is_not_sent_again(folder: Path) -> None:
    etag = get(folder, "/").headers["etag"]
    again = get(folder, "/", **{"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")


def test_no_path_leads_out_of_the_folder(folder: Path) -> None:
    (folder.parent / "secret.txt").write_text("secret")
    for path in ("/../secret.txt", "/assets/..%2F..%2Fsecret.txt", "/%2e%2e/secret.txt"):
        assert "secret" not in get(folder, path, **{"accept": "*/*"}).text


def test_without_a_build_it_says_what_to_do(tmp_path: Path) -> None:
    answer = get(tmp_path / "nothing", "/", **HTML)
    assert answer.status_code == 503
    assert "make setup" in answer.text


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def test_whoever_follows_the_pulse_is_told_of_a_write(food: Running) -> None:
    with food.client.stream("GET", f"{API}/pulse") as pulse:
        lines = pulse.iter_lines()
        assert next(lines) == ": following"
        before = int(next(lines).removeprefix("id: "))
        with httpx.Client(base_url=food.server.url, verify=False) as other:
            post(other, run_event())
        told = next(line for line in lines if line.startswith("id: "))
        assert int(told.removeprefix("id: ")) > before
        assert next(lines) == "event: changed"


def test_the_server_sends_the_page_that_was_built(food: Running) -> None:
    answer = food.client.get("/", headers=HTML)
    assert answer.status_code == 200, "run: scripts/ui"
    assert '<div id="root">' in answer.text


def test_a_standing_tells_of_failed_and_held_lots(food: Running) -> None:
    client = food.client
    at = f"{API}/namespaces/food/jobs/bake"
    wiring = {"inputs": [{"namespace": "food", "name": "dough"}], "outputs": []}
    assert client.put(f"{at}/wiring", json=wiring).is_success
    lots = {"lots": ["1", "2", "3"]}
    assert client.post(f"{API}/namespaces/food/datasets/dough/lots", json=lots).is_success
    assert client.post(f"{at}/lots/1/hold", json={"why": "too wet"}).is_success
    claimed = client.post(f"{at}/claims", json={"owner": "me", "lots": ["2"]}).json()["claims"][0]
    ended = {"token": claimed["token"], "error": "burnt"}
    assert client.post(f"{API}/claims/{claimed['id']}/fail", json=ended).is_success
    now = client.get(f"{API}/standing").json()
    assert {each["lot"]: each["held"] for each in now["stuck"]} == {
        "1": "local: too wet",
        "2": None,
    }
    assert {each["lot"]: each["error"] for each in now["stuck"]} == {"1": "", "2": "burnt"}
    work = now["work"][0]
    assert (work["job"], work["ready"], work["held"], work["retryable"]) == ("bake", 1, 1, 1)
    assert client.get(f"{at}/standing").json()["isArc"] is False
    assert client.get(f"{API}/namespaces/food/datasets/dough/standing").json() == {
        **{"held": None, "interval": None},
    }


def test_a_run_is_shown_with_those_that_it_began(food: Running) -> None:
    parent = "00000000-0000-7000-8000-000000000001"
    child = "00000000-0000-7000-8000-000000000002"
    post(food.client, run_event(parent, inputs=[], outputs=[]))
    facet = {
        "_producer": "https://example.org/tests",
        "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/ParentRunFacet.json",
        "run": {"runId": parent},
        "job": {"namespace": "food", "name": "etl"},
    }
    job = {"namespace": "food", "name": "etl.step"}
    event = run_event(child, job=job, inputs=[], outputs=[])
    post(food.client, {**event, "run": {"runId": child, "facets": {"parent": facet}}})
    family = food.client.get(f"{API}/jobs/runs/{parent}/family").json()
    assert [(each["id"], each["parent"], each["depth"]) for each in family["runs"]] == [
        (parent, None, 0),
        (child, parent, 1),
    ]
