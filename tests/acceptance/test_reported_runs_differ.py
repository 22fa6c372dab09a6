"""Runs of one job that is reported by events need not all read and write the same."""

from penstock.states import WorkState
from tests.acceptance.flow_site import LOT, Flow
from tests.acceptance.test_told_of_reported_runs import OTHER, made, report


def test_a_lot_that_was_made_without_an_input_of_a_run_that_failed_is_done(flow: Flow) -> None:
    flow.wire("read_it", ["raw"], [])
    flow.register("raw")
    report(flow, made("clean", LOT), reads=[made("raw", LOT)], end="FAIL")
    report(flow, made("clean", LOT))
    assert (flow.status("clean"), flow.state("load")) == ("READY", WorkState.DONE)
    flow.register("raw")  # whoever looks at the job again finds the same
    assert flow.state("load") is WorkState.DONE


def test_a_lot_that_is_held_in_one_output_stays_so_when_another_is_made(flow: Flow) -> None:
    report(flow, made("clean", LOT), end="FAIL")
    flow.hold("clean")
    report(flow, made("rejects", LOT))
    assert flow.statuses("clean", "rejects") == ["HOLD", "READY"]
    assert flow.state("load") is WorkState.HELD


def test_outputs_that_events_told_count_from_when_somebody_states_them(flow: Flow) -> None:
    report(flow, made("clean", LOT))
    report(flow, made("rejects", OTHER))
    flow.check()
    flow.wire("load", [], ["clean", "rejects"])
    flow.check()


def test_a_claim_holds_what_its_job_read_when_it_was_given(flow: Flow) -> None:
    flow.wire("load", ["raw"], ["clean"])
    flow.register("raw")
    claim = flow.claim("load")
    flow.wire("load", ["raw", "dim"], ["clean"])
    report(flow, made("clean"), reads=[made("raw"), made("dim")], run=claim.id, end="RUNNING")
    flow.check()
    flow.complete(claim)
