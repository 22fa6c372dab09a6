"""Holding a lot, or a dataset, holds what was or would be made of it, and says so."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from penstock.errors import Conflict
from penstock.locks.commands import ClaimLots, ClaimRef, FailClaims, HoldDataset, HoldJob, HoldWork
from penstock.states import WorkState
from tests.acceptance.flow_site import LOT, NS, Flow


def make_diamond(flow: Flow) -> None:
    """raw → clean → mart, and report of raw and mart; all of them were made."""
    flow.wire("report_it", ["raw", "mart"], ["report"])
    flow.wire("mart_it", ["clean"], ["mart"])
    flow.wire("clean_it", ["raw"], ["clean"])
    flow.register("raw")
    flow.run("clean_it", "mart_it", "report_it")


ALL = ("raw", "clean", "mart", "report")


def test_a_lot_that_is_held_holds_all_that_was_made_of_it(flow: Flow) -> None:
    make_diamond(flow)
    flow.wire("read_it", ["report"], [])
    flow.hold("raw", "wrong currency")
    assert flow.statuses(*ALL) == ["HOLD"] * 4
    assert flow.state("read_it") is WorkState.WAITING
    told = flow.why("read_it")
    assert "lot 2026-11-15 of ns/raw, which it was made from, is held: wrong currency" in (
        told.sentence
    )
    assert told.reasons[0].who == "ann"
    assert flow.log("mart")[-1].who == "ann"


def test_what_was_made_of_a_lot_is_held_whatever_its_job_reads_and_makes_by_now(flow: Flow) -> None:
    make_diamond(flow)
    flow.wire("clean_it", ["better"], ["clean"])
    flow.wire("report_it", ["raw", "mart"], ["other"])
    flow.hold("raw", "wrong currency")
    assert flow.statuses(*ALL) == ["HOLD"] * 4
    flow.release_hold("raw")
    assert flow.statuses(*ALL) == ["READY"] * 4


def test_what_was_made_anew_of_something_else_is_not_held(flow: Flow) -> None:
    make_diamond(flow)
    flow.wire("clean_it", ["better"], ["clean"])
    flow.resubmit("clean_it")
    flow.register("better")
    flow.run("clean_it")
    flow.wire("clean_it", ["better", "raw"], ["clean"])
    flow.hold("raw", "wrong currency")
    assert flow.statuses("raw", "clean") == ["HOLD", "READY"]


def test_a_second_hold_is_kept_with_its_reason_and_one_release_ends_both(flow: Flow) -> None:
    make_diamond(flow)
    flow.wire("read_it", ["raw"], [])
    assert flow.hold("raw", "first") is None
    before = flow.hold("raw", "second, legal")
    assert before is not None
    assert (before.who, before.why) == ("ann", "first")
    held = [entry for entry in flow.log("raw") if entry.action == "hold"]
    assert [(entry.why, entry.was, entry.became) for entry in held] == [
        ("first", "READY", "HOLD"),
        ("second, legal", "HOLD", "HOLD"),
    ]
    assert "is held by 'ann'" in flow.why("read_it").sentence
    assert "second, legal" in flow.why("read_it").sentence
    assert flow.audited("lot hold") == ["second, legal", "first"]
    assert [entry.why for entry in flow.log("clean") if entry.action == "hold"] == [
        f"lot {LOT} of ns/raw, which it was made from, is held: first"
    ]
    flow.release_hold("raw")
    assert flow.statuses(*ALL) == ["READY"] * 4


def test_a_second_hold_of_work_is_kept_with_its_reason(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"])
    flow.register("raw")
    for why in ("first", "second, legal"):
        flow.do(HoldWork("ann", why, NS, "clean_it", LOT))
    assert flow.audited("work hold") == ["second, legal", "first"]
    assert "second, legal" in flow.why("clean_it").sentence
    flow.release_work("clean_it")
    assert flow.state("clean_it") is WorkState.READY


def test_it_is_let_go_after_what_it_was_made_from(flow: Flow) -> None:
    make_diamond(flow)
    flow.wire("read_it", ["report"], [])
    flow.hold("raw")
    flow.release_hold("raw")
    assert flow.statuses(*ALL) == ["READY"] * 4
    assert flow.order("release hold") == ["raw", "clean", "mart", "report"]
    assert [flow.log(dataset)[-1].who for dataset in ALL[1:]] == ["ben"] * 3
    assert flow.told("report")[-1] == "published"
    assert flow.why("read_it").runnable


def test_a_derived_lot_is_not_let_go_alone(flow: Flow) -> None:
    make_diamond(flow)
    flow.hold("raw")
    with pytest.raises(Conflict, match="was made from lot 2026-11-15 of ns/raw, which is held"):
        flow.release_hold("report")
    assert flow.status("report") == "HOLD"


def test_holds_and_releases_at_once_leave_nothing_held_for_nothing(flow: Flow) -> None:
    make_diamond(flow)

    def change(number: int) -> None:
        with suppress(Conflict):  # what it was made from is held
            (flow.hold if number % 2 else flow.release_hold)(ALL[number % 3])

    with ThreadPoolExecutor(4) as people:
        list(people.map(change, range(60)))
    for dataset in ALL[:3]:  # each after what it was made from
        flow.release_hold(dataset)
    assert flow.statuses(*ALL) == ["READY"] * 4
    flow.check()


@pytest.mark.parametrize("first", ["raw", "clean"])
def test_what_is_held_for_two_lots_waits_for_both(flow: Flow, first: str) -> None:
    make_diamond(flow)
    second = "clean" if first == "raw" else "raw"
    flow.hold(first)
    flow.hold(second)
    if first == "clean":  # raw is free, but clean is held for itself
        flow.release_hold("raw")
        assert flow.statuses(*ALL) == ["READY", "HOLD", "HOLD", "HOLD"]
        flow.release_hold("clean")
    else:
        with pytest.raises(Conflict, match="ns/raw"):
            flow.release_hold("clean")
        flow.release_hold("raw")
        assert flow.statuses(*ALL) == ["READY", "HOLD", "HOLD", "HOLD"]
        flow.release_hold("clean")
    assert flow.statuses(*ALL) == ["READY"] * 4


def test_to_hold_twice_and_let_go_once_is_enough(flow: Flow) -> None:
    make_diamond(flow)
    flow.hold("clean")
    flow.hold("clean")
    assert flow.order("hold") == ["clean", "mart", "report"]
    flow.release_hold("clean")
    assert flow.statuses(*ALL) == ["READY"] * 4


def test_what_is_being_made_is_held_when_it_is_published(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"])
    flow.wire("mart_it", ["clean"], ["mart"])
    flow.register("raw")
    claim = flow.claim("clean_it")
    flow.hold("raw")
    assert flow.status("clean") == "RUNNING"
    flow.complete(claim)
    assert flow.status("clean") == "HOLD"
    assert flow.told("clean") == ["announced"]
    assert flow.state("mart_it") is WorkState.WAITING
    flow.release_hold("raw")
    assert flow.told("clean") == ["announced", "published"]
    flow.run("mart_it")


def test_what_is_let_go_while_it_is_made_is_not_held(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"])
    flow.register("raw")
    claim = flow.claim("clean_it")
    flow.hold("raw")
    flow.release_hold("raw")
    flow.complete(claim)
    assert flow.status("clean") == "READY"


def test_what_fails_while_its_input_is_held_is_tried_when_that_is_let_go(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"], back_off_seconds=0)
    flow.register("raw")
    claim = flow.claim("clean_it")
    flow.hold("raw")
    flow.do(FailClaims((ClaimRef(claim.id, claim.token),), "no luck"))
    assert flow.state("clean_it") is WorkState.WAITING
    flow.release_hold("raw")
    flow.run("clean_it")
    flow.hold("raw")
    flow.release_hold("raw")
    assert flow.status("clean") == "READY"


def test_a_lot_out_of_tries_that_is_held_too_waits_for_both(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"], tries_max=1)
    flow.register("raw")
    claim = flow.claim("clean_it")
    flow.do(FailClaims((ClaimRef(claim.id, claim.token),), "no luck"))
    flow.hold("clean")
    flow.do(HoldWork("ben", "try again", NS, "clean_it", LOT, hold=False))
    assert flow.state("clean_it") is WorkState.WAITING
    flow.release_hold("clean")
    flow.run("clean_it")
    assert flow.status("clean") == "READY"


def test_rewiring_while_held_lets_nothing_be_held_for_ever(flow: Flow) -> None:
    make_diamond(flow)
    flow.hold("raw")
    flow.wire("mart_it", ["other"], ["mart"])
    flow.wire("report_it", ["mart"], ["report"])
    assert flow.statuses("mart", "report") == ["HOLD", "HOLD"]
    flow.release_hold("raw")
    assert flow.statuses(*ALL) == ["READY"] * 4


def test_a_held_dataset_stops_every_job_further_down(flow: Flow) -> None:
    make_diamond(flow)
    flow.do(HoldDataset("ann", "disk swap", NS, "raw"))
    flow.register("raw")  # more comes in meanwhile
    assert flow.do(ClaimLots(NS, "clean_it", "w1")) == []
    flow.resubmit("mart_it")
    told = flow.why("mart_it")
    assert [reason.kind for reason in told.reasons] == ["held_lineage"]
    assert told.sentence == (
        "Job ns/mart_it is held by 'ann' since 2026-11-15 12:00:11 UTC: dataset ns/raw, which "
        "its inputs are made from, is held: disk swap. Release that dataset to continue."
    )
    assert flow.do(ClaimLots(NS, "mart_it", "w1")) == []
    with pytest.raises(Conflict, match="dataset ns/raw, which its inputs are made from, is held"):
        flow.do(HoldJob("ben", "go on", NS, "mart_it", hold=False))
    flow.do(HoldDataset("ben", "done", NS, "raw", hold=False))
    flow.run("mart_it")


def test_a_job_that_is_held_for_itself_too_stays_so(flow: Flow) -> None:
    make_diamond(flow)
    flow.do(HoldDataset("ann", "disk swap", NS, "raw"))
    flow.do(HoldJob("cid", "new code", NS, "mart_it"))
    flow.resubmit("mart_it")
    flow.do(HoldDataset("ben", "done", NS, "raw", hold=False))
    assert [reason.kind for reason in flow.why("mart_it").reasons] == ["held_job"]
    flow.do(HoldDataset("ann", "disk swap", NS, "raw"))
    flow.do(HoldJob("cid", "it works", NS, "mart_it", hold=False))
    assert [reason.kind for reason in flow.why("mart_it").reasons] == ["held_lineage"]


def test_a_job_that_is_wired_under_a_held_dataset_is_held_and_one_that_leaves_is_not(
    flow: Flow,
) -> None:
    make_diamond(flow)
    flow.do(HoldDataset("ann", "disk swap", NS, "clean"))
    flow.wire("sum_it", ["mart"], ["sums"])
    assert flow.do(ClaimLots(NS, "sum_it", "w1")) == []
    assert flow.why("sum_it").reasons[0].kind == "held_lineage"
    flow.wire("sum_it", ["other"], ["sums"])
    flow.register("other")
    flow.run("sum_it")


def test_what_was_made_of_a_lot_is_held_also_while_one_between_is_made_again(flow: Flow) -> None:
    make_diamond(flow)
    flow.resubmit("clean_it")
    flow.hold("raw", "wrong currency")
    assert flow.statuses(*ALL) == ["HOLD", "RESUBMIT", "HOLD", "HOLD"]
    flow.release_hold("raw")
    assert flow.statuses(*ALL) == ["READY", "RESUBMIT", "READY", "READY"]
    claim = flow.claim("clean_it")
    flow.do(FailClaims((ClaimRef(claim.id, claim.token),), "disk full"))
    flow.hold("raw", "wrong currency")
    assert flow.statuses(*ALL) == ["HOLD", "ERROR", "HOLD", "HOLD"]
