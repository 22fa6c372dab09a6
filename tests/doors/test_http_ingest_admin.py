"""What administrators do to the ingest queue over HTTP, each with its line in the audit log."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.access.keys import Role
from penstock.server.routes.table import CAPABILITIES
from tests.doors.ingesting import WHY, Ingesting, good, ingesting
from tests.doors.serving import API, path
from tests.doors.waiting import until

COLLECTION = {
    *("name", "namespace", "dataset", "owner", "description", "priority", "digests", "filesMax"),
    *("bytesMax", "rowsMax", "callback", "callbackSecret", "mail", "confirm", "storage"),
    *("shoulder", "minting", "places", "lots", "inherited", "keepDays", "held"),
}
BATCH = {
    *("id", "collection", "status", "message", "submitter", "payloadUrl", "payloadName"),
    *("payloadType", "mode", "key", "jobs", "tally", "lastModified", "submittedAt", "lockedBy"),
}
JOB = {
    *("id", "batch", "collection", "status", "lastSuccessfulStatus", "resumesAt", "retryCount"),
    *("message", "priority", "spaceNeeded", "payloadUrl", "payloadName", "payloadType", "mode"),
    *("primaryId", "localIds", "title", "workingFolder", "lastModified", "history", "lockedBy"),
    "download",
}
REPORT = {
    *("number", "kind", "batch", "collection", "submitter", "payloadUrl", "submittedAt"),
    *("lastModified", "successfulJobs", "failedJobs", "newlySuccessful", "stillOpen", "gone"),
    "text",
}
QUEUE = {"tally", "held", "collectionsHeld"}


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Ingesting]:
    with ingesting(database_url, tmp_path / "in") as site:
        site.client.headers.update(site.server.key("boss", Role.ADMIN))
        yield site


def act(site: Ingesting, *segments: str, status: int = 200, **more: Any) -> dict[str, Any]:
    return good(site.client.post(path("ingest", *segments), json=WHY | more), status)


def refused(site: Ingesting, *segments: str, status: int = 409, **more: Any) -> str:
    message: str = act(site, *segments, status=status, **more)["message"]
    return message


def by_boss(site: Ingesting) -> list[tuple[str, str, str]]:
    """What the audit log says of `boss`: what was done to what, and the detail."""
    return [line[1:] for line in site.audit() if line[0] == "boss"]


class Step(NamedTuple):
    """One call: its route below /ingest, what the answer must hold, and what is sent."""

    route: str
    keys: set[str]
    body: Any = None
    query: str = ""
    status: int = 200


PRIORITY = {"priority": 3, **WHY}
ON_A_FAILED_JOB = (
    Step("GET /batches", {"batches"}, query="limit=5"),
    Step("GET /batches/{batch}", BATCH),
    Step("GET /batches/{batch}/jobs", {"jobs"}, query="status=failed"),
    Step("GET /batches/{batch}/report", REPORT),
    Step("GET /jobs", {"jobs", "next"}, query="status=failed&limit=1"),
    Step("GET /failed-jobs", {"jobs"}, query="limit=1"),
    Step("GET /jobs/{ingest_job}", JOB),
    Step("GET /queue", QUEUE),
    Step("GET /collections", {"collections"}),
    Step("GET /collections/{collection}", COLLECTION),
    Step("POST /collections/{collection}/hold", COLLECTION, WHY),
    Step("POST /collections/{collection}/release", COLLECTION, WHY),
    Step("POST /queue/hold", QUEUE, WHY),
    Step("POST /queue/release", QUEUE, WHY),
    Step("POST /queue/release-held", {"released"}, WHY),
    Step("POST /check", {"kind", "jobs", "total", "finding", "error"}, {}),
    Step("POST /jobs/{ingest_job}/priority", JOB, PRIORITY),
    Step("POST /jobs/{ingest_job}/resume", JOB, WHY),
    Step("POST /jobs/{ingest_job}/fail", JOB, WHY),
    Step("POST /batches/{batch}/update-report", BATCH, WHY),
    Step("POST /batches/{batch}/resume", {"resumed", "status"}, WHY),
)
ON_A_STORED_OBJECT = (
    Step("GET /objects", {"objects", "next"}),
    Step("GET /objects/versions", {"versions"}, query="ark={ark}"),
    Step("GET /objects/files", {"files"}, query="ark={ark}&version=1"),
)
ON_A_JOB_THAT_WAITS = (
    Step("POST /payloads/{payload}", {"url", "size", "digests"}, [1], status=201),
    Step("POST /batches", BATCH, {"collection": "maps", "url": "https://x.org/a"}, status=201),
    Step("POST /batches/{batch}/priority", {"changed"}, PRIORITY),
    Step("POST /jobs/{ingest_job}/hold", JOB, WHY),
    Step("POST /jobs/{ingest_job}/release", JOB, WHY),
    Step("POST /batches/{batch}/hold", BATCH, WHY),
    Step("POST /batches/{batch}/release", BATCH, WHY),
    Step("POST /jobs/{ingest_job}/hold", JOB, WHY),
    Step("DELETE /jobs/{ingest_job}", set(), query="confirmed=true&why=x"),
    Step("PUT /collections/{unused}", COLLECTION, {"dataset": "d"}),
    Step("DELETE /collections/{unused}", set()),
)
ON_A_FAILED_BATCH = (Step("DELETE /batches/{batch}", set(), query="confirmed=true&why=x"),)


def test_every_route_answers_with_its_keys(site: Ingesting) -> None:
    served: set[str] = set()

    def take(steps: Iterable[Step], **places: str) -> None:
        places |= {"collection": "maps", "payload": "p.csv", "unused": "unused"}
        for step in steps:
            method, _, template = step.route.partition(" ")
            target = f"{API}/ingest{template}?{step.query}".format(**places)
            answer = site.client.request(method, target, json=step.body)
            assert answer.status_code == step.status, (step.route, answer.text)
            assert set(answer.json()) == step.keys, step.route
            served.add(f"{method} {API}/ingest{template}".replace("unused", "collection"))

    batch, job = site.failed("late.csv")
    site.file("late.csv")
    take(ON_A_FAILED_JOB, batch=batch, ingest_job=job)
    with site.working():
        until(lambda: site.jobs(batch)[0]["status"] == "completed")
    take(ON_A_STORED_OBJECT, ark=site.jobs(batch)[0]["primaryId"])
    batch, job = site.queued(site.file("new.csv"))
    take(ON_A_JOB_THAT_WAITS, batch=batch, ingest_job=job)
    batch, _ = site.failed("gone.csv")
    take(ON_A_FAILED_BATCH, batch=batch)
    assert served == {
        route.name for name, listed in CAPABILITIES if name == "ingest" for route in listed
    }


def test_a_field_that_was_mistyped_is_refused(site: Ingesting) -> None:
    batch, _ = site.queued(site.file("a.csv"))
    act(site, "batches", batch, "hold")
    said = refused(site, "queue", "release-held", status=422, colection="other")
    assert "colection" in said
    assert site.jobs(batch)[0]["status"] == "held"
    assert "until" in refused(site, "queue", "hold", status=422, until="noon")
    assert "unknown field" in refused(site, "check", status=422, repare=True)


def test_the_queue_is_held_and_released(site: Ingesting) -> None:
    batch = site.submit(site.file("a.csv"))["id"]
    held = act(site, "queue", "hold")
    assert (held["held"]["who"], held["held"]["why"]) == ("boss", "asked for")
    assert good(site.client.get(path("ingest", "queue"))) == held
    assert act(site, "queue", "release")["held"] is None
    assert "is not held" in refused(site, "queue", "release")
    with site.working():
        assert site.ended(batch)["status"] == "completed"
    assert by_boss(site) == [
        ("hold queue", "ingest", "asked for"),
        ("release queue", "ingest", "asked for"),
        ("release queue", "ingest", "asked for"),
        ("release queue: refused", "ingest", "queue ingest is not held"),
    ]


def test_a_collection_is_held_and_what_it_held_released(site: Ingesting) -> None:
    held = act(site, "collections", "maps", "hold")["held"]
    assert (held["who"], held["why"]) == ("boss", "asked for")
    queue = good(site.client.get(path("ingest", "queue")))
    assert queue["collectionsHeld"] == [{"name": "maps", **held}]
    batch = site.submit(site.file("a.csv"))["id"]
    with site.working("batch-pending"):
        assert site.ended(batch)["message"] == "collection maps is held by boss: asked for"
    assert "release it first" in refused(site, "batches", batch, "release")
    assert "release it first" in refused(site, "queue", "release-held", collection="maps")
    assert act(site, "queue", "release-held") == {"released": 0}
    assert act(site, "collections", "maps", "release")["held"] is None
    assert act(site, "queue", "release-held", collection="maps") == {"released": 1}
    assert "not held" in refused(site, "collections", "maps", "release")
    for action in ("hold", "release"):
        assert "ghost" in refused(site, "collections", "ghost", action, status=404)
    assert "ghost" in refused(site, "queue", "release-held", collection="ghost", status=404)
    actions = [(action, target) for action, target, _ in by_boss(site)]
    assert actions[0] == ("hold collection", "maps")
    assert ("release all held", "every collection") in actions
    assert ("release collection: refused", "maps") in actions
    assert ("release batch: refused", batch) in actions
    assert not [target for _, target in actions if target == "ghost"]


def test_a_batch_is_held_and_released(site: Ingesting) -> None:
    batch = site.submit(site.file("a.csv"))["id"]
    held = act(site, "batches", batch, "hold")
    assert (held["status"], held["message"]) == ("held", "asked for")
    assert act(site, "batches", batch, "release")["status"] == "pending"
    assert "none of its jobs is held" in refused(site, "batches", batch, "release")
    assert by_boss(site)[:2] == [
        ("hold batch", batch, "asked for"),
        ("release batch", batch, "asked for"),
    ]


def test_a_job_is_held_and_released(site: Ingesting) -> None:
    _, job = site.queued(site.file("a.csv"))
    assert act(site, "jobs", job, "hold")["status"] == "held"
    assert "held" in refused(site, "jobs", job, "hold")
    assert act(site, "jobs", job, "release")["status"] == "pending"
    assert [(action, target) for action, target, _ in by_boss(site)] == [
        ("hold ingest job", job),
        ("hold ingest job", job),
        ("hold ingest job: refused", job),
        ("release ingest job", job),
    ]


def test_a_failed_job_is_resumed_where_it_stopped(site: Ingesting) -> None:
    batch, job = site.failed("late.csv")
    shown = good(site.client.get(path("ingest", "jobs", job)))
    assert (shown["status"], shown["resumesAt"]) == ("failed", "downloading")
    assert "late.csv" in shown["message"]
    site.file("late.csv")
    resumed = act(site, "jobs", job, "resume")
    assert (resumed["status"], resumed["retryCount"]) == ("downloading", 1)
    assert "only a failed job" in refused(site, "jobs", job, "resume")
    with site.working():
        until(lambda: site.jobs(batch)[0]["status"] == "completed")
        assert act(site, "batches", batch, "update-report")["status"] == "update-reporting"
        until(lambda: site.batch(batch)["status"] == "completed")
    report = good(site.client.get(path("ingest", "batches", batch, "report")))
    assert (report["kind"], report["newlySuccessful"]) == ("update", [job])
    assert ("resume ingest job", job, "asked for") in by_boss(site)
    assert ("update report", batch, "asked for") in by_boss(site)


def test_a_batch_is_resumed_and_each_job_says_where_it_goes(site: Ingesting) -> None:
    batch, job = site.failed("late.csv")
    assert act(site, "batches", batch, "resume") == {
        "resumed": [{"job": job, "stage": "downloading", "refused": None}],
        "status": "failed",
    }
    assert act(site, "batches", batch, "resume") == {"resumed": [], "status": "failed"}
    early = site.submit(site.file("bad.checkm", b"nonsense"), type="object_manifest")["id"]
    with site.working():
        site.ended(early)
    (refusal,) = act(site, "batches", early, "resume")["resumed"]
    assert refusal["stage"] is None
    assert "submit it again" in refusal["refused"]
    assert by_boss(site)[0] == ("resume batch", batch, "asked for")


def test_a_report_stays_as_its_depositor_got_it(site: Ingesting) -> None:
    batch, _ = site.failed("late.csv")
    report = path("ingest", "batches", batch, "report")
    told = good(site.client.get(report))
    assert "Failed (1)" in told["text"]
    site.file("late.csv")
    act(site, "batches", batch, "resume")
    with site.working():
        until(lambda: site.jobs(batch)[0]["status"] == "completed")
    assert good(site.client.get(report)) == told
    act(site, "batches", batch, "update-report")
    with site.working():
        site.ended(batch)
    assert "Completed since the report before (1)" in good(site.client.get(report))["text"]


def test_a_batch_that_could_not_be_read_is_read_again(site: Ingesting) -> None:
    batch = site.submit(site.file("cut-off.checkm", b"#%checkm_0.7\n"))["id"]
    with site.working():
        site.ended(batch)
    assert "nothing to report: resume it once" in refused(site, "batches", batch, "update-report")
    assert act(site, "batches", batch, "resume") == {"resumed": [], "status": "pending"}


def test_a_job_is_forced_to_failed(site: Ingesting) -> None:
    batch, job = site.queued(site.file("a.csv"))
    failed = act(site, "jobs", job, "fail")
    assert (failed["status"], failed["message"]) == ("failed", "stopped by boss: asked for")
    assert failed["resumesAt"] == "pending"
    assert "failed" in refused(site, "jobs", job, "fail")
    assert site.batch(batch)["tally"] == {"failed": {"jobs": 1, "bytes": 0}}
    assert by_boss(site)[0] == ("fail ingest job", job, "asked for")


def test_priorities_are_changed(site: Ingesting) -> None:
    batch, job = site.queued(site.file("a.csv"))
    assert act(site, "jobs", job, "priority", priority=7)["priority"] == 7
    assert act(site, "batches", batch, "priority", priority=99) == {"changed": 1}
    assert site.jobs(batch)[0]["priority"] == 99
    for priority in (-1, 100, "high", None):
        for target in (("jobs", job), ("batches", batch)):
            message = refused(site, *target, "priority", status=422, priority=priority)
            assert "priority" in message
    assert by_boss(site) == [
        ("priority 7", job, "asked for"),
        ("priority 99", batch, "asked for"),
    ]


def test_deleting_warns_first(site: Ingesting) -> None:
    batch, job = site.failed("late.csv")
    for target in (path("ingest", "jobs", job), path("ingest", "batches", batch)):
        answer = site.client.delete(target)
        assert answer.status_code == 409
        assert "confirm it" in answer.json()["message"]
        assert site.client.get(target).status_code == 200
        assert good(site.client.delete(target, params={"confirmed": True, "why": "old"})) == {}
        assert site.client.get(target).status_code == 404
    log = [(action, target, detail) for action, target, detail in by_boss(site) if detail == "old"]
    assert log == [("delete ingest job", job, "old"), ("delete batch", batch, "old")]
    assert ("delete batch: refused", batch) in [line[:2] for line in by_boss(site)]


def test_what_is_under_way_is_not_deleted(site: Ingesting) -> None:
    batch, job = site.queued(site.file("a.csv"))
    for target in (path("ingest", "jobs", job), path("ingest", "batches", batch)):
        answer = site.client.delete(target, params={"confirmed": True})
        assert answer.status_code == 409
        assert site.client.get(target).status_code == 200


def test_a_check_finds_nothing_in_a_queue_that_is_well(site: Ingesting) -> None:
    site.failed("late.csv")
    check = path("ingest", "check")
    end = {"kind": "end", "jobs": 0, "total": 0, "finding": None, "error": None}
    assert good(site.client.post(check, json={})) == end
    assert by_boss(site) == []
    assert good(site.client.post(check, json={"repair": True})) == end
    assert by_boss(site) == [("repair", "ingest", "")]


def test_an_action_needs_a_reason_and_something_to_act_on(site: Ingesting) -> None:
    batch, job = site.queued(site.file("a.csv"))
    for target in (("jobs", job, "hold"), ("batches", batch, "hold"), ("queue", "hold")):
        answer = site.client.post(path("ingest", *target), json={})
        assert answer.status_code == 422
        assert "why" in answer.json()["message"]
    for action in ("hold", "release", "resume", "fail"):
        assert "no ingest job" in refused(site, "jobs", "jid9", action, status=404)
    for action in ("hold", "release", "resume", "update-report"):
        assert "no batch" in refused(site, "batches", "bid9", action, status=404)
    assert site.client.delete(path("ingest", "batches", "bid9")).status_code == 404
    assert by_boss(site) == []
