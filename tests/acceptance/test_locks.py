"""Cooperative locks on chunks, implied by status: each scenario under its own name.

A chunk is a lot here; its id, the dataid, is the lot id. Rows are told as OUTPUT dataset/dataid
and INPUT dataset/dataid/job.
"""

from collections.abc import Callable

import pytest

from tests.acceptance.calls import Calls, Document, version_numbers
from tests.acceptance.lot_calls import LotCalls

A, B = "DataA", "DataB"


@pytest.fixture
def framework(calls: Calls) -> LotCalls:
    return LotCalls(calls)


# ---- Status --> lock status. JobP produces DataB from DataA; JobC consumes DataB.


def _produced(framework: LotCalls) -> None:
    framework.wire("JobP", [A], [B])
    framework.wire("JobQ", [A], [B])
    framework.wire("JobC", [B], ["DataC"])
    framework.register(A, "1")


def _nothing_yet(framework: LotCalls) -> None:
    _produced(framework)


def _running(framework: LotCalls) -> None:
    _produced(framework)
    framework.claim_one("JobP")


def _ready(framework: LotCalls) -> None:
    _produced(framework)
    framework.run_once("JobP")


def _failed(framework: LotCalls) -> None:
    _produced(framework)
    framework.fail(framework.claim_one("JobP"))


def _resubmitted(framework: LotCalls) -> None:
    _ready(framework)
    framework.act("JobP", "1", "resubmit")


def _resubmit_again(framework: LotCalls) -> None:
    _ready(framework)
    framework.act("JobP", "1", "resubmit")


def _held(framework: LotCalls) -> None:
    _ready(framework)
    framework.hold(B, "1")


@pytest.mark.parametrize(
    ("prepare", "status", "may_read", "may_write"),
    [
        (_nothing_yet, None, False, True),
        (_running, "RUNNING", False, False),
        (_ready, "READY", True, False),
        (_resubmitted, "RESUBMIT", False, True),
        (_resubmit_again, "RESUBMIT", False, True),
        (_failed, "ERROR", False, True),
        (_held, "HOLD", False, False),
    ],
)
def test_status_to_lock_status_of_an_output(
    framework: LotCalls,
    prepare: Callable[[LotCalls], None],
    status: str | None,
    may_read: bool,
    may_write: bool,
) -> None:
    prepare(framework)
    assert framework.output(B, "1") == status
    if status is not None:
        locks = framework.lot(B, "1")["locks"]
        assert ("read" in locks, "write" in locks) == (not may_read, not may_write)
    # By whom it is written does not matter: there is one producer at a time.
    assert bool(framework.claim("JobC")) == may_read
    assert bool(framework.claim("JobQ")) == may_write


def _unread(framework: LotCalls) -> None:
    framework.wire("JobC", [A], [])
    framework.register(A, "1")


def _being_read(framework: LotCalls) -> None:
    _unread(framework)
    framework.claim_one("JobC")


def _read(framework: LotCalls) -> None:
    _unread(framework)
    framework.run_once("JobC")


def _read_in_vain(framework: LotCalls) -> None:
    _unread(framework)
    framework.fail(framework.claim_one("JobC"))


def _kept_from(framework: LotCalls) -> None:
    _unread(framework)
    framework.act("JobC", "1", "hold")


@pytest.mark.parametrize(
    ("prepare", "status", "may_again"),
    [
        (_unread, None, True),
        (_being_read, "RUNNING", False),
        (_read, "DONE", False),
        (_read_in_vain, "ERROR", True),
        (_kept_from, "HOLD", False),
    ],
)
def test_status_to_lock_status_of_an_input(
    framework: LotCalls, prepare: Callable[[LotCalls], None], status: str | None, may_again: bool
) -> None:
    prepare(framework)
    assert framework.input(A, "1", "JobC") == status
    assert bool(framework.claim("JobC")) == may_again
    # The lock is local to the job: another one is free to use the same chunk.
    framework.wire("JobD", [A], [])
    assert framework.claim_one("JobD")["lot"] == "1"


def test_two_concurrent_jobs_of_the_same_type_cannot_be_using_the_same_file(
    framework: LotCalls,
) -> None:
    framework.wire("JobA", [A], [B])
    framework.register(A, "1")
    claim = framework.claim_one("JobA", "one")
    assert framework.claim("JobA", "two") == []
    assert [lock["owner"] for lock in framework.live(job="JobA")] == ["one"]
    framework.complete(claim)
    assert framework.claim("JobA", "two") == []


# ---- When are locks OBTAINED, and to RELEASE a lock.


def test_when_are_locks_obtained(framework: LotCalls) -> None:
    framework.wire("JobA", [A, "DataD"], [B, "DataE"])
    framework.register(A, "1")
    framework.register("DataD", "1")
    assert framework.live(job="JobA") == []

    claim = framework.claim_one("JobA", "me")

    [lock] = framework.live(job="JobA")
    assert (lock["claim"], lock["token"], lock["owner"]) == (claim["id"], claim["token"], "me")
    held = {(d["name"], d["role"], d["status"]): set(d["locks"]) for d in lock["datasets"]}
    assert held == {
        (A, "INPUT", "RUNNING"): {"local"},
        ("DataD", "INPUT", "RUNNING"): {"local"},
        (B, "OUTPUT", "RUNNING"): {"read", "write"},
        ("DataE", "OUTPUT", "RUNNING"): {"read", "write"},
    }


def test_to_release_a_lock(framework: LotCalls) -> None:
    framework.wire("JobA", [A], [B])
    framework.register(A, "1")
    lost = framework.claim_one("JobA", "one")

    framework.act("JobA", "1", "end-claim")

    assert framework.live(job="JobA") == []
    assert framework.input(A, "1", "JobA") == "ERROR"
    assert framework.calls.run(lost["id"])["state"] == "ABORTED"
    again = framework.claim_one("JobA", "two")
    assert again["token"] > lost["token"]
    refusal = framework.complete(lost, status=409)
    assert "'two'" in refusal["message"]
    assert framework.output(B, "1") == "RUNNING"


# ---- Scenario 1, happy path: JobA produces DataB from DataA.


def _happy(framework: LotCalls) -> Document:
    framework.wire("JobA", [A], [B])
    framework.register(A, "1")
    claim = framework.claim_one("JobA")
    assert claim["lot"] == "1"
    assert [d["name"] for d in claim["inputs"]] == [A]
    assert [d["name"] for d in claim["outputs"]] == [B]
    assert framework.output(B, "1") == "RUNNING"
    assert framework.input(A, "1", "JobA") == "RUNNING"
    assert framework.calls.run(claim["id"])["state"] == "RUNNING"
    return claim


def test_scenario_1_happy_path_job_is_complete_successfully(framework: LotCalls) -> None:
    claim = _happy(framework)
    [version] = framework.complete(claim)["versions"]

    assert framework.output(B, "1") == "READY"
    assert framework.input(A, "1", "JobA") == "DONE"
    made = framework.lot(B, "1")
    assert (made["version"], made["run"]) == (version["version"], claim["id"])
    assert framework.calls.dataset(B)["currentVersion"] == version["version"]
    run = framework.calls.run(claim["id"])
    assert (run["state"], set(version_numbers(run["outputDatasetVersions"]))) == ("COMPLETED", {B})
    # JobA will not run again on the same data, and downstream jobs are clear to consume its output.
    assert framework.claim("JobA") == []
    framework.wire("JobC", [B], [])
    assert framework.claim_one("JobC")["lot"] == "1"


def test_scenario_1_happy_path_job_fails(framework: LotCalls) -> None:
    claim = _happy(framework)
    framework.wire("JobC", [B], [])
    before = framework.calls.dataset(B)["currentVersion"]
    framework.fail(claim, "disk full")

    assert framework.output(B, "1") == "ERROR"
    assert framework.input(A, "1", "JobA") == "ERROR"
    assert framework.calls.run(claim["id"])["state"] == "FAILED"
    assert framework.calls.dataset(B)["currentVersion"] == before
    # Downstream will not run on the failed data, and JobA will run again.
    assert framework.claim("JobC") == []
    again = framework.claim_one("JobA")
    assert (again["lot"], again["attempt"]) == ("1", 2)


def test_the_framework_looks_for_a_dataid_that_every_input_has(framework: LotCalls) -> None:
    framework.wire("JobA", [A, "DataD"], [B])
    framework.register(A, "1", "2", "3")
    assert framework.claim("JobA") == []
    framework.register("DataD", "2", "4")
    assert [claim["lot"] for claim in framework.claim("JobA", count=10)] == ["2"]


def test_the_framework_takes_the_oldest_dataid_first(framework: LotCalls) -> None:
    framework.wire("JobA", [A], [B])
    framework.register(A, "10", "9", "2")
    assert [framework.run_once("JobA")["lot"] for _ in range(3)] == ["2", "9", "10"]
    framework.wire("JobN", [A], [])
    claims = framework.claim("JobN", count=3, order="newest")
    assert [claim["lot"] for claim in claims] == ["10", "9", "2"]


# ---- Scenario, dependent job: JobA produces DataA; JobB reads DataA and produces DataB.


def _dependent(framework: LotCalls) -> Document:
    """JobA is invoked with dataid 1 and completes; the framework then finds it for JobB."""
    framework.wire("JobA", [], [A])
    framework.wire("JobB", [A], [B])
    claim = framework.claim_one("JobA", lots=["1"])
    assert framework.output(A, "1") == "RUNNING"
    assert framework.claim("JobB") == []
    framework.complete(claim)
    assert framework.output(A, "1") == "READY"
    found = framework.claim_one("JobB")
    assert found["lot"] == "1"
    assert framework.input(A, "1", "JobB") == "RUNNING"
    assert framework.output(B, "1") == "RUNNING"
    return found


def test_scenario_dependent_job(framework: LotCalls) -> None:
    found = _dependent(framework)
    made = framework.lot(A, "1")
    assert made["job"]["name"] == "JobA"
    [read] = found["inputs"]
    assert read["version"] == made["version"]
    # Another JobB that runs concurrently skips this dataid and looks for the next one.
    assert framework.claim("JobB", "another") == []
    framework.run_once("JobA", lots=["2"])
    assert framework.claim_one("JobB", "another")["lot"] == "2"


def test_scenario_1_jobb_succeeds(framework: LotCalls) -> None:
    framework.complete(_dependent(framework))
    assert framework.input(A, "1", "JobB") == "DONE"
    assert framework.output(B, "1") == "READY"
    assert framework.work("JobB", "1")["state"] == "DONE"
    assert framework.claim("JobB") == []


def test_scenario_2_jobb_fails(framework: LotCalls) -> None:
    framework.wire("JobC", [B], [])
    framework.fail(_dependent(framework), "no space left")
    assert framework.input(A, "1", "JobB") == "ERROR"
    assert framework.output(B, "1") == "ERROR"
    assert framework.claim("JobC") == []
    [reason, *_] = framework.why("JobC", "1")["reasons"]
    assert reason["kind"] == "input_error"
    # The framework again finds that DataA/1 is READY, and reruns.
    assert framework.output(A, "1") == "READY"
    again = framework.claim_one("JobB")
    assert (again["lot"], again["attempt"]) == ("1", 2)
    framework.complete(again)
    assert framework.claim_one("JobC")["lot"] == "1"


def test_scenario_3_previous_job_failed_undetected(framework: LotCalls) -> None:
    framework.fail(_dependent(framework), "the data of JobA is invalid")
    invalid = framework.lot(A, "1")["version"]

    framework.act("JobA", "1", "resubmit")

    assert framework.output(A, "1") == "RESUBMIT"
    # JobB is in ERROR: its job-local lock is free, and only the chunk itself cannot be read.
    assert framework.input(A, "1", "JobB") == "ERROR"
    assert framework.claim("JobB") == []
    framework.run_once("JobA", lots=["1"])
    renewed = framework.lot(A, "1")["version"]
    assert renewed != invalid
    again = framework.claim_one("JobB")
    assert again["inputs"][0]["version"] == renewed
    framework.complete(again)
    assert framework.output(B, "1") == "READY"


def test_resubmit_releases_the_inputs_of_a_job_that_is_done(framework: LotCalls) -> None:
    framework.complete(_dependent(framework))
    before = framework.lot(B, "1")["version"]

    framework.act("JobB", "1", "resubmit")

    assert (framework.input(A, "1", "JobB"), framework.output(B, "1")) == ("ERROR", "RESUBMIT")
    again = framework.run_once("JobB")
    assert (again["lot"], again["attempt"]) == ("1", 1)
    made = framework.lot(B, "1")
    assert (made["status"], made["run"]) == ("READY", again["id"])
    assert made["version"] != before
    actions = [entry["action"] for entry in framework.log("JobB", lot="1")]
    assert actions == ["complete", "claim", "resubmit", "complete", "claim"]


def test_a_run_that_holds_a_lot_ends_only_with_its_claim(framework: LotCalls) -> None:
    framework.wire("JobP", [A], [B])
    framework.register(A, "1")
    claim = framework.claim_one("JobP")
    for action in ("complete", "fail", "abort"):
        where = f"/api/v1/jobs/runs/{claim['id']}/{action}"
        refusal = framework.calls.ask("POST", where, status=409)
        assert "has claimed lot 1" in refusal["message"]
    assert framework.output(B, "1") == "RUNNING"
    framework.complete(claim)
    framework.calls.ask("POST", f"/api/v1/jobs/runs/{claim['id']}/complete")
    assert framework.output(B, "1") == "READY"
