"""Data-quality assertions that runs report as OpenLineage facets hold the lots that fail them."""

from typing import Any

import msgspec
import pytest

from penstock.catalog.events.parse import Limits, read_event
from penstock.clock import format_time
from penstock.errors import Conflict
from penstock.ids import new_id
from penstock.locks.commands.admin import AcceptLot
from penstock.locks.events.reported_runs import LockingEvent
from penstock.locks.queries.lots import list_lot_checks, show_lot
from penstock.schema.locks import Stale
from penstock.states import WorkState
from tests.acceptance.flow_site import LOT, NS, Flow

Named = dict[str, Any]
OUTPUT, INPUT = "outputFacets", "inputFacets"


def asserted(dataset: str, success: bool, side: str = OUTPUT, **rest: Any) -> Named:
    """A dataset with what a check of it said."""
    said = {"assertion": "not_null", "success": success, "column": "amount", **rest}
    facet = {"_producer": "test", "_schemaURL": "test", "assertions": [said]}
    return {"namespace": NS, "name": dataset, side: {"dataQualityAssertions": facet}}


def plain(dataset: str) -> Named:
    return {"namespace": NS, "name": dataset}


def report(
    flow: Flow, kind: str, run: str, job: str, reads: list[Named], writes: list[Named]
) -> None:
    body = {
        "eventType": kind,
        "eventTime": format_time(flow.now),
        "producer": "test",
        "run": {"runId": run, "facets": {"penstock_lot": {"lot": LOT}}},
        "job": {"namespace": NS, "name": job},
        "inputs": reads,
        "outputs": writes,
    }
    flow.do(LockingEvent(read_event(msgspec.json.encode(body), Limits())))


def run_reported(flow: Flow, job: str, reads: list[Named], writes: list[Named]) -> str:
    run = new_id()
    report(flow, "START", run, job, reads, writes)
    report(flow, "COMPLETE", run, job, reads, writes)
    return run


def checks(flow: Flow, dataset: str) -> list[tuple[str, str | None, bool]]:
    with flow.catalog.read() as tx:
        found = list_lot_checks(tx, NS, dataset, LOT).checks
    return [(each.name, each.field, each.success) for each in found]


def let(flow: Flow, dataset: str) -> None:
    with flow.catalog.read() as tx:
        version = show_lot(tx, NS, dataset, LOT).version
    assert version is not None
    flow.do(AcceptLot("ann", "known", NS, dataset, LOT, version))


@pytest.fixture
def reported(flow: Flow) -> Flow:
    """raw is there; etl makes clean of it, as its events tell, and mart_it waits for that."""
    flow.wire("mart_it", ["clean"], ["mart"])
    flow.wire("etl", ["raw"], ["clean"], enforced=True)
    flow.register("raw")
    return flow


@pytest.mark.parametrize("side", [OUTPUT, "facets"])
def test_an_assertion_that_fails_on_an_output_holds_it(reported: Flow, side: str) -> None:
    run_reported(reported, "etl", [plain("raw")], [asserted("clean", False, side)])
    assert reported.status("clean") == "HOLD"
    assert reported.state("mart_it") is WorkState.WAITING
    assert "failed: not_null of amount" in reported.why("mart_it").sentence
    assert reported.told("clean") == ["announced"]
    with pytest.raises(Conflict, match="accept it"):
        reported.release_hold("clean")
    let(reported, "clean")
    assert reported.told("clean") == ["announced", "published"]
    reported.run("mart_it")


def test_an_assertion_that_holds_or_only_warns_is_noted(reported: Flow) -> None:
    run_reported(reported, "etl", [plain("raw")], [asserted("clean", True)])
    assert (reported.status("clean"), checks(reported, "clean")) == (
        "READY",
        [("not_null", "amount", True)],
    )
    reported.resubmit("etl")
    run_reported(reported, "etl", [plain("raw")], [asserted("clean", False, severity="warn")])
    assert reported.status("clean") == "READY"


def test_what_cannot_be_read_of_a_facet_does_not_hide_the_rest(reported: Flow) -> None:
    odd = asserted("clean", False)
    odd[OUTPUT]["dataQualityAssertions"]["assertions"].insert(0, {"success": "perhaps"})
    run_reported(reported, "etl", [plain("raw")], [odd])
    assert reported.status("clean") == "HOLD"


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_assertion_counts_whichever_event_of_the_run_has_it(reported: Flow, when: str) -> None:
    run = new_id()
    both = ([plain("raw")], [plain("clean")])
    report(reported, "START", run, "etl", *both)
    told = ("RUNNING", run, "etl", [plain("raw")], [asserted("clean", False)])
    if when == "before":
        report(reported, *told)
    report(reported, "COMPLETE", run, "etl", *both)
    if when == "after":
        assert reported.status("clean") == "READY"
        reported.run("mart_it")
        report(reported, *told)
        assert reported.status("mart") == "HOLD"
    assert reported.status("clean") == "HOLD"
    let(reported, "clean")
    assert reported.status("clean") == "READY"


@pytest.mark.parametrize("end", ["COMPLETE", "FAIL"])
def test_a_job_that_checks_what_it_reads_holds_it_with_what_was_made_of_it(
    reported: Flow, end: str
) -> None:
    run_reported(reported, "etl", [plain("raw")], [plain("clean")])
    reported.run("mart_it")
    run = new_id()
    report(reported, "START", run, "checker", [plain("clean")], [])
    report(reported, end, run, "checker", [asserted("clean", False, INPUT)], [])
    assert reported.statuses("clean", "mart") == ["HOLD", "HOLD"]
    assert reported.told("clean") == ["published"]
    let(reported, "clean")
    assert reported.statuses("clean", "mart") == ["READY", "READY"]


def test_a_check_of_a_version_that_is_not_there_any_more_holds_nothing(reported: Flow) -> None:
    run_reported(reported, "etl", [plain("raw")], [plain("clean")])
    run = new_id()
    report(reported, "START", run, "checker", [plain("clean")], [])
    reported.resubmit("etl")
    run_reported(reported, "etl", [plain("raw")], [plain("clean")])
    report(reported, "COMPLETE", run, "checker", [asserted("clean", False, INPUT)], [])
    assert reported.status("clean") == "READY"
    assert checks(reported, "clean") == [("not_null", "amount", False)]


@pytest.mark.parametrize("policy", list(Stale))
def test_what_was_made_of_a_bad_lot_is_free_when_that_was_made_again(
    reported: Flow, policy: Stale
) -> None:
    reported.wire("mart_it", ["clean"], ["mart"], stale=policy)
    reported.wire("report_it", ["mart"], ["report"], stale=policy)
    run_reported(reported, "etl", [plain("raw")], [plain("clean")])
    reported.run("mart_it", "report_it")
    run_reported(reported, "checker", [asserted("clean", False, INPUT)], [])
    reported.resubmit("etl")
    assert reported.statuses("clean", "mart", "report") == ["RESUBMIT", "HOLD", "HOLD"]
    run_reported(reported, "etl", [plain("raw")], [asserted("clean", True)])
    if policy is Stale.RERUN:
        assert reported.statuses("clean", "mart", "report") == ["READY", "RESUBMIT", "HOLD"]
        reported.run("mart_it")
        assert reported.statuses("mart", "report") == ["READY", "RESUBMIT"]
        reported.run("report_it")
    else:
        held = WorkState.HELD if policy is Stale.HOLD else WorkState.DONE
        assert reported.state("mart_it") is held
    assert reported.statuses("clean", "mart", "report") == ["READY"] * 3


def test_a_lot_from_outside_that_failed_is_good_again_when_it_is_registered_anew(
    flow: Flow,
) -> None:
    flow.wire("clean_it", ["raw"], ["clean"], stale=Stale.RERUN)
    flow.register("raw")
    flow.run("clean_it")
    run_reported(flow, "checker", [asserted("raw", False, INPUT)], [])
    assert flow.statuses("raw", "clean") == ["HOLD", "HOLD"]
    flow.register("raw")
    assert flow.statuses("raw", "clean") == ["READY", "RESUBMIT"]
    flow.run("clean_it")
    assert flow.statuses("raw", "clean") == ["READY", "READY"]


def test_what_somebody_holds_and_fails_a_check_waits_for_both(reported: Flow) -> None:
    run_reported(reported, "etl", [plain("raw")], [plain("clean")])
    run = new_id()
    report(reported, "START", run, "checker", [plain("clean")], [])
    reported.hold("clean")
    report(reported, "COMPLETE", run, "checker", [asserted("clean", False, INPUT)], [])
    with pytest.raises(Conflict, match="checks of it failed"):
        reported.release_hold("clean")
    let(reported, "clean")
    assert reported.status("clean") == "HOLD"
    reported.release_hold("clean")
    assert reported.status("clean") == "READY"


def make_bad(flow: Flow) -> None:
    """raw fails its checks after clean was made of it."""
    flow.wire("load", [], ["raw"])
    flow.wire("clean_it", ["raw"], ["clean"])
    flow.run("load", "clean_it")
    run_reported(flow, "inspect", [asserted("raw", False, INPUT)], [])
    assert flow.statuses("raw", "clean") == ["HOLD", "HOLD"]


def test_what_was_made_of_a_lot_that_failed_stays_held_while_that_is_not_there(flow: Flow) -> None:
    make_bad(flow)
    flow.wire("clean_it", ["better"], ["clean"])
    flow.resubmit("load")
    flow.register("better")
    assert flow.statuses("raw", "clean") == ["RESUBMIT", "HOLD"]


def test_what_was_made_of_a_lot_that_failed_waits_for_a_person_if_its_job_reads_others_now(
    flow: Flow,
) -> None:
    make_bad(flow)
    flow.wire("clean_it", ["better"], ["clean"])
    flow.resubmit("load")
    flow.run("load")
    flow.register("better")
    assert flow.statuses("raw", "clean") == ["READY", "HOLD"]
    flow.release_hold("clean")
    assert flow.statuses("raw", "clean") == ["READY", "READY"]
