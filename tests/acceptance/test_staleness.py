"""When a lot gets a new version, what was made of the one before is stale: by job, it is made
again, held for a person, or only marked.
"""

import pytest

from penstock.locks.commands import ClaimLots
from penstock.locks.queries.lots import show_lot
from penstock.schema.locks import Stale
from penstock.states import WorkState
from tests.acceptance.flow_site import LOT, NS, Flow

DONE, HELD, READY, WAITING = WorkState.DONE, WorkState.HELD, WorkState.READY, WorkState.WAITING


def make_pair(flow: Flow, stale: Stale | None = None) -> None:
    """raw → clean → mart; mart is made by a job with this policy."""
    flow.wire("clean_it", ["raw"], ["clean"])
    flow.wire("mart_it", ["clean"], ["mart"], stale=stale)
    flow.register("raw")
    flow.run("clean_it", "mart_it")


def remake(flow: Flow, job: str = "clean_it") -> None:
    flow.resubmit(job)
    flow.run(job)


def test_a_lot_registered_anew_makes_its_consumer_stale(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"], stale=Stale.RERUN)
    flow.register("raw")
    flow.run("clean_it")
    flow.register("raw", renew=False)  # that is no new version
    assert (flow.state("clean_it"), flow.stale()) == (DONE, [])
    flow.register("raw")
    assert (flow.state("clean_it"), flow.status("clean")) == (READY, "RESUBMIT")
    assert flow.stale() == ["clean_it"]


def test_by_default_a_stale_lot_is_only_marked(flow: Flow) -> None:
    make_pair(flow)
    remake(flow)
    assert (flow.state("mart_it"), flow.status("mart")) == (DONE, "READY")
    assert flow.stale() == ["mart_it"]
    told = flow.why("mart_it")
    assert "Since then ns/clean got a newer version; resubmit the lot to use it." in told.sentence
    remake(flow, "mart_it")
    assert flow.stale() == []
    assert "newer version" not in flow.why("mart_it").sentence


def test_what_is_to_be_made_again_cannot_be_read_until_it_is(flow: Flow) -> None:
    make_pair(flow, Stale.RERUN)
    flow.wire("report_it", ["mart"], ["report"])
    remake(flow)
    assert (flow.state("mart_it"), flow.status("mart")) == (READY, "RESUBMIT")
    assert flow.state("report_it") is WAITING
    assert "is to be made again by job ns/mart_it" in flow.why("report_it").sentence
    flow.run("mart_it", "report_it")
    assert flow.stale() == []
    assert flow.log("mart")[-1].action == "complete"


def test_a_stale_lot_waits_for_a_person_who_may_keep_it(flow: Flow) -> None:
    make_pair(flow, Stale.HOLD)
    remake(flow)
    assert (flow.state("mart_it"), flow.status("mart")) == (HELD, "READY")
    told = flow.why("mart_it")
    assert "is held by 'penstock'" in told.sentence
    assert "an input has a newer version of lot 2026-11-15" in told.sentence
    flow.release_work("mart_it")
    assert (flow.state("mart_it"), flow.stale()) == (DONE, ["mart_it"])


def test_what_was_kept_is_not_held_again_for_the_same_version(flow: Flow) -> None:
    make_pair(flow, Stale.HOLD)
    remake(flow)
    flow.release_work("mart_it")
    flow.hold("clean")
    flow.release_hold("clean")
    flow.wire("other", ["clean"], ["else"])
    assert flow.state("mart_it") is DONE
    remake(flow)
    assert flow.state("mart_it") is HELD


def test_a_stale_lot_that_is_resubmitted_is_made_of_the_new_version(flow: Flow) -> None:
    make_pair(flow, Stale.HOLD)
    remake(flow)
    flow.resubmit("mart_it")
    claim = flow.claim("mart_it")
    with flow.catalog.read() as tx:
        version = show_lot(tx, NS, "clean", LOT).version
    assert [pinned.version for pinned in claim.inputs] == [version]
    flow.complete(claim)
    assert (flow.state("mart_it"), flow.stale()) == (DONE, [])


@pytest.mark.parametrize(
    ("policy", "state", "status"),
    [(Stale.RERUN, READY, "RESUBMIT"), (Stale.HOLD, HELD, "READY"), (Stale.IGNORE, DONE, "READY")],
)
def test_a_version_that_comes_while_the_consumer_runs_makes_it_stale_when_it_is_done(
    flow: Flow, policy: Stale, state: WorkState, status: str
) -> None:
    flow.wire("clean_it", ["raw"], ["clean"], stale=policy)
    flow.register("raw")
    claim = flow.claim("clean_it")
    flow.register("raw")
    assert flow.stale() == []
    flow.complete(claim)
    assert (flow.state("clean_it"), flow.status("clean")) == (state, status)
    assert flow.stale() == ["clean_it"]
    if policy is Stale.RERUN:
        assert flow.told("clean") == ["announced"]
        flow.run("clean_it")
        assert flow.stale() == []
        assert flow.told("clean") == ["announced", "published"]


def test_in_a_chain_each_is_made_again_after_the_one_before(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"], stale=Stale.RERUN)
    flow.wire("mart_it", ["clean"], ["mart"], stale=Stale.RERUN)
    flow.wire("report_it", ["mart"], ["report"], stale=Stale.RERUN)
    flow.register("raw")
    flow.run("clean_it", "mart_it", "report_it")
    flow.register("raw")
    for job in ("clean_it", "mart_it", "report_it"):
        ready = [j for j in ("clean_it", "mart_it", "report_it") if flow.state(j) is READY]
        assert ready == [job]
        flow.run(job)
    assert flow.stale() == []
    assert flow.statuses("clean", "mart", "report") == ["READY"] * 3


def test_any_input_of_a_join_makes_it_stale_once(flow: Flow) -> None:
    flow.wire("join_it", ["orders", "rates"], ["priced"], stale=Stale.RERUN)
    flow.register("orders")
    flow.register("rates")
    flow.run("join_it")
    flow.register("rates")
    flow.register("orders")
    assert flow.do(ClaimLots(NS, "join_it", "w1", count=5))[0].attempt == 1
    assert flow.do(ClaimLots(NS, "join_it", "w1", count=5)) == []


def test_a_held_lot_is_made_again_when_it_is_let_go(flow: Flow) -> None:
    make_pair(flow, Stale.RERUN)
    flow.hold("mart")
    remake(flow)
    assert (flow.state("mart_it"), flow.status("mart")) == (WAITING, "HOLD")
    flow.release_hold("mart")
    assert (flow.state("mart_it"), flow.status("mart")) == (READY, "RESUBMIT")
    flow.run("mart_it")


def test_a_policy_holds_for_what_becomes_stale_from_then_on(flow: Flow) -> None:
    make_pair(flow)
    remake(flow)
    flow.wire("mart_it", ["clean"], ["mart"], stale=Stale.RERUN)
    assert flow.state("mart_it") is DONE
    remake(flow)
    assert flow.state("mart_it") is READY
