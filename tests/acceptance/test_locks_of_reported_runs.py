"""Locks of runs that are reported by events: late ones, claimed ones, and what they work on."""

import attr
import pytest
from openlineage.client.event_v2 import RunState
from openlineage.client.facet_v2 import RunFacet

from tests.acceptance.calls import Calls, Document, new_run_id, version_numbers
from tests.acceptance.lot_calls import LotCalls
from tests.acceptance.reporting import CLEAN, DAY, JOB, RAW, Reporter, conflicts
from tests.doors.waiting import until
from tests.running import ServerProcess


@attr.define
class LotRunFacet(RunFacet):
    """The facet that names the lot of a whole run."""

    lot: object


@attr.define
class LotsRunFacet(RunFacet):
    """The facet that names several."""

    lots: list[str]


@pytest.fixture
def framework(calls: Calls) -> LotCalls:
    return LotCalls(calls)


@pytest.fixture
def reporter(server: ServerProcess, calls: Calls) -> Reporter:
    return Reporter(server, calls)


# ---- Late, doubled and out of order.


def test_a_complete_before_its_start_publishes_at_once(
    framework: LotCalls, reporter: Reporter
) -> None:
    run = new_run_id()
    reporter.send(RunState.COMPLETE, run, reads={RAW: [DAY]}, writes={CLEAN: [DAY]})
    made = framework.lot(CLEAN, DAY)
    assert (made["status"], made["run"]) == ("READY", run)
    reporter.start(DAY, run=run)
    assert framework.lot(CLEAN, DAY) == made
    assert (framework.live(job=JOB), conflicts(framework)) == ([], [])


def test_a_start_that_comes_late_tells_what_was_completed(
    framework: LotCalls, reporter: Reporter
) -> None:
    run = new_run_id()
    reporter.send(RunState.COMPLETE, run)
    reporter.start(DAY, run=run)
    made = framework.lot(CLEAN, DAY)
    assert (made["status"], made["run"]) == ("READY", run)
    assert made["version"] is not None


def test_a_doubled_complete_changes_nothing(framework: LotCalls, reporter: Reporter) -> None:
    run = reporter.start(DAY)
    reporter.send(RunState.COMPLETE, run, writes={CLEAN: [DAY]})
    made, log = framework.lot(CLEAN, DAY), framework.log(JOB)
    reporter.send(RunState.COMPLETE, run, writes={CLEAN: [DAY]})
    assert (framework.lot(CLEAN, DAY), framework.log(JOB)) == (made, log)
    # Not even when the lot is to be made again: that takes another run.
    framework.act(JOB, DAY, "resubmit")
    reporter.send(RunState.COMPLETE, run, writes={CLEAN: [DAY]})
    assert framework.output(CLEAN, DAY) == "RESUBMIT"


def test_a_fail_before_its_start_counts_once(framework: LotCalls, reporter: Reporter) -> None:
    run = new_run_id()
    reporter.send(RunState.FAIL, run, writes={CLEAN: [DAY]})
    reporter.start(DAY, run=run)
    assert framework.output(CLEAN, DAY) == "ERROR"
    assert framework.work(JOB, DAY)["attempts"] == 1
    assert framework.live(job=JOB) == []


def test_a_run_whose_claim_expired_changes_nothing_and_is_recorded(
    framework: LotCalls, reporter: Reporter
) -> None:
    framework.wire(JOB, [], [CLEAN], leaseSeconds=1)
    run = reporter.start(DAY)
    until(lambda: framework.output(CLEAN, DAY) == "ERROR")
    assert framework.calls.run(run)["state"] == "FAILED"

    reporter.send(RunState.COMPLETE, run, writes={CLEAN: [DAY]})

    assert framework.output(CLEAN, DAY) == "ERROR"
    assert framework.calls.run(run)["state"] == "FAILED"
    assert [entry["run"] for entry in conflicts(framework)] == [run]


def test_every_event_of_a_run_renews_its_lease(framework: LotCalls, reporter: Reporter) -> None:
    run = reporter.start(DAY)
    [before] = framework.live(job=JOB)
    reporter.send(RunState.RUNNING, run)
    [after] = framework.live(job=JOB)
    assert after["leaseUntil"] > before["leaseUntil"]
    assert after["token"] == before["token"]


# ---- Claims taken through the API whose workers send events too.


def _claimed(framework: LotCalls) -> Document:
    framework.wire(JOB, [RAW], [CLEAN])
    framework.register(RAW, DAY)
    return framework.claim_one(JOB)


def test_the_events_of_a_claims_worker_complete_it(framework: LotCalls, reporter: Reporter) -> None:
    claim = _claimed(framework)
    reporter.start(DAY, run=claim["id"])
    [lock] = framework.live(job=JOB)
    assert (lock["token"], lock["owner"]) == (claim["token"], "worker")

    reporter.send(RunState.COMPLETE, claim["id"])

    made = framework.lot(CLEAN, DAY)
    assert (made["status"], made["run"]) == ("READY", claim["id"])
    assert made["version"] is not None
    assert framework.input(RAW, DAY, JOB) == "DONE"
    framework.complete(claim, status=409)
    assert framework.lot(CLEAN, DAY) == made


def test_the_events_of_a_claims_worker_fail_it(framework: LotCalls, reporter: Reporter) -> None:
    claim = _claimed(framework)
    reporter.send(RunState.FAIL, claim["id"])
    assert (framework.output(CLEAN, DAY), framework.input(RAW, DAY, JOB)) == ("ERROR", "ERROR")
    framework.complete(claim, status=409)
    assert framework.claim_one(JOB)["attempt"] == 2


def test_a_claim_stays_with_the_lot_that_was_given(framework: LotCalls, reporter: Reporter) -> None:
    claim = _claimed(framework)
    framework.register(RAW, "another")
    reporter.start("another", run=claim["id"])
    assert [lock["lot"] for lock in framework.live(job=JOB)] == [DAY]
    framework.complete(claim)
    assert (framework.output(CLEAN, DAY), framework.output(CLEAN, "another")) == ("READY", None)


def test_a_reported_run_that_is_released_has_the_shape_that_its_events_told(
    framework: LotCalls, reporter: Reporter
) -> None:
    run = reporter.start(DAY)
    framework.act(JOB, DAY, "end-claim")
    found = framework.calls.run(run)
    assert (found["state"], found["jobVersion"]["name"]) == ("ABORTED", JOB)
    job = framework.calls.job(JOB)
    assert [d["name"] for d in (*job["inputs"], *job["outputs"])] == [RAW, CLEAN]


def test_a_claim_publishes_what_its_events_told_beside(
    framework: LotCalls, reporter: Reporter
) -> None:
    claim = _claimed(framework)
    reporter.send(RunState.RUNNING, claim["id"], writes={"rejects": [DAY], CLEAN: [DAY]})
    framework.complete(claim)
    found = framework.calls.run(claim["id"])
    assert set(version_numbers(found["outputDatasetVersions"])) == {CLEAN, "rejects"}
    assert all(version["facets"] for version in found["outputDatasetVersions"])
    assert framework.calls.dataset("rejects")["currentVersionNumber"] == 1


def test_events_cannot_talk_a_claim_away(framework: LotCalls, reporter: Reporter) -> None:
    claim = _claimed(framework)
    reporter.send(RunState.RUNNING, claim["id"], penstock_lot=LotRunFacet("another"))
    facet = framework.calls.run(claim["id"])["facets"]["penstock_lot"]
    assert (facet["lot"], facet["attempt"]) == (DAY, 1)
    assert framework.complete(claim)["id"] == claim["id"]


# ---- What a run reads and writes.


def test_a_run_reads_the_version_that_its_lot_has(framework: LotCalls, reporter: Reporter) -> None:
    framework.wire("other", [RAW], [])
    framework.register(RAW, "1")
    framework.register(RAW, "2")
    run = reporter.start("1")
    read = framework.lot(RAW, "1")
    [version] = framework.calls.run(run)["inputDatasetVersions"]
    assert version["datasetVersionId"]["version"] == read["version"]
    assert framework.calls.dataset(RAW)["currentVersion"] != read["version"]
    assert [(c["job"], c["version"]) for c in read["consumers"]] == [(JOB, read["version"])]

    reporter.send(RunState.RUNNING, run, reads={RAW: ["1"]}, writes={CLEAN: ["1"]})
    assert framework.calls.run(run)["inputDatasetVersions"] == [version]
    reporter.send(RunState.COMPLETE, run, reads={RAW: ["1"]}, writes={CLEAN: ["1"]})
    assert framework.calls.run(run)["inputDatasetVersions"] == [version]


def test_a_run_works_on_several_lots(framework: LotCalls, reporter: Reporter) -> None:
    blocking = reporter.start("2")
    run = reporter.start("1", "2", "3")
    assert {(lock["lot"], lock["claim"]) for lock in framework.live(job=JOB)} == {
        ("1", run), ("2", blocking), ("3", run),
    }  # fmt: skip
    assert [entry["lot"] for entry in conflicts(framework)] == ["2"]
    framework.act(JOB, "3", "end-claim")
    assert framework.calls.run(run)["state"] == "RUNNING"
    reporter.send(RunState.COMPLETE, run)
    assert [framework.output(CLEAN, lot) for lot in "123"] == ["READY", "RUNNING", "ERROR"]
    assert framework.calls.run(run)["state"] == "COMPLETED"


def test_a_run_with_several_lots_is_not_ended_by_the_token_of_one(
    framework: LotCalls, reporter: Reporter
) -> None:
    run = reporter.start("1", "2")
    [lock, _] = framework.live(job=JOB)
    framework.complete({"id": run, "token": lock["token"]}, status=409)
    assert {lock["lot"] for lock in framework.live(job=JOB)} == {"1", "2"}
    reporter.send(RunState.COMPLETE, run)
    assert [framework.output(CLEAN, lot) for lot in "12"] == ["READY", "READY"]


def test_outputs_that_only_the_end_tells_of_are_published(
    framework: LotCalls, reporter: Reporter
) -> None:
    run = new_run_id()
    reporter.send(RunState.START, run, reads={RAW: [DAY]})
    [lock] = framework.live(job=JOB)
    assert [d["name"] for d in lock["datasets"]] == [RAW]
    reporter.send(RunState.COMPLETE, run, writes={CLEAN: [DAY]})
    assert framework.lot(CLEAN, DAY)["run"] == run
    assert framework.work(JOB, DAY)["state"] == "DONE"


def test_a_lot_that_the_end_leaves_out_is_not_published(
    framework: LotCalls, reporter: Reporter
) -> None:
    run = reporter.start("1", "2")
    reporter.send(RunState.COMPLETE, run, writes={CLEAN: ["1"]})
    assert [framework.output(CLEAN, lot) for lot in "12"] == ["READY", "ERROR"]
    assert "lot 2" in framework.work(JOB, "2")["error"]
    assert framework.calls.run(run)["state"] == "COMPLETED"


def test_hours_are_read_and_a_day_is_written(framework: LotCalls, reporter: Reporter) -> None:
    hours = [f"{DAY}-{hour:02d}" for hour in range(3)]
    run = new_run_id()
    reporter.send(RunState.START, run, reads={RAW: hours}, writes={CLEAN: [DAY]})
    reporter.send(RunState.COMPLETE, run)
    assert framework.output(CLEAN, DAY) == "READY"
    assert [framework.output(CLEAN, hour) for hour in hours] == [None] * 3


def test_only_datasets_that_were_stated_are_locked(framework: LotCalls, reporter: Reporter) -> None:
    framework.wire(JOB, [RAW], [CLEAN], enforced=True)
    framework.register(RAW, "1", "2")
    for lot in ("1", "2"):
        run = new_run_id()
        reads = {RAW: [lot], "countries": ["region=EU"]}
        reporter.send(RunState.START, run, reads=reads, writes={CLEAN: [lot]})
        reporter.send(RunState.COMPLETE, run)
        assert framework.output(CLEAN, lot) == "READY"
        assert set(version_numbers(framework.calls.run(run)["inputDatasetVersions"])) == {
            RAW,
            "countries",
        }
    wiring = framework.calls.get("namespaces", framework.calls.namespace, "jobs", JOB, "wiring")
    assert [d["name"] for d in wiring["inputs"]] == [RAW]


def test_a_lot_that_was_taken_from_a_run_is_not_given_to_it_again(
    framework: LotCalls, reporter: Reporter
) -> None:
    """The run goes on with its other lot, and says at its end that it has made both."""
    other = "2024-10-16"
    run = reporter.start(DAY, other)
    framework.act(JOB, other, "end-claim")
    reporter.send(RunState.RUNNING, run, reads={RAW: [DAY, other]}, writes={CLEAN: [DAY, other]})
    assert [claim["lot"] for claim in framework.live(job=JOB)] == [DAY]
    reporter.send(RunState.COMPLETE, run, writes={CLEAN: [DAY, other]})
    assert (framework.output(CLEAN, DAY), framework.output(CLEAN, other)) == ("READY", "ERROR")
    assert [(found["lot"], found["run"]) for found in conflicts(framework)] == [(other, run)]

    again = reporter.start(other)
    reporter.send(RunState.COMPLETE, again, writes={CLEAN: [other]})
    assert framework.lot(CLEAN, other)["run"] == again


def test_a_run_that_only_ends_does_not_publish_what_was_taken_from_it(
    framework: LotCalls, reporter: Reporter
) -> None:
    other = "2024-10-16"
    framework.wire(JOB, [], [CLEAN])
    run = new_run_id()
    reporter.send(RunState.START, run, penstock_lot=LotsRunFacet(lots=[DAY, other]))
    framework.act(JOB, other, "end-claim")
    reporter.send(RunState.COMPLETE, run)
    assert (framework.output(CLEAN, DAY), framework.output(CLEAN, other)) == ("READY", "ERROR")


# ---- What names no lot that can be locked.


@pytest.mark.parametrize("lot", [5, None, ["1"]])
def test_a_facet_that_cannot_be_read_locks_nothing_and_is_told(
    framework: LotCalls, reporter: Reporter, lot: object
) -> None:
    framework.wire(JOB, [], [CLEAN], enforced=True)
    reporter.send(RunState.START, new_run_id(), penstock_lot=LotRunFacet(lot={"id": lot}))
    assert framework.live(job=JOB) == []
    [told] = framework.log(JOB)
    assert (told["action"], "names no lots that can be read" in told["why"]) == ("ignore", True)


def test_no_event_makes_a_lot_of_a_clock(framework: LotCalls, reporter: Reporter) -> None:
    run, clock = new_run_id(), "clock:PT1H"
    reporter.send(RunState.START, run, writes={clock: ["20241015PT1H10"], CLEAN: [DAY]})
    reporter.send(RunState.COMPLETE, run, writes={clock: ["20241015PT1H10"], CLEAN: [DAY]})
    assert framework.output(clock, "20241015PT1H10") is None
    assert framework.output(CLEAN, DAY) == "READY"
    assert {entry["why"] for entry in framework.log(JOB) if entry["action"] == "ignore"} == {
        "clock:PT1H is a clock, and no job makes its lots"
    }
