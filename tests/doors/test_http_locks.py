"""Claims over HTTP: found, taken, kept, ended, and who holds what."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.clock import SECOND, parse_time
from penstock.schema.admin import KeyRole
from penstock.server.routes.table import CAPABILITIES
from tests.doors.serving import API, Running, path, running

OURS = {"lots", "work", "claims"}
JOB = path("namespaces", "shop", "jobs", "load")
RAW = path("namespaces", "shop", "datasets", "raw")
WIRES = {
    "inputs": [{"namespace": "shop", "name": "raw"}],
    "outputs": [{"namespace": "shop", "name": "clean"}],
}

WIRING = {
    *("namespace", "job", "inputs", "outputs", "leaseSeconds", "triesMax", "backOffSeconds"),
    *("enforced", "stale", "held", "createdAt", "updatedAt", "heldThrough"),
}
CLAIM = {
    *("id", "token", "namespace", "job", "lot", "owner", "attempt", "attemptsMax"),
    *("leaseSeconds", "leaseUntil", "inputs", "outputs"),
}
WORK = {
    *("namespace", "job", "lot", "state", "priority", "attempts", "attemptsMax", "token", "claim"),
    *("owner", "leaseUntil", "notBefore", "since", "error", "staleSince"),
}
LOT = {
    *("namespace", "dataset", "lot", "status", "version", "job", "run", "since", "locks"),
    "consumers",
}
WHY = {
    "namespace",
    "job",
    "lot",
    "state",
    "runnable",
    "sentence",
    "reasons",
    "causes",
    "followed",
    "roots",
}
STOPPED = {"id", "state", "notBefore"}


@dataclass(frozen=True)
class Step:
    """One call: its route, and what the answer must hold. A body's `token` is the last claim's."""

    route: str
    keys: set[str]
    body: Any = None
    query: str = ""


OF_JOB = "/namespaces/{namespace}/jobs/{job}"
OF_WORK = f"{OF_JOB}/lots/{{lot}}"
OF_DATASET = "/namespaces/{namespace}/datasets/{dataset}"
OF_LOT = f"{OF_DATASET}/lots/{{lot}}"
BECAUSE = {"why": "a test"}
OWNED = {"owner": "w1"}
CLAIMED = Step(f"POST {OF_JOB}/claims", {"claims", "why", "ended"}, OWNED)
STEPS = (
    Step(f"PUT {OF_JOB}/wiring", WIRING, WIRES | {"backOffSeconds": 0}),
    Step(f"GET {OF_JOB}/wiring", WIRING),
    Step(f"POST {OF_DATASET}/lots", {"registered"}, {"lots": ["9"]}),
    Step(f"GET {OF_DATASET}/lots", {"lots", "totalCount"}, query="limit=5"),
    Step(f"GET {OF_LOT}", LOT),
    CLAIMED,
    Step("GET /locks", {"locks", "totalCount"}, query="namespace=shop&job=load&lot=9"),
    Step("GET /claims/{claim}", CLAIM | {"state"}),
    Step("POST /claims/{claim}/heartbeat", {"id", "leaseUntil"}, {"token": 1}),
    Step("POST /claims/{claim}/release", STOPPED, {"token": 1}),
    CLAIMED,
    Step("POST /claims/{claim}/fail", STOPPED, {"token": 2, "error": "boom"}),
    CLAIMED,
    Step("POST /claims/fail", {"ended"}, {"claims": [{"id": "x", "token": 1}], "error": "boom"}),
    Step("POST /claims/complete", {"ended"}, {"claims": [{"id": "x", "token": 1}]}),
    Step(f"POST {OF_WORK}/end-claim", WORK, BECAUSE),
    CLAIMED,
    Step("POST /claims/{claim}/complete", {"id", "versions"}, {"token": 4}),
    Step(f"GET {OF_JOB}/lots", {"lots", "totalCount"}, query="state=DONE"),
    Step(f"GET {OF_WORK}", WORK),
    Step(f"GET {OF_WORK}/why", WHY),
    Step(f"GET {OF_JOB}/log", {"entries"}, query="limit=2&lot=9"),
    Step(f"GET {OF_LOT}/log", {"entries"}),
    Step("GET /jobs/runs/{run}/log", {"entries"}),
    Step(f"POST {OF_JOB}/resubmit", {"lots", "totalCount"}, BECAUSE | {"lots": ["9"]}),
    Step(f"POST {OF_WORK}/resubmit", WORK, BECAUSE),
    Step(f"POST {OF_WORK}/priority", WORK, BECAUSE | {"priority": 5}),
    Step(f"POST {OF_WORK}/hold", WORK, BECAUSE),
    Step(f"POST {OF_WORK}/release", WORK, BECAUSE),
    Step(f"POST {OF_JOB}/hold", WIRING, BECAUSE),
    Step(f"POST {OF_JOB}/release", {*WIRING, "stoppedBy"}, BECAUSE),
    Step(f"POST {OF_DATASET}/hold", {"namespace", "name", "held"}, BECAUSE),
    Step(f"POST {OF_DATASET}/release", {"namespace", "name", "held", "stoppedBy"}, BECAUSE),
    Step(f"POST {OF_LOT}/hold", {*LOT, "heldBefore"}, BECAUSE),
    Step(f"GET {OF_LOT}/hold", {"kind", "who", "why", "since", "source", "job", "command"}),
    Step("GET /held-lots", {"lots", "totalCount"}, query="namespace=shop"),
    Step(f"POST {OF_LOT}/release", LOT, BECAUSE),
    Step(f"GET {OF_LOT}/checks", {"checks"}),
    Step(f"GET {OF_DATASET}/checks", {"checks"}),
    Step("GET /stale", {"lots"}, query="namespace=shop&job=load"),
)
ACCEPT = f"POST {API}{OF_LOT}/accept"  # of a lot whose checks failed; see test_http_quality


@pytest.fixture
def shop(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def wired(shop: Running) -> Running:
    """A job that reads raw and writes clean; lots 2, 9 and 10 of raw are there."""
    assert shop.client.put(f"{JOB}/wiring", json=WIRES | {"backOffSeconds": 60}).is_success
    assert shop.client.post(f"{RAW}/lots", json={"lots": ["10", "9", "2"]}).is_success
    return shop


def call(server: Running, target: str, **body: Any) -> Any:
    answer = server.client.post(target, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def claim(server: Running, **body: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call(server, f"{JOB}/claims", owner="w1", **body)["claims"]
    return found


def of_claim(claimed: dict[str, Any], action: str) -> str:
    return path("claims", claimed["id"], action)


def test_every_route_answers_with_its_keys(shop: Running) -> None:
    places = {"namespace": "shop", "job": "load", "dataset": "raw", "lot": "9"}
    served: set[str] = set()
    for step in STEPS:
        method, _, template = step.route.partition(" ")
        target = f"{API}{template.format(**places)}?{step.query}"
        answer = shop.client.request(method, target, json=step.body)
        assert answer.status_code == 200, (step.route, answer.text)
        value = answer.json()
        assert set(value) == step.keys, step.route
        for claimed in value.get("claims", ()):
            assert set(claimed) == CLAIM
            places |= {"claim": claimed["id"], "run": claimed["id"]}
        served.add(f"{method} {API}{template}")
    assert served | {ACCEPT} == {
        route.name for name, listed in CAPABILITIES if name in OURS for route in listed
    }


def test_work_is_found_oldest_first_or_newest_first(wired: Running) -> None:
    assert [found["lot"] for found in claim(wired, count=2)] == ["2", "9"]
    call(wired, f"{RAW}/lots", lots=["11", "12"])
    assert [found["lot"] for found in claim(wired, order="newest")] == ["12"]
    call(wired, f"{RAW}/lots", lots=["99"], priority=7)
    assert [found["lot"] for found in claim(wired, count=9)] == ["99", "10", "11"]


def test_a_claim_that_is_refused_states_nothing(shop: Running) -> None:
    for lots, status in ((["a/b"], 422), (["nothing"], 409)):
        answer = shop.client.post(f"{JOB}/claims", json={"owner": "w", "lots": lots, **WIRES})
        assert answer.status_code == status, answer.text
        assert shop.client.get(JOB).status_code == 404


def test_a_claim_is_a_run_with_its_inputs_pinned(wired: Running) -> None:
    (found,) = claim(wired, leaseSeconds=30)
    run = wired.client.get(path("jobs", "runs", found["id"])).json()
    assert (run["state"], run["facets"]) == (
        "RUNNING",
        {"penstock_lot": {"lot": "2", "attempt": 1}},
    )
    pinned = [read["datasetVersionId"] for read in run["inputDatasetVersions"]]
    assert pinned == found["inputs"]
    assert found["outputs"] == WIRES["outputs"]
    assert (found["token"], found["attempt"], found["leaseSeconds"]) == (1, 1, 30)


def test_a_claim_can_wire_its_job_on_the_way(shop: Running) -> None:
    answer = call(shop, f"{JOB}/claims", owner="w1", **WIRES)
    assert answer["claims"] == []
    assert "has nothing to do" in answer["why"]["summary"]
    assert shop.client.get(f"{JOB}/wiring").json()["inputs"] == WIRES["inputs"]


def test_a_worker_that_finds_nothing_learns_why(wired: Running) -> None:
    first, second, _ = claim(wired, count=3)
    call(wired, of_claim(first, "complete"), token=1)
    failed = call(wired, of_claim(second, "fail"), token=1, error="boom")
    assert failed["state"] == "RETRYABLE"
    answer = call(wired, f"{JOB}/claims", owner="w2")
    why = answer["why"]
    assert (answer["claims"], why["running"], why["retryable"], why["waiting"]) == ([], 1, 1, 0)
    assert why["nextAt"] == failed["notBefore"]
    call(wired, f"{JOB}/hold", why="migration")
    held = call(wired, f"{JOB}/claims", owner="w2")["why"]["held"]
    assert (held["kind"], held["name"], held["who"]) == ("JOB", "load", "local")


def test_lots_are_claimed_by_name_all_or_none(wired: Running) -> None:
    refused = wired.client.post(f"{JOB}/claims", json={"owner": "w", "lots": ["9", "77"]})
    assert refused.status_code == 409
    assert "lot 77 is not known for job shop/load" in refused.json()["message"]
    assert [found["lot"] for found in claim(wired, lots=["10", "9"])] == ["10", "9"]


def test_completing_publishes_and_wakes_the_next_job(wired: Running) -> None:
    next_job = path("namespaces", "shop", "jobs", "next")
    wires = {"inputs": WIRES["outputs"], "outputs": []}
    assert call(wired, f"{next_job}/claims", owner="w", **wires)["claims"] == []
    (found,) = claim(wired)
    (version,) = call(wired, of_claim(found, "complete"), token=1)["versions"]
    dataset = wired.client.get(path("namespaces", "shop", "datasets", "clean")).json()
    assert dataset["currentVersion"] == version["version"]
    (following,) = call(wired, f"{next_job}/claims", owner="w")["claims"]
    assert (following["lot"], following["inputs"]) == ("2", [version])


def test_a_stale_token_changes_nothing_and_learns_who_holds_the_lot(wired: Running) -> None:
    (stale,) = claim(wired, lots=["9"])
    call(wired, f"{JOB}/lots/9/end-claim", why="it hangs")
    (live,) = claim(wired, lots=["9"])
    assert live["token"] == 2
    for action in ("heartbeat", "complete", "fail", "release"):
        refused = wired.client.post(of_claim(stale, action), json={"token": 1})
        assert refused.status_code == 409, action
        assert "held by 'w1'" in refused.json()["message"]
    wrong = wired.client.post(of_claim(live, "complete"), json={"token": 1})
    assert wrong.status_code == 409
    assert call(wired, of_claim(live, "heartbeat"), token=2)["id"] == live["id"]


def test_a_heartbeat_extends_the_lease(wired: Running) -> None:
    (found,) = claim(wired, leaseSeconds=5)
    kept = call(wired, of_claim(found, "heartbeat"), token=1, leaseSeconds=600)
    longer = parse_time(kept["leaseUntil"]) - parse_time(found["leaseUntil"])
    assert longer >= 590 * SECOND
    shown = wired.client.get(path("claims", found["id"])).json()
    assert (shown["leaseUntil"], shown["state"]) == (kept["leaseUntil"], "RUNNING")
    assert (shown["owner"], shown["attempt"], shown["inputs"]) == ("w1", 1, found["inputs"])


def test_a_claim_that_is_over_can_still_be_looked_at(wired: Running) -> None:
    (found,) = claim(wired)
    call(wired, of_claim(found, "release"), token=1)
    shown = wired.client.get(path("claims", found["id"])).json()
    assert (shown["state"], shown["token"], shown["leaseUntil"]) == ("ABORTED", 1, None)
    claim(wired, lots=["2"])
    assert wired.client.get(path("claims", found["id"])).json()["token"] is None
    assert wired.client.get(path("claims", "nobody")).status_code == 404


def test_many_claims_end_at_once_and_each_is_refused_alone(wired: Running) -> None:
    two, nine, ten = claim(wired, count=3)
    refs = [{"id": found["id"], "token": 1} for found in (two, nine)]
    call(wired, of_claim(nine, "release"), token=1)
    ended = call(wired, path("claims", "complete"), claims=[*refs, {"id": "x", "token": 1}])
    good, over, unknown = ended["ended"]
    assert (good["id"], len(good["versions"]), good["error"]) == (two["id"], 1, None)
    assert (over["versions"], over["error"]["code"], unknown["error"]["code"]) == ([], 409, 404)
    assert unknown["id"] == "x"
    refs = [{"id": ten["id"], "token": 1}]
    (failed,) = call(wired, path("claims", "fail"), claims=refs, error="boom")["ended"]
    assert failed["error"] is None
    work = wired.client.get(f"{JOB}/lots/10").json()
    assert (work["state"], work["error"], work["attempts"]) == ("RETRYABLE", "boom", 1)


def test_who_goes_on_completes_and_claims_in_one_call(wired: Running) -> None:
    (first,) = claim(wired)
    stale = {"id": first["id"], "token": 7}
    ended = [{"id": first["id"], "token": first["token"]}, stale]
    answer = call(wired, f"{JOB}/claims", owner="w1", complete=ended)
    assert [found["lot"] for found in answer["claims"]] == ["9"]
    done, refused = answer["ended"]
    (version,) = done["versions"]
    assert (version["name"], done["error"]) == ("clean", None)
    assert (refused["versions"], refused["error"]["code"]) == ([], 409)
    dataset = wired.client.get(path("namespaces", "shop", "datasets", "clean")).json()
    assert dataset["currentVersion"] == version["version"]


def test_a_claim_that_is_refused_completes_nothing(wired: Running) -> None:
    (first,) = claim(wired)
    ended = [{"id": first["id"], "token": first["token"]}]
    body = {"owner": "w1", "lots": ["77"], "complete": ended}
    assert wired.client.post(f"{JOB}/claims", json=body).status_code == 409
    assert wired.client.get(path("claims", first["id"])).json()["state"] == "RUNNING"
    assert call(wired, of_claim(first, "complete"), token=first["token"])["versions"]


def test_locks_show_who_holds_what(wired: Running) -> None:
    claim(wired, count=2)
    locks = wired.client.get(f"{API}/locks").json()
    assert locks["totalCount"] == 2
    lock = locks["locks"][0]
    assert (lock["lot"], lock["owner"], lock["token"], lock["job"]) == ("2", "w1", 1, "load")
    assert 0 < lock["leaseSecondsLeft"] <= 60
    of = {"namespace": "shop", "status": "RUNNING"}
    assert lock["datasets"] == [
        of | {"name": "raw", "role": "INPUT", "locks": ["local"]},
        of | {"name": "clean", "role": "OUTPUT", "locks": ["read", "write"]},
    ]


@pytest.mark.parametrize(
    ("query", "lots"),
    [
        ("namespace=shop", ["2", "9"]),
        ("namespace=other", []),
        ("lot=9", ["9"]),
        ("namespace=shop&job=load&lot=2", ["2"]),
        ("namespace=shop&dataset=clean", ["2", "9"]),
        ("namespace=shop&dataset=apart", []),
        ("namespace=shop&job=load&dataset=raw&limit=1", ["2"]),
        ("limit=1&offset=1", ["9"]),
        ("offset=5", []),
    ],
)
def test_locks_are_found_by_what_they_are_on(wired: Running, query: str, lots: list[str]) -> None:
    apart = path("namespaces", "shop", "jobs", "apart")
    wires = {"inputs": [{"namespace": "shop", "name": "apart"}], "outputs": []}
    assert wired.client.put(f"{apart}/wiring", json=wires).is_success
    for lot in ("2", "9"):
        claim(wired, lots=[lot])
    found = wired.client.get(f"{API}/locks?{query}").json()["locks"]
    assert [lock["lot"] for lock in found] == lots


def test_a_key_for_one_namespace_keeps_to_its_claims(wired: Running) -> None:
    theirs = path("namespaces", "drink", "jobs", "mix")
    wires = {"inputs": [{"namespace": "drink", "name": "water"}], "outputs": []}
    assert wired.client.put(f"{theirs}/wiring", json=wires).is_success
    call(wired, path("namespaces", "drink", "datasets", "water", "lots"), lots=["1"])
    (foreign,) = call(wired, f"{theirs}/claims", owner="them")["claims"]
    (own,) = claim(wired)
    client = wired.client
    client.headers.update(wired.key("shop", KeyRole.ADMIN, "shop"))
    for action in ("heartbeat", "complete", "fail", "release"):
        assert client.post(of_claim(foreign, action), json={"token": 1}).status_code == 403
    assert client.get(path("claims", foreign["id"])).status_code == 403
    assert client.get(path("jobs", "runs", foreign["id"], "log")).status_code == 403
    both = {"claims": [{"id": found["id"], "token": 1} for found in (own, foreign)]}
    assert client.post(path("claims", "complete"), json=both).status_code == 403
    more = {"owner": "w1", "complete": both["claims"]}
    assert client.post(f"{JOB}/claims", json=more).status_code == 403
    assert [lock["lot"] for lock in client.get(f"{API}/locks").json()["locks"]] == ["2"]
    assert client.get(f"{API}/locks?namespace=drink").status_code == 403
    assert client.post(of_claim(own, "complete"), json={"token": 1}).status_code == 200


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        (f"{JOB}/claims", {}, 422),
        (f"{JOB}/claims", {"owner": ""}, 422),
        (f"{JOB}/claims", {"owner": "w", "count": 0}, 422),
        (f"{JOB}/claims", {"owner": "w", "count": 1001}, 422),
        (f"{JOB}/claims", {"owner": "w", "complete": [{"id": "x", "token": 1}] * 1001}, 422),
        (f"{JOB}/claims", {"owner": "w", "order": "random"}, 422),
        (f"{JOB}/claims", {"owner": "w", "leaseSeconds": 0}, 422),
        (f"{JOB}/claims", {"owner": "w", "leaseSeconds": 10**30}, 422),
        (f"{JOB}/claims", {"owner": "w", "inputs": [{"namespace": "shop", "name": ""}]}, 422),
        (path("namespaces", "shop", "jobs", "nobody", "claims"), {"owner": "w"}, 404),
        (path("claims", "x", "complete"), {}, 422),
        (path("claims", "x", "complete"), {"token": "1"}, 422),
        (path("claims", "x", "complete"), {"token": 1}, 404),
        (path("claims", "x", "heartbeat"), {"token": 1}, 404),
    ],
)
def test_what_cannot_be_is_refused(
    wired: Running, target: str, body: dict[str, Any], status: int
) -> None:
    refused = wired.client.post(target, json=body)
    assert refused.status_code == status, refused.text
    assert refused.json()["code"] == status


def test_a_job_that_is_not_wired_says_how_to_wire_it(shop: Running) -> None:
    assert shop.client.put(path("namespaces", "shop"), json={"ownerName": "me"}).is_success
    assert shop.client.put(JOB, json={"type": "BATCH"}).is_success
    refused = shop.client.post(f"{JOB}/claims", json={"owner": "w"})
    assert refused.status_code == 422
    assert "name its inputs" in refused.json()["message"]
    assert shop.client.get(f"{JOB}/wiring").status_code == 404
    assert shop.client.get(f"{API}/locks?job=load").status_code == 422
