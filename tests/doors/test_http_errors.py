"""What is wrong with a call is said in one form, and never with a traceback."""

import gzip
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog.queries import catalog
from penstock.errors import PenstockError, Unavailable
from penstock.ids import run_id
from penstock.server.errors import STATUS, status_of
from penstock.server.routes.table import ROUTES
from penstock.zookeeper import Address
from tests.contract.zk_wire import Wire
from tests.doors.serving import API, Running, path, post, run_event, running
from tests.doors.waiting import until

NS = f"{API}/namespaces/food"
RUNS = f"{NS}/jobs/etl/runs"
NESTED = b"[" * 65 + b"]" * 65
GZIP = {"content-encoding": "gzip"}


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url, body_bytes_max=100_000) as server:
        post(server.client, run_event("done", eventType="COMPLETE"))
        yield server


def refused(answer: httpx.Response, status: int) -> str:
    """The message of a refusal, which has the one form that all have."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"code", "message"}
    assert body["code"] == status
    assert "Traceback" not in answer.text
    message: str = body["message"]
    return message


BODIES: list[tuple[str, str, Any, int, str]] = [
    ("PUT", NS, b"{", 400, "not JSON"),
    ("PUT", NS, b'{"ownerName": "x"} y', 400, "not JSON"),
    ("PUT", NS, b'{"ownerName": "\xff"}', 400, "not JSON"),
    ("PUT", NS, b'{"ownerName": "\\ud800"}', 400, "half of a surrogate pair"),
    ("POST", RUNS, b'{"args": {"x": "\xed\xa0\x80"}}', 400, "the body is not JSON"),
    ("POST", RUNS, b'{"args": {"\xff": 1}}', 400, "the body is not JSON"),
    ("PUT", NS, b"", 422, "ownerName"),
    ("PUT", NS, b"[]", 422, "object"),
    ("PUT", NS, {"ownerName": 7}, 422, "ownerName"),
    ("PUT", NS, {"ownerName": ""}, 422, "ownerName"),
    ("PUT", NS, b'{"ownerName": 1} x', 400, "not JSON"),
    ("PUT", NS, {"ownerName": "x\x00"}, 422, "NUL"),
    ("PUT", NS, {"ownerName": "x", "description": "\x00"}, 422, "NUL"),
    ("PUT", NS, {"ownerName": "x" * 1025}, 413, "1024"),
    ("PUT", NS, b'{"ownerName":"x","y":' + NESTED + b"}", 413, "deeper"),
    ("PUT", NS, {"ownerName": "x", "description": "x" * 100_000}, 413, "100000"),
    ("PUT", f"{NS}/datasets/d", {"type": "FILE"}, 422, "type: 'FILE' is none of DB_TABLE, STREAM"),
    ("PUT", f"{NS}/datasets/d", {"type": "STREAM", "physicalName": "d"}, 422, "sourceName"),
    (
        "PUT",
        f"{NS}/datasets/d",
        {"type": "STREAM", "physicalName": "d", "sourceName": "s", "fields": [{"name": 1}]},
        422,
        "fields[0].name",
    ),
    (
        "PUT",
        f"{NS}/datasets/d",
        {"type": "STREAM", "physicalName": "d", "sourceName": "nowhere"},
        404,
        "nowhere",
    ),
    ("PUT", f"{NS}/jobs/j", {"type": "DAILY"}, 422, "DAILY"),
    ("PUT", f"{NS}/jobs/j", {"type": "BATCH", "inputs": [{"namespace": "food"}]}, 422, "inputs"),
    ("PUT", f"{NS}/jobs/j", {"type": "BATCH", "runId": "unknown"}, 404, "run"),
    ("POST", f"{NS}/jobs/etl/runs", {"nominalStartTime": "noon"}, 422, "noon"),
    ("POST", f"{NS}/jobs/etl/runs", {"args": []}, 422, "args"),
    ("POST", f"{NS}/jobs/ghost/runs", {}, 404, "ghost"),
    ("POST", f"{API}/lineage", b"{", 400, "not JSON"),
    ("POST", f"{API}/lineage", b"", 400, "not JSON"),
    ("POST", f"{API}/lineage", b'{"eventTime": "\\uD800x"}', 400, "half of a surrogate pair"),
    ("POST", f"{API}/lineage", b'{"eventTime": "\\\\ud800', 400, "truncated"),
    ("POST", f"{API}/lineage", b"[]", 422, "object"),
    ("POST", f"{API}/lineage", {}, 422, "eventTime"),
    ("POST", f"{API}/lineage", run_event(eventTime="noon"), 422, "noon"),
    ("POST", f"{API}/lineage", run_event(eventType="BEGIN"), 422, "BEGIN"),
    ("POST", f"{API}/lineage", run_event(job=None), 422, "job"),
    ("POST", f"{API}/lineage", run_event(x=json.loads(NESTED)), 413, "deeper"),
    ("POST", f"{API}/lineage/batch", b"{}", 422, "array"),
    ("POST", f"{API}/lineage/batch", b"[1,", 400, "not JSON"),
    ("POST", f"{API}/jobs/runs/done/fail", None, 409, "COMPLETED"),
    ("POST", f"{API}/jobs/runs/ghost/start", None, 404, "no run 'ghost'"),
    ("POST", f"{NS}/jobs/other/runs/done/start", None, 404, "no run 'done'"),
    ("POST", f"{API}/jobs/runs/done/complete?at=noon", None, 400, "at"),
]


def test_a_body_that_is_wrong_is_refused_with_the_reason(food: Running) -> None:
    for method, target, body, status, reason in BODIES:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        answer = food.client.request(method, target, content=content)
        assert reason in refused(answer, status), (target, body)


QUERIES = [
    ("events?limit=-1", 400, "limit"),
    ("events?limit=x", 400, "limit"),
    ("events?limit=10001", 400, "10000"),
    ("events?offset=-1", 400, "offset"),
    ("events?offset=99999999999999999999", 400, "offset"),
    ("events?before=yesterday", 400, "before"),
    ("events?sortDirection=sideways", 422, "sideways"),
    ("events?%ff=1", 400, "query string"),
    ("search?q=%00", 400, "NUL"),
    ("search?q=a&sort=SIZE", 422, "SIZE"),
    ("search?q=a&filter=FILE", 422, "filter: 'FILE' is none of DATASET, JOB"),
    (
        "jobs?lastRunStates=NEW&lastRunStates=OLD",
        422,
        "'OLD' is none of ABORTED, COMPLETED",
    ),
    ("lineage", 400, "nodeId"),
    ("lineage?nodeId=", 400, "nodeId"),
    ("lineage?nodeId=nonsense", 422, "nonsense"),
    ("lineage?nodeId=job:food:ghost", 404, "ghost"),
    ("lineage?nodeId=job:food:etl&depth=-1", 400, "depth"),
    (
        "lineage?nodeId=job:food:etl&direction=sideways",
        422,
        "of both, downstream, upstream",
    ),
    ("lineage?nodeId=job:food:etl&asOf=then", 400, "asOf"),
    ("column-lineage?nodeId=dataset:food:raw&withDownstream=perhaps", 400, "withDownstream"),
    ("runlineage/upstream", 400, "runId"),
    ("runlineage/upstream?runId=ghost", 404, "no run 'ghost'"),
    ("jobs/runs/done/facets?type=dataset", 422, "dataset"),
    ("stats/jobs?period=YEAR", 422, "YEAR"),
    ("stats/jobs?timezone=Mars/Olympus", 422, "Mars"),
    ("namespaces/ghost", 404, "ghost"),
    ("namespaces/food/datasets/ghost", 404, "ghost"),
    ("namespaces/food/datasets/raw/versions/V9", 404, "V9"),
    ("namespaces/food/datasets/raw/versions/nonsense", 404, "nonsense"),
    ("namespaces/food/jobs/ghost", 404, "ghost"),
    ("namespaces/food/jobs/etl/versions/nonsense", 404, "nonsense"),
    ("jobs/runs/ghost", 404, "no run 'ghost'"),
    ("jobs/runs/ghost/events", 404, "no run 'ghost'"),
    ("jobs/runs/ghost/family", 404, "no run 'ghost'"),
    ("jobs/runs/ghost/log", 404, "no run 'ghost'"),
    ("sources/ghost", 404, "ghost"),
    ("namespaces/%00", 422, "NUL"),
    ("namespaces/%20", 422, "empty"),
    ("namespaces/%ff", 400, "UTF-8"),
    ("namespaces/" + "x" * 1025, 413, "1024"),
    ("replays/r/steps?first=9223372036854775808", 400, "first"),
    ("nothing/here", 404, "nothing/here"),
]


def test_a_question_that_is_wrong_is_refused_with_the_reason(food: Running) -> None:
    for target, status, reason in QUERIES:
        answer = food.client.get(f"{API}/{target}")
        assert reason in refused(answer, status), target


def test_a_run_that_cannot_move_is_named_once(food: Running) -> None:
    answer = food.client.post(path("jobs", "runs", "done", "fail"))
    assert refused(answer, 409).startswith(f"run {run_id('done')} is COMPLETED")


def test_a_wrong_method_is_refused_with_the_right_ones(food: Running) -> None:
    answer = food.client.patch(f"{API}/namespaces/food")
    refused(answer, 405)
    assert answer.headers["allow"] == "DELETE, GET, POST, PUT"


def test_what_is_not_http_is_refused_as_all_is(food: Running) -> None:
    assert "not HTTP" in refused(food.client.request("FOO", "/"), 400)
    assert food.client.get("/livez").status_code == 200


def test_what_was_refused_left_nothing_behind(food: Running) -> None:
    before = food.client.get(f"{API}/events").json()["totalCount"]
    post_bad = {**run_event("half"), "outputs": [{"namespace": "food", "name": ""}]}
    refused(food.client.post(f"{API}/lineage", json=post_bad), 422)
    assert food.client.get(f"{API}/events").json()["totalCount"] == before
    refused(food.client.get(path("jobs", "runs", "half")), 404)


def test_a_gzip_body_is_unpacked(food: Running) -> None:
    packed = gzip.compress(json.dumps(run_event("packed")).encode())
    answer = food.client.post(f"{API}/lineage", content=packed, headers=GZIP)
    assert answer.status_code == 201
    assert food.client.get(path("jobs", "runs", "packed")).json()["state"] == "RUNNING"


def test_a_gzip_bomb_is_not_unpacked_whole(food: Running) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    answer = food.client.post(f"{API}/lineage", content=bomb, headers=GZIP)
    assert "100000 bytes" in refused(answer, 413)


def test_a_gzip_body_of_several_members_is_unpacked_whole(food: Running) -> None:
    body = json.dumps(run_event("pieces")).encode()
    packed = b"".join(gzip.compress(body[at : at + 100]) for at in range(0, len(body), 100))
    answer = food.client.post(f"{API}/lineage", content=packed, headers=GZIP)
    assert answer.status_code == 201, answer.text
    assert food.client.get(path("jobs", "runs", "pieces")).json()["state"] == "RUNNING"
    members = gzip.compress(b" " * 60_000) * 2
    answer = food.client.post(f"{API}/lineage", content=members, headers=GZIP)
    assert "100000 bytes" in refused(answer, 413)


def test_what_is_not_gzip_is_refused(food: Running) -> None:
    url = f"{API}/lineage"
    body = json.dumps(run_event()).encode()
    assert "not gzip" in refused(food.client.post(url, content=body, headers=GZIP), 400)
    short = gzip.compress(body)[:-9]
    assert "too early" in refused(food.client.post(url, content=short, headers=GZIP), 400)
    cut = gzip.compress(body[:9]) + gzip.compress(body[9:])[:-9]
    assert "too early" in refused(food.client.post(url, content=cut, headers=GZIP), 400)
    more = gzip.compress(body) + b"more"
    assert "not gzip" in refused(food.client.post(url, content=more, headers=GZIP), 400)
    other = {"content-encoding": "br"}
    assert "'br'" in refused(food.client.post(url, content=body, headers=other), 400)


def test_a_body_without_a_length_has_the_same_limit(food: Running) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 1000

    refused(food.client.post(f"{API}/lineage", content=chunks()), 413)
    assert food.client.get("/livez").status_code == 200


def test_a_bug_is_told_by_its_id_and_logged(
    food: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(catalog, "get_namespace", broken)
    with caplog.at_level(logging.ERROR):
        message = refused(food.client.get(NS), 500)
    assert "hunter2" not in message
    case = message.partition("(id ")[2].rstrip(")")
    (record,) = [r for r in caplog.records if case in r.getMessage()]
    assert record.exc_info is not None


def test_a_database_that_does_not_answer_is_a_503(
    food: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise Unavailable("the database does not answer; try again")

    monkeypatch.setattr(food.plane.database, "read", gone)
    answer = food.client.get(NS)
    assert "does not answer" in refused(answer, 503)
    assert answer.headers["retry-after"] == "1"
    refused(food.client.get("/readyz"), 503)
    assert food.client.get("/livez").status_code == 200


def test_a_server_whose_queue_is_away_is_not_ready(
    database_url: str, zookeeper: str, zookeeper_url: str
) -> None:
    chroot = Address.parse(zookeeper_url).chroot
    with (
        Wire(zookeeper) as wire,
        running(database_url, queue=f"zookeeper://{wire.address}{chroot}") as server,
    ):
        assert server.client.get("/readyz").status_code == 200
        wire.cut()
        until(lambda: server.client.get("/readyz").status_code == 503)
        assert "the queue cannot be reached" in refused(server.client.get("/readyz"), 503)
        assert server.client.get("/livez").status_code == 200
        wire.mend()
        until(lambda: server.client.get("/readyz").status_code == 200)


def test_a_full_queue_tells_callers_to_come_back(database_url: str) -> None:
    with running(database_url, queue_length_max=1) as server:
        post(server.client, run_event("first"))
        with ThreadPoolExecutor(8) as callers:
            with server.plane.database.write():  # nobody else writes meanwhile
                sent = [
                    callers.submit(server.client.post, f"{API}/lineage", json=run_event(f"r{i}"))
                    for i in range(8)
                ]
                refusal = next(as_completed(sent)).result()
                refused(refusal, 429)
                assert refusal.headers["retry-after"] == "1"
            answers = [future.result() for future in sent]
        statuses = [answer.status_code for answer in answers]
        assert set(statuses) == {201, 429}
        kept = server.client.get(f"{API}/events").json()["totalCount"]
        assert kept == 1 + statuses.count(201)


def test_every_kind_of_refusal_has_a_status() -> None:
    of_the_doors = ("penstock.errors", "penstock.server")
    kinds = {k for k in PenstockError.__subclasses__() if k.__module__.startswith(of_the_doors)}
    assert kinds == set(STATUS)


def test_a_kind_of_a_kind_of_refusal_has_the_status_of_that_kind() -> None:
    class Elsewhere(Unavailable):
        """The queue is kept elsewhere, and that does not answer."""

    assert status_of(Elsewhere("x")) == STATUS[Unavailable]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)
KNOWN = st.sampled_from(
    [
        *("ownerName", "description", "type", "connectionUrl", "physicalName", "sourceName"),
        *("fields", "tags", "runId", "inputs", "outputs", "location", "id", "args", "name"),
        *("nominalStartTime", "eventTime", "eventType", "run", "job", "dataset", "schemaURL"),
    ]
)
BODIES_OF_ANY_KIND = st.one_of(
    st.binary(max_size=40),
    st.dictionaries(KNOWN, JSON_VALUES, max_size=6).map(lambda value: json.dumps(value).encode()),
    JSON_VALUES.map(lambda value: json.dumps(value).encode()),
)
NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(["food", "etl", "raw", "done", "V1"])
WRITES = [route for route in ROUTES if route.method != "GET" and "/keys" not in route.path]


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(ROUTES), st.data())
def test_no_input_makes_an_internal_error(food: Running, route: Any, data: st.DataObject) -> None:
    names = data.draw(st.tuples(*(NAMES for _ in route.variables)))
    segments = iter(names)
    parts = [next(segments) if part[:1] == "{" else part for part in route.path.split("/")[1:]]
    query = data.draw(
        st.dictionaries(
            st.sampled_from(["limit", "offset", "q", "nodeId", "runId", "depth", "at", "asOf"]),
            st.text(max_size=12),
            max_size=3,
        )
    )
    target = path(*parts).removeprefix(API)
    body = data.draw(BODIES_OF_ANY_KIND) if route in WRITES else None
    # Some answers are streams without an end: it is not waited for.
    with food.client.stream(route.method, target, params=query, content=body) as answer:
        assert answer.status_code < 500, (route.name, target, query, body)
