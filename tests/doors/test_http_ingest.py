"""Batches over HTTP: submitted, looked at, and what is stored of them."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import Unavailable
from penstock.schema.admin import KeyRole
from penstock.server.routes.table import CAPABILITIES
from tests.databases import sqlite_database
from tests.doors.ingesting import WHY, Ingesting, good, ingesting
from tests.doors.serving import API, path

BATCHES = path("ingest", "batches")
JOBS = path("ingest", "jobs")
OBJECTS = path("ingest", "objects")
CONTENT = b"a,b\n1,2\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Ingesting]:
    with ingesting(database_url, tmp_path / "in") as site:
        yield site


def refused(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"code", "message"}
    message: str = answer.json()["message"]
    return message


def test_a_file_is_submitted_ingested_reported_and_stored(site: Ingesting) -> None:
    erc = {"who": "Jo", "what": "Roads", "when": "2026"}
    digest = {"algorithm": "sha-256", "value": SHA256.upper()}
    url = site.file("roads.csv", CONTENT)
    batch = site.submit(url, localId="r1; r2", erc=erc, digest=digest, size=len(CONTENT))
    assert (batch["status"], batch["submitter"], batch["tally"]) == ("pending", "local", {})
    assert (batch["payloadUrl"], batch["payloadType"], batch["mode"]) == (url, "file", "add")
    early = site.client.get(f"{BATCHES}/{batch['id']}/report")
    assert "it has a report once" in refused(early, 404)
    with site.working():
        done = site.ended(batch["id"])
    assert (done["status"], done["jobs"], done["message"]) == ("completed", 1, "")
    assert done["tally"] == {"completed": {"jobs": 1, "bytes": len(CONTENT)}}
    (job,) = site.jobs(batch["id"])
    assert (job["status"], job["lastSuccessfulStatus"]) == ("completed", "notify")
    assert (job["title"], job["localIds"], job["resumesAt"]) == ("Roads", ["r1", "r2"], None)
    assert [step["status"] for step in job["history"]][:2] == ["pending", "estimating"]
    assert good(site.client.get(f"{JOBS}/{job['id']}")) == job
    report = good(site.client.get(f"{BATCHES}/{batch['id']}/report"))
    assert (report["kind"], report["successfulJobs"]) == ("status", [job["id"]])
    assert "1 completed, 0 failed" in report["text"]
    assert job["primaryId"] in report["text"]
    (stored,) = good(site.client.get(OBJECTS))["objects"]
    assert (stored["ark"], stored["version"], stored["job"]) == (job["primaryId"], 1, job["id"])
    of_ark = {"ark": stored["ark"]}
    for ark in (stored["ark"], stored["ark"].replace("ark:/", "ark:")):
        versions = good(site.client.get(f"{OBJECTS}/versions", params={"ark": ark}))
        assert versions == {"versions": [stored]}
    files = good(site.client.get(f"{OBJECTS}/files", params={**of_ark, "version": 1}))["files"]
    sha512 = hashlib.sha512(CONTENT).hexdigest()
    roads = {"name": "producer/roads.csv", "size": 8, "sha512": sha512}
    assert roads | {"lastModified": None, "mimeType": None} in files
    assert files == good(site.client.get(f"{OBJECTS}/files", params=of_ark))["files"]
    run = good(site.client.get(path("jobs", "runs", stored["runId"])))
    assert run["state"] == "COMPLETED"
    assert good(site.client.get(path("namespaces", "geo", "datasets", "maps")))


BAD_URLS = [
    ("http://127.0.0.1/x", 422, "not a public address"),
    ("http://[::1]:8080/x", 422, "not a public address"),
    ("http://169.254.169.254/latest", 422, "not a public address"),
    ("file:///etc/passwd", 422, "listed places"),
    ("file:///etc/%2e%2e/passwd", 422, "listed places"),
    ("s3://bucket/key", 422, "listed places"),
    ("ftp://example.org/x", 422, "use http, https, s3, file"),
    ("javascript:alert(1)", 422, "use http"),
    ("https://jo:hunter2@example.org/x", 422, "user name or password"),
    ("nonsense", 422, "nonsense"),
    ("http://", 422, "names no host"),
    ("", 422, "url"),
    ("http://example.org/" + "x" * 8_000, 422, "url"),
    ("payload:no/such", 404, "upload it first"),
    ("payload:../ocfl/x", 422, "'..'"),
    ("payload:", 422, "key of an object"),
]


def test_a_url_that_may_not_be_fetched_is_refused_at_once(site: Ingesting) -> None:
    for url, status, reason in BAD_URLS:
        answer = site.client.post(BATCHES, json={"collection": "maps", "url": url})
        assert reason in refused(answer, status), url
        assert "hunter2" not in answer.text
    assert good(site.client.get(BATCHES)) == {"batches": []}


BAD_BODIES: list[tuple[dict[str, Any], int, str]] = [
    ({"collection": "ghost"}, 404, "there is no collection 'ghost'"),
    ({"collection": "x" * 2_000}, 422, "collection"),
    ({"collection": ""}, 422, "collection"),
    ({"type": "folder"}, 422, "folder"),
    ({"mode": "replace"}, 422, "replace"),
    ({"name": "../up"}, 422, "leaves its folder"),
    ({"name": "a\nb"}, 422, "control character"),
    ({"digest": {"algorithm": "crc32", "value": "00"}}, 422, "crc32"),
    ({"digest": {"algorithm": "md5", "value": "00"}}, 422, "32 hexadecimal digits"),
    ({"digest": {"algorithm": "sha-256"}}, 422, "value"),
    ({"size": -1}, 422, "size"),
    ({"size": 2**63}, 422, "size"),
    ({"primaryId": "doi:10.1/x"}, 422, "is not an ARK; write it like ark:/99999/"),
    ({"primaryId": "ark:/99999/../x y"}, 422, "is not an ARK"),
    ({"primaryId": "ark:/99999/../x"}, 422, "is not an ARK"),
    ({"primaryId": "ark:/999/x"}, 422, "is not an ARK"),
    ({"primaryId": "ark:/99999/x\n"}, 422, "is not an ARK"),
    ({"erc": {"who": 7}}, 422, "erc.who"),
    ({"clear": ["whom"]}, 422, "clear"),
    ({"clear": ["what"], "erc": {"what": "Roads"}}, 422, "what is both given and cleared"),
    ({"key": ""}, 422, "key"),
    ({"submitter": "x\x00"}, 422, "NUL"),
    ({"url": None}, 422, "url"),
    ({"primary_id": "ark:/99999/fk4x"}, 422, "primary_id"),
    ({"digets": {"algorithm": "md5", "value": "0" * 32}}, 422, "digets"),
    ({"digest": {"algorithm": "md5", "value": "0" * 32, "size": 1}}, 422, "size"),
    ({"erc": {"whom": "Jo"}}, 422, "whom"),
]


def test_a_submission_that_cannot_be_is_refused_with_the_reason(site: Ingesting) -> None:
    url = site.file("a.csv")
    for change, status, reason in BAD_BODIES:
        answer = site.client.post(BATCHES, json={"collection": "maps", "url": url, **change})
        assert reason in refused(answer, status), change
    assert good(site.client.get(BATCHES)) == {"batches": []}


def test_secrets_of_a_url_are_never_shown(site: Ingesting) -> None:
    url = "https://example.org/roads.zip?signature=hunter2#x"
    batch = site.submit(url)
    assert batch["payloadUrl"] == "https://example.org/roads.zip"
    assert (batch["payloadName"], batch["payloadType"]) == ("roads.zip", "container")
    assert "hunter2" not in site.client.get(BATCHES).text


def test_lists_of_batches_are_narrowed_and_paged(site: Ingesting) -> None:
    site.put_collection("other")
    mine = [site.submit(site.file(f"{n}.csv"))["id"] for n in range(3)]
    theirs = site.submit(site.file("o.csv"), "other")["id"]

    def ids(**query: Any) -> list[str]:
        return [batch["id"] for batch in listed(site, **query)]

    assert ids() == [theirs, *reversed(mine)]
    assert ids(limit=2) == [theirs, mine[2]]
    assert ids(limit=2, before=mine[2]) == [mine[1], mine[0]]
    assert ids(limit=0) == []
    assert ids(collection="other") == [theirs]
    assert ids(collection="ghost") == []
    assert ids(status="completed", collection="maps") == []


def listed(site: Ingesting, **query: Any) -> list[dict[str, Any]]:
    batches: list[dict[str, Any]] = good(site.client.get(BATCHES, params=query))["batches"]
    return batches


def test_batches_in_lists_have_their_tallies(site: Ingesting) -> None:
    ids = [site.queued(site.file(f"{n}.csv"))[0] for n in range(2)]
    fresh = site.submit(site.file("new.csv"))["id"]
    tallies = {batch["id"]: batch["tally"] for batch in listed(site)}
    waiting = {"pending": {"jobs": 1, "bytes": 0}}
    assert tallies == {ids[0]: waiting, ids[1]: waiting, fresh: {}}
    assert listed(site, limit=1) == [site.batch(fresh)]


def test_failed_jobs_are_listed_in_the_order_of_their_turns(site: Ingesting) -> None:
    site.put_collection("other", priority=1)
    _, late = site.failed("a.csv")
    _, early = site.failed("b.csv", collection="other")
    found = good(site.client.get(JOBS))
    assert [job["id"] for job in found["jobs"]] == [early, late]
    assert found["next"] is None
    assert found["jobs"][0]["resumesAt"] == "downloading"
    first = good(site.client.get(JOBS, params={"limit": 1}))
    assert [job["id"] for job in first["jobs"]] == [early]
    second = good(site.client.get(JOBS, params={"limit": 1, "after": first["next"]}))
    assert [job["id"] for job in second["jobs"]] == [late]
    rest = good(site.client.get(JOBS, params={"limit": 1, "after": second["next"]}))
    assert rest == {"jobs": [], "next": None}
    mine = good(site.client.get(JOBS, params={"collection": "maps"}))
    assert [job["id"] for job in mine["jobs"]] == [late]
    assert good(site.client.get(JOBS, params={"status": "held"}))["jobs"] == []
    assert "a dash" in refused(site.client.get(JOBS, params={"after": "soon"}), 400)
    assert "lost" in refused(site.client.get(JOBS, params={"status": "lost"}), 422)


def test_objects_of_one_moment_stay_together_when_lists_are_paged(site: Ingesting) -> None:
    batches = [site.submit(site.file(f"{n}.csv", b"%d" % n))["id"] for n in range(5)]
    with site.working():
        for batch in batches:
            site.ended(batch)
    whole = good(site.client.get(OBJECTS))
    assert (len(whole["objects"]), whole["next"]) == (5, None)
    paged: list[dict[str, Any]] = []
    before: str | None = ""
    while before is not None:
        query = {"collection": "maps", "limit": "2"} | ({"before": before} if before else {})
        page = good(site.client.get(OBJECTS, params=query))
        paged += page["objects"]
        before = page["next"]
    assert paged == whole["objects"]
    assert good(site.client.get(OBJECTS, params={"limit": 0}))["objects"] == []
    assert "before" in refused(site.client.get(OBJECTS, params={"before": "noon"}), 400)


NOWHERE = [
    (f"{BATCHES}/bid9999999999", "there is no batch"),
    (f"{BATCHES}/bid9999999999/jobs", "there is no batch"),
    (f"{BATCHES}/bid9999999999/report", "there is no batch"),
    (f"{JOBS}/jid9999999999", "there is no ingest job"),
    (f"{OBJECTS}/versions?ark=ark:/99999/fk4x", "nothing is stored"),
    (f"{OBJECTS}/files?ark=ark:/99999/fk4x", "nothing is stored"),
    (path("ingest", "collections", "ghost"), "there is no collection"),
]


def test_what_is_not_there_is_said_to_be_missing(site: Ingesting) -> None:
    for target, reason in NOWHERE:
        assert reason in refused(site.client.get(target), 404), target
    assert "ark" in refused(site.client.get(f"{OBJECTS}/versions"), 400)
    assert "version" in refused(site.client.get(f"{OBJECTS}/files?ark=x&version=0"), 400)


def test_metrics_count_jobs_by_stage_and_name_no_collection(site: Ingesting) -> None:
    site.put_collection("secretname")
    site.queued(site.file("a.csv"), collection="secretname")
    text = site.client.get("/metrics").text
    assert 'penstock_ingest_jobs{stage="pending"} 1.0' in text
    assert 'penstock_ingest_jobs{stage="failed"} 0.0' in text
    assert "secretname" not in text


def test_a_queue_that_does_not_answer_leaves_the_rest_alone(
    site: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*args: object, **options: object) -> None:
        raise Unavailable("the queue does not answer; try again")

    monkeypatch.setattr(site.server.plane.context.store, "tally", gone)
    assert "does not answer" in refused(site.client.get(path("ingest", "queue")), 503)
    text = good_text(site, "/metrics")
    assert "penstock_ingest_jobs{" not in text
    assert "penstock_queue_length" in text


def good_text(site: Ingesting, target: str) -> str:
    answer = site.client.get(target)
    assert answer.status_code == 200
    return answer.text


OURS = [route for name, listed in CAPABILITIES if name == "ingest" for route in listed]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        *("url", "type", "mode", "name", "digest", "size", "primaryId", "localId", "erc"),
        *("clear", "submitter", "key", "why", "priority", "repair", "namespace", "owner", "places"),
        *("callback", "callbackSecret", "mail", "storage", "shoulder", "keepDays", "filesMax"),
    ]
)
PIECES = st.lists(
    st.sampled_from(
        ["http", "file", "s3", "payload", ":", "//", "/", "..", "%", "@", "?", "[", "é"]
    ),
    max_size=8,
).map("".join)
HOSTILE = st.text(min_size=1, max_size=12) | PIECES.filter(bool)
KNOWN_NAMES = st.sampled_from(["maps", "bid0000000001", "jid0000000001"])


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(OURS), st.data())
def test_no_input_makes_an_internal_error(site: Ingesting, route: Any, data: st.DataObject) -> None:
    names = iter(data.draw(st.tuples(*(HOSTILE | KNOWN_NAMES for _ in route.variables))))
    parts = [next(names) if part[:1] == "{" else part for part in route.path.split("/")[1:]]
    required = {"collection": "maps", "dataset": "d", "url": data.draw(HOSTILE), **WHY}
    body = data.draw(
        st.dictionaries(FIELDS, JSON_VALUES | HOSTILE, max_size=3).map(lambda more: required | more)
        | JSON_VALUES
    )
    keys = st.sampled_from(["status", "collection", "limit", "before", "after", "ark", "version"])
    query = data.draw(st.dictionaries(keys, HOSTILE, max_size=3))
    content = None if route.method == "GET" else json.dumps(body).encode()
    target = path(*parts).removeprefix(API)
    answer = site.client.request(route.method, target, params=query, content=content)
    assert answer.status_code < 500, (route.name, query, body, answer.text)


def test_a_submitter_is_who_the_key_says_unless_told_otherwise(site: Ingesting) -> None:
    jo = site.server.key("jo", KeyRole.WRITER)
    body = {"collection": "maps", "url": site.file("a.csv")}
    batch = good(site.client.post(BATCHES, json=body, headers=jo), 201)
    assert batch["submitter"] == "jo"
    named = good(site.client.post(BATCHES, json=body | {"submitter": "ann"}, headers=jo), 201)
    assert named["submitter"] == "ann"


HOSTILE_IDS = ["%2E%2E", "a%2Fb", "%2F", "x%0Ay", "%E2%80%AE", "x" * 1000, "bid", "%F0%9F%9C%81"]


def test_the_queue_may_be_in_zookeeper(zookeeper_url: str, tmp_path: Path) -> None:
    database = sqlite_database(tmp_path / "penstock.db")
    with ingesting(database, tmp_path / "in", queue=zookeeper_url) as site:
        failed, job = site.failed("late.csv")
        body = {"collection": "maps", "url": site.file("a.csv"), "key": "once"}
        fresh = good(site.client.post(BATCHES, json=body), 201)
        assert good(site.client.post(BATCHES, json=body), 200)["id"] == fresh["id"]
        assert [(b["id"], list(b["tally"])) for b in listed(site)] == [
            (fresh["id"], []),
            (failed, ["failed"]),
        ]
        assert [b["id"] for b in listed(site, status="failed", collection="maps")] == [failed]
        assert [b["id"] for b in listed(site, before=fresh["id"])] == [failed]
        assert site.batch(failed)["tally"]["failed"]["jobs"] == 1
        found = good(site.client.get(JOBS, params={"limit": 1}))
        assert [each["id"] for each in found["jobs"]] == [job]
        rest = good(site.client.get(JOBS, params={"after": found["next"]}))
        assert rest == {"jobs": [], "next": None}
        assert fresh["id"] in refused(
            site.client.delete(path("ingest", "collections", "maps")), 409
        )
        for name in HOSTILE_IDS:
            for where, what in (("batches", "batch"), ("jobs", "ingest job")):
                status = 422 if name == "%2E%2E" else 404  # a folder in a path names nothing
                answer = site.client.get(path("ingest", where) + f"/{name}")
                said = "means a folder" if status == 422 else f"no {what}"
                assert said in refused(answer, status), name
                assert site.client.delete(path("ingest", where) + f"/{name}").status_code == status
            for query in ("before", "collection", "status"):
                assert site.client.get(f"{BATCHES}?{query}={name}").status_code in (200, 422)
            assert site.client.get(f"{BATCHES}/{failed}/jobs?after={name}").status_code == 200
            assert site.client.get(f"{JOBS}?after=01-{name}").status_code in (200, 400)
        checked = site.client.post(path("ingest", "check"), json={}).text.splitlines()
        assert [json.loads(step)["kind"] for step in checked] == ["progress", "end"]
        assert 'penstock_ingest_jobs{stage="failed"} 1.0' in good_text(site, "/metrics")
