"""Locks through OpenLineage: runs that others start are guarded by the events they send anyway."""

from collections.abc import Callable
from typing import Any

import pytest
import requests
from openlineage.client.event_v2 import RunState
from openlineage.client.facet_v2 import error_message_run

from tests.acceptance.calls import PRODUCER, Calls, Document, new_run_id, path
from tests.acceptance.lot_calls import LotCalls
from tests.acceptance.reporting import CLEAN, DAY, JOB, RAW, Reporter, conflicts
from tests.running import ServerProcess


@pytest.fixture
def framework(calls: Calls) -> LotCalls:
    return LotCalls(calls)


@pytest.fixture
def reporter(server: ServerProcess, calls: Calls) -> Reporter:
    return Reporter(server, calls)


# ---- START takes the locks, COMPLETE publishes, FAIL releases.


def test_start_takes_the_locks(framework: LotCalls, reporter: Reporter) -> None:
    run = reporter.start(DAY)
    [lock] = framework.live(job=JOB)
    assert (lock["claim"], lock["lot"], lock["owner"]) == (run, DAY, PRODUCER)
    held = {(d["name"], d["role"], d["status"]): set(d["locks"]) for d in lock["datasets"]}
    assert held == {
        (RAW, "INPUT", "RUNNING"): {"local"},
        (CLEAN, "OUTPUT", "RUNNING"): {"read", "write"},
    }
    assert lock["leaseSecondsLeft"] > 23 * 3600
    assert framework.calls.run(run)["state"] == "RUNNING"


def test_complete_publishes(framework: LotCalls, reporter: Reporter) -> None:
    framework.wire("report", [CLEAN], [])
    run = reporter.start(DAY)
    assert framework.claim("report") == []

    reporter.send(RunState.COMPLETE, run)

    made = framework.lot(CLEAN, DAY)
    found = framework.calls.run(run)
    [written] = found["outputDatasetVersions"]
    assert (made["status"], made["run"]) == ("READY", run)
    assert made["version"] == written["datasetVersionId"]["version"]
    assert framework.calls.dataset(CLEAN)["currentVersion"] == made["version"]
    assert (found["state"], framework.work(JOB, DAY)["state"]) == ("COMPLETED", "DONE")
    assert framework.live(job=JOB) == []
    claim = framework.claim_one("report")
    assert (claim["lot"], claim["inputs"][0]["version"]) == (DAY, made["version"])


@pytest.mark.parametrize(
    ("state", "ended"), [(RunState.FAIL, "FAILED"), (RunState.ABORT, "ABORTED")]
)
def test_fail_and_abort_release(
    framework: LotCalls, reporter: Reporter, state: RunState, ended: str
) -> None:
    framework.wire("report", [CLEAN], [])
    run = reporter.start(DAY)
    why = error_message_run.ErrorMessageRunFacet("disk full", "python")
    reporter.send(state, run, errorMessage=why)

    assert framework.output(CLEAN, DAY) == "ERROR"
    assert framework.claim("report") == []
    work = framework.work(JOB, DAY)
    assert (work["attempts"], work["error"]) == (1, "disk full")
    assert framework.calls.run(run)["state"] == ended
    assert framework.calls.job(JOB)["latestRun"]["state"] == ended
    again = reporter.start(DAY)
    assert [lock["claim"] for lock in framework.live(job=JOB)] == [again]
    assert framework.work(JOB, DAY)["attempts"] == 2


def test_a_lot_that_is_out_of_tries_waits_for_a_person(
    framework: LotCalls, reporter: Reporter
) -> None:
    framework.wire(JOB, [], [CLEAN], triesMax=1)
    reporter.send(RunState.FAIL, reporter.start(DAY))
    assert (framework.output(CLEAN, DAY), framework.work(JOB, DAY)["state"]) == ("HOLD", "HELD")
    run = reporter.start(DAY)
    assert framework.live(job=JOB) == []
    assert [entry["run"] for entry in conflicts(framework)] == [run]
    framework.act(JOB, DAY, "release")
    reporter.send(RunState.RUNNING, run, writes={CLEAN: [DAY]})
    assert [lock["claim"] for lock in framework.live(job=JOB)] == [run]


# ---- The ways to name a lot.


def _in_run_facet(calls: Calls, kind: str, run: str) -> Document:
    facets = {"penstock_lot": {"lot": DAY}}
    return calls.event(kind, run, JOB, run_facets=facets, inputs=[RAW], outputs=[CLEAN])


def _in_dataset_facets(calls: Calls, kind: str, run: str) -> Document:
    named = {"penstock_lot": {"lot": DAY}}
    inputs, outputs = [calls.dataset_ref(RAW, **named)], [calls.dataset_ref(CLEAN, **named)]
    return calls.event(kind, run, JOB, inputs=inputs, outputs=outputs)


def _in_side_facets(calls: Calls, kind: str, run: str) -> Document:
    read, written = calls.dataset_ref(RAW), calls.dataset_ref(CLEAN)
    read["inputFacets"] = written["outputFacets"] = {"penstock_lot": {"lot": DAY}}
    return calls.event(kind, run, JOB, inputs=[read], outputs=[written])


def _in_dimensions(calls: Calls, kind: str, run: str) -> Document:
    partitions = [{"dimensions": {"day": DAY, "country": "PL"}}]
    condition = {"type": "partition", "partitions": partitions}
    read, written = calls.dataset_ref(RAW), calls.dataset_ref(CLEAN)
    read["inputFacets"] = {"subset": {"inputCondition": condition}}
    written["outputFacets"] = {"subset": {"outputCondition": condition}}
    return calls.event(kind, run, JOB, inputs=[read], outputs=[written])


@pytest.mark.parametrize(
    ("tell", "lot"),
    [
        (_in_run_facet, DAY),
        (_in_dataset_facets, DAY),
        (_in_side_facets, DAY),
        (_in_dimensions, f"country=PL,day={DAY}"),
    ],
)
def test_a_lot_is_named(
    framework: LotCalls, tell: Callable[[Calls, str, str], Document], lot: str
) -> None:
    calls, run = framework.calls, new_run_id()
    calls.send(tell(calls, "START", run))
    [lock] = framework.live(job=JOB)
    assert (lock["claim"], lock["lot"]) == (run, lot)
    assert {d["name"] for d in lock["datasets"]} == {RAW, CLEAN}
    calls.report("COMPLETE", run, JOB)
    assert (framework.output(CLEAN, lot), framework.live(job=JOB)) == ("READY", [])


def test_places_are_no_lots(framework: LotCalls) -> None:
    calls, run = framework.calls, new_run_id()
    written = calls.dataset_ref(CLEAN)
    place = {"type": "location", "locations": ["s3://bucket/day=1"]}
    written["outputFacets"] = {"subset": {"outputCondition": place}}
    calls.report("COMPLETE", run, JOB, outputs=[written])
    assert calls.run(run)["state"] == "COMPLETED"
    found = calls.get("namespaces", calls.namespace, "datasets", CLEAN, "lots")
    assert (found["lots"], framework.live()) == ([], [])


def test_an_id_that_no_lot_can_have_is_recorded_and_locks_nothing(framework: LotCalls) -> None:
    calls, run = framework.calls, new_run_id()
    named = calls.dataset_ref(CLEAN, penstock_lot={"lots": [DAY, "a/b", "x\x00y"]})
    calls.report("START", run, JOB, outputs=[named])
    assert [lock["lot"] for lock in framework.live(job=JOB)] == [DAY]
    ignored = [entry["why"] for entry in framework.log(JOB) if entry["action"] == "ignore"]
    assert sorted("a/b" in why for why in ignored) == [False, True]


@pytest.mark.parametrize("facet", [5, {}, {"lot": 5}, {"lot": None}, {"lots": "1"}, []])
def test_a_facet_of_another_shape_means_nothing(framework: LotCalls, facet: Any) -> None:
    calls, run = framework.calls, new_run_id()
    calls.report("START", run, JOB, run_facets={"penstock_lot": facet}, outputs=[CLEAN])
    calls.report("COMPLETE", run, JOB)
    found = calls.run(run)
    assert (found["state"], found["facets"]["penstock_lot"]) == ("COMPLETED", facet)
    framework.complete({"id": run, "token": 1}, status=404)


# ---- A START that collides.


def test_a_collision_is_refused_when_the_job_asks_for_enforcement(
    framework: LotCalls, reporter: Reporter
) -> None:
    framework.wire(JOB, [RAW], [CLEAN], enforced=True)
    framework.register(RAW, DAY)
    first = reporter.start(DAY)
    [before], log = framework.live(job=JOB), framework.log(JOB)
    second = new_run_id()

    with pytest.raises(requests.HTTPError) as refusal:
        reporter.start(DAY, run=second)

    assert refusal.value.response is not None
    assert refusal.value.response.status_code == 409
    assert first in refusal.value.response.json()["message"]
    framework.calls.get("jobs", "runs", second, status=404)
    events = framework.calls.get("events", framework.calls.namespace)["events"]
    assert [event["run"]["runId"] for event in events] == [first]
    [after] = framework.live(job=JOB)
    assert (after["claim"], after["leaseUntil"]) == (first, before["leaseUntil"])
    assert framework.log(JOB) == log


def test_a_collision_is_recorded_when_the_job_does_not(
    framework: LotCalls, reporter: Reporter
) -> None:
    first = reporter.start(DAY)
    second = reporter.start(DAY)
    assert [lock["claim"] for lock in framework.live(job=JOB)] == [first]
    assert framework.calls.run(second)["state"] == "RUNNING"
    [entry] = conflicts(framework)
    assert (entry["run"], entry["lot"], entry["who"]) == (second, DAY, PRODUCER)
    assert first in entry["why"]
    assert "conflict" in [e["action"] for e in framework.log_of_run(second)]
    reporter.send(RunState.COMPLETE, first)
    reporter.send(RunState.COMPLETE, second)
    assert framework.lot(CLEAN, DAY)["run"] == first


def test_two_jobs_do_not_write_one_lot(
    framework: LotCalls, reporter: Reporter, server: ServerProcess, calls: Calls
) -> None:
    run = reporter.start(DAY)
    other = Reporter(server, calls, "other")
    other.send(RunState.START, new_run_id(), writes={CLEAN: [DAY]})
    assert framework.lot(CLEAN, DAY)["run"] == run
    [entry] = conflicts(framework, "other")
    assert (entry["dataset"], entry["lot"]) == (CLEAN, DAY)


def test_what_is_being_made_is_not_read(
    framework: LotCalls, reporter: Reporter, server: ServerProcess, calls: Calls
) -> None:
    run = reporter.start(DAY)
    reader = Reporter(server, calls, "report")
    early = new_run_id()
    reader.send(RunState.START, early, reads={CLEAN: [DAY]})
    assert framework.live(job="report") == []
    assert [entry["run"] for entry in conflicts(framework, "report")] == [early]
    reporter.send(RunState.COMPLETE, run)
    later = new_run_id()
    reader.send(RunState.START, later, reads={CLEAN: [DAY]})
    assert [lock["claim"] for lock in framework.live(job="report")] == [later]


def test_a_job_on_hold_may_not_begin(framework: LotCalls, reporter: Reporter) -> None:
    framework.wire(JOB, [], [CLEAN], enforced=True)
    held = path("namespaces", framework.calls.namespace, "jobs", JOB, "hold")
    framework.calls.ask("POST", held, json={"why": "repairs"})
    with pytest.raises(requests.HTTPError, match="409"):
        reporter.start(DAY)
    assert framework.live(job=JOB) == []


def test_one_refused_event_of_a_batch_leaves_the_others_alone(framework: LotCalls) -> None:
    calls = framework.calls
    framework.wire(JOB, [], [CLEAN], enforced=True)
    runs = [new_run_id() for _ in range(3)]
    lots = ["1", "1", "2"]
    events = [
        calls.event(
            "START", run, JOB, outputs=[calls.dataset_ref(CLEAN, penstock_lot={"lot": lot})]
        )
        for run, lot in zip(runs, lots, strict=True)
    ]
    answer = calls.ask("POST", path("lineage", "batch"), json=events)
    assert [failed["index"] for failed in answer["failed_events"]] == [1]
    assert answer["failed_events"][0]["retriable"] is False
    assert {lock["claim"] for lock in framework.live(job=JOB)} == {runs[0], runs[2]}
