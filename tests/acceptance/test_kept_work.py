"""A person keeps a job from a lot, whatever the job reads and however it is wired."""

import pytest

from penstock.access import audit
from penstock.catalog.commands import DeleteJob
from penstock.catalog.writes import open_write_queue
from penstock.errors import Conflict, NotFound
from penstock.locks.commands import (
    ClaimLots,
    ClaimRef,
    FailClaims,
    HoldWork,
    RegisterLots,
    ResubmitLots,
    WireJob,
)
from penstock.states import WorkState
from tests.acceptance.flow_site import LOT, NS, Flow


def keep(flow: Flow, job: str = "make", why: str = "auditors look at it") -> None:
    flow.do(HoldWork("ann", why, NS, job, LOT))


def fail(flow: Flow, job: str) -> None:
    claim = flow.claim(job)
    flow.do(FailClaims((ClaimRef(claim.id, claim.token),), "no such file"))


def test_a_job_that_reads_nothing_is_kept_from_a_lot(flow: Flow) -> None:
    flow.wire("make", [], ["made"])
    keep(flow)
    assert flow.state("make") is WorkState.HELD
    with pytest.raises(Conflict, match="is HELD"):
        flow.claim("make")
    flow.release_work("make")
    flow.run("make")
    assert flow.status("made") == "READY"


def test_a_back_off_does_not_end_by_a_hold(flow: Flow) -> None:
    flow.wire("make", [], ["made"], back_off_seconds=600)
    fail(flow, "make")
    keep(flow)
    assert flow.state("make") is WorkState.HELD


def test_what_was_made_and_is_held_says_nothing_of_the_job(flow: Flow) -> None:
    """The lot waits for a person; the job, which reads nothing, has done it."""
    flow.wire("make", [], ["made"], tries_max=1)
    flow.run("make")
    flow.hold("made")
    assert flow.state("make") is WorkState.DONE
    flow.release_hold("made")
    assert (flow.state("make"), flow.status("made")) == (WorkState.DONE, "READY")


def test_a_job_that_is_wired_elsewhere_is_kept_from_the_lot_all_the_same(flow: Flow) -> None:
    flow.wire("make", ["raw"], ["made"])
    flow.register("raw")
    keep(flow)
    flow.wire("make", ["other"], ["made"])
    flow.register("other")
    assert flow.state("make") is WorkState.HELD
    flow.release_work("make")
    flow.run("make")


def test_a_lot_that_is_out_of_tries_can_be_kept_too(flow: Flow) -> None:
    flow.wire("make", ["raw"], ["made"], tries_max=1)
    flow.register("raw")
    fail(flow, "make")
    keep(flow)
    held = flow.log("made")[-1]
    assert (held.action, held.who, held.why) == ("hold", "ann", "auditors look at it")
    with flow.catalog.read() as tx:
        assert [entry.action for entry in audit.entries(tx, limit=1, offset=0)] == ["work hold"]
    flow.release_work("make")
    assert flow.state("make") is WorkState.READY


def test_a_lot_that_is_done_stays_so_while_its_job_is_kept_from_it(flow: Flow) -> None:
    flow.wire("make", ["raw"], ["made"])
    flow.register("raw")
    flow.run("make")
    keep(flow)
    assert (flow.state("make"), flow.status("made")) == (WorkState.HELD, "READY")
    flow.release_work("make")
    assert flow.state("make") is WorkState.DONE
    keep(flow)
    flow.resubmit("make")
    assert flow.state("make") is WorkState.READY


@pytest.mark.parametrize(
    "let_go",
    [
        HoldWork("ben", "seen", NS, "make", LOT, hold=False),
        ResubmitLots("ben", "again", NS, "make", (LOT,)),
    ],
    ids=["release", "resubmit"],
)
def test_another_server_lets_go_what_this_one_kept(
    flow: Flow, let_go: HoldWork | ResubmitLots
) -> None:
    flow.wire("make", ["raw"], ["made"])
    flow.register("raw")
    keep(flow)
    other = open_write_queue(
        flow.database, clock=lambda: flow.now, batch_events_max=8, queue_length_max=8
    )
    other.start()
    other.submit(let_go).result()
    other.stop()
    flow.run("make")


def test_a_hold_while_a_lot_is_made_tells_who_and_why(flow: Flow) -> None:
    flow.wire("clean", ["raw"], ["cleaned"])
    flow.wire("add_up", ["cleaned"], ["sums"])
    flow.register("raw")
    claim = flow.claim("clean")
    flow.hold("raw", "wrong currency")
    flow.complete(claim)
    [told] = [entry for entry in flow.log("cleaned") if entry.action == "hold"]
    assert (told.who, told.became) == ("ann", "HOLD")
    assert "lot 2026-11-15 of ns/raw, which it was made from, is held: wrong currency" in told.why
    assert "wrong currency" in flow.why("add_up").sentence


# ---- Jobs that are wired again.


def test_a_deleted_job_is_back_when_it_is_wired_again(flow: Flow) -> None:
    flow.wire("make", ["raw"], ["made"])
    flow.register("raw")
    flow.do(DeleteJob(NS, "make", "ann"))
    with pytest.raises(NotFound, match="make"):
        flow.claim("make")
    flow.wire("make", ["raw"], ["made"])
    flow.run("make")


def test_settings_of_a_deleted_job_are_refused(flow: Flow) -> None:
    flow.wire("make", ["raw"], ["made"], lease_seconds=30)
    flow.do(DeleteJob(NS, "make", "ann"))
    with pytest.raises(NotFound, match="ns/make was deleted; name its inputs and outputs"):
        flow.do(WireJob(NS, "make", lease_seconds=33))
    flow.wire("make", ["raw"], ["made"])
    flow.register("raw")
    assert flow.claim("make").lease_seconds == 30


def test_the_log_of_a_lot_outlives_the_wiring_of_its_job(flow: Flow) -> None:
    flow.wire("make", ["raw"], ["made"])
    flow.register("raw")
    flow.run("make")
    before = flow.log("made")
    flow.wire("make", ["other"], ["elsewhere"])
    assert flow.log("made") == before
    assert [entry.action for entry in before] == ["claim", "complete"]


# ---- Priority.


def test_priority_counts_whichever_input_is_registered_last(flow: Flow) -> None:
    flow.wire("join", ["a", "b"], ["joined"])
    flow.do(RegisterLots(NS, "a", ("1", "2", "3"), "ann"))
    flow.do(RegisterLots(NS, "b", ("2",), "ann", priority=7))
    flow.do(RegisterLots(NS, "b", ("1", "3"), "ann"))
    claims = flow.do(ClaimLots(NS, "join", "w1", count=3))
    assert [claim.lot for claim in claims] == ["2", "1", "3"]
